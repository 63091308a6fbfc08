"""The metadata image: the state of the cluster at one offset of its metadata log, as a value.

    records ---> MetadataDelta ---> MetadataImage ---> records of a snapshot
                       |                  |
                       +--- publishers <--+

A `MetadataImage` never changes. A `MetadataDelta` replays records of `protocol.metadata_log` on top
of one and is applied to make the next; parts that no record named are shared between the two.
Publishers get both: the delta says what changed, the image what is true now.

A feed owns one `MetadataLoader` and is its only caller. For each batch of committed records, in
the order of the log, it calls

    loader.load_batch(records, Provenance(last_offset, epoch, append_timestamp))

and for a snapshot, which replaces what is there,

    loader.load_snapshot(records, Provenance(end_offset - 1, epoch, last_contained_timestamp))

Each has a form that ends with `_in_steps` and pauses often, for what may be much. A feed of the
metadata log (`broker.metadata_log.metadata_feed`) hands over what it decoded, without control
records, up to the high watermark. It holds back publishing until it has caught up by installing its
publishers only then (`MetadataLoader.install`): the first delta of a publisher has everything in
it. A feed of znodes makes one snapshot of all that it reads when its session begins, or begins
again, and one batch of each notification after that; it numbers them itself. The delta of a
snapshot has what is different from the image before, removals too, so both kinds of feed may jump.

Not here: files, sockets, znodes, clocks, tasks and decisions. Nothing awaits, nothing is locked,
and the package imports `protocol` only. The controller and the broker may import it.

Start reading in `metadata_image`, then `delta`; `snapshot` is the way back to records, and
`local_replicas` says what a delta means to the replicas of one broker.
"""

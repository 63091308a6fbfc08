"""A broker's replica of the metadata log of a KRaft quorum: it does what `controller.raft` decides.

    controllers <-- controller_links --> metadata_observer --> storage.metadata_log
                                              |
                                        metadata_feed --> controller.image, publishers

One task asks, carries out what follows from the answer, and feeds what is committed to the image. A
second one, now and then, writes a snapshot of the image. Nothing here holds the event loop up for
longer than a slice, and nothing decides.

No running broker uses it yet: `GAPS.md`.

Start reading in `metadata_observer`.
"""

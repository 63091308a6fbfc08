"""The records that a new cluster of the Raft quorum begins with, and the file that holds them.

    release, features ---> levels ---> records ---+
    voters (KIP-853) ---> VotersRecord -----------+---> checkpoint

`kafka-storage format` writes them to the disk of each controller (KIP-1170); the first leader
appends them to `__cluster_metadata`. Pure: no files, no clock, no chance. The package imports
`protocol`, `config` and `controller.image`; the broker may import it.

Start reading in `feature_levels`, then `checkpoint`.
"""

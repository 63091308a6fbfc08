"""`python -m broker.storage`: formats the log directories of a node of a Raft quorum.

    property file ---> node ------+
    command line ---> request ----+---> bootstrap ---> plan ---> directories
    directories, as they are -----+

Flags, files and refusals are those of Apache Kafka's `kafka-storage`, whose nodes start on what is
written here. `bootstrap` and `plan` decide and touch nothing; `directories` reads and writes. A
directory is formatted once its `meta.properties` is there, which is written last.

It is a program of its own: nothing imports it. Start reading in `__main__`, then `plan`.
"""

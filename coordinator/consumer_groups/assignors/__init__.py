"""Server-side assignors, which distribute partitions to the members of a group.

`uniform` gives all members the same number of partitions, and moves few when the group changes;
`range` gives the same range of each topic to a member, so that topics with equal keys meet. Neither
looks at racks, as in Apache Kafka 4.3. They are generators, which yield wherever other requests may
be served; a group of ten thousand members takes some hundred milliseconds.
"""

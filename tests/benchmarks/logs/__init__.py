"""Cost of logs on disk, beyond the comparison of `make bench` with Apache Kafka."""

"""What logs on disk cost, beyond what `make bench` compares with Apache Kafka."""

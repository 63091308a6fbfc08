"""Stock clients and Apache Kafka's tools against brokers that ask who is there."""

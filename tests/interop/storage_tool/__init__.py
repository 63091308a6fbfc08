"""`broker.storage` beside Apache Kafka's `kafka-storage`, and nodes on what either formatted."""

"""What Apache Kafka's own jars say: message definitions, and bytes written by their classes."""

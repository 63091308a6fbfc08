"""Facts from Apache Kafka's own jars: message definitions, and bytes written by their classes."""

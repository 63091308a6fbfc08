"""What Kafka's tools and libraries write as configuration values, and what they are shown."""

"""What our broker has besides what Apache Kafka has, measured."""

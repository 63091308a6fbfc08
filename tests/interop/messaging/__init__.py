"""What our broker has besides what Apache Kafka has, from stock clients: delays."""

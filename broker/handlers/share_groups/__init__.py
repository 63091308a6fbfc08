"""What members of share groups send to leaders of partitions: ShareFetch and ShareAcknowledge."""

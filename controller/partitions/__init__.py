"""State machines of partitions and replicas, leader selection, in-sync sets, reassignment."""

"""Several brokers with a ZooKeeper: faults, leaders that change, and Apache's broker among ours."""

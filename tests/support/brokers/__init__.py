"""Brokers as processes, ours and Apache's, alone or in clusters, and their ZooKeeper."""

"""What a simulated broker stands on: loop, hosts, sockets, network, disks and ZooKeeper."""

"""The surroundings of a simulated broker: loop, hosts, sockets, network, disks and ZooKeeper."""

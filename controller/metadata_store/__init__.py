"""The metadata store: the port, the tree in memory, and the embedded store on disk."""

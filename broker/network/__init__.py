"""Sockets: listeners, connections, their buffers, queues and quotas, links to other brokers."""

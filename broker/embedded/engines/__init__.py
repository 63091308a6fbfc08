"""Hosts of an embedded broker: a thread of this process, or a process of its own."""

"""Where an embedded broker runs: on a thread of this process, or in a process of its own."""

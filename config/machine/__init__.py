"""Several brokers on one machine: each one's part of their one file, and its CPUs. Pure."""

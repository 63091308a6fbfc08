"""Several brokers on one machine: what each makes of their one file, and its CPUs. Pure."""

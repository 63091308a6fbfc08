"""Work by the clock: checkpoints, retention, compaction, failed disks."""

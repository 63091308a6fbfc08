"""The broker's log directories: loading, checkpoints, failures, removal."""

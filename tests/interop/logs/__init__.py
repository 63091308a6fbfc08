"""Logs over time: compaction, retention, deleted records, kills, Apache's log directories."""

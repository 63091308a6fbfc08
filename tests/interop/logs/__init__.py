"""What becomes of logs: compaction, retention, deleted records, kills, Apache's directories."""

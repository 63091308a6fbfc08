"""Appending to a log: as its leader, which checks batches and gives them offsets, or a follower."""

"""Hostile frames, each made from its seed and number. Start reading in `frame`."""

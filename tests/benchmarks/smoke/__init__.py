"""Every benchmark runs, at a small size. No number is asserted."""

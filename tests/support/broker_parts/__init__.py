"""A broker's parts in the test's own process: the real ones, and what they wait for."""

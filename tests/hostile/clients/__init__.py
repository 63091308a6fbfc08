"""Clients of a run: honest controls, attackers, bystanders, and a janitor."""

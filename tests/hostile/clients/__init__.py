"""Who is connected in a run: honest controls, attackers, bystanders, and a janitor."""

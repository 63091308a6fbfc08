"""What must hold: at each step, in each answer, and of the logs in the end."""

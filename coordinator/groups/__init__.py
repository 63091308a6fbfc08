"""Classic consumer groups: members, generations, assignments, and what tools see of them."""

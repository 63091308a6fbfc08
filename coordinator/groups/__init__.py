"""Classic consumer groups: members, generations, assignments, and their listing for tools."""

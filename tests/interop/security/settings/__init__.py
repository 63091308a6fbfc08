"""What is set of users and listeners by tools, and kept secret."""

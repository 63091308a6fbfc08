"""Settings of users and listeners, made with tools, and the secrecy of passwords."""

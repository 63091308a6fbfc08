"""What no honest client does to a broker, and what too many of them cost it."""

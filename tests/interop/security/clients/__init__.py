"""Stock clients that log in, each by every way in that it has."""

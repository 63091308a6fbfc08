"""This broker among others: admission, control requests, controlled shutdown."""

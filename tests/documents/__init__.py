"""Checks of the documentation without a broker: links, marks, generated pages, names."""

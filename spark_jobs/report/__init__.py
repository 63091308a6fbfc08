"""The report: numbers from topics and archives, plots, one HTML page."""

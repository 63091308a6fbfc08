"""Following log files: names, rotation, positions, shipment in transactions."""

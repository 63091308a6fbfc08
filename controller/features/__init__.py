"""Features (KIP-584): which levels brokers support, and which ones the cluster has finalised.

Each broker writes into its registration what it supports. `/feature` holds what is finalised, and
the controller changes it when UpdateFeatures asks for that. Start with `levels.py`.
"""

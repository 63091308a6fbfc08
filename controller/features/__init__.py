"""Features (KIP-584): levels supported by brokers, and levels finalised by the cluster.

Each broker writes its supported levels into its registration. `/feature` holds the finalised
levels, which the controller changes on UpdateFeatures. Start with `levels.py`.
"""

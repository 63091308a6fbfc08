"""Records of `__cluster_metadata`, each declared once for all its versions, and their frames."""

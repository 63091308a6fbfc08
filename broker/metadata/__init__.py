"""What this broker knows of the cluster and tells clients: metadata, configurations, features."""

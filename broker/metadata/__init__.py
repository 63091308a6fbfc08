"""The cluster as this broker shows it to clients: metadata, configurations, features."""

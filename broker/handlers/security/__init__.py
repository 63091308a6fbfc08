"""Handlers of what governs access: authentication, access control lists, secrets and quotas."""

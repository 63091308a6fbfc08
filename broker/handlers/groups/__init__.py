"""Handlers of group requests: membership, offsets, listing, FindCoordinator."""

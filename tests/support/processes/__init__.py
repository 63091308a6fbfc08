"""Processes of tests: how they are started and watched, and that none outlives its test."""

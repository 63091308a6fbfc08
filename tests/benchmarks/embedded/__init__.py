"""Waiting times of tests that have a broker of their own."""

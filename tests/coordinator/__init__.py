"""Tests of the group state machines, in memory."""

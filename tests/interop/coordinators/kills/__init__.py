"""Coordinators that are killed, under load and at named steps, with a group of each kind."""

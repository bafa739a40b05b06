"""Runs jobs, each in a cage of its own."""

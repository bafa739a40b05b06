"""The runtimes: one folder each. Nothing here is Python of the farm; this file lets the folders ship with it."""

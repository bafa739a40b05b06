"""What the farm costs, measured beside what it replaces, in one run on one machine."""

"""The `scifarm` command."""

"""`python -m cli` is `scifarm`."""

from cli.main import main

main()

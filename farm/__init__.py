"""What a job is: pure models without I/O. Imports nothing else of this project."""

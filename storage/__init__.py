"""What outlives a process: the ledger (Redis), the objects (S3) and the broker (Celery)."""

"""The Celery tasks: thin shells around the executor and the sweeper."""

from celery import Celery

from storage.broker import RUN, SWEEP
from worker.execute import Executor
from worker.sweep import Sweeper


def serve_jobs(app: Celery, executor: Executor) -> None:
    """Let workers of this app run jobs."""

    @app.task(name=RUN)  # type: ignore[untyped-decorator]  # Celery has no types
    def run(job_id: str) -> None:
        executor.execute(job_id)


def serve_sweeps(app: Celery, sweeper: Sweeper) -> None:
    """Let workers of this app sweep."""

    @app.task(name=SWEEP)  # type: ignore[untyped-decorator]
    def sweep() -> None:
        sweeper.sweep()

"""The Celery app: which messages there are, and the few settings that make them safe to lose and safe to repeat."""

from contextlib import suppress

from celery import Celery
from kombu.exceptions import OperationalError

from farm.errors import TryAgain

RUN = "scifarm.run"
SWEEP = "scifarm.sweep"
JOBS = "jobs"
HOUSEKEEPING = "housekeeping"
SWEEP_EVERY = 5.0  # seconds


def celery_app(broker_url: str, longest_job: float) -> Celery:
    """The app that front ends publish with and workers consume with.

    `longest_job` (seconds) bounds how long a message may rest unacknowledged before Redis hands it out again.
    """
    app = Celery("scifarm", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        task_default_queue=JOBS,
        task_routes={RUN: {"queue": JOBS}, SWEEP: {"queue": HOUSEKEEPING}},
        broker_connection_retry_on_startup=True,
        broker_transport_options={"visibility_timeout": int(2 * longest_job + 3600), "socket_timeout": 10},
        beat_schedule={
            "sweep": {
                "task": SWEEP,
                "schedule": SWEEP_EVERY,
                "options": {"expires": SWEEP_EVERY, "queue": HOUSEKEEPING},
            }
        },
        timezone="UTC",
    )
    return app


def publish(app: Celery, job_id: str) -> None:
    """Tell the workers that a job waits. The message is its id and nothing else.

    Raises:
        TryAgain: the broker is away. The job stands in the ledger all the same and will be published by the sweeper.
    """
    try:
        app.send_task(RUN, args=[job_id], retry=False)
    except (OperationalError, OSError) as error:
        raise TryAgain(f"the broker is away: {error}; try again in a moment") from error


def waiting_messages(app: Celery) -> int | None:
    """How many messages the job queue holds; None where the broker cannot tell."""
    with suppress(Exception), app.connection_for_read() as connection, connection.channel() as channel:
        return int(channel.queue_declare(queue=JOBS, passive=True).message_count)
    return None

"""The sweeper: makes good what messages, workers and time left behind. Safe to run twice, bounded in each pass."""

import logging
from contextlib import suppress
from dataclasses import dataclass

from celery import Celery

from farm.errors import Expired, UnknownJob
from farm.job import JobRecord, JobResult, Problem, Status
from farm.policy import Policy
from storage.broker import publish, waiting_messages
from storage.ledger import Ledger
from storage.objects import ObjectStore, input_key

BATCH = 500
SILENCE = 10.0  # seconds that a waiting job goes without a message, where the queue is empty, before it gets a new one

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sweeper:
    """Looks through the ledger."""

    ledger: Ledger
    objects: ObjectStore
    policy: Policy
    app: Celery

    def sweep(self) -> dict[str, int]:
        """One pass; returns what was done, by kind of work and count."""
        counts = {
            "reclaimed": self._reclaim(),
            "republished": self._republish(),
            "expired": self._expire(),
            "inputs_removed": self._bury(),
        }
        if any(counts.values()):
            log.info("swept: %s", ", ".join(f"{name} {count}" for name, count in counts.items() if count))
        return counts

    def _reclaim(self) -> int:
        """Queue jobs again whose worker is gone, or end them."""
        count = 0
        for job_id in self.ledger.overdue(BATCH):
            record = self.ledger.get(job_id)
            ttl, attempts = self.policy.ttl, self.policy.attempts
            cancelled = record.ended(Status.CANCELLED)
            met = self.ledger.reclaim(record, attempts, _lost(record), cancelled, ttl)
            count += met is not None
            if met == Status.QUEUED:
                publish(self.app, job_id)
        return count

    def _republish(self) -> int:
        """Send a message for jobs that wait although the queue is empty: theirs was lost."""
        if waiting_messages(self.app):
            return 0
        stranded = self.ledger.stranded(SILENCE, BATCH)
        for job_id in stranded:
            publish(self.app, job_id)
        return len(stranded)

    def _expire(self) -> int:
        """Remove the outputs and the content of jobs past their time."""
        expired = self.ledger.expired(BATCH)
        for job_id in expired:
            with suppress(UnknownJob, Expired):  # another sweeper was faster
                self.objects.delete_below(f"{self.ledger.get(job_id).prefix}/")
            self.ledger.forget(job_id)
        return len(expired)

    def _bury(self) -> int:
        """Remove inputs that no job needs any more."""
        doomed = self.ledger.doomed(BATCH)
        if doomed:
            self.objects.delete([input_key(digest) for digest in doomed])
            self.ledger.buried(doomed)
        return len(doomed)


def _lost(record: JobRecord) -> JobResult:
    message = (
        f"the worker running this job disappeared, {record.attempt} times in a row; "
        "if the job itself brings its workers down, ask for less memory or run it in smaller parts"
    )
    return record.ended(Status.LOST, Problem(kind="lost", message=message))

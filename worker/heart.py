"""Keeps the leases of running jobs, and hears from the ledger which of them are to stop."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from farm.errors import TryAgain
from storage.ledger import Ledger

LEASE = 15.0  # seconds: so long a dead worker's job waits before another takes it
BEAT = 1.0  # seconds: so long a cancellation may take to be heard

Why = Literal["cancel", "gone", "release"]

log = logging.getLogger(__name__)


class Pulse:
    """The life of one claim. `stopped` says why the job must end now; `wakeup` becomes readable then.

    `cancel`: the caller asked for it. `gone`: the claim was lost. `release`: the worker ends, and hands it back.
    """

    def __init__(self, fence: int) -> None:
        self.fence = fence
        self.stopped: Why | None = None
        self.wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def stop(self, why: Why) -> None:
        """End the job."""
        if self.stopped is None:
            self.stopped = why
            os.eventfd_write(self.wakeup, 1)


class Heart:
    """One thread that renews the leases of all jobs of this worker, in one round trip a beat."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._pulses: dict[str, Pulse] = {}
        self._lock = threading.Lock()
        self._dying = threading.Event()
        threading.Thread(target=self._beat, name="heart", daemon=True).start()

    @contextmanager
    def pulse(self, job_id: str, fence: int) -> Iterator[Pulse]:
        """Keep this claim alive for the length of a block."""
        pulse = Pulse(fence)
        with self._lock:
            self._pulses[job_id] = pulse
        try:
            yield pulse
        finally:
            with self._lock:
                del self._pulses[job_id]
                os.close(pulse.wakeup)

    def release_all(self) -> None:
        """End every job of this worker and hand it back to the queue."""
        with self._lock:
            for pulse in self._pulses.values():
                pulse.stop("release")

    def stop(self) -> None:
        """Beat no more."""
        self._dying.set()

    def _beat(self) -> None:
        while not self._dying.wait(BEAT):
            with self._lock:
                claims = {job_id: pulse.fence for job_id, pulse in self._pulses.items()}
            try:
                answers = self._ledger.renew(claims, LEASE)
            except TryAgain as error:
                log.warning("leases not renewed: %s", error)
                continue
            with self._lock, suppress(OSError):
                for job_id, answer in answers.items():
                    if answer != "kept" and job_id in self._pulses and self._pulses[job_id].fence == claims[job_id]:
                        self._pulses[job_id].stop(answer)

"""Waits, at the start of a process, for the services that it cannot do without."""

import time
from collections.abc import Callable
from typing import TypeVar

from farm.errors import Misconfigured, TryAgain
from farm.settings import Settings
from storage.ledger import Ledger
from storage.objects import ObjectStore

PATIENCE = 60.0  # seconds
_T = TypeVar("_T")


def connect(settings: Settings) -> tuple[Ledger, ObjectStore]:
    """The ledger and the object store, when both answer.

    Raises:
        Misconfigured: one of them did not within `PATIENCE` seconds.
    """
    ledger = Ledger(settings.redis_url)
    _wait_for("Redis", ledger.ping)
    objects = _wait_for("the object store", lambda: ObjectStore(settings))
    _wait_for("the object store", objects.ensure_bucket)
    return ledger, objects


def _wait_for(what: str, action: Callable[[], _T]) -> _T:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except (TryAgain, Misconfigured) as error:
            if time.monotonic() > deadline:
                raise Misconfigured(f"{what} did not answer within {PATIENCE:g} s: {error}") from None
            time.sleep(0.1)

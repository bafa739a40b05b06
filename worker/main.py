"""A worker process from its start to its end, and the process that keeps house."""

import fcntl
import hashlib
import logging
import shutil
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

from celery import Celery
from celery.beat import EmbeddedService
from celery.platforms import SecurityWarning
from celery.signals import setup_logging, worker_shutting_down

from farm.catalogue import Catalogue
from farm.errors import Misconfigured
from farm.policy import Policy
from farm.runtime import load_runtimes
from farm.settings import Settings
from storage.broker import HOUSEKEEPING, JOBS, celery_app
from storage.connect import connect
from worker.cage import Cage
from worker.canary import Proof, prove
from worker.execute import Executor
from worker.heart import Heart
from worker.images import Images
from worker.sandbox import Sandboxes
from worker.sweep import Sweeper
from worker.tasks import serve_jobs, serve_sweeps

GRACE = 20.0  # seconds that running jobs have when their worker is told to stop

log = logging.getLogger(__name__)


def run_worker(settings: Settings) -> None:
    """Prove the cage, clear what a former self left behind, then run jobs until told to stop.

    Raises:
        Misconfigured: the machine is not fit to run jobs; the message says how to mend it.
    """
    signal.signal(signal.SIGTERM, _end)  # until Celery listens for it
    folder = settings.state / "worker"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        _only_worker(folder),
        closing(Cage.find(settings.cgroup, hashlib.sha256(bytes(folder)).hexdigest()[:12])) as cage,
    ):
        _run_in(cage, settings, folder)


def _run_in(cage: Cage, settings: Settings, folder: Path) -> None:
    policy = Policy.load(settings.policy)
    sandboxes = Sandboxes(folder)
    clear_leftovers(cage, folder, sandboxes)
    refuse_unless_proven(prove(cage))
    images = Images(settings.images, settings.image_register)
    for image in images.built().values():
        if (settings.images / image.name / "runtime.yaml").exists():
            sandboxes.prepare(image)
    ledger, objects = connect(settings)
    heart = Heart(ledger)
    executor = Executor(
        ledger=ledger, objects=objects, policy=policy, runtimes=load_runtimes(settings.images), images=images,
        catalogue=Catalogue(images.catalogues), sandboxes=sandboxes, cage=cage, heart=heart, folder=folder,
    )  # fmt: skip
    app = celery_app(settings.broker_url, policy.ceilings.timeout)
    serve_jobs(app, executor)
    worker_shutting_down.connect(_after_grace(heart), weak=False)
    log.info("takes up to %d jobs at a time, runtimes %s", settings.slots, ", ".join(sorted(images.built())))
    _work(app, JOBS, settings.slots)
    heart.stop()


def _end(*_: object) -> None:
    raise SystemExit(0)


def _only_worker(folder: Path) -> IO[str]:
    """A lock that ends with this process: two workers on one state folder would clear each other's jobs away."""
    lock = (folder / "lock").open("w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Misconfigured(f"another worker runs on {folder}; give this one a SCIFARM_STATE of its own") from None
    return lock


def run_housekeeping(settings: Settings) -> None:
    """Beat, and the one consumer of its sweeps, which must not wait behind jobs."""
    policy = Policy.load(settings.policy)
    ledger, objects = connect(settings)
    app = celery_app(settings.broker_url, policy.ceilings.timeout)
    serve_sweeps(app, Sweeper(ledger, objects, policy, app))
    # In a thread: Celery's own way is a forked process, which would outlive us when we are killed.
    beat = EmbeddedService(app, thread=True, schedule_filename=str(settings.state / "beat"))
    beat.start()
    _work(app, HOUSEKEEPING, 1)


def _work(app: Celery, queue: str, slots: int) -> None:
    # Celery takes us for the machine's root; we are root of a user namespace, and messages are JSON, never pickles.
    warnings.simplefilter("ignore", SecurityWarning)
    setup_logging.connect(_logging_is_set_up)
    app.Worker(
        pool="threads", concurrency=slots, queues=[queue], hostname=f"{queue}@{socket.gethostname()}",
        without_gossip=True, without_mingle=True, loglevel="WARNING", quiet=True,
    ).start()  # fmt: skip


def _after_grace(heart: Heart) -> Callable[..., None]:
    """What a worker does that was told to stop: it takes no more jobs, and hands back those that do not end in time."""

    def shutting_down(**_: object) -> None:
        log.info("stops; running jobs have %g s to end, or go back to the queue", GRACE)
        timer = threading.Timer(GRACE, heart.release_all)
        timer.daemon = True
        timer.start()

    return shutting_down


def _logging_is_set_up(**_: object) -> None:
    """Celery sets up logging by itself unless somebody listens to this signal."""


def clear_leftovers(cage: Cage, folder: Path, sandboxes: Sandboxes) -> None:
    """Kill and remove what jobs of a former worker left: processes, groups, folders. (Its mounts went with it.)"""
    for cell in cage.leftovers():
        log.warning("clearing what is left of %s", cell.folders[0].name)
        cell.kill()
        cell.remove()
    sandboxes.discard_all()
    slots = folder / "slots"
    shutil.rmtree(slots, ignore_errors=True)
    slots.mkdir(parents=True, exist_ok=True)


def refuse_unless_proven(proofs: list[Proof]) -> None:
    """Raise Misconfigured when a cap did not hold."""
    for proof in proofs:
        log.info("cap on %s %s: %s", proof.cap, "holds" if proof.holds else "DOES NOT HOLD", proof.seen)
    if broken := [proof for proof in proofs if not proof.holds]:
        told = "; ".join(f"{proof.cap}: {proof.seen}" for proof in broken)
        raise Misconfigured(f"this machine does not hold jobs within their limits, so none are run: {told}")

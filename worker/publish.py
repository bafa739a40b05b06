"""From collected files to stored outputs: uploaded under the job's unguessable prefix, with a manifest beside them."""

import hashlib
import logging
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TypeVar

from farm.errors import FarmError, TryAgain
from farm.job import Artifact, JobRecord, JobResult
from storage.objects import ObjectStore
from worker.collect import BLOCK, Collected, open_beneath
from worker.heart import Pulse
from worker.logs import Log
from worker.run import Run

PARALLEL = 4  # outputs of one job on their way to the store at a time
PATIENCE = 120.0  # seconds for which a store that is away is asked again
_T = TypeVar("_T")

log = logging.getLogger(__name__)


class UploadFailed(FarmError):
    """Outputs could not be stored."""

    kind = "upload_failed"


class Publisher:
    """Uploads what one attempt of a job made."""

    def __init__(self, objects: ObjectStore, record: JobRecord, pulse: Pulse) -> None:
        self._objects = objects
        self._record = record
        self._pulse = pulse

    def outputs(self, root: int, found: Collected) -> tuple[Artifact, ...]:
        """Upload every collected file, from below the folder `root` (a descriptor).

        Raises:
            UploadFailed: the store stayed away; the message names the files that are missing.
        """
        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="upload") as pool:
            uploads = [pool.submit(self._file, root, output.path, output.artifact) for output in found.outputs]
        missing = [
            output.artifact.name
            for output, upload in zip(found.outputs, uploads, strict=True)
            if isinstance(upload.exception(), TryAgain)
        ]
        if missing:
            raise UploadFailed(f"the object store is away; not stored: {', '.join(missing[:20])}")
        return tuple(upload.result() for upload in uploads)

    def logs(self, run: Run, taken: set[str]) -> tuple[list[Artifact], list[str]]:
        """Upload the whole of each log that an answer cannot show whole; returns them, and notes on what they lack."""
        artifacts, notes = [], []
        for stream, kept in (("stdout", run.stdout), ("stderr", run.stderr)):
            if kept.truncated:
                name = f"{stream}.txt" if f"{stream}.txt" not in taken else f"{stream}.log.txt"
                artifacts.append(self._log(name, kept))
                if kept.kept < kept.size:
                    notes.append(f"{name} holds the first {kept.kept:,} of the {kept.size:,} bytes that were printed")
        return artifacts, notes

    def manifest(self, result: JobResult) -> None:
        """Write down beside the outputs what they are, for whoever finds them without the ledger."""
        key = f"{self._record.output_prefix}manifest.json"
        patiently(lambda: self._objects.put(key, result.model_dump_json(indent=1).encode()), self._pulse)

    def _file(self, root: int, path: bytes, artifact: Artifact) -> Artifact:
        def upload() -> None:
            with open_beneath(root, path) as file:
                self._objects.upload(self._record.output_key(artifact), file, artifact.bytes, artifact.sha256)

        patiently(upload, self._pulse)
        return artifact

    def _log(self, name: str, kept: Log) -> Artifact:
        artifact = Artifact(name=name, bytes=kept.kept, sha256=_sha256(kept.file), mime="text/plain")

        def upload() -> None:
            kept.file.seek(0)
            self._objects.upload(self._record.output_key(artifact), kept.file, artifact.bytes, artifact.sha256)

        patiently(upload, self._pulse)
        return artifact


def patiently(action: Callable[[], _T], pulse: Pulse, patience: float = PATIENCE) -> _T:
    """Do what needs a service that may be away: again with growing pauses, until it works, or the claim is gone.

    Raises:
        TryAgain: it did not work within `patience` seconds.
    """
    deadline = time.monotonic() + patience
    pause = 0.2
    while True:
        try:
            return action()
        except TryAgain as error:
            if pulse.stopped in ("gone", "release") or time.monotonic() > deadline:
                raise
            log.warning("%s", error)
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 10.0)


def _sha256(file: IO[bytes]) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest()

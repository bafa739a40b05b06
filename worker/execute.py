"""One job's flow: claim, stage, run, collect, publish."""

import hashlib
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from farm.catalogue import Catalogue
from farm.errors import FarmError, TryAgain
from farm.job import Image, InputFile, JobRecord, JobResult, Problem, Status
from farm.names import shown
from farm.policy import Policy
from farm.runtime import Runtime
from storage.ledger import Claim, Ledger
from storage.objects import ObjectStore, input_key
from worker.advice import advise
from worker.cage import Cage
from worker.collect import collect
from worker.heart import LEASE, Heart, Pulse
from worker.images import BuiltImage, Images
from worker.publish import Publisher, patiently
from worker.run import Job, Run, run
from worker.sandbox import Sandboxes
from worker.workspace import TMP, Workspace

log = logging.getLogger(__name__)


class NoImage(FarmError):
    """This worker has no image of the runtime."""

    kind = "no_image"


@dataclass(frozen=True)
class Executor:
    """All that a worker needs to run jobs; `folder` is its own, for slots and long logs."""

    ledger: Ledger
    objects: ObjectStore
    policy: Policy
    runtimes: dict[str, Runtime]
    images: Images
    catalogue: Catalogue
    sandboxes: Sandboxes
    cage: Cage
    heart: Heart
    folder: Path

    def execute(self, job_id: str) -> None:
        """Run a job, if it still waits, to a final status in the ledger."""
        claim = self.ledger.claim(job_id, LEASE)
        if claim is None:
            log.info("job %s: does not wait (any more)", job_id)
            return
        log.info("job %s: %s, attempt %d", job_id, claim.record.spec.runtime, claim.attempt)
        with self.heart.pulse(job_id, claim.fence) as pulse:
            result = self._outcome(claim, pulse)
            if pulse.stopped == "release":
                self.ledger.release(job_id, claim.fence)
                log.info("job %s: handed back to the queue", job_id)
                return
            ttl = self.policy.ttl
            kept = patiently(lambda: self.ledger.finish(job_id, claim.fence, result, ttl), pulse)
        log.info("job %s: %s%s", job_id, result.status, "" if kept else ", but the claim is gone: not published")

    def _outcome(self, claim: Claim, pulse: Pulse) -> JobResult:
        """What became of this attempt, whatever went wrong."""
        try:
            return self._attempt(claim, pulse)
        except FarmError as error:
            log.warning("job %s: %s", claim.record.job_id, error)
            problem = Problem(kind=error.kind, message=str(error))
        except Exception:
            log.exception("job %s: the worker broke", claim.record.job_id)
            problem = Problem(kind="internal", message="the worker broke while running this job; its log says why")
        return claim.record.ended(Status.ERROR, problem)

    def _attempt(self, claim: Claim, pulse: Pulse) -> JobResult:
        record, spec = claim.record, claim.record.spec
        runtime, image = self._place(spec.runtime)
        script = spec.script.encode()
        inputs = {file.name: file for file in (*spec.inputs, _staged_script(runtime, script))}
        name = f"scifarm-{record.job_id}-{claim.fence}"
        with ExitStack() as stack:
            workspace = Workspace(
                self.folder / "slots" / name, int(spec.limits.scratch), sum(f.bytes for f in inputs.values())
            )
            stack.enter_context(workspace)
            workspace.stage(runtime.script, lambda file: file.write(script))
            for file in spec.inputs:
                patiently(partial(self._fetch, file, workspace), pulse)
            workspace.overlay()

            cell = self.cage.cell(name)
            stack.callback(cell.remove)
            stack.callback(self.sandboxes.discard, name)
            job = Job(name, spec, runtime, image, workspace, cell)
            ran = run(self.sandboxes, job, pulse, self.folder, int(self.policy.outputs.log_bytes), self._teller(record))
            stack.callback(ran.stdout.close)
            stack.callback(ran.stderr.close)

            workspace.freeze()
            root = os.open(workspace.changed, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            self.ledger.mark(record.job_id, claim.fence, Status.UPLOADING)
            is_litter = partial(runtime.is_litter, succeeded=ran.status is Status.SUCCEEDED)
            found = collect(root, self.policy.outputs, inputs, is_litter)
            publisher = Publisher(self.objects, record, pulse)
            outputs = publisher.outputs(root, found)
            logs, notes = publisher.logs(ran, {output.name for output in outputs})
            result = JobResult(
                job_id=record.job_id,
                status=ran.status,
                runtime=spec.runtime,
                label=spec.label,
                exit_code=ran.exit_code,
                signal=ran.signal,
                stdout=ran.stdout.text,
                stderr=ran.stderr.text,
                stdout_truncated=ran.stdout.truncated,
                stderr_truncated=ran.stderr.truncated,
                outputs=(*outputs, *logs),
                rejected=found.rejected,
                usage=ran.usage.model_copy(update={"queued_s": round(claim.queued_s, 3)}),
                limits=spec.limits,
                image=Image(name=image.tag, digest=image.digest),
                attempt=claim.attempt,
                notes=(*notes, *_stray(workspace), *self._advice(ran, runtime), *self._stale(image)),
            )
            publisher.manifest(result)
            return result

    def _place(self, name: str) -> tuple[Runtime, BuiltImage]:
        runtime, image = self.runtimes.get(name), self.images.built().get(name)
        if runtime is None or image is None:
            raise NoImage(f"this worker has no image of {name!r}; `scifarm images build {name}` makes it")
        return runtime, image

    def _fetch(self, file: InputFile, workspace: Workspace) -> None:
        with self.objects.open(input_key(file.sha256)) as body:
            workspace.stage(file.name, lambda target: shutil.copyfileobj(body, target))

    def _advice(self, ran: Run, runtime: Runtime) -> list[str]:
        return (
            []
            if ran.status is Status.SUCCEEDED
            else advise(f"{ran.stdout.text}\n{ran.stderr.text}", runtime, self.catalogue)
        )

    def _teller(self, record: JobRecord) -> Callable[[str, str], None]:
        def tell(stream: str, text: str) -> None:
            with suppress(TryAgain):  # nobody is promised to hear it
                self.ledger.say(record.job_id, stream=stream, text=text)

        return tell

    def _stale(self, image: BuiltImage) -> list[str]:
        if image.tag == self.images.tag(image.name):
            return []
        return [f"images/{image.name} changed since its image was built; `scifarm images build {image.name}` renews it"]


def _stray(workspace: Workspace) -> list[str]:
    if not (left := workspace.stray()):
        return []
    named = ", ".join(f"{TMP}/{shown(os.fsencode(name).decode(errors='backslashreplace'))}" for name in left[:5])
    return [f"not kept, because it is not in the working folder: {named}{' and more' if len(left) > 5 else ''}"]


def _staged_script(runtime: Runtime, script: bytes) -> InputFile:
    return InputFile(name=runtime.script, bytes=len(script), sha256=hashlib.sha256(script).hexdigest())

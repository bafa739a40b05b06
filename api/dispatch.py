"""Accept, wait, cancel, list: what every front end calls."""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import quote

from celery import Celery

from api.request import RunRequest, check
from farm.catalogue import Catalogue
from farm.errors import Expired, InvalidRequest, TryAgain, UnknownJob
from farm.job import Artifact, InputFile, JobRecord, JobResult, JobSpec, Status
from farm.policy import Policy
from farm.runtime import Runtime
from storage.broker import publish
from storage.ledger import Ledger
from storage.objects import ObjectStore, input_key

INPUTS_STAY = 7 * 24 * 3600  # seconds beyond the results' own time that inputs are kept, for jobs that wait long
URL_LIFE = 3600  # seconds that a presigned URL works, unless the results go earlier
Tell = Callable[[dict[str, str]], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Dispatch:
    """The farm as its callers see it. Every method is for one tenant, who sees only what is theirs."""

    ledger: Ledger
    objects: ObjectStore
    app: Celery
    policy: Policy
    runtimes: dict[str, Runtime]
    catalogue: Catalogue
    public_url: str

    def accept(self, tenant: str, request: RunRequest) -> JobRecord:
        """Take a job in. When this returns it cannot be lost any more.

        Raises:
            InvalidRequest: nothing was written.
            TryAgain: the ledger or the store is away; the job was not accepted.
        """
        checked = check(request, self.runtimes, self.policy)
        asked = {"timeout": request.timeout, "memory": request.memory, "cpus": request.cpus}
        limits = self.policy.limits(asked)  # before anything is stored
        spec = JobSpec(
            runtime=request.runtime,
            script=request.script,
            inputs=self._store(checked.files),
            args=tuple(request.args),
            stdin=request.stdin,
            label=request.label,
            limits=limits,
        )
        job_id = secrets.token_hex(10)
        record = JobRecord(
            job_id=job_id,
            tenant=tenant,
            spec=spec,
            prefix=f"outputs/{job_id}-{secrets.token_hex(16)}",
            link=secrets.token_urlsafe(16),
        )
        self.ledger.add(record)
        try:
            publish(self.app, job_id)
        except TryAgain as error:  # the job stands in the ledger: the sweeper publishes it when the broker is back
            log.warning("job %s: %s", job_id, error)
        return record

    def _store(self, files: dict[str, bytes], patience: float = 10.0) -> tuple[InputFile, ...]:
        """Put what the store does not have yet under its hash."""
        contents = {hashlib.sha256(data).hexdigest(): data for data in files.values()}
        deadline = time.monotonic() + patience
        while contents:
            held = self.ledger.hold(contents, self.policy.ttl + INPUTS_STAY)
            for digest, state in held.items():
                if state == 0:
                    self.objects.put(input_key(digest), contents[digest])
                    self.ledger.stored(digest)
                if state != -1:
                    del contents[digest]
            if contents and time.monotonic() > deadline:
                raise TryAgain("an equal input is being removed; try again in a moment")
            if contents:
                time.sleep(0.05)
        return tuple(
            InputFile(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in files.items()
        )

    def find(self, tenant: str, job_id: str) -> JobRecord:
        """A job of this tenant.

        Raises:
            UnknownJob: there is none, or it is another's: the same answer.
            Expired: its results were removed.
        """
        try:
            record = self.ledger.get(job_id)
        except Expired as error:
            if error.tenant == tenant:
                raise
            raise UnknownJob(job_id) from None
        if record.tenant != tenant:
            raise UnknownJob(job_id)
        return record

    def cancel(self, tenant: str, job_id: str) -> tuple[JobRecord, bool]:
        """End a job of this tenant; returns its record, and whether there was anything left to cancel."""
        record = self.find(tenant, job_id)
        met = self.ledger.cancel(record, record.ended(Status.CANCELLED), self.policy.ttl)
        return self.find(tenant, job_id), not met.final

    def list(self, tenant: str, statuses: Iterable[Status] | None, limit: int) -> list[JobRecord]:
        """This tenant's newest jobs."""
        if not 1 <= limit <= 500:
            raise InvalidRequest(f"limit={limit}: 1 to 500 are allowed")
        return self.ledger.newest(tenant, statuses, limit)

    def answer(self, record: JobRecord) -> JobResult:
        """A job's result with URLs that work from now on; they are made for this answer and kept nowhere."""
        result = record.outcome
        life = self.url_life(record)
        signed = tuple(
            output.model_copy(update={"url": self.sign(record, output, life), "expires_in": life})
            for output in result.outputs
        )
        return result.model_copy(update={"outputs": signed})

    def url_life(self, record: JobRecord) -> int:
        """Seconds for which a URL made now may work: never longer than the object lives."""
        left = (record.expires or time.time() + URL_LIFE) - time.time()
        return max(1, min(URL_LIFE, int(left)))

    def sign(self, record: JobRecord, output: Artifact, life: int) -> str:
        """A presigned URL for one output."""
        return self.objects.presign(record.output_key(output), output.name, output.mime, life)

    def short_url(self, record: JobRecord, output: Artifact) -> str:
        """A short link that redirects to a fresh presigned URL as long as the output lives."""
        return f"{self.public_url.rstrip('/')}/a/{record.link}/{quote(output.name)}"

    def linked(self, link: str, name: str) -> str:
        """Where a short link leads.

        Raises:
            UnknownJob, Expired, InvalidRequest: no such link, no longer, no such output.
        """
        record = self.ledger.linked(link)
        if record.expires is not None and record.expires <= time.time():
            raise Expired(record.job_id, record.tenant)
        for output in record.outcome.outputs:
            if output.name == name:
                return self.sign(record, output, self.url_life(record))
        raise InvalidRequest(f"this job has no output {name!r}")

    async def wait(self, tenant: str, job_id: str, seconds: float, tell: Tell) -> JobRecord:
        """The record of a job as soon as it is final, or as it stands after `seconds`.

        `tell` hears what happens meanwhile. Ending the wait never ends the job.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                    return await self._watch(tenant, job_id, tell)
            except TimeoutError:
                return await asyncio.to_thread(self.find, tenant, job_id)
            except TryAgain:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.5)

    async def _watch(self, tenant: str, job_id: str, tell: Tell) -> JobRecord:
        async with self.ledger.events(job_id) as events:
            record = await asyncio.to_thread(self.find, tenant, job_id)
            if not record.status.final:
                await self._tell_status(record, tell)
                await _until_final(events, tell)
                record = await asyncio.to_thread(self.find, tenant, job_id)
            return record

    async def _tell_status(self, record: JobRecord, tell: Tell) -> None:
        event = {"status": str(record.status)}
        if record.status is Status.QUEUED:
            ahead = await asyncio.to_thread(self.ledger.position, record.job_id)
            event["ahead"] = str(ahead or 0)
        await tell(event)


async def _until_final(events: AsyncIterator[dict[str, str]], tell: Tell) -> None:
    async for event in events:
        if "status" in event and Status(event["status"]).final:
            return
        await tell(event)

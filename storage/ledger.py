"""The ledger: every job, who runs it, and what became of it. It is the truth; the broker's messages are hints."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, NamedTuple, cast

import redis
import redis.asyncio
import redis.exceptions

from farm.errors import Expired, TryAgain, UnknownJob
from farm.job import JobRecord, JobResult, Status
from storage import transitions

KEYS = "scifarm:"
TOMBSTONE = 30 * 24 * 3600  # seconds for which an expired job is answered as expired, not as unknown
IDENTITY = {"job_id", "tenant", "spec", "prefix", "link"}
CHANGING = ("status", "created", "started", "expires", "attempt", "fence")


class Claim(NamedTuple):
    """The right to run a job, once: `fence` proves it, and ends when a newer claim is made."""

    record: JobRecord
    attempt: int
    fence: int
    queued_s: float


class Ledger:
    """Job records in Redis.

    Raises:
        TryAgain: from any method, when Redis is away, read-only or full.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._redis = redis.Redis.from_url(url, decode_responses=True)
        self._scripts: dict[str, Any] = {}

    # Accepting

    def add(self, record: JobRecord) -> None:
        """Write a new job down as queued: from here on it cannot be lost."""
        core = record.model_dump_json(include=IDENTITY)
        self._run(transitions.ADD, record.job_id, record.tenant, core, record.link)

    def hold(self, digests: Iterable[str], ttl: float) -> dict[str, Literal[-1, 0, 1]]:
        """Keep input objects for at least `ttl` more seconds.

        Returns:
            by digest: 1 it is stored, 0 its bytes must be put (then say `stored`), -1 it is being removed, ask again.
        """
        wanted = list(digests)
        return dict(zip(wanted, self._run(transitions.HOLD, ttl, *wanted), strict=True)) if wanted else {}

    def stored(self, digest: str) -> None:
        """The bytes of this input object are in the store."""
        with _reachable():
            self._redis.sadd(f"{KEYS}stored", digest)

    # Running

    def claim(self, job_id: str, lease: float) -> Claim | None:
        """Take a queued job for `lease` seconds; None when it is not waiting (any more)."""
        answer = self._run(transitions.CLAIM, job_id, lease)
        if answer is None:
            return None
        attempt, fence, queued = answer
        return Claim(self.get(job_id), int(attempt), int(fence), float(queued))

    def renew(self, claims: Mapping[str, int], lease: float) -> dict[str, Literal["kept", "cancel", "gone"]]:
        """Renew the leases of these jobs (id: fence), and learn which were cancelled or lost."""
        if not claims:
            return {}
        flat = [part for pair in claims.items() for part in pair]
        return dict(zip(claims, self._run(transitions.RENEW, lease, *flat), strict=True))

    def mark(self, job_id: str, fence: int, status: Status) -> bool:
        """Note that a claimed job moved on; False when the claim is gone."""
        return bool(self._run(transitions.MARK, job_id, fence, status))

    def finish(self, job_id: str, fence: int, result: JobResult, ttl: float) -> bool:
        """Write the final result, to be kept for `ttl` seconds; False, and nothing written, when the claim is gone."""
        return bool(self._run(transitions.FINISH, job_id, fence, result.status, result.model_dump_json(), ttl))

    def release(self, job_id: str, fence: int) -> bool:
        """Hand a claimed job back to the queue, as if it had never been taken; False when the claim is gone."""
        return bool(self._run(transitions.RELEASE, job_id, fence))

    def say(self, job_id: str, **event: str) -> None:
        """Tell whoever waits for this job something that is not worth keeping."""
        with _reachable():
            self._redis.publish(f"{KEYS}events:{job_id}", json.dumps(event))

    # Asking

    def get(self, job_id: str) -> JobRecord:
        """The record of a job.

        Raises:
            UnknownJob: there is none.
            Expired: its results were removed.
        """
        with _reachable():
            return _record(job_id, cast("dict[str, str]", self._redis.hgetall(f"{KEYS}job:{job_id}")))

    def newest(self, tenant: str, statuses: Iterable[Status] | None = None, limit: int = 20) -> list[JobRecord]:
        """A tenant's jobs, newest first, at most `limit` of those with one of `statuses`."""
        wanted = None if statuses is None else set(statuses)
        found: list[JobRecord] = []
        for record in self._newest_first(tenant):
            if len(found) == limit:
                break
            if wanted is None or record.status in wanted:
                found.append(record)
        return found

    def _newest_first(self, tenant: str, page: int = 100) -> Iterator[JobRecord]:
        start = 0
        while True:
            with _reachable():
                ids = cast("list[str]", self._redis.zrevrange(f"{KEYS}jobs:{tenant}", start, start + page - 1))
                pipe = self._redis.pipeline(transaction=False)
                for job_id in ids:
                    pipe.hgetall(f"{KEYS}job:{job_id}")
                hashes = pipe.execute()
            for job_id, fields in zip(ids, hashes, strict=True):
                if "core" in fields:
                    yield _record(job_id, fields)
            if len(ids) < page:
                return
            start += page

    def position(self, job_id: str) -> int | None:
        """How many jobs wait before this one; None when it does not wait."""
        with _reachable():
            return cast("int | None", self._redis.zrank(f"{KEYS}queued", job_id))

    def linked(self, link: str) -> JobRecord:
        """The job whose outputs a short link serves; raises as `get`."""
        with _reachable():
            job_id = cast("str | None", self._redis.get(f"{KEYS}link:{link}"))
        if job_id is None:
            raise UnknownJob(link)
        return self.get(job_id)

    def cancel(self, record: JobRecord, result: JobResult, ttl: float) -> Status:
        """End a waiting job with `result`, or ask the worker of a running one to; returns the status it was met in."""
        return Status(self._run(transitions.CANCEL, record.job_id, result.model_dump_json(), ttl))

    @asynccontextmanager
    async def events(self, job_id: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """What happens to a job from now on. Subscribe first, then look at the record: nothing is missed between."""
        client = redis.asyncio.Redis.from_url(self._url, decode_responses=True)
        async with client, client.pubsub(ignore_subscribe_messages=True) as channel:
            with _reachable():
                await channel.subscribe(f"{KEYS}events:{job_id}")

            async def stream() -> AsyncIterator[dict[str, Any]]:
                with _reachable():
                    async for message in channel.listen():
                        yield json.loads(message["data"])

            yield stream()

    # Sweeping

    def stranded(self, silence: float, limit: int) -> list[str]:
        """Jobs that wait and had no message for `silence` seconds; their messages are counted as sent now."""
        return cast("list[str]", self._run(transitions.STRANDED, silence, limit))

    def overdue(self, limit: int) -> list[str]:
        """Claimed jobs whose lease ran out."""
        return cast("list[str]", self._run(transitions.DUE, "running", limit))

    def expired(self, limit: int) -> list[str]:
        """Ended jobs whose results have had their time."""
        return cast("list[str]", self._run(transitions.DUE, "expiry", limit))

    def reclaim(
        self, record: JobRecord, attempts: int, lost: JobResult, cancelled: JobResult, ttl: float
    ) -> str | None:
        """Queue a job again whose worker is gone, or end it; returns its new status, None when it lives after all."""
        results = (lost.model_dump_json(), cancelled.model_dump_json())
        return cast("str | None", self._run(transitions.RECLAIM, record.job_id, record.fence, attempts, *results, ttl))

    def forget(self, job_id: str) -> None:
        """Remove a job's content; for `TOMBSTONE` seconds it is still known to have been."""
        self._run(transitions.FORGET, job_id, TOMBSTONE)

    def doomed(self, limit: int) -> list[str]:
        """Input objects to delete; say `buried` of each when it is done."""
        return cast("list[str]", self._run(transitions.DOOM, limit))

    def buried(self, digests: Iterable[str]) -> None:
        """These input objects are deleted."""
        with _reachable():
            self._redis.srem(f"{KEYS}dying", *digests)

    def ping(self) -> None:
        """Raise TryAgain unless Redis answers."""
        with _reachable():
            self._redis.ping()

    def _run(self, script: str, *args: Any) -> Any:
        if script not in self._scripts:
            self._scripts[script] = self._redis.register_script(script)
        with _reachable():
            return self._scripts[script](keys=[KEYS], args=args)


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, redis.exceptions.ReadOnlyError) as error:
        raise TryAgain(f"the ledger (Redis) is away: {error}; try again in a moment") from error
    except redis.exceptions.OutOfMemoryError as error:
        raise TryAgain(f"the ledger (Redis) is full: {error}; try again later") from error
    except redis.exceptions.ResponseError as error:
        if str(error).startswith("MISCONF"):  # it cannot write to its disk, and so promises nothing
            raise TryAgain(f"the ledger (Redis) cannot save: {error}; try again later") from error
        raise


def _record(job_id: str, fields: Mapping[str, str]) -> JobRecord:
    if not fields:
        raise UnknownJob(job_id)
    if "core" not in fields:
        raise Expired(job_id, fields["tenant"])
    changing = {name: fields[name] for name in CHANGING if name in fields}
    result = json.loads(fields["result"]) if "result" in fields else None
    return JobRecord.model_validate(json.loads(fields["core"]) | changing | {"result": result})

"""The ledger on a real Redis: each job is claimed once, ends once, and is never lost between."""

import asyncio
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import redis
from conftest import eventually
from pydantic import ByteSize

from farm.errors import Expired, TryAgain, UnknownJob
from farm.job import JobRecord, JobResult, JobSpec, Limits, Problem, Status
from storage import ledger as ledger_module
from storage.ledger import Claim, Ledger

LEASE = 60.0  # seconds: longer than any test
OVER = -1.0  # a lease or a time to live that has run out when it begins
TTL = 3600.0
LIMITS = Limits(memory=ByteSize(64 * 1024**2), cpus=1, timeout=10, pids=64, scratch=ByteSize(1024**2))


@pytest.fixture
def ledger(redis_url: str) -> Ledger:
    """An empty ledger."""
    redis.Redis.from_url(redis_url).flushall()
    return Ledger(redis_url)


def accepted(ledger: Ledger, tenant: str = "ada", script: str = "true") -> JobRecord:
    """A new job in the ledger."""
    job_id = secrets.token_hex(8)
    record = JobRecord(
        job_id=job_id,
        tenant=tenant,
        spec=JobSpec(runtime="bash", script=script, args=("é", ""), limits=LIMITS),
        prefix=f"outputs/{job_id}",
        link=secrets.token_hex(8),
    )
    ledger.add(record)
    return record


def claimed(ledger: Ledger, job_id: str, lease: float = LEASE) -> Claim:
    claim = ledger.claim(job_id, lease)
    assert claim is not None
    return claim


def reclaimed(ledger: Ledger, job_id: str, attempts: int = 3) -> str | None:
    """What the sweeper does with a job whose lease ran out."""
    record = ledger.get(job_id)
    lost = record.ended(Status.LOST, Problem(kind="lost", message="gone"))
    return ledger.reclaim(record, attempts, lost, record.ended(Status.CANCELLED), TTL)


def finished(ledger: Ledger, job_id: str, ttl: float = TTL) -> JobResult:
    claim = claimed(ledger, job_id)
    result = claim.record.ended(Status.SUCCEEDED, notes=("done",))
    assert ledger.finish(job_id, claim.fence, result, ttl)
    return result


def cancel(ledger: Ledger, record: JobRecord) -> Status:
    return ledger.cancel(record, record.ended(Status.CANCELLED), TTL)


def test_an_accepted_job_is_queued_exactly_as_it_was_written_down(ledger: Ledger) -> None:
    record = accepted(ledger, script="echo 'é\n\0'")
    known = ledger.get(record.job_id)
    assert known.status is Status.QUEUED
    assert known.created > 0
    assert known.model_copy(update={"created": 0.0}) == record


def test_an_unknown_job_is_unknown(ledger: Ledger) -> None:
    with pytest.raises(UnknownJob, match="'nothing'"):
        ledger.get("nothing")
    with pytest.raises(UnknownJob):
        ledger.linked("nothing")
    assert ledger.claim("nothing", LEASE) is None
    assert ledger.position("nothing") is None
    assert ledger.renew({"nothing": 1}, LEASE) == {"nothing": "gone"}


def test_a_claim_makes_a_job_run(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    claim = claimed(ledger, job_id)
    assert (claim.attempt, claim.fence) == (1, 1)
    assert 0 <= claim.queued_s < 60
    assert claim.record == ledger.get(job_id)
    assert claim.record.status is Status.RUNNING
    assert claim.record.started is not None
    assert claim.record.started >= claim.record.created
    assert ledger.claim(job_id, LEASE) is None


def test_of_eight_that_claim_a_job_at_once_one_gets_it(ledger: Ledger, redis_url: str) -> None:
    jobs = [accepted(ledger).job_id for _ in range(25)]
    start = Barrier(8)

    def compete(_n: int) -> list[str]:
        mine = Ledger(redis_url)
        start.wait()
        return [job_id for job_id in jobs if mine.claim(job_id, LEASE)]

    with ThreadPoolExecutor(8) as pool:
        won = [job_id for claims in pool.map(compete, range(8)) for job_id in claims]
    assert sorted(won) == sorted(jobs)
    assert {ledger.get(job_id).attempt for job_id in jobs} == {1}


def test_a_finished_job_has_its_result_and_a_time_to_go(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    result = finished(ledger, job_id)
    record = ledger.get(job_id)
    assert (record.status, record.result, record.outcome) == (Status.SUCCEEDED, result, result)
    assert record.started is not None
    assert record.expires is not None
    assert 0 <= record.expires - record.started - TTL < 60
    assert ledger.overdue(9) == ledger.expired(9) == ledger.stranded(0, 9) == []


def test_an_ended_job_can_be_neither_claimed_nor_ended_again(ledger: Ledger) -> None:
    record = accepted(ledger)
    result = finished(ledger, record.job_id)
    other = record.ended(Status.FAILED)
    assert ledger.claim(record.job_id, LEASE) is None
    assert not ledger.finish(record.job_id, 1, other, TTL)
    assert not ledger.mark(record.job_id, 1, Status.UPLOADING)
    assert cancel(ledger, record) is Status.SUCCEEDED
    assert reclaimed(ledger, record.job_id) is None
    assert ledger.get(record.job_id).outcome == result


def test_a_worker_whose_job_was_given_to_another_can_publish_nothing(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    stale = claimed(ledger, job_id, OVER)
    assert reclaimed(ledger, job_id) == "queued"
    assert not ledger.finish(job_id, stale.fence, stale.record.ended(Status.FAILED), TTL)
    fresh = claimed(ledger, job_id)
    assert (fresh.attempt, fresh.fence) == (2, 2)
    assert fresh.record.output_prefix != stale.record.output_prefix

    assert ledger.renew({job_id: stale.fence}, LEASE) == {job_id: "gone"}
    assert not ledger.mark(job_id, stale.fence, Status.UPLOADING)
    assert not ledger.finish(job_id, stale.fence, stale.record.ended(Status.FAILED), TTL)
    assert ledger.get(job_id).status is Status.RUNNING

    assert ledger.mark(job_id, fresh.fence, Status.UPLOADING)
    assert ledger.get(job_id).status is Status.UPLOADING
    assert ledger.finish(job_id, fresh.fence, fresh.record.ended(Status.SUCCEEDED), TTL)
    assert ledger.get(job_id).outcome.status is Status.SUCCEEDED


def test_a_renewed_lease_keeps_a_job_from_being_given_to_another(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    claim = claimed(ledger, job_id, OVER)
    assert ledger.overdue(9) == [job_id]
    assert ledger.renew({job_id: claim.fence}, LEASE) == {job_id: "kept"}
    assert ledger.overdue(9) == []
    assert reclaimed(ledger, job_id) is None
    assert ledger.get(job_id).status is Status.RUNNING


def test_leases_of_many_jobs_are_renewed_at_once_each_with_its_own_answer(ledger: Ledger) -> None:
    kept, stopped, lost = (accepted(ledger) for _ in range(3))
    fences = {record.job_id: claimed(ledger, record.job_id, OVER).fence for record in (kept, stopped, lost)}
    cancel(ledger, stopped)
    reclaimed(ledger, lost.job_id)
    assert ledger.renew(fences, LEASE) == {kept.job_id: "kept", stopped.job_id: "cancel", lost.job_id: "gone"}
    assert ledger.renew({}, LEASE) == {}


def test_cancelling_a_waiting_job_ends_it(ledger: Ledger) -> None:
    record = accepted(ledger)
    assert cancel(ledger, record) is Status.QUEUED
    assert ledger.get(record.job_id).outcome == record.ended(Status.CANCELLED)
    assert ledger.claim(record.job_id, LEASE) is None
    assert ledger.position(record.job_id) is None
    assert cancel(ledger, record) is Status.CANCELLED


@pytest.mark.parametrize("status", [Status.RUNNING, Status.UPLOADING])
def test_cancelling_a_running_job_asks_its_worker_who_ends_it(ledger: Ledger, status: Status) -> None:
    record = accepted(ledger)
    claim = claimed(ledger, record.job_id)
    ledger.mark(record.job_id, claim.fence, status)
    assert cancel(ledger, record) is status
    assert ledger.get(record.job_id).status is status
    assert ledger.renew({record.job_id: claim.fence}, LEASE) == {record.job_id: "cancel"}
    assert ledger.finish(record.job_id, claim.fence, record.ended(Status.CANCELLED, notes=("partial",)), TTL)
    assert ledger.get(record.job_id).outcome.notes == ("partial",)


def test_a_job_whose_worker_is_gone_takes_its_old_place_in_the_queue(ledger: Ledger) -> None:
    first, second = accepted(ledger), accepted(ledger)
    claimed(ledger, first.job_id, OVER)
    assert ledger.overdue(9) == [first.job_id]
    assert reclaimed(ledger, first.job_id) == "queued"
    assert ledger.overdue(9) == []
    assert [ledger.position(record.job_id) for record in (first, second)] == [0, 1]
    assert claimed(ledger, first.job_id).attempt == 2


def test_a_job_that_lost_its_worker_too_often_ends_as_lost(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    for _ in range(2):
        claimed(ledger, job_id, OVER)
        assert reclaimed(ledger, job_id, attempts=3) == "queued"
    claimed(ledger, job_id, OVER)
    assert reclaimed(ledger, job_id, attempts=3) == "lost"
    record = ledger.get(job_id)
    assert (record.status, record.attempt) == (Status.LOST, 3)
    assert record.outcome.error == Problem(kind="lost", message="gone")
    assert ledger.claim(job_id, LEASE) is None


def test_a_cancelled_job_whose_worker_is_gone_ends_as_cancelled_and_does_not_run_again(ledger: Ledger) -> None:
    record = accepted(ledger)
    claimed(ledger, record.job_id, OVER)
    cancel(ledger, record)
    assert reclaimed(ledger, record.job_id) == "cancelled"
    assert ledger.get(record.job_id).outcome.status is Status.CANCELLED
    assert ledger.claim(record.job_id, LEASE) is None


def test_a_job_that_is_handed_back_waits_in_its_old_place_as_if_it_had_never_been_taken(ledger: Ledger) -> None:
    first, second = accepted(ledger), accepted(ledger)
    claim = claimed(ledger, first.job_id)
    assert ledger.release(first.job_id, claim.fence)
    assert ledger.get(first.job_id).status is Status.QUEUED
    assert [ledger.position(record.job_id) for record in (first, second)] == [0, 1]
    assert ledger.stranded(TTL, 9) == [first.job_id]  # its message is spent: the sweeper sends another at once
    assert ledger.renew({first.job_id: claim.fence}, LEASE) == {first.job_id: "gone"}
    assert not ledger.release(first.job_id, claim.fence)
    again = claimed(ledger, first.job_id)
    assert (again.attempt, again.fence) == (1, 2)


def test_a_job_cancelled_while_it_was_handed_back_ends_as_cancelled(ledger: Ledger) -> None:
    record = accepted(ledger)
    claim = claimed(ledger, record.job_id)
    cancel(ledger, record)
    ledger.release(record.job_id, claim.fence)
    again = ledger.claim(record.job_id, LEASE)
    assert again is None or ledger.renew({record.job_id: again.fence}, LEASE) == {record.job_id: "cancel"}


def test_two_sweepers_reclaim_a_job_once(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    claimed(ledger, job_id, OVER)
    seen = ledger.get(job_id)
    lost, cancelled = seen.ended(Status.LOST), seen.ended(Status.CANCELLED)
    assert ledger.reclaim(seen, 3, lost, cancelled, TTL) == "queued"
    assert ledger.reclaim(seen, 3, lost, cancelled, TTL) is None
    claimed(ledger, job_id, OVER)
    assert ledger.reclaim(seen, 3, lost, cancelled, TTL) is None  # a newer claim than this sweeper saw


def test_jobs_know_how_many_wait_before_them(ledger: Ledger) -> None:
    jobs = [accepted(ledger, tenant).job_id for tenant in ("ada", "bob", "ada")]
    assert [ledger.position(job_id) for job_id in jobs] == [0, 1, 2]
    claimed(ledger, jobs[0])
    assert [ledger.position(job_id) for job_id in jobs] == [None, 0, 1]


def test_jobs_are_listed_newest_first_across_pages(ledger: Ledger) -> None:
    jobs = [accepted(ledger).job_id for _ in range(230)]
    assert [record.job_id for record in ledger.newest("ada", limit=500)] == jobs[::-1]
    assert [record.job_id for record in ledger.newest("ada", limit=3)] == jobs[:-4:-1]
    assert len(ledger.newest("ada")) == 20
    assert ledger.newest("ada", limit=0) == []


def test_a_list_holds_only_the_statuses_asked_for_however_far_back_they_are(ledger: Ledger) -> None:
    done, running, *waiting = (accepted(ledger).job_id for _ in range(120))
    finished(ledger, done)
    claimed(ledger, running)

    def listed(*statuses: Status, limit: int = 5) -> list[str]:
        return [record.job_id for record in ledger.newest("ada", statuses, limit)]

    assert listed(Status.SUCCEEDED) == [done]
    assert listed(Status.SUCCEEDED, Status.RUNNING) == [running, done]
    assert listed(Status.QUEUED, limit=500) == waiting[::-1]
    assert listed(Status.LOST) == listed() == []


def test_a_tenant_s_list_holds_only_their_own(ledger: Ledger) -> None:
    hers, his = accepted(ledger, "ada").job_id, accepted(ledger, "bob").job_id
    assert [record.job_id for record in ledger.newest("ada")] == [hers]
    assert [record.job_id for record in ledger.newest("bob")] == [his]
    assert ledger.newest("ada bob") == []


def test_a_short_link_leads_to_its_job(ledger: Ledger) -> None:
    first, second = accepted(ledger), accepted(ledger)
    assert ledger.linked(first.link).job_id == first.job_id
    assert ledger.linked(second.link).job_id == second.job_id
    with pytest.raises(UnknownJob):
        ledger.linked(first.job_id)


def test_results_expire_when_their_time_is_over_and_not_before(ledger: Ledger) -> None:
    over, lasting, waiting = (accepted(ledger).job_id for _ in range(3))
    finished(ledger, over, OVER)
    finished(ledger, lasting)
    assert ledger.expired(9) == [over]
    assert ledger.get(waiting).expires is None


def test_a_forgotten_job_is_expired_not_unknown_and_its_content_is_gone(ledger: Ledger, redis_url: str) -> None:
    record = accepted(ledger, script="echo the secret of my thesis")
    finished(ledger, record.job_id, OVER)
    ledger.forget(record.job_id)
    ledger.forget(record.job_id)  # as a second sweeper does
    with pytest.raises(Expired, match="expired"):
        ledger.get(record.job_id)
    with pytest.raises(Expired, match="expired"):
        ledger.linked(record.link)
    assert ledger.newest("ada") == []
    assert ledger.expired(9) == []
    assert ledger.claim(record.job_id, LEASE) is None
    assert "thesis" not in everything(redis_url)


def test_after_long_even_the_memory_of_a_forgotten_job_is_gone(
    ledger: Ledger, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "TOMBSTONE", 0)
    record = accepted(ledger)
    finished(ledger, record.job_id, OVER)
    ledger.forget(record.job_id)
    with pytest.raises(UnknownJob):
        ledger.get(record.job_id)
    with pytest.raises(UnknownJob):
        ledger.linked(record.link)
    assert everything(redis_url) == ""


def everything(redis_url: str) -> str:
    """All that Redis holds, as one text."""
    client = redis.Redis.from_url(redis_url)
    keys = [bytes(key) for key in client.scan_iter()]
    return "".join(f"{key!r} {client.dump(key)!r}\n" for key in keys)


def test_an_input_is_put_once_and_held_for_as_long_as_the_longest_asks(ledger: Ledger) -> None:
    assert ledger.hold(["a", "b"], TTL) == {"a": 0, "b": 0}
    assert ledger.hold(["a"], TTL) == {"a": 0}  # whoever was to put it may have died
    ledger.stored("a")
    assert ledger.hold(["a", "b"], OVER) == {"a": 1, "b": 0}
    assert ledger.doomed(9) == []
    assert ledger.hold([], TTL) == {}


def test_an_input_that_nobody_needs_is_removed_and_must_be_put_anew(ledger: Ledger) -> None:
    ledger.hold(["old", "never put"], OVER)
    ledger.hold(["new"], TTL)
    ledger.stored("old")
    ledger.stored("new")
    assert sorted(ledger.doomed(9)) == ["never put", "old"]
    assert ledger.hold(["old", "new"], TTL) == {"old": -1, "new": 1}
    assert sorted(ledger.doomed(9)) == ["never put", "old"]  # until they are buried, whatever happened to that sweeper
    ledger.buried(["old", "never put"])
    assert ledger.doomed(9) == []
    assert ledger.hold(["old"], TTL) == {"old": 0}


def test_a_job_without_a_message_for_a_while_is_published_again_once(ledger: Ledger) -> None:
    waiting, running, ended = (accepted(ledger).job_id for _ in range(3))
    claimed(ledger, running)
    finished(ledger, ended)
    assert ledger.stranded(TTL, 9) == []
    assert ledger.stranded(OVER, 9) == [waiting]
    assert ledger.stranded(TTL, 9) == []


def test_a_job_given_back_to_the_queue_counts_as_published(ledger: Ledger) -> None:
    job_id = accepted(ledger).job_id
    claimed(ledger, job_id, OVER)
    reclaimed(ledger, job_id)
    assert ledger.stranded(TTL, 9) == []
    assert ledger.stranded(OVER, 9) == [job_id]


def test_a_sweep_takes_no_more_than_it_asks_for(ledger: Ledger) -> None:
    jobs = [accepted(ledger).job_id for _ in range(9)]
    assert len(ledger.stranded(OVER, 2)) == 2
    for job_id in jobs[:3]:
        claimed(ledger, job_id, OVER)
    for job_id in jobs[3:6]:
        finished(ledger, job_id, OVER)
    ledger.hold(map(str, range(5)), OVER)
    assert [len(found(2)) for found in (ledger.overdue, ledger.expired, ledger.doomed)] == [2, 2, 2]


def heard(ledger: Ledger, job_id: str, happens: Callable[[], object], until: dict[str, Any]) -> list[dict[str, Any]]:
    """What a waiter hears while something happens, up to the event that it waits for."""

    async def wait() -> list[dict[str, Any]]:
        events = []
        async with asyncio.timeout(30), ledger.events(job_id) as stream:
            happens()  # the subscription stands: nothing from here on is missed
            async for event in stream:
                events.append(event)
                if event == until:
                    break
        return events

    return asyncio.run(wait())


def test_a_waiter_hears_everything_that_happens_to_its_job_in_order_and_nothing_of_others(ledger: Ledger) -> None:
    mine, other = accepted(ledger).job_id, accepted(ledger).job_id

    def happens() -> None:
        finished(ledger, other)
        claim = claimed(ledger, mine)
        ledger.say(other, stream="stdout", text="not yours")
        ledger.say(mine, stream="stdout", text="é\n")
        ledger.mark(mine, claim.fence, Status.UPLOADING)
        ledger.finish(mine, claim.fence, claim.record.ended(Status.FAILED), TTL)

    assert heard(ledger, mine, happens, {"status": "failed"}) == [
        {"status": "running"},
        {"stream": "stdout", "text": "é\n"},
        {"status": "uploading"},
        {"status": "failed"},
    ]


def test_a_waiter_hears_of_a_cancellation_and_of_a_return_to_the_queue(ledger: Ledger) -> None:
    waiting, running, lost = (accepted(ledger) for _ in range(3))
    claimed(ledger, running.job_id)
    claimed(ledger, lost.job_id, OVER)
    cancelled, queued = {"status": "cancelled"}, {"status": "queued"}
    assert heard(ledger, waiting.job_id, lambda: cancel(ledger, waiting), cancelled) == [cancelled]
    assert heard(ledger, running.job_id, lambda: cancel(ledger, running), {"cancel": True}) == [{"cancel": True}]
    assert heard(ledger, lost.job_id, lambda: reclaimed(ledger, lost.job_id), queued) == [queued]


class Server:
    """A Redis to stop, start and break."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.data = self.folder / "data"
        self.data.mkdir()
        self.url = f"unix://{self.folder}/sock"
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.folder / "sock"), "--save", ""]
        durable = ["--dir", str(self.data), "--appendonly", "yes", "--appendfsync", "always"]
        self._process = subprocess.Popen([*command, *durable], stdout=subprocess.DEVNULL)
        eventually(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture
def server() -> Iterator[Server]:
    """A Redis of this test's own, started."""
    made = Server()
    made.start()
    yield made
    made.remove()


RECORD = JobRecord(
    job_id="a", tenant="ada", spec=JobSpec(runtime="bash", script="true", limits=LIMITS), prefix="p", link="l"
)  # fmt: skip
RESULT = RECORD.ended(Status.CANCELLED)


def listen(ledger: Ledger) -> None:
    heard(ledger, "a", lambda: None, {})


WRITES: dict[str, Callable[[Ledger], object]] = {
    "add": lambda ledger: ledger.add(RECORD),
    "hold": lambda ledger: ledger.hold(["x"], TTL),
    "stored": lambda ledger: ledger.stored("x"),
    "claim": lambda ledger: ledger.claim("a", LEASE),
    "renew": lambda ledger: ledger.renew({"a": 1}, LEASE),
    "mark": lambda ledger: ledger.mark("a", 1, Status.UPLOADING),
    "finish": lambda ledger: ledger.finish("a", 1, RESULT, TTL),
    "cancel": lambda ledger: ledger.cancel(RECORD, RESULT, TTL),
    "reclaim": lambda ledger: ledger.reclaim(RECORD, 3, RESULT, RESULT, TTL),
    "forget": lambda ledger: ledger.forget("a"),
}
READS: dict[str, Callable[[Ledger], object]] = {
    "get": lambda ledger: ledger.get("a"),
    "newest": lambda ledger: ledger.newest("ada"),
    "position": lambda ledger: ledger.position("a"),
    "linked": lambda ledger: ledger.linked("l"),
    "say": lambda ledger: ledger.say("a", status="x"),
    "stranded": lambda ledger: ledger.stranded(1, 1),
    "overdue": lambda ledger: ledger.overdue(1),
    "expired": lambda ledger: ledger.expired(1),
    "doomed": lambda ledger: ledger.doomed(1),
    "buried": lambda ledger: ledger.buried(["x"]),
    "ping": lambda ledger: ledger.ping(),
    "events": listen,
}


@pytest.mark.parametrize("call", [*WRITES.values(), *READS.values()], ids=[*WRITES, *READS])
def test_everything_says_try_again_when_redis_is_away(tmp_path: Path, call: Callable[[Ledger], object]) -> None:
    with pytest.raises(TryAgain, match=r"Redis.*try again"):
        call(Ledger(f"unix://{tmp_path}/nobody"))


def read_only(server: Server) -> None:
    server.client.replicaof("127.0.0.1", 1)


def full(server: Server) -> None:
    server.client.config_set("maxmemory", 1)


def disk_broken(server: Server) -> None:
    """Redis could not save, and by its default then takes no writes until it can."""
    server.client.config_set("save", "3600 1")
    shutil.rmtree(server.data)
    server.client.bgsave()
    eventually(lambda: server.client.info("persistence")["rdb_last_bgsave_status"] == "err")


@pytest.mark.parametrize("trouble", [read_only, full, disk_broken], ids=["read-only", "full", "unable to save"])
def test_accepting_says_try_again_when_redis_cannot_write(server: Server, trouble: Callable[[Server], None]) -> None:
    ledger = Ledger(server.url)
    trouble(server)
    with pytest.raises(TryAgain, match=r"Redis.*try again"):
        ledger.add(RECORD)
    with pytest.raises(UnknownJob):
        ledger.get(RECORD.job_id)


def test_what_was_accepted_survives_a_redis_that_is_killed_and_the_same_ledger_goes_on(server: Server) -> None:
    ledger = Ledger(server.url)
    waiting, running = accepted(ledger), accepted(ledger)
    claim = claimed(ledger, running.job_id)
    server.kill()
    with pytest.raises(TryAgain):
        ledger.get(waiting.job_id)
    server.start()
    assert ledger.get(waiting.job_id).status is Status.QUEUED
    assert claimed(ledger, waiting.job_id).attempt == 1
    assert ledger.renew({running.job_id: claim.fence}, LEASE) == {running.job_id: "kept"}
    assert ledger.finish(running.job_id, claim.fence, claim.record.ended(Status.SUCCEEDED), TTL)


def test_a_waiter_says_try_again_when_redis_goes_away_meanwhile(server: Server) -> None:
    ledger = Ledger(server.url)
    job_id = accepted(ledger).job_id
    with pytest.raises(TryAgain):
        heard(ledger, job_id, server.kill, {})

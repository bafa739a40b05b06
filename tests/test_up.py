"""A farm as one thing: it starts, survives what its parts die of, keeps what it accepted, and leaves nothing behind."""

import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from conftest import Farm, FarmClient, RedisServer, StoreServer, download, eventually, free_port, named

from farm.job import Status

Make = Callable[..., Farm]
Connect = Callable[..., FarmClient]


def job_processes() -> list[str]:
    """Command lines of everything that runs inside a sandbox of this user's farms."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words.startswith(("/run/podman-init", "crun ")):
            found.append(words)
    return found


def test_what_was_accepted_and_what_was_made_survive_a_restart(new_farm: Make, connect: Connect) -> None:
    farm = new_farm().start()
    client = connect(farm.settings.mcp_url)
    made = client.run("echo kept > a.txt")
    link = next(word for word in client.call("get_job", job_id=made.job_id).text.split() if "/a/" in word)
    assert farm.stop() == 0
    farm.start()
    again = connect(farm.settings.mcp_url).call("get_job", job_id=made.job_id).job
    assert download(named(again)["a.txt"]) == b"kept\n"
    assert httpx2.get(link, follow_redirects=True).text == "kept\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_ends_every_part_and_leaves_no_socket_and_no_container(
    new_farm: Make, connect: Connect, how: signal.Signals
) -> None:
    farm = new_farm().start()
    parts = farm.children()
    assert set(parts) == {"redis", "s3", "housekeeping", "worker", "api"}
    connect(farm.settings.mcp_url).run("true")
    assert farm.stop(how) == 0
    assert [name for name, pid in parts.items() if Path(f"/proc/{pid}").exists()] == []
    assert list(farm.state.glob("*.sock")) == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", farm.settings.api_port)) != 0


def test_a_port_that_is_taken_is_named_with_the_setting_that_chooses_another(new_farm: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = new_farm(api_port=str(port)).cli("up")
    assert refused.returncode == 78
    assert f"127.0.0.1:{port}" in refused.stderr
    assert "SCIFARM_API_PORT" in refused.stderr


def test_a_second_farm_on_the_same_state_folder_is_refused(farm: Farm, new_farm: Make) -> None:
    refused = new_farm(state=str(farm.state)).cli("up")
    assert refused.returncode == 78
    assert "SCIFARM_STATE" in refused.stderr


@pytest.mark.slow
def test_a_job_whose_worker_is_killed_runs_again(new_farm: Make, connect: Connect) -> None:
    farm = new_farm().start()
    client = connect(farm.settings.mcp_url)
    job = client.call("run_script", runtime="bash", script="sleep 5; echo done > a.txt", wait=0).job
    eventually(lambda: client.call("get_job", job_id=job.job_id).job.status is Status.RUNNING)
    os.kill(farm.children()["worker"], signal.SIGKILL)
    result = client.call("get_job", job_id=job.job_id, wait=120).job
    assert (result.status, result.attempt) == (Status.SUCCEEDED, 2)
    assert download(named(result)["a.txt"]) == b"done\n"
    assert [words for words in job_processes() if job.job_id in words] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["redis", "s3"])
def test_a_job_that_runs_while_a_service_dies_ends_well_when_it_is_back(
    new_farm: Make, connect: Connect, part: str
) -> None:
    farm = new_farm().start()
    client = connect(farm.settings.mcp_url)
    job = client.call("run_script", runtime="bash", script="sleep 2; echo done > a.txt", wait=0).job
    eventually(lambda: client.call("get_job", job_id=job.job_id).job.status is Status.RUNNING)
    os.kill(farm.children()[part], signal.SIGKILL)
    eventually(lambda: farm.health().get("status") == "up")
    result = client.call("get_job", job_id=job.job_id, wait=120).job
    assert result.status is Status.SUCCEEDED
    assert download(named(result)["a.txt"]) == b"done\n"


def test_while_redis_is_away_nothing_is_accepted_and_what_was_accepted_goes_on(
    redis: RedisServer, new_farm: Make, connect: Connect
) -> None:
    farm = new_farm(redis_url=redis.url).start()
    client = connect(farm.settings.mcp_url)
    script = "sleep 1; echo done"
    jobs = [client.call("run_script", runtime="bash", script=script, wait=0).job.job_id for _ in range(4)]
    redis.kill()
    refused = client.call("run_script", runtime="bash", script="true")
    assert refused.error
    assert "try again" in refused.text
    redis.start()
    eventually(lambda: farm.health().get("status") == "up")
    results = [client.call("get_job", job_id=job, wait=120).job for job in jobs]
    assert [(result.status, result.stdout) for result in results] == [(Status.SUCCEEDED, "done\n")] * 4


def test_while_the_store_is_away_nothing_with_new_inputs_is_accepted(
    store: StoreServer, new_farm: Make, connect: Connect
) -> None:
    farm = new_farm(**store.given).start()
    client = connect(farm.settings.mcp_url)
    files = {"a.txt": {"text": "new"}}
    store.kill()
    refused = client.call("run_script", runtime="bash", script="cat a.txt", input_files=files)
    assert refused.error
    assert "try again" in refused.text
    assert client.call("list_jobs").data["jobs"] == []
    store.start()
    assert client.run("cat a.txt", input_files=files).stdout == "new"


def test_a_caller_whose_job_was_accepted_is_told_its_id_whatever_fails_afterwards(
    redis: RedisServer, new_farm: Make, connect: Connect
) -> None:
    farm = new_farm(redis_url=redis.url).start()
    client = connect(farm.settings.mcp_url)
    down = threading.Timer(1.5, redis.kill)
    down.start()
    answer = client.call("run_script", runtime="bash", script="sleep 6; echo done", wait=4)
    down.join()
    assert not answer.error
    redis.start()
    eventually(lambda: farm.health().get("status") == "up")
    assert client.call("get_job", job_id=answer.job.job_id, wait=120).job.stdout == "done\n"


@pytest.mark.slow
def test_a_job_that_does_not_end_when_the_farm_stops_goes_back_to_the_queue_uncounted(
    new_farm: Make, connect: Connect
) -> None:
    farm = new_farm().start()
    client = connect(farm.settings.mcp_url)
    job = client.call("run_script", runtime="bash", script="sleep 300", wait=0).job
    eventually(lambda: client.call("get_job", job_id=job.job_id).job.status is Status.RUNNING)
    assert farm.stop() == 0
    assert [words for words in job_processes() if job.job_id in words] == []
    farm.start()
    again = connect(farm.settings.mcp_url)
    running = eventually(lambda: (r := again.call("get_job", job_id=job.job_id).job).status is Status.RUNNING and r)
    assert running.attempt == 1
    assert again.call("cancel_job", job_id=job.job_id).job.status is Status.CANCELLED


def test_no_secret_stands_in_a_process_title_or_in_the_log(farm: Farm, client: FarmClient) -> None:
    client.run("echo x > a.txt")
    secrets = farm.settings.s3_keys()
    titles = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in farm.children().values()]
    for text in (*titles, farm.log.read_text(errors="replace")):
        assert secrets[1] not in text
        assert secrets[0] not in text


@pytest.mark.parametrize("command", ["api", "up"])
def test_a_farm_that_others_could_reach_needs_tenants(new_farm: Make, command: str) -> None:
    refused = new_farm(api_host="0.0.0.0", api_port=str(free_port())).cli(command)
    assert refused.returncode == 78
    assert "scifarm token new" in refused.stderr

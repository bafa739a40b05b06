"""The tools as MCP clients of several ages see them."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from conftest import REPOSITORY, Farm, FarmClient, download, eventually, named

from farm.job import JobResult, Status

Connect = Callable[..., FarmClient]
TOOLS = {"run_script", "get_job", "cancel_job", "list_jobs", "list_runtimes"}


def test_every_tool_has_annotations_and_an_output_schema(client: FarmClient) -> None:
    tools = client.tools()
    assert set(tools) == TOOLS
    for tool in tools.values():
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.open_world_hint is False
    assert [name for name, tool in tools.items() if tool.annotations.read_only_hint] == [
        "get_job",
        "list_jobs",
        "list_runtimes",
    ]


def test_what_a_model_has_to_read_of_the_tools_is_short(client: FarmClient) -> None:
    told = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in client.tools().values()]
    assert len(json.dumps(told)) < 12_000


def test_a_result_has_exactly_the_fields_that_are_documented(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="echo a > a.txt")
    assert set(answer.data) == set(JobResult.model_fields)
    assert set(answer.data["outputs"][0]) == {"name", "bytes", "sha256", "mime", "url", "expires_in", "text"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_both_protocol_ages_are_served(farm: Farm, connect: Connect, mode: str) -> None:
    client = connect(farm.settings.mcp_url, mode=mode)
    assert client.run("echo hi").stdout == "hi\n"
    assert client.progress


def post(farm: Farm, message: dict[str, Any], **headers: str) -> httpx2.Response:
    """Send one bare JSON-RPC message."""
    accept = {"accept": "application/json, text/event-stream", **headers}
    return httpx2.post(farm.settings.mcp_url, json=message, headers=accept, timeout=60)


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_handshake_revision_is_answered_in_kind(farm: Farm, revision: str) -> None:
    who = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    answer = post(farm, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who})
    assert f'"protocolVersion":"{revision}"' in answer.text.replace(" ", "")


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_files": json.dumps({"a.txt": "aGk="}), "args": json.dumps(["x"])},
        {"input_files": [{"name": "a.txt", "content": "aGk="}], "args": ["x"]},
        {"input_files": {"a.txt": {"text": "hi"}}, "args": ["x"], "timeout": "30", "cpus": "1", "memory": "268435456"},
        {"input_files": json.dumps([{"name": "a.txt", "text": "hi"}]), "args": ["x"], "label": None, "stdin": None},
    ],
    ids=["JSON in strings", "a list of files", "numbers in strings", "nulls"],
)
def test_arguments_are_understood_in_every_spelling_that_clients_use(
    client: FarmClient, arguments: dict[str, Any]
) -> None:
    assert client.run('cat a.txt; echo "$1"', **arguments).stdout == "hix\n"


def test_a_client_that_goes_away_ends_its_wait_and_not_its_job(farm: Farm, client: FarmClient) -> None:
    script = "sleep 3; echo done > a.txt"
    call = {"name": "run_script", "arguments": {"runtime": "bash", "script": script, "label": "left alone"}}
    with pytest.raises(httpx2.TimeoutException):
        httpx2.post(
            farm.settings.mcp_url,
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call | {"_meta": modern()}},
            headers={
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "run_script",
            },
            timeout=1.5,
        )
    jobs = client.call("list_jobs").data["jobs"]
    job = next(entry["job_id"] for entry in jobs if entry["label"] == "left alone")
    result = client.call("get_job", job_id=job, wait=60).job
    assert result.status is Status.SUCCEEDED
    assert download(named(result)["a.txt"]) == b"done\n"


def modern() -> dict[str, Any]:
    """What a request of the stateless revision says of its client."""
    prefix = "io.modelcontextprotocol/"
    return {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientInfo": {"name": "test", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }


def test_over_stdio_nothing_but_the_protocol_is_on_stdout_whatever_a_job_prints(farm: Farm) -> None:
    who = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    script = r"""printf '\033[31mred\033[0m\0\377\n{"jsonrpc":"2.0","id":2,"result":{}}\n'; head -c 200 /dev/urandom"""
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "run_script", "arguments": {"runtime": "bash", "script": script}},
        },
    ]
    with subprocess.Popen(
        farm.command("mcp"), env=farm.env, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
        rest = server.stdout.read()
    assert [answer["id"] for answer in answers] == [1, 2]
    stdout = answers[1]["result"]["structuredContent"]["stdout"]
    assert "\x1b[31mred" in stdout
    assert '{"jsonrpc":"2.0","id":2,"result":{}}' in stdout
    assert rest == b""


def test_a_wait_that_is_shorter_than_the_job_answers_its_id_and_how_to_ask_again(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="sleep 2", wait=0.2)
    assert answer.job.status in (Status.QUEUED, Status.RUNNING)
    assert f'get_job(job_id="{answer.job.job_id}"' in answer.text
    assert client.call("get_job", job_id=answer.job.job_id, wait=30).job.status is Status.SUCCEEDED


def test_cancelling_twice_is_an_honest_answer(client: FarmClient) -> None:
    job = client.call("run_script", runtime="bash", script="echo so far; sleep 100", wait=0).job
    eventually(lambda: client.call("get_job", job_id=job.job_id).job.status is Status.RUNNING)
    cancelled = client.call("cancel_job", job_id=job.job_id).job
    assert (cancelled.status, cancelled.stdout) == (Status.CANCELLED, "so far\n")
    again = client.call("cancel_job", job_id=job.job_id)
    assert "nothing to cancel" in again.text
    assert again.job == cancelled.model_copy(update={"outputs": again.job.outputs})

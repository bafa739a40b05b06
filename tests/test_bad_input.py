"""What callers get for what cannot be done: a sentence that names the input and what is allowed; nothing is written."""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from conftest import Farm, FarmClient, eventually, named

from cli.admin import POLICY
from storage.objects import input_key

HI = "aGk="


def traces(farm: Farm, client: FarmClient) -> tuple[Any, list[str]]:
    """All that accepting a job leaves: a line in the ledger, objects in the store."""
    return client.call("list_jobs", limit=500).data, farm.objects.keys("inputs/")


@pytest.fixture(autouse=True)
def nothing_is_written(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever was refused left no trace, and the server is up."""
    if "client" not in request.fixturenames:
        yield
        return
    farm, client = request.getfixturevalue("farm"), request.getfixturevalue("client")
    before = traces(farm, client)
    yield
    assert traces(farm, client) == before
    assert farm.health()["status"] == "up"


def refusal(client: FarmClient, tool: str = "run_script", **arguments: Any) -> str:
    """The error that a tool answers."""
    answer = client.call(tool, **arguments)
    assert answer.error, answer.text
    assert "Traceback" not in answer.text
    return answer.text


@pytest.mark.parametrize("runtime", ["cobol", "", "python;id", "--privileged", "Python", "../python", "base"])
def test_an_unknown_runtime_is_refused_and_the_known_ones_are_listed(client: FarmClient, runtime: str) -> None:
    text = refusal(client, runtime=runtime, script="true")
    assert repr(runtime) in text
    assert "bash" in text
    assert "python" in text.partition("has ")[2]


@pytest.mark.parametrize("field", ["colour", "env", "pids", "Script"])
def test_an_unknown_field_is_refused_and_the_known_ones_are_listed(client: FarmClient, field: str) -> None:
    text = refusal(client, runtime="bash", script="true", **{field: "x"})
    assert f"unknown field '{field}'" in text
    assert "input_files" in text


@pytest.mark.parametrize("missing", ["runtime", "script"])
def test_a_missing_field_is_named(client: FarmClient, missing: str) -> None:
    arguments = {"runtime": "bash", "script": "true"}
    del arguments[missing]
    assert f"{missing} is missing" in refusal(client, **arguments)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("../x", "'..'"),
        ("a/../../x", "'..'"),
        ("..", "'..'"),
        (".", "'.'"),
        ("a//b", "empty"),
        ("a/", "empty"),
        ("a\0b", "NUL"),
        ("x" * 256, "too long"),
        ("d/" * 600 + "f", "too long"),
    ],
    ids=[
        "empty",
        "absolute",
        "parent",
        "hidden parent",
        "only dots",
        "dot",
        "empty part",
        "folder",
        "nul",
        "long",
        "deep",
    ],
)
def test_an_input_name_that_leads_elsewhere_is_refused(client: FarmClient, name: str, wrong: str) -> None:
    text = refusal(client, runtime="bash", script="true", input_files={"good": HI, name: HI})
    assert repr(name) in text
    assert wrong in text
    assert "such as 'data.csv' or 'data/a.csv'" in text


@pytest.mark.parametrize(
    "files",
    [
        {"d": HI, "d/f": HI},
        {"d/f": HI, "d": HI},
        {"main.sh": HI},
        {"main.sh/f": HI},
        [{"name": "d", "content": HI}, {"name": "d", "content": HI}],
    ],
    ids=["folder after file", "file after folder", "the script", "below the script", "twice"],
)
def test_inputs_that_need_the_same_path_are_refused(client: FarmClient, files: Any) -> None:
    text = refusal(client, runtime="bash", script="true", input_files=files)
    assert re.search("collides with|two input files are named", text)
    assert re.search("'d'|'d/f'|'main.sh", text)


@pytest.mark.parametrize("content", ["aGk=!!!!", "a", "aGk=aGk=", "é", "{}", "data:text/csv,hi"])
def test_bad_base64_is_refused_with_the_name_of_the_file(client: FarmClient, content: str) -> None:
    text = refusal(client, runtime="bash", script="true", input_files={"good": HI, "d/bad.csv": content})
    assert "input file 'd/bad.csv'" in text
    assert "base64" in text


@pytest.mark.parametrize(
    "files",
    ["{", "[1]", "42", ["a"], {"f": 1}, {"f": {"text": "x", "content": HI}}, {"f": None}],
    ids=["no json", "list of numbers", "number", "list of names", "number as content", "text and content", "null"],
)
def test_input_files_of_another_shape_are_refused(client: FarmClient, files: Any) -> None:
    assert "input_files" in refusal(client, runtime="bash", script="true", input_files=files)


@pytest.mark.parametrize("script", ["", " \n\t"], ids=["empty", "blank"])
def test_an_empty_script_is_refused(client: FarmClient, script: str) -> None:
    assert "script is empty" in refusal(client, runtime="bash", script=script)


@pytest.mark.parametrize(
    ("what", "arguments", "allowed"),
    [
        ("script", {"script": "#" * (2**20 + 1)}, "up to 1048576 are allowed"),
        ("stdin", {"stdin": "x" * (8 * 2**20 + 1)}, "up to 8388608 are allowed"),
        ("input files", {"input_files": {"big": {"text": "x" * (48 * 2**20 + 1)}}}, "up to 50331648 are allowed"),
        ("501 input files", {"input_files": {f"{n}": HI for n in range(501)}}, "up to 500 are allowed"),
        ("args", {"args": ["x"] * 1001}, "up to 1000 are allowed"),
        ("label", {"label": "x" * 201}, "up to 200 are allowed"),
        ("args", {"args": ["a\0b"]}, "cannot contain a NUL"),
    ],
    ids=["script", "stdin", "input bytes", "input count", "arguments", "label", "nul in an argument"],
)
def test_too_much_is_refused_with_what_is_allowed(
    client: FarmClient, what: str, arguments: dict[str, Any], allowed: str
) -> None:
    text = refusal(client, **({"runtime": "bash", "script": "true"} | arguments))
    assert what in text
    assert allowed in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("timeout", -1), ("timeout", 0), ("timeout", "nan"), ("timeout", "inf"), ("timeout", 3601), ("timeout", 1e300),
        ("timeout", "soon"), ("memory", -1), ("memory", 0), ("memory", "-5GiB"), ("memory", "12 bananas"),
        ("memory", "64GiB"), ("memory", 10**30), ("memory", "NaN"), ("memory", "1KiB"), ("cpus", -1), ("cpus", 0),
        ("cpus", "nan"), ("cpus", 10_000), ("cpus", True),
    ],
)  # fmt: skip
def test_an_impossible_limit_is_refused_with_the_ceiling(client: FarmClient, name: str, value: Any) -> None:
    text = refusal(client, runtime="bash", script="true", **{name: value})
    ceiling = {"timeout": "3600", "memory": "8.0GiB", "cpus": "8"}[name]
    assert name in text
    assert ceiling in text


@pytest.mark.parametrize("wait", [-1, 601, "nan", "soon"])
def test_an_impossible_waiting_time_is_refused(client: FarmClient, wait: Any) -> None:
    assert "wait" in refusal(client, runtime="bash", script="true", wait=wait)


@pytest.mark.parametrize("job_id", ["0123456789abcdef0123", "", "*", "a\nb", "x" * 10_000, "../../etc"])
@pytest.mark.parametrize("tool", ["get_job", "cancel_job"])
def test_an_unknown_job_is_named(client: FarmClient, tool: str, job_id: str) -> None:
    assert f"unknown job {job_id!r}" in refusal(client, tool, job_id=job_id)


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 501}, {"limit": "many"}, {"status": "done"}])
def test_a_list_of_jobs_that_cannot_be_had_is_refused(client: FarmClient, arguments: dict[str, Any]) -> None:
    text = refusal(client, "list_jobs", **arguments)
    assert next(iter(arguments)) in text


def test_an_unknown_tool_is_an_error_and_not_the_end(client: FarmClient) -> None:
    assert "rm_rf" in refusal(client, "rm_rf")


def test_a_result_asked_for_after_its_time_has_expired(
    new_farm: Callable[..., Farm], connect: Callable[..., FarmClient]
) -> None:
    farm = new_farm(POLICY.read_text().replace("ttl: 86400", "ttl: 1")).start()
    caller = connect(farm.settings.mcp_url)
    answer = caller.call("run_script", runtime="bash", script="echo x > a.txt", input_files={"in": HI})
    job, link = answer.job.job_id, answer.text.rpartition("a.txt (text/plain, 2 bytes): ")[2].split()[0]
    url = str(named(answer.job)["a.txt"].url)
    told = eventually(lambda: (asked := caller.call("get_job", job_id=job)).error and asked.text)
    assert f"the results of job {job} have expired" in told
    assert httpx2.get(link).status_code == 410
    assert httpx2.get(url).is_error
    assert eventually(lambda: not farm.objects.keys("outputs/"))
    assert caller.call("list_jobs").data == {"jobs": []}


def test_inputs_of_a_job_whose_limits_are_refused_are_not_stored(farm: Farm, client: FarmClient) -> None:
    content = os.urandom(16).hex()
    refusal(client, runtime="bash", script="true", timeout=-1, input_files={"a.txt": {"text": content}})
    assert farm.objects.keys(input_key(hashlib.sha256(content.encode()).hexdigest())) == []

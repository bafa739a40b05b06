"""What a caller may say: in every spelling that clients use, and within the farm's rules."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

from api.request import Checked, RunRequest, check
from farm.errors import InvalidRequest
from farm.policy import Policy
from farm.runtime import load_runtimes

RULES = """
defaults: {memory: 512MiB, cpus: 1, timeout: 10, pids: 64, scratch: 64MiB}
ceilings: {memory: 1GiB, cpus: 2, timeout: 60, pids: 128, scratch: 128MiB}
inputs: {count: 3, bytes: 100, script_bytes: 50, stdin_bytes: 20, args: 2}
runtimes: [bash]
"""


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ask(**fields: Any) -> RunRequest:
    return RunRequest.parse({"runtime": "bash", "script": "true"} | fields)


@pytest.fixture
def rules(tmp_path: Path) -> Policy:
    """A policy with small caps."""
    path = tmp_path / "policy.yaml"
    path.write_text(RULES)
    return Policy.load(path)


def checked(rules: Policy, **fields: Any) -> Checked:
    return check(ask(**fields), load_runtimes(REPOSITORY / "images"), rules)


def refused(rules: Policy, **fields: Any) -> str:
    with pytest.raises(InvalidRequest) as refusal:
        checked(rules, **fields)
    return str(refusal.value)


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": encoded("1,2"), "b/c.txt": {"text": "é"}},
        [{"name": "a.csv", "content": encoded("1,2")}, {"name": "b/c.txt", "text": "é"}],
        json.dumps({"a.csv": encoded("1,2"), "b/c.txt": {"text": "é"}}),
        json.dumps([{"name": "a.csv", "content": encoded("1,2")}, {"name": "b/c.txt", "text": "é"}]),
    ],
    ids=["mapping", "list", "mapping in a string", "list in a string"],
)
def test_input_files_mean_the_same_however_they_are_sent(rules: Policy, files: object) -> None:
    assert checked(rules, input_files=files).files == {"a.csv": b"1,2", "b/c.txt": "é".encode()}


@pytest.mark.parametrize("files", [None, {}, [], "{}", "[]"], ids=str)
def test_no_input_files_are_none(rules: Policy, files: object) -> None:
    assert checked(rules, input_files=files).files == {}


def test_an_empty_file_is_a_file(rules: Policy) -> None:
    assert checked(rules, input_files={"a": "", "b": {"text": ""}}).files == {"a": b"", "b": b""}


@pytest.mark.parametrize("args", [["1", "a b"], '["1", "a b"]'], ids=["list", "list in a string"])
def test_arguments_mean_the_same_however_they_are_sent(args: object) -> None:
    assert ask(args=args).args == ["1", "a b"]


def test_what_is_null_was_not_said() -> None:
    assert ask(input_files=None, args=None, stdin=None, label=None, timeout=None, memory=None, cpus=None) == ask()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"scirpt": "true"}, "unknown field 'scirpt'; known are runtime, script, input_files, args"),
        ({"runtime": None}, "runtime is missing"),
        ({"script": None}, "script is missing"),
        ({"script": ["true"]}, "script: "),
        ({"script": 5}, "script: "),
        ({"runtime": {}}, "runtime: "),
        ({"stdin": 5}, "stdin: "),
        ({"label": ["a"]}, "label: "),
        ({"args": "-v --fast"}, "args: "),
        ({"args": {"a": 1}}, "args: "),
        ({"args": [1, 2]}, "args.0: "),
        ({"args": [["a"]]}, "args.0: "),
        ({"timeout": []}, "timeout"),
        ({"memory": {}}, "memory"),
        ({"cpus": [1]}, "cpus"),
        ({"input_files": "data.csv"}, "input_files: "),
        ({"input_files": 5}, "input_files: "),
        ({"input_files": "5"}, "input_files: "),
        ({"input_files": ["data.csv"]}, "input_files: "),
        ({"input_files": [{"content": "aGk="}]}, "input_files: "),
        ({"input_files": [{"name": 5, "content": "aGk="}]}, "input_files: "),
        ({"input_files": [{"name": "a", "text": ""}, {"name": "a", "text": ""}]}, "input_files: two input files"),
        ({"input_files": {"data.csv": 5}}, "input_files.data.csv"),
        ({"input_files": {"data.csv": None}}, "input_files.data.csv"),
        ({"input_files": {"data.csv": {"txt": "a"}}}, "input_files.data.csv"),
        ({"input_files": {"data.csv": {"text": "a", "content": "aGk="}}}, "input_files.data.csv"),
        ({"input_files": [{"name": "data.csv"}]}, "input_files.data.csv"),
        ({"input_files": "[" * 200_000}, "input_files: "),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)  # fmt: skip
def test_a_request_of_the_wrong_shape_is_refused_with_the_field(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        ask(**fields)
    assert str(refusal.value).startswith(told)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    "runtime", ["fortran", "", "python;id", "--privileged", "../bash", "Bash", "bash\n", "base"], ids=ascii
)
def test_an_unknown_runtime_is_refused_with_the_known_ones(rules: Policy, runtime: str) -> None:
    assert refused(rules, runtime=runtime) == f"unknown runtime {runtime!r}; this farm has bash"


def test_a_runtime_that_the_policy_does_not_allow_is_as_unknown_as_any(rules: Policy) -> None:
    assert refused(rules, runtime="python") == "unknown runtime 'python'; this farm has bash"


@pytest.mark.parametrize("script", ["", " ", "\n\t\n"], ids=ascii)
def test_an_empty_script_is_refused(rules: Policy, script: str) -> None:
    assert refused(rules, script=script) == "script is empty; send the text of the script"


@pytest.mark.parametrize(
    ("within", "over", "told"),
    [
        ({"script": "#" * 50}, {"script": "#" * 51}, "script has 51 bytes; up to 50 are allowed"),
        ({"script": "é" * 25}, {"script": "é" * 26}, "script has 52 bytes; up to 50 are allowed"),
        ({"stdin": "x" * 20}, {"stdin": "x" * 21}, "stdin has 21 bytes; up to 20 are allowed"),
        ({"args": ["a", "b"]}, {"args": ["a", "b", "c"]}, "args: 3 arguments; up to 2 are allowed"),
        ({"label": "é" * 200}, {"label": "é" * 201}, "label has 201 characters; up to 200 are allowed"),
        (
            {"input_files": dict.fromkeys("abc", "")},
            {"input_files": dict.fromkeys("abcd", "")},
            "4 input files; up to 3 are allowed",
        ),
        (
            {"input_files": {"a": encoded("x" * 60), "b": {"text": "é" * 20}}},
            {"input_files": {"a": encoded("x" * 61), "b": {"text": "é" * 20}}},
            "input files have 101 bytes together; up to 100 are allowed",
        ),
    ],
    ids=["script", "script in bytes", "stdin", "arguments", "label", "input files", "input bytes"],
)
def test_every_cap_is_kept_to_the_last_one(
    rules: Policy, within: dict[str, Any], over: dict[str, Any], told: str
) -> None:
    checked(rules, **within)
    assert refused(rules, **over) == told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"script": "echo \ud800"}, "script is not valid Unicode"),
        ({"stdin": "\udfff"}, "stdin is not valid Unicode"),
        ({"args": ["\ud83d"]}, "args is not valid Unicode"),
        ({"label": "\ud83d"}, "label is not valid Unicode"),
        ({"args": ["a\0b"]}, "args: an argument cannot contain a NUL"),
        ({"input_files": {"a": {"text": "\ud800"}}}, "input file 'a': its text is not valid Unicode"),
        ({"input_files": {"\ud800": ""}}, "input file name '\\ud800' is not valid Unicode"),
        ({"input_files": {"a": "aGk=!!!!"}}, "input file 'a': '!' cannot stand there in base64"),
        ({"input_files": {"../a": ""}}, "input file name '../a' has an empty, '.' or '..' part"),
        ({"input_files": {"": ""}}, "input file name '' is empty"),
        ({"input_files": {"a\0": ""}}, "input file name 'a\\x00' contains a NUL"),
        ({"input_files": {"d": "", "d/f": ""}}, "input file 'd/f' collides with input file 'd'"),
        ({"input_files": {"main.sh": ""}}, "input file 'main.sh' collides with the script itself"),
    ],
    ids=lambda value: ascii(value)[:60] if isinstance(value, dict) else None,
)
def test_what_cannot_be_staged_is_refused_with_the_part_that_is_wrong(
    rules: Policy, fields: dict[str, Any], told: str
) -> None:
    assert refused(rules, **fields).startswith(told)


def test_a_label_may_hold_any_line_break_for_it_is_escaped_where_it_is_shown(rules: Policy) -> None:
    assert checked(rules, label="a\nb\u2028c\x85d\x1b[0m").request.label == "a\nb\u2028c\x85d\x1b[0m"


@pytest.mark.parametrize("limit", [60, 0.5, "30", "nan"], ids=str)
def test_limits_are_taken_as_they_are_said_for_the_policy_to_judge(limit: float | str) -> None:
    assert ask(timeout=limit).timeout == limit

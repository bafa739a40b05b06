"""The `scifarm` command against a real farm."""

import hashlib
import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import REPOSITORY, Farm

from cli.client import Refused, save
from farm.job import Artifact, JobResult, Status


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    """Writes a script and gives its path."""

    def write(text: str, name: str = "job.sh") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_run_prints_what_the_script_prints_and_downloads_what_it_wrote(
    farm: Farm, script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("1,2\n")
    path = script('cat data/in.csv; echo "$1 $2"; cat; mkdir -p a/b; echo deep > a/b/c.txt; echo oops >&2')
    (tmp_path / "stdin").write_text("from stdin\n")
    ran = farm.cli(
        "run", path, "--input", f"{tmp_path}/in.csv=data/in.csv", "--arg", "x y", "--arg", "z",
        "--stdin", str(tmp_path / "stdin"), "--out", str(tmp_path / "out"), "--label", "first",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "1,2\nx y z\nfrom stdin\n"
    assert "oops" in ran.stderr
    assert "succeeded" in ran.stderr
    assert (tmp_path / "out/a/b/c.txt").read_text() == "deep\n"


def test_json_is_the_whole_result_and_nothing_else_is_on_stdout(farm: Farm, script: Callable[..., str]) -> None:
    ran = farm.cli("run", script("echo hi; echo 1 > n.txt"), "--json")
    result = JobResult.model_validate_json(ran.stdout)
    assert (result.status, result.stdout) == (Status.SUCCEEDED, "hi\n")
    assert [output.name for output in result.outputs] == ["n.txt"]


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("exit 7", [], 7),
        ("kill -TERM $$", [], 143),
        ("sleep 60", ["--timeout", "0.5"], 124),
        ("head -c 200m /dev/zero | tail | wc -c", ["--memory", "64MiB"], 137),
    ],
    ids=["the script's own", "128 and the signal", "timeout", "memory"],
)
def test_the_exit_code_tells_how_the_job_ended(
    farm: Farm, script: Callable[..., str], text: str, options: list[str], code: int
) -> None:
    assert farm.cli("run", script(text), *options).returncode == code


def test_a_job_can_be_submitted_watched_cancelled_and_listed(farm: Farm, script: Callable[..., str]) -> None:
    job = farm.cli("submit", script("echo begun; sleep 100")).stdout.strip()
    assert json.loads(farm.cli("status", job, "--json").stdout)["status"] in ("queued", "running")
    assert json.loads(farm.cli("cancel", job, "--json").stdout)["status"] == "cancelled"
    waited = farm.cli("wait", job)
    assert waited.returncode == 130
    listed = json.loads(farm.cli("jobs", "--status", "cancelled", "--json").stdout)["jobs"]
    assert job in [entry["job_id"] for entry in listed]
    assert job in farm.cli("jobs").stdout


def test_runtimes_are_shown_and_searched(farm: Farm) -> None:
    assert "python" in farm.cli("runtimes").stdout
    found = json.loads(farm.cli("runtimes", "--search", "numpy", "--json").stdout)["found"]
    assert "python" in [entry["runtime"] for entry in found]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "{script}.unknown"], "its suffix names no runtime"),
        (["run", "{script}", "--input", "nowhere.csv"], "nowhere.csv"),
        (["run", "{script}", "--timeout", "-3"], "timeout"),
        (["status", "nosuchjob"], "unknown job"),
    ],
    ids=["suffix", "input", "limit", "job"],
)
def test_what_is_wrong_is_said_in_a_sentence(
    farm: Farm, script: Callable[..., str], arguments: list[str], told: str
) -> None:
    path = script("true")
    script("true", "job.sh.unknown")
    ran = farm.cli(*(part.format(script=path) for part in arguments))
    assert ran.returncode == 69
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


def test_without_a_farm_the_command_says_how_to_start_one(new_farm: Callable[..., Farm]) -> None:
    ran = new_farm().cli("jobs")
    assert ran.returncode == 69
    assert "scifarm up" in ran.stderr


def test_what_a_job_prints_cannot_command_a_terminal(farm: Farm, script: Callable[..., str]) -> None:
    path = script(r"printf '\033[2Jgone\033]0;title\007'; touch $'e\033[31m'")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        farm.command("run", path), env=farm.env | {"NO_COLOR": "1", "TERM": "dumb"}, cwd=REPOSITORY,
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            shown += block
    os.close(ours)
    assert process.returncode == 0
    assert b"\\x1b[2Jgone" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b]0;title" not in shown


def test_a_download_that_is_not_what_was_promised_is_refused_and_removed(farm: Farm, tmp_path: Path) -> None:
    ran = farm.cli("run", str(REPOSITORY / "images/bash/smoke.sh"), "--json")
    output = JobResult.model_validate_json(ran.stdout).outputs[0]
    forged = output.model_copy(update={"sha256": hashlib.sha256(b"else").hexdigest()})
    with pytest.raises(Refused, match="SHA-256"):
        save(forged, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt"])
def test_a_name_that_leads_out_of_the_folder_is_never_written(tmp_path: Path, name: str) -> None:
    forged = Artifact(name=name, bytes=1, sha256="0" * 64, mime="text/plain", url="http://127.0.0.1:9/")
    with pytest.raises(Refused, match="leads out"):
        save(forged, tmp_path / "in")


def test_a_new_token_is_shown_once_with_what_the_policy_needs(farm: Farm) -> None:
    made = farm.cli("token", "new", "ada")
    assert len(made.stdout.strip()) >= 43
    assert hashlib.sha256(made.stdout.strip().encode()).hexdigest() in made.stderr


def test_the_smoke_scripts_of_the_images_can_be_run_on_a_farm(farm: Farm) -> None:
    tested = farm.cli("images", "test", "bash")
    assert tested.returncode == 0, tested.stderr
    assert "succeeded" in tested.stdout


def test_the_doctor_finds_nothing_wrong_here(farm: Farm) -> None:
    told = farm.cli("doctor")
    assert told.returncode == 0, told.stdout
    for what in ("cap on memory", "overlay driver", "Redis", "S3", "clock", "image python"):
        assert what in told.stdout


def test_the_doctor_names_what_mends_a_missing_image_and_a_broken_policy(
    new_farm: Callable[..., Farm], tmp_path: Path
) -> None:
    told = new_farm(policy="nonsense: [", image_register=str(tmp_path / "none.json")).cli("doctor")
    assert told.returncode == 1
    assert "scifarm images build python" in told.stdout
    assert "policy file" in told.stdout

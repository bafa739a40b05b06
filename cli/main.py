"""The `scifarm` command: jobs for researchers here, the farm's own commands in `cli.admin`."""

import base64
import codecs
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from cli import admin, show
from cli.client import FarmClient, save
from farm.errors import FarmError, InvalidRequest, Misconfigured
from farm.job import JobResult, Status
from farm.names import shown
from farm.runtime import load_runtimes
from farm.settings import Settings

SUFFIXES = {".py": "python", ".r": "r", ".tex": "latex", ".m": "octave", ".jl": "julia", ".gp": "gnuplot",
            ".gnuplot": "gnuplot", ".plt": "gnuplot", ".gmt": "gmt", ".sh": "bash", ".bash": "bash"}  # fmt: skip
POLL = 45.0  # seconds of one waiting call
# Exit codes beside the script's own: as `timeout`(1) and the shell have them.
EXIT = {Status.SUCCEEDED: 0, Status.TIMED_OUT: 124, Status.OUT_OF_MEMORY: 137, Status.CANCELLED: 130}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="scifarm")
@click.pass_context
def cli(context: click.Context) -> None:
    """Run scripts on a scientific execution farm."""
    if context.obj is None:
        context.obj = Settings.from_env()


def _job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        click.option(
            "--input", "inputs", multiple=True, metavar="FILE[=NAME]", help="A file for the script; repeatable."
        ),
        click.option("--runtime", help="The language, where the script's suffix does not tell."),
        click.option("--timeout", type=float, metavar="SECONDS"),
        click.option("--memory", metavar="SIZE", help="Such as 2GiB."),
        click.option("--cpus", type=float),
        click.option("--arg", "args", multiple=True, help="An argument for the script; repeatable."),
        click.option(
            "--stdin", type=click.File("r", encoding="utf-8"), help="A file for its standard input; - for ours."
        ),
        click.option("--label", help="A name for people."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


_json = click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
_out = click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Download the outputs to this folder."
)


@cli.command()
@_job_options
@_out
@_json
@click.pass_obj
def run(settings: Settings, /, out: Path | None, as_json: bool, **job: Any) -> None:
    """Run SCRIPT and wait for its result. The exit code is the script's own."""
    client = FarmClient(settings)
    with show.progress(job["script"].name) as tell:
        request = _request(settings, **job)
        result = _await(client, client.job("run_script", tell, wait=POLL, **request), tell)
    _present(result, out, as_json)


@cli.command()
@_job_options
@click.pass_obj
def submit(settings: Settings, /, **job: Any) -> None:
    """Queue SCRIPT and print the job's id."""
    print(FarmClient(settings).job("run_script", wait=0, **_request(settings, **job)).job_id)


@cli.command()
@click.argument("job_id", metavar="JOB")
@_json
@click.pass_obj
def status(settings: Settings, job_id: str, as_json: bool) -> None:
    """How JOB stands."""
    _print(FarmClient(settings).job("get_job", job_id=job_id), as_json)


@cli.command()
@click.argument("job_id", metavar="JOB")
@_out
@_json
@click.pass_obj
def wait(settings: Settings, job_id: str, out: Path | None, as_json: bool) -> None:
    """Wait for JOB and show its result, as `run` does."""
    client = FarmClient(settings)
    with show.progress(job_id) as tell:
        result = _await(client, client.job("get_job", tell, job_id=job_id, wait=POLL), tell)
    _present(result, out, as_json)


@cli.command()
@click.argument("job_id", metavar="JOB")
@_json
@click.pass_obj
def cancel(settings: Settings, job_id: str, as_json: bool) -> None:
    """Stop JOB; what it printed and wrote so far is kept."""
    _print(FarmClient(settings).job("cancel_job", job_id=job_id), as_json)


@cli.command()
@click.option("--status", help="Only these, such as running,failed.")
@click.option("--limit", type=int, default=20, show_default=True)
@_json
@click.pass_obj
def jobs(settings: Settings, status: str | None, limit: int, as_json: bool) -> None:
    """Your newest jobs."""
    answer = FarmClient(settings).call("list_jobs", status=status, limit=limit)
    if as_json:
        _dump(answer)
        return
    table = show.table("job", "status", "runtime", "accepted", "label")
    for job in answer["jobs"]:
        row = (job["job_id"], show.status_text(Status(job["status"])), job["runtime"], admin.clock(job["created"]))
        table.add_row(*row, Text(shown(job["label"])))
    show.out.print(table)


@cli.command()
@click.option(
    "--search", metavar="NAME", help="Which runtime has a package, command, LaTeX style or font of this name."
)
@_json
@click.pass_obj
def runtimes(settings: Settings, search: str | None, as_json: bool) -> None:
    """What the farm can run."""
    answer = FarmClient(settings).call("list_runtimes", search=search)
    if as_json:
        _dump(answer)
        return
    if search:
        found = show.table("runtime", "name", "version")
        for entry in answer["found"]:
            found.add_row(entry["runtime"], Text(shown(entry["name"])), entry["version"])
        show.out.print(found if answer["found"] else Text(f"no runtime has {search!r}"))
        return
    table = show.table("runtime", "version", "what it has")
    for runtime in answer["runtimes"]:
        table.add_row(runtime["name"], runtime["version"], runtime["description"])
    show.out.print(table)


def _request(
    settings: Settings, script: Path, runtime: str | None, inputs: tuple[str, ...], **rest: Any
) -> dict[str, Any]:
    stdin = rest.pop("stdin")
    return {
        "runtime": runtime or _runtime_of(settings, script),
        "script": script_text(script.read_bytes()),
        "input_files": dict(_input(entry) for entry in inputs) or None,
        "args": list(rest.pop("args")) or None,
        "stdin": stdin.read() if stdin else None,
        **rest,
    }


def script_text(data: bytes) -> str:
    """A script as text: UTF-8 with or without its mark, or else what old editors on Windows wrote."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _runtime_of(settings: Settings, script: Path) -> str:
    known = load_runtimes(settings.images)
    found = SUFFIXES.get(script.suffix.lower())
    if found not in known:
        raise InvalidRequest(f"{script.name}: its suffix names no runtime; give --runtime, one of {', '.join(known)}")
    return found


def _input(entry: str) -> tuple[str, str]:
    path, _, name = (entry, "", "") if Path(entry).exists() else entry.rpartition("=")
    file = Path(path or entry)
    if not file.is_file():
        raise InvalidRequest(f"--input {entry}: there is no such file")
    return name or file.name, base64.b64encode(file.read_bytes()).decode("ascii")


def _await(client: FarmClient, result: JobResult, tell: Callable[[str], None]) -> JobResult:
    while not result.status.final:
        result = client.job("get_job", tell, job_id=result.job_id, wait=POLL)
    return result


def _present(result: JobResult, out: Path | None, as_json: bool) -> None:
    _print(result, as_json)
    if out is not None:
        for output in result.outputs:
            path = save(output, out)
            show.err.print(Text(f"saved {shown(str(path))}, SHA-256 as stated"))
    sys.exit(EXIT.get(result.status, result.exit_code or 1))


def _print(result: JobResult, as_json: bool) -> None:
    if as_json:
        print(result.model_dump_json(indent=2))
    else:
        show.job(result)


def _dump(answer: dict[str, Any]) -> None:
    show.out.print_json(data=answer)


for command in admin.COMMANDS:
    cli.add_command(command)


def main() -> None:
    """The entry point: errors are sentences on stderr."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for noisy in ("mcp", "httpx2", "celery", "kombu", "botocore", "boto3", "podman", "asyncio", "circus"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    os.umask(0o077 if os.geteuid() != 0 else 0o022)
    try:
        cli(prog_name="scifarm")
    except Misconfigured as error:
        show.err.print(Text(f"scifarm: {error}", style="red"))
        sys.exit(78)  # EX_CONFIG of sysexits.h
    except FarmError as error:
        show.err.print(Text(f"scifarm: {error}", style="red"))
        sys.exit(69)  # EX_UNAVAILABLE

"""What the terminal shows. Whatever a job printed or named is escaped before a terminal can obey it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farm.job import JobResult, Status
from farm.names import shown

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

_COLOURS = {Status.SUCCEEDED: "green", Status.QUEUED: "yellow", Status.RUNNING: "cyan", Status.UPLOADING: "cyan"}


def status_text(status: Status) -> Text:
    """A status in its colour."""
    return Text(status, style=_COLOURS.get(status, "red"))


def job(result: JobResult, *, logs: bool = True) -> None:
    """A result for people: the script's own output as it is, everything else on stderr."""
    if logs:
        _log(sys.stdout, result.stdout)
        _log(sys.stderr, result.stderr)
    line = Text.assemble("job ", result.job_id, " ", status_text(result.status))
    if result.usage.wall_s:
        used = result.usage
        line.append(f" in {used.wall_s:.2f} s, {used.cpu_s:.2f} s CPU, {used.peak_memory_bytes / 1024**2:.0f} MiB peak")
    if result.status is Status.FAILED:
        line.append(f" ({result.signal or f'exit code {result.exit_code}'})")
    err.print(line)
    if result.error:
        err.print(Text(f"error: {shown(result.error.message)}", style="red"))
    for note in result.notes:
        err.print(Text(f"note: {shown(note)}"))
    for rejected in result.rejected:
        err.print(Text(f"not kept: {shown(rejected.name)}: {rejected.reason}", style="yellow"))
    if result.outputs:
        outputs(result)


def outputs(result: JobResult) -> None:
    """The outputs of a job, and where to get them."""
    rows = table("output", "bytes", "sha256", "type")
    for output in result.outputs:
        rows.add_row(Text(shown(output.name)), f"{output.bytes:,}", output.sha256[:16] + "…", output.mime)
    err.print(rows)
    for output in result.outputs:
        err.print(Text(str(output.url)), style="dim", soft_wrap=True)


def table(*columns: str) -> Table:
    """A table without lines."""
    return Table(*columns, box=None, header_style="bold")


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """A line that tells how a job stands, where there is a terminal to tell it."""
    if not err.is_terminal:
        yield lambda _: None
        return
    with err.status(Text(what)) as line:
        yield lambda text: line.update(Text(f"{what}: {shown(text)}"))


def _log(stream: Any, text: str) -> None:
    if stream.isatty():
        text = "\n".join(shown(line.replace("\t", "    ")) for line in text.split("\n"))
    stream.write(text)
    if text and not text.endswith("\n"):
        stream.write("\n")
    stream.flush()

"""An answer as a person reads it in a chat: what happened, what was printed, where the files are."""

from collections.abc import Callable

from farm.job import Artifact, JobResult, Status
from farm.names import shown

TEXT_CHARS = 6000  # of each log in the text; the structured answer has more

_SAID = {
    Status.QUEUED: "waits in the queue",
    Status.RUNNING: "is running",
    Status.UPLOADING: "has ended; its outputs are being stored",
    Status.AWAITING_APPROVAL: "waits for approval",
    Status.SUCCEEDED: "succeeded",
    Status.TIMED_OUT: "ran out of time and was stopped",
    Status.OUT_OF_MEMORY: "ran out of memory and was stopped",
    Status.CANCELLED: "was cancelled",
    Status.LOST: "was lost",
    Status.ERROR: "could not be run: the farm failed, not the script",
}


def describe(result: JobResult, link: Callable[[Artifact], str]) -> str:
    """The text of an answer; `link` gives the short URL of an output."""
    lines = [_headline(result)]
    if result.error:
        lines.append(f"error: {result.error.message}")
    lines += [f"note: {note}" for note in result.notes]
    for name, text in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text.strip():
            lines += [f"--- {name}", _clipped(text.rstrip("\n"))]
    if result.outputs:
        lines.append("--- outputs")
        lines += [f"{shown(o.name)} ({o.mime}, {o.bytes:,} bytes): {link(o)}" for o in result.outputs[:50]]
        if len(result.outputs) > 50:
            lines.append(f"… and {len(result.outputs) - 50} more in the structured answer")
    elif result.status is Status.SUCCEEDED and not result.stdout.strip():
        lines.append("note: it printed nothing and left no files in the working folder")
    lines += [f"not kept: {shown(rejected.name)}: {rejected.reason}" for rejected in result.rejected[:20]]
    if not result.status.final:
        lines.append(f'ask again with get_job(job_id="{result.job_id}", wait=45)')
    return "\n".join(lines)


def _headline(result: JobResult) -> str:
    what = f"{result.runtime} job {result.job_id}"
    if result.label:
        what += f" ({shown(result.label)})"
    if result.status is Status.FAILED:
        end = f"failed: {result.signal}" if result.signal else f"failed with exit code {result.exit_code}"
    else:
        end = _SAID[result.status]
    if result.status is Status.TIMED_OUT:
        end += f" after {result.limits.timeout:g} s; ask for a longer timeout"
    if result.status is Status.OUT_OF_MEMORY:
        end += f" at {result.limits.memory.human_readable()}; ask for more memory"
    if not result.usage.wall_s:
        return f"{what} {end}"
    return f"{what} {end} ({result.usage.wall_s:.2f} s, {result.usage.peak_memory_bytes / 1024**2:.0f} MiB)"


def _clipped(text: str) -> str:
    if len(text) <= TEXT_CHARS:
        return text
    half = TEXT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - TEXT_CHARS:,} characters left out …\n{text[-half:]}"

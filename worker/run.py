"""Runs a staged script to its end, whatever that is, and accounts for it. Afterwards no process of it is alive."""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from farm.job import JobSpec, Status, Usage
from farm.runtime import Runtime
from worker.cage import Cell
from worker.heart import Pulse
from worker.images import BuiltImage
from worker.logs import Log
from worker.sandbox import SandboxError, Sandboxes
from worker.workspace import Workspace


class Job(NamedTuple):
    """A claimed job with all that it runs in."""

    name: str
    spec: JobSpec
    runtime: Runtime
    image: BuiltImage
    workspace: Workspace
    cell: Cell


class Run(NamedTuple):
    """How the script ended and what it printed."""

    status: Status
    exit_code: int | None
    usage: Usage
    stdout: Log
    stderr: Log

    @property
    def signal(self) -> str | None:
        """The signal that ended the script, by the shell's convention of 128 and its number."""
        number = (self.exit_code or 0) - 128
        return signal.Signals(number).name if number in set(signal.Signals) else None


def run(
    sandboxes: Sandboxes, job: Job, pulse: Pulse, folder: Path, log_bytes: int, tell: Callable[[str, str], None]
) -> Run:
    """Start the job's script, wait until it ends, runs out of time or is stopped, and kill what is left of it.

    `folder` is where long logs go, `log_bytes` of each are kept whole; `tell` is given a stream's name and newest text.

    Raises:
        SandboxError: the container did not start.
    """
    job.cell.limit(job.spec.limits)
    begun = time.monotonic()
    with ExitStack() as files:
        stdin = _stdin(job.spec.stdin)
        files.callback(os.close, stdin)
        (out, out_end), (err, err_end) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        stdout = Log(out, folder, log_bytes, lambda text: tell("stdout", text))
        stderr = Log(err, folder, log_bytes, lambda text: tell("stderr", text))
        files.callback(os.close, out_end)
        files.callback(os.close, err_end)
        spec = job.spec
        process = sandboxes.start(
            job.name, job.image, job.runtime, spec.args, spec.limits, job.workspace, job.cell, stdin, out_end, err_end
        )
    try:
        how = _wait(process.pid, pulse, spec.limits.timeout)
    finally:
        process.kill()  # first: if it has not entered the cell yet, nobody shall enter any more
        job.cell.kill()
        code = process.wait()
        stdout.finish()
        stderr.finish()
    if how is None and (trouble := sandboxes.failure(job.workspace)):
        stdout.close()
        stderr.close()
        raise SandboxError(f"the container did not start: {trouble}")
    usage = Usage(
        wall_s=round(time.monotonic() - begun, 3),
        cpu_s=round(job.cell.cpu_seconds, 3),
        peak_memory_bytes=job.cell.peak_memory,
    )
    status = how or (Status.SUCCEEDED if code == 0 else Status.FAILED)
    if job.cell.oom_kills and status is not Status.CANCELLED:
        status = Status.OUT_OF_MEMORY
    return Run(status, None if how else code, usage, stdout, stderr)


def _wait(pid: int, pulse: Pulse, timeout: float) -> Status | None:
    """Wait for the end of a process: None when it came by itself, else why it must be brought about."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.register(pulse.wakeup, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(timeout * 1000)}
    finally:
        os.close(pidfd)
    if pidfd in ready:
        return None
    return Status.CANCELLED if ready else Status.TIMED_OUT


def _stdin(text: str) -> int:
    if not text:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    stdin = os.memfd_create("stdin", os.MFD_CLOEXEC)
    with open(stdin, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(stdin, 0, os.SEEK_SET)
    return stdin

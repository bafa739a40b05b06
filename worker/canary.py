"""Canaries: small programs that exceed a cap on purpose. A worker whose caps do not hold takes no jobs."""

import subprocess
import sys
import time
from dataclasses import dataclass

from pydantic import ByteSize

from farm.job import Limits
from worker.cage import Cage, Cell
from worker.launch import enter

MiB = 1024**2
_CAPS = Limits(memory=ByteSize(32 * MiB), cpus=0.25, timeout=10, pids=10, scratch=ByteSize(MiB))
_HOARD = "b = bytearray(96 << 20); b[::4096] = b'x' * len(b[::4096])"
_FORK = """
import os, time
n = 0
try:
    while n < 30:
        if os.fork() == 0: time.sleep(30)
        n += 1
except OSError: pass
print(n)
"""
_SPIN = "import time\nend = time.monotonic() + 0.8\nwhile time.monotonic() < end: pass"


@dataclass(frozen=True)
class Proof:
    """What one canary showed."""

    cap: str
    holds: bool
    seen: str


def prove(cage: Cage) -> list[Proof]:
    """Exceed each cap of a cell once and see whether it holds."""
    return [_memory(cage), _pids(cage), _cpu(cage), _kill(cage)]


def _memory(cage: Cage) -> Proof:
    with _Canary(cage, "memory", _HOARD) as (cell, process):
        process.wait(timeout=20)
        killed = cell.oom_kills
        return Proof("memory", killed > 0, f"96 MiB under a cap of 32 MiB: {killed} killed by the kernel")


def _pids(cage: Cage) -> Proof:
    with _Canary(cage, "pids", _FORK) as (_, process):
        assert process.stdout is not None
        forks = int(process.stdout.readline() or 99)
        return Proof("pids", forks < _CAPS.pids, f"30 forks under a cap of {_CAPS.pids}: {forks} succeeded")


def _cpu(cage: Cage) -> Proof:
    with _Canary(cage, "cpu", _SPIN) as (cell, process):
        start = time.monotonic()
        process.wait(timeout=20)
        share = cell.cpu_seconds / (time.monotonic() - start)
        return Proof("cpu", 0 < share < 2 * _CAPS.cpus, f"a busy loop under a cap of 0.25 cores used {share:.2f}")


def _kill(cage: Cage) -> Proof:
    with _Canary(cage, "kill", "import os, time\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(60)") as (
        cell,
        process,
    ):
        process.wait(timeout=20)
        cell.kill()
        left = len(cell.processes())
        return Proof("kill", left == 0, f"a process that left its session: {left} left after the kill")


class _Canary:
    """A program in a cell of its own, gone when the block ends."""

    def __init__(self, cage: Cage, name: str, program: str) -> None:
        self._cell = cage.cell(f"canary-{name}-{time.monotonic_ns()}")
        self._cell.limit(_CAPS)
        self._program = program

    def __enter__(self) -> tuple[Cell, subprocess.Popen[bytes]]:
        self._process = subprocess.Popen(
            enter(self._cell, [sys.executable, "-I", "-S", "-c", self._program]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self._cell, self._process

    def __exit__(self, *_: object) -> None:
        self._cell.kill()
        self._process.communicate()
        self._cell.remove()

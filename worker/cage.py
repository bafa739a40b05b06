"""Control groups: caps on memory, CPU and processes, and exact accounts of what a job used.

A worker owns one delegated parent group and makes a child in it for each job. Whoever starts the job's first process
enters the child first, so that nothing of the job ever runs outside. One interface serves cgroup v1 (a folder in each
controller's hierarchy) and v2 (one folder). Source: the kernel's Documentation/admin-guide, cgroup-v1/ and cgroup-v2.
"""

import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from farm.errors import Misconfigured
from farm.job import Limits

ROOT = Path("/sys/fs/cgroup")
PERIOD = 100_000  # microseconds: the window over which a CPU quota is counted (the kernel's default)
V1_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct")


class Cell(ABC):
    """The control group of one job, usable until `remove`."""

    folders: tuple[Path, ...]

    @property
    def doors(self) -> list[str]:
        """The files into which a process writes 0 to enter."""
        return [str(folder / "cgroup.procs") for folder in self.folders]

    @abstractmethod
    def limit(self, limits: Limits) -> None:
        """Set the caps; they hold from now on, for everything inside."""

    @property
    @abstractmethod
    def cpu_seconds(self) -> float:
        """CPU time used inside, in seconds."""

    @property
    @abstractmethod
    def peak_memory(self) -> int:
        """The most memory in use at a time inside, in bytes, or 0 where the kernel does not tell."""

    @property
    @abstractmethod
    def oom_kills(self) -> int:
        """How many processes the kernel killed for exceeding the memory cap."""

    @abstractmethod
    def _no_more_processes(self) -> None:
        """Let every fork inside fail."""

    def processes(self) -> set[int]:
        """The ids of all processes inside."""
        return {int(pid) for folder in self.folders for pid in _read(folder / "cgroup.procs").split()}

    def kill(self, patience: float = 10.0) -> None:
        """Kill every process inside and wait until none is left.

        Raises:
            TimeoutError: some process did not die within `patience` seconds.
        """
        deadline = time.monotonic() + patience
        self._no_more_processes()
        while pids := self.processes():
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes {sorted(pids)} survive SIGKILL")
            time.sleep(0.002)

    def remove(self, patience: float = 5.0) -> None:
        """Remove the group; it must be empty. (A loaded kernel may call it busy for a while after the last death.)"""
        deadline = time.monotonic() + patience
        for folder in self.folders:
            while folder.exists():
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.005)


class _CellV1(Cell):
    def __init__(self, parents: tuple[Path, ...], name: str) -> None:
        self.folders = tuple(parent / name for parent in parents)
        self._memory, self._pids, self._cpu, self._cpuacct = self.folders
        for folder in self.folders:
            folder.mkdir(exist_ok=True)

    def limit(self, limits: Limits) -> None:
        # Memory alone must never be above memory and swap together: widen one before the other.
        memory, both = self._memory / "memory.limit_in_bytes", self._memory / "memory.memsw.limit_in_bytes"
        with suppress(FileNotFoundError):  # a kernel without swap accounting
            both.write_text("-1")
        memory.write_text(str(int(limits.memory)))
        with suppress(FileNotFoundError):
            both.write_text(str(int(limits.memory)))
        (self._pids / "pids.max").write_text(str(limits.pids))
        (self._cpu / "cpu.cfs_period_us").write_text(str(PERIOD))
        (self._cpu / "cpu.cfs_quota_us").write_text(str(max(1000, int(limits.cpus * PERIOD))))

    @property
    def cpu_seconds(self) -> float:
        return int(_read(self._cpuacct / "cpuacct.usage") or 0) / 1e9

    @property
    def peak_memory(self) -> int:
        return int(_read(self._memory / "memory.max_usage_in_bytes") or 0)

    @property
    def oom_kills(self) -> int:
        return _counter(self._memory / "memory.oom_control", "oom_kill")

    def _no_more_processes(self) -> None:
        (self._pids / "pids.max").write_text("0")


class _CellV2(Cell):
    def __init__(self, parent: Path, name: str) -> None:
        self._folder = parent / name
        self.folders = (self._folder,)
        self._folder.mkdir(exist_ok=True)

    def limit(self, limits: Limits) -> None:
        (self._folder / "memory.max").write_text(str(int(limits.memory)))
        with suppress(FileNotFoundError):  # a kernel without swap
            (self._folder / "memory.swap.max").write_text("0")
        (self._folder / "pids.max").write_text(str(limits.pids))
        (self._folder / "cpu.max").write_text(f"{max(1000, int(limits.cpus * PERIOD))} {PERIOD}")

    @property
    def cpu_seconds(self) -> float:
        return _counter(self._folder / "cpu.stat", "usage_usec") / 1e6

    @property
    def peak_memory(self) -> int:
        return int(_read(self._folder / "memory.peak") or 0)

    @property
    def oom_kills(self) -> int:
        return _counter(self._folder / "memory.events", "oom_kill")

    def _no_more_processes(self) -> None:
        (self._folder / "pids.max").write_text("0")
        with suppress(OSError):  # before Linux 5.14 there is no such file, and the loop of `kill` does it
            (self._folder / "cgroup.kill").write_text("1")


class Cage:
    """The parent group that was delegated to this worker, and the cells in it."""

    def __init__(self, parents: tuple[Path, ...], version: int) -> None:
        self.parents = parents
        self.version = version

    @classmethod
    def find(cls, group: str, owner: str) -> "Cage":
        """A group `owner` of this worker's own: below the delegated `group` on cgroup v1, beside this process's on v2.

        Raises:
            Misconfigured: nothing was delegated; the message says how that is done.
        """
        if (ROOT / "cgroup.controllers").exists():
            return cls((_own_v2(owner),), 2)
        delegated = tuple(ROOT / controller / group for controller in V1_CONTROLLERS)
        missing = [str(folder) for folder in delegated if not os.access(folder / "cgroup.procs", os.W_OK)]
        if missing:
            raise Misconfigured(
                f"control groups are not delegated to this user: {', '.join(missing)}; "
                "start the farm as root (it delegates them and drops its rights), or run `make setup` as root"
            )
        parents = tuple(folder / owner for folder in delegated)
        for parent in parents:
            parent.mkdir(exist_ok=True)
        return cls(parents, 1)

    def cell(self, name: str) -> Cell:
        """A new cell; its caps are still to be set."""
        return _CellV1(self.parents, name) if self.version == 1 else _CellV2(self.parents[0], name)

    def close(self) -> None:
        """Remove the worker's own groups, when they are empty."""
        for parent in self.parents:
            with suppress(OSError):
                parent.rmdir()

    def leftovers(self) -> Iterator[Cell]:
        """Cells of jobs that a former worker left behind."""
        for name in sorted({path.name for parent in self.parents for path in parent.iterdir() if path.is_dir()}):
            yield self.cell(name)
        if self.version == 2:  # a former worker's group may lie in another scope of systemd's
            (mine,) = self.parents
            for former in ROOT.rglob(f"jobs/{mine.name}"):
                if former != mine and os.access(former, os.W_OK):
                    yield from (_CellV2(former, path.name) for path in former.iterdir() if path.is_dir())


def _own_v2(owner: str) -> Path:
    """Move this process's group into a leaf, `farm`, and open `jobs/OWNER` beside it with the three controllers on.

    A group with processes of its own cannot give controllers to its children (the "no internal processes" rule),
    hence the leaf.
    """
    own = ROOT / _read(Path("/proc/self/cgroup")).rpartition("0::/")[2].strip()
    parent = own.parent if own.name == "farm" else own
    leaf, jobs = parent / "farm", parent / "jobs"
    mine = jobs / owner
    wanted = {"memory", "pids", "cpu"}
    try:
        if missing := wanted - set(_read(parent / "cgroup.controllers").split()):
            raise Misconfigured(f"{parent} lacks the controllers {', '.join(sorted(missing))}: {_HOW_V2}")
        leaf.mkdir(exist_ok=True)
        mine.mkdir(parents=True, exist_ok=True)
        while pids := _read(parent / "cgroup.procs").split():  # again, for one may have forked meanwhile
            for pid in pids:
                with suppress(ProcessLookupError):
                    (leaf / "cgroup.procs").write_text(pid)
        for folder in (parent, jobs, mine):
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(wanted)))
    except OSError as error:
        raise Misconfigured(f"{parent} is not delegated to this user ({error.strerror}): {_HOW_V2}") from None
    return mine


_HOW_V2 = (
    "start the farm as root, as a systemd service with Delegate=yes, or by "
    "`systemd-run --user --scope -p Delegate=yes scifarm up`"
)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""


def _counter(path: Path, name: str) -> int:
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0

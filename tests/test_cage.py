"""Control groups hold what is in them to its caps, count what it used, and let nobody survive a kill."""

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from conftest import eventually
from pydantic import ByteSize

from farm.errors import Misconfigured
from farm.job import Limits
from farm.settings import Settings
from worker.cage import Cage, Cell
from worker.canary import prove
from worker.launch import enter

MiB = 1024**2
GROUP = Settings.from_env().cgroup
OWNER = "some-test-name"
TOUCH = "b = bytearray({mib} << 20); b[::4096] = b'x' * len(b[::4096])"
FORK_LOOP = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
DAEMON = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(1000)"
COUNT_FORKS = """
import os, time
n = 0
try:
    while n < 100:
        if not os.fork(): time.sleep(1000)
        n += 1
except OSError: pass
print(n, flush=True)
"""


def limits(memory: int = 64 * MiB, cpus: float = 1.0, pids: int = 40) -> Limits:
    return Limits(memory=ByteSize(memory), cpus=cpus, timeout=10, pids=pids, scratch=ByteSize(MiB))


@pytest.fixture
def cage() -> Iterator[Cage]:
    """A cage of the tests' own, empty before and after."""
    found = Cage.find(GROUP, OWNER)
    yield found
    for cell in found.leftovers():
        cell.kill()
        cell.remove()
    found.close()
    assert not any(parent.exists() for parent in found.parents)


Start = Callable[[Cell, str], subprocess.Popen[str]]


@pytest.fixture
def start(cage: Cage) -> Iterator[Start]:
    """Starts Python programs inside a cell; whatever becomes of them, they are waited for."""
    started: list[tuple[Cell, subprocess.Popen[str]]] = []

    def program(cell: Cell, text: str) -> subprocess.Popen[str]:
        command = enter(cell, [sys.executable, "-I", "-S", "-c", text])
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, text=True, **pipes)  # type: ignore[call-overload]
        started.append((cell, process))
        return process  # type: ignore[no-any-return]

    yield program
    for cell, process in started:
        if cell.folders[0].exists():
            cell.kill()
        process.communicate()


def cell_of(cage: Cage, name: str = "job", caps: Limits | None = None) -> Cell:
    cell = cage.cell(name)
    cell.limit(caps or limits())
    return cell


def test_on_this_machine_every_cap_holds(cage: Cage) -> None:
    proofs = prove(cage)
    assert [proof.cap for proof in proofs] == ["memory", "pids", "cpu", "kill"]
    assert [proof.seen for proof in proofs if not proof.holds] == []
    assert list(cage.leftovers()) == []


def test_a_program_runs_inside_from_its_first_moment(cage: Cage, start: Start) -> None:
    cell = cell_of(cage)
    process = start(cell, "import os; print(os.getpid(), flush=True); os.read(1, 1)")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    assert pid == process.pid
    assert cell.processes() <= {pid}


def test_memory_beyond_the_cap_is_a_kill_that_is_counted(cage: Cage, start: Start) -> None:
    cell = cell_of(cage, caps=limits(memory=32 * MiB))
    assert start(cell, TOUCH.format(mib=128)).wait(timeout=60) == -9
    assert cell.oom_kills == 1


def test_a_child_s_memory_counts_as_well_and_its_kill_shows_though_the_parent_ends_well(
    cage: Cage, start: Start
) -> None:
    cell = cell_of(cage, caps=limits(memory=32 * MiB))
    program = (
        f"import os\nif not os.fork():\n    {TOUCH.format(mib=128).replace('; ', chr(10) + '    ')}\nelse: os.wait()"
    )
    assert start(cell, program).wait(timeout=60) == 0
    assert cell.oom_kills == 1


def test_memory_within_the_cap_is_given_and_its_peak_told(cage: Cage, start: Start) -> None:
    cell = cell_of(cage, caps=limits(memory=128 * MiB))
    assert start(cell, TOUCH.format(mib=48) + "; del b").wait(timeout=60) == 0
    assert cell.oom_kills == 0
    assert 48 * MiB <= cell.peak_memory <= 128 * MiB


def test_processes_beyond_the_cap_cannot_be_made(cage: Cage, start: Start) -> None:
    process = start(cell_of(cage, caps=limits(pids=20)), COUNT_FORKS)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == 19  # and the program itself


def test_cpu_time_is_counted_and_that_of_children_with_it(cage: Cage, start: Start) -> None:
    cell = cell_of(cage, caps=limits(cpus=2))
    program = "import os, time\nchild = os.fork()\nwhile time.process_time() < 0.4: pass\nif child: os.wait()"
    start(cell, program).wait(timeout=60)
    assert 0.8 <= cell.cpu_seconds < 2


def test_caps_can_be_raised_and_lowered_again(cage: Cage, start: Start) -> None:
    cell = cell_of(cage)
    for mib in (256, 32, 128):
        cell.limit(limits(memory=mib * MiB))
    assert start(cell, TOUCH.format(mib=64)).wait(timeout=60) == 0


def test_cells_do_not_share_their_caps(cage: Cage, start: Start) -> None:
    greedy, modest = (cell_of(cage, name, limits(memory=48 * MiB)) for name in ("greedy", "modest"))
    programs = [start(greedy, TOUCH.format(mib=128)), start(modest, TOUCH.format(mib=16))]
    assert [program.wait(timeout=60) for program in programs] == [-9, 0]
    assert (greedy.oom_kills, modest.oom_kills) == (1, 0)


@pytest.mark.parametrize(
    "program", [FORK_LOOP, DAEMON, "import time; time.sleep(1000)"], ids=["fork loop", "daemon", "sleeper"]
)
def test_a_kill_leaves_nobody(cage: Cage, start: Start, program: str) -> None:
    cell, other = cell_of(cage), cell_of(cage, "other")
    bystander = start(other, "import time; time.sleep(1000)")
    process = start(cell, program)
    expected = {FORK_LOOP: 40}.get(program, 1)
    eventually(lambda: len(cell.processes()) >= expected)
    cell.kill()
    assert cell.processes() == set()
    process.wait(timeout=30)
    assert other.processes() == {bystander.pid}


def test_a_kill_of_nobody_is_done_at_once_and_can_be_repeated(cage: Cage) -> None:
    cell = cell_of(cage)
    cell.kill()
    cell.kill()
    cell.remove()


def test_nobody_enters_a_cell_after_its_kill(cage: Cage, start: Start) -> None:
    cell = cell_of(cage)
    cell.kill()
    process = start(cell, "import os; os.fork(); print('lives')")
    assert "lives" not in process.communicate(timeout=60)[0]
    assert process.returncode != 0


def test_nothing_starts_where_the_cell_is_gone(cage: Cage) -> None:
    cell = cell_of(cage)
    cell.remove()
    done = subprocess.run(enter(cell, ["echo", "started"]), capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert done.stdout == ""


def test_a_removed_cell_is_gone_and_one_of_the_same_name_begins_from_nothing(cage: Cage, start: Start) -> None:
    cell = cell_of(cage, caps=limits(memory=32 * MiB))
    start(cell, TOUCH.format(mib=128)).wait(timeout=60)
    cell.remove()
    assert not any(folder.exists() for folder in cell.folders)
    cell.remove()
    again = cell_of(cage)
    assert (again.oom_kills, again.cpu_seconds) == (0, 0)
    assert again.peak_memory < MiB


def test_a_cell_with_somebody_inside_is_not_removed(cage: Cage, start: Start) -> None:
    cell = cell_of(cage)
    process = start(cell, "import time; time.sleep(1000)")
    eventually(cell.processes)
    cell.remove()
    assert process.pid in cell.processes()


def test_a_worker_finds_what_its_former_self_left_and_nobody_else_s(cage: Cage, start: Start) -> None:
    one = cell_of(cage, "one")
    start(one, FORK_LOOP)
    eventually(one.processes)
    cell_of(cage, "two")
    stranger = Cage.find(GROUP, f"{OWNER}-2")
    assert list(stranger.leftovers()) == []
    stranger.close()
    again = Cage.find(GROUP, OWNER)
    left = list(again.leftovers())
    assert [cell.folders[0].name for cell in left] == ["one", "two"]
    for cell in left:
        cell.kill()
        cell.remove()
    assert list(again.leftovers()) == []


def test_a_half_made_cell_is_found_and_removed_too(cage: Cage) -> None:
    (cage.parents[-1] / "half").mkdir()
    [cell] = cage.leftovers()
    cell.kill()
    cell.remove()
    assert list(cage.leftovers()) == []


def test_a_cage_with_jobs_in_it_does_not_close(cage: Cage) -> None:
    cell = cell_of(cage)
    cage.close()
    assert all(folder.exists() for folder in cell.folders)


def test_what_was_not_delegated_is_refused_with_what_to_do(cage: Cage) -> None:
    if cage.version == 2:
        pytest.skip("on cgroup v2 the delegated group is the one that this process is in")
    with pytest.raises(Misconfigured, match=r"nobody-made-this.*make setup"):
        Cage.find("nobody-made-this", OWNER)

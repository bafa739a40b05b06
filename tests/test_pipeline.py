"""From an MCP client to a file that can be downloaded, through every real part of a farm."""

import base64
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Farm, FarmClient, download, eventually, named
from mcp import StdioServerParameters

from farm.job import JobResult, Status
from farm.names import to_bytes
from farm.policy import LOCAL
from farm.runtime import load_runtimes

MiB = 1024**2
Connect = Callable[..., FarmClient]

RESULT = {
    "job_id", "status", "runtime", "label", "exit_code", "signal", "stdout", "stderr", "stdout_truncated",
    "stderr_truncated", "outputs", "rejected", "usage", "limits", "image", "attempt", "notes", "error",
}  # fmt: skip
OUTPUT = {"name", "bytes", "sha256", "mime", "url", "expires_in", "text"}
USAGE = {"queued_s", "wall_s", "cpu_s", "peak_memory_bytes"}
LIMITS = {"memory", "cpus", "timeout", "pids", "scratch"}


def python(*lines: str) -> dict[str, str]:
    """The arguments of a Python job."""
    return {"runtime": "python", "script": "\n".join(lines)}


def encoded(data: bytes) -> str:
    """An input file's content as callers send it."""
    return base64.b64encode(data).decode("ascii")


def reasons(result: JobResult) -> dict[str, str]:
    """Why files were rejected, by name."""
    return {rejected.name: rejected.reason for rejected in result.rejected}


def remains(farm: Farm) -> list[str]:
    """Processes, mounts, control groups, containers and folders of any job this farm has run."""
    jobs = [record.job_id for record in farm.ledger.newest(LOCAL, limit=500)]
    worker = farm.state / "worker"

    def of_a_job(text: str) -> bool:
        return any(job_id in text for job_id in jobs)

    groups = [str(path) for path in Path("/sys/fs/cgroup").rglob("scifarm-*") if of_a_job(path.name)]
    mounts = Path(f"/proc/{farm.children()['worker']}/mountinfo").read_text()
    folders = [*(worker / "slots").iterdir(), *(worker / "crun").iterdir()]
    return [
        *groups,
        *(path for path in processes() if of_a_job(path)),
        *(line for line in mounts.splitlines() if of_a_job(line)),
        *(str(folder) for folder in folders),
    ]


def processes() -> Iterator[str]:
    """The control groups and the command line of every process."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield (folder / "cgroup").read_text() + (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue


@pytest.fixture(scope="module", autouse=True)
def nothing_of_a_job_remains(farm: Farm) -> Iterator[None]:
    """Whatever the jobs of this file did, no process, mount, group or container of theirs is left in the end."""
    yield
    eventually(lambda: not remains(farm))


@pytest.fixture
def busy(farm: Farm, client: FarmClient) -> Iterator[list[str]]:
    """Jobs that occupy every slot of the farm; gone when the test is over."""
    sleepers = [
        client.call("run_script", runtime="bash", script="sleep 100", label="occupies a slot", wait=0).job.job_id
        for _ in range(farm.settings.slots)
    ]
    eventually(lambda: all(client.call("get_job", job_id=job).job.status is Status.RUNNING for job in sleepers))
    yield sleepers
    for job in sleepers:
        client.call("cancel_job", job_id=job)
    eventually(lambda: all(client.call("get_job", job_id=job).job.status.final for job in sleepers))


# How a job ends


@pytest.mark.parametrize(
    ("arguments", "status", "exit_code", "signal"),
    [
        ({"script": "true"}, Status.SUCCEEDED, 0, None),
        ({"script": "exit 3"}, Status.FAILED, 3, None),
        ({"script": "kill -SEGV $$"}, Status.FAILED, 139, "SIGSEGV"),
        ({"script": "sleep 1e6", "timeout": 0.5}, Status.TIMED_OUT, None, None),
        ({"script": "head -c 500m /dev/zero | tail | wc -c", "memory": "64MiB"}, Status.OUT_OF_MEMORY, 0, None),
    ],
    ids=["succeeded", "failed", "killed by a signal", "timed out", "out of memory"],
)
def test_every_way_a_script_can_end_has_its_status(
    client: FarmClient, arguments: dict[str, Any], status: Status, exit_code: int | None, signal: str | None
) -> None:
    script = f"echo partial > partial.txt; echo said; {arguments.pop('script')}"
    result = client.run(script, **arguments)
    assert (result.status, result.exit_code, result.signal) == (status, exit_code, signal)
    assert result.stdout.startswith("said\n")
    assert download(named(result)["partial.txt"]) == b"partial\n"


def test_a_running_job_can_be_cancelled_and_keeps_what_it_made(client: FarmClient) -> None:
    script = "echo partial > partial.txt; echo said; sleep 100"
    job = client.call("run_script", runtime="bash", script=script, wait=0).job.job_id
    eventually(lambda: client.call("get_job", job_id=job).job.status is Status.RUNNING)
    client.call("get_job", job_id=job, wait=1)
    result = client.call("cancel_job", job_id=job).job
    assert (result.status, result.exit_code, result.stdout) == (Status.CANCELLED, None, "said\n")
    assert download(named(result)["partial.txt"]) == b"partial\n"


def test_a_queued_job_can_be_cancelled_and_never_runs(client: FarmClient, busy: list[str]) -> None:
    waiting = client.call("run_script", runtime="bash", script="echo ran", wait=0).job
    assert waiting.status is Status.QUEUED
    result = client.call("cancel_job", job_id=waiting.job_id).job
    assert (result.status, result.attempt, result.stdout) == (Status.CANCELLED, 0, "")
    for job in busy:
        client.call("cancel_job", job_id=job)
    client.run("true")  # a later job ran, and still:
    assert client.call("get_job", job_id=waiting.job_id).job.status is Status.CANCELLED


def test_cancelling_twice_tells_that_there_is_nothing_to_cancel(client: FarmClient) -> None:
    result = client.run("true")
    answer = client.call("cancel_job", job_id=result.job_id)
    assert "nothing to cancel" in answer.text
    assert answer.job.status is Status.SUCCEEDED


def test_a_short_wait_answers_with_the_id_and_asking_again_gets_the_result(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="sleep 2; echo done > a.txt", wait=0.2)
    assert answer.job.status in (Status.QUEUED, Status.RUNNING)
    assert f'get_job(job_id="{answer.job.job_id}"' in answer.text
    result = client.call("get_job", job_id=answer.job.job_id, wait=60).job
    assert result.status is Status.SUCCEEDED
    assert download(named(result)["a.txt"]) == b"done\n"


def test_progress_goes_from_the_queue_over_the_last_line_to_collecting(farm: Farm, client: FarmClient) -> None:
    for _ in range(farm.settings.slots):
        client.call("run_script", runtime="bash", script="sleep 3", wait=0)
    client.run("for n in 1 2 3 4 5 6; do echo step $n; sleep 0.3; done")
    told = client.progress
    steps = [text for text in told if text.startswith("running: step ")]
    assert told[0].startswith("queued, ")
    assert steps
    assert told.index("running") < told.index(steps[0]) < told.index("collecting outputs")


def test_the_result_has_exactly_the_fields_of_the_design(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="echo a > a.txt; ln -s a.txt b", label="a name")
    data = answer.data
    assert set(data) == RESULT
    assert set(data["outputs"][0]) == OUTPUT
    assert set(data["rejected"][0]) == {"name", "reason"}
    assert set(data["usage"]) == USAGE
    assert set(data["limits"]) == LIMITS
    assert set(data["image"]) == {"name", "digest"}
    assert (data["label"], data["attempt"], data["error"], data["notes"]) == ("a name", 1, None, [])


def test_usage_tells_what_the_job_took(client: FarmClient) -> None:
    usage = client.run(**python("b = bytearray(100 << 20)", "for _ in range(10**7): pass")).usage
    assert 100 * MiB < usage.peak_memory_bytes < 300 * MiB
    assert 0.1 < usage.cpu_s < 30
    assert usage.wall_s >= usage.cpu_s * 0.8  # one core by default


def test_the_same_over_stdio(farm: Farm, connect: Connect) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "cli", "mcp"], env=farm.env, cwd=str(REPOSITORY))
    result = connect(server).run("import sys; print(sys.version_info[:2]); open('a.txt', 'w').write('x')", "python")
    assert result.status is Status.SUCCEEDED
    assert download(named(result)["a.txt"]) == b"x"
    assert os.environ.get("SCIFARM_STATE") is None  # the server's settings are its own


# What goes in


def test_new_and_changed_files_come_back_unchanged_and_deleted_ones_do_not(client: FarmClient) -> None:
    files = {
        name: {"text": f"{name}\n"}
        for name in ("changed.txt", "touched.txt", "rewritten.txt", "deleted.txt", "same.txt")
    }
    rewrite = "cp rewritten.txt copy; cp copy rewritten.txt; rm copy"
    script = f"echo more >> changed.txt; touch touched.txt; {rewrite}; rm deleted.txt"
    result = client.run(script, input_files=files)
    assert list(named(result)) == ["changed.txt"]
    assert download(named(result)["changed.txt"]) == b"changed.txt\nmore\n"
    assert result.rejected == ()


def test_a_deleted_input_folder_leaves_no_trace(client: FarmClient) -> None:
    result = client.run("rm -r d; mkdir d; echo new > d/new.txt", input_files={"d/old.txt": {"text": "old"}})
    assert (list(named(result)), result.rejected) == (["d/new.txt"], ())


def test_inputs_lie_in_their_folders_and_those_of_one_name_do_not_meet(client: FarmClient) -> None:
    files = {"a/f": {"text": "1"}, "b/f": {"text": "2"}, "deep/er/f": {"text": "3"}}
    assert client.run("cat a/f b/f deep/er/f", input_files=files).stdout == "123"


def test_the_input_folder_is_the_same_and_read_only(client: FarmClient) -> None:
    script = """
        echo changed > d/a.txt
        cat /sandbox/input/d/a.txt
        echo x > /sandbox/input/d/a.txt || echo x > /sandbox/input/new || rm /sandbox/input/d/a.txt || echo refused
    """
    result = client.run(script, input_files={"d/a.txt": {"text": "as sent\n"}})
    assert result.stdout == "as sent\nrefused\n"
    assert result.stderr.count("Read-only file system") == 3


def test_a_script_can_import_what_lies_beside_it(client: FarmClient) -> None:
    script = python("import helper", "print(helper.VALUE)")
    result = client.run(**script, input_files={"helper.py": {"text": "VALUE = 42"}})
    assert (result.stdout, result.outputs) == ("42\n", ())


def test_thirty_megabytes_of_input_arrive_whole(client: FarmClient) -> None:
    data = os.urandom(30 * MiB)
    result = client.run("sha256sum < big.bin", input_files={"big.bin": encoded(data)})
    assert result.stdout.split()[0] == hashlib.sha256(data).hexdigest()


def test_arguments_arrive_as_they_are(client: FarmClient) -> None:
    args = ["a b", "$HOME", "-n", "", "é", "*", "two\nlines", "'\""]
    assert client.run(r'printf "%s\0" "$@"', args=args).stdout.split("\0")[:-1] == args


@pytest.mark.parametrize("stdin", ["", "one\ntwo", "ünïcode\n" * 100_000], ids=["empty", "two lines", "a megabyte"])
def test_stdin_is_what_was_sent_and_ends(client: FarmClient, stdin: str) -> None:
    digest = hashlib.sha256(stdin.encode()).hexdigest()
    assert client.run("sha256sum", stdin=stdin, timeout=10).stdout.split()[0] == digest


def test_the_script_is_a_file_and_not_its_own_stdin(client: FarmClient) -> None:
    result = client.run("cat > /dev/null\necho second")
    assert (result.stdout, result.outputs) == ("second\n", ())


# What comes out


@pytest.mark.parametrize("size", [0, 4095, 4096, 4097], ids="{} bytes".format)
def test_text_below_four_kilobytes_comes_inline_and_every_size_as_a_link(client: FarmClient, size: int) -> None:
    output = named(client.run(f"head -c {size} /dev/zero | tr '\\0' x > a.txt"))["a.txt"]
    assert (output.bytes, output.mime) == (size, "text/plain")
    assert output.text == ("x" * size if size < 4096 else None)
    assert download(output) == b"x" * size


def test_a_hundred_megabytes_come_back_intact(client: FarmClient) -> None:
    result = client.run("head -c 100000000 /dev/urandom > big.bin; sha256sum < big.bin")
    output = named(result)["big.bin"]
    assert (output.bytes, output.sha256) == (100_000_000, result.stdout.split()[0])
    assert len(download(output)) == output.bytes


def test_nested_and_hidden_outputs_come_back_under_their_paths(client: FarmClient) -> None:
    result = client.run("mkdir -p a/b/.c empty; echo 1 > a/b/.c/.hidden; echo 2 > .top; echo 3 > a/x")
    assert list(named(result)) == [".top", "a/b/.c/.hidden", "a/x"]
    assert download(named(result)["a/b/.c/.hidden"]) == b"1\n"


@pytest.mark.parametrize(
    "name",
    ["a b.txt", "Größe 測定.csv", "🙂👩‍🔬.txt", "a\nb", "-rf", "a..b.txt", "\u202egpj.txt", "x" * 255, "it's \"q\".txt",
     "%41&?#.txt", "b\\s"],
    ids=["space", "unicode", "emoji", "line feed", "option", "dots", "right to left", "255 bytes", "quotes", "url",
         "backslash"],
)  # fmt: skip
def test_a_strange_name_goes_in_and_comes_back(client: FarmClient, name: str) -> None:
    script = 'cat -- "$1"; mv -- "$1" copy; mkdir d; mv -- copy "d/$1"'
    answer = client.call("run_script", runtime="bash", script=script, args=[name], input_files={name: {"text": "x"}})
    (output,) = answer.job.outputs
    assert (answer.job.stdout, to_bytes(output.name)) == ("x", f"d/{name}".encode())
    assert download(output) == b"x"
    assert not any(c in line for line in answer.text.split("\n") for c in "\u202e\r\x1b")
    assert "\nb (" not in answer.text


def test_a_name_that_is_not_unicode_comes_back_reversibly(client: FarmClient) -> None:
    result = client.run(r"echo x > $'\xc3.txt'; echo y > $'\xff\\'")
    assert {to_bytes(output.name): download(output) for output in result.outputs} == {
        b"\xc3.txt": b"x\n",
        b"\xff\\": b"y\n",
    }


@pytest.mark.parametrize(
    ("script", "name", "reason"),
    [
        ("ln -s /etc/passwd evil", "evil", "symbolic link"),
        ("ln -s /etc d", "d", "symbolic link"),
        ("mkfifo p", "p", "named pipe"),
        ("truncate -s 1P big", "big", "too large"),
        ("for _ in {1..1000}; do mkdir d && cd d; done", "/".join(33 * "d"), "too deep"),
    ],
    ids=["link", "link to a folder", "fifo", "a petabyte of nothing", "a thousand folders deep"],
)  # fmt: skip
def test_what_is_no_plain_file_is_named_and_not_kept(client: FarmClient, script: str, name: str, reason: str) -> None:
    answer = client.call("run_script", runtime="bash", script=script)
    assert answer.job.status is Status.SUCCEEDED, answer.job.stderr
    assert answer.job.outputs == ()
    assert reason in reasons(answer.job)[name]
    assert f"not kept: {name}: " in answer.text


def test_a_unix_socket_is_named_and_not_kept(client: FarmClient) -> None:
    result = client.run(**python("import socket", "socket.socket(socket.AF_UNIX).bind('s')"))
    assert (result.outputs, reasons(result)) == ((), {"s": "socket, not a regular file"})


def test_nothing_is_read_through_a_linked_folder(client: FarmClient) -> None:
    result = client.run("mkdir d; echo mine > d/passwd; mv d e; ln -s /etc d; ls d/passwd")
    assert list(named(result)) == ["e/passwd"]
    assert "root:" not in result.model_dump_json()


def test_device_files_cannot_be_made(client: FarmClient) -> None:
    result = client.run("mknod null c 1 3")
    assert (result.status, result.outputs) == (Status.FAILED, ())
    assert "Operation not permitted" in result.stderr


def test_too_many_files_are_counted_and_the_first_are_kept(client: FarmClient) -> None:
    script = "seq -f '%06g' 100000 | xargs touch 2> /dev/null || true"
    result = client.run(script, wait=180)
    assert len(result.outputs) == 1000
    assert result.outputs[0].name == "000001"
    assert any("too many files: the first 1000" in rejected.reason for rejected in result.rejected)


def test_files_that_their_owner_alone_may_read_come_back(client: FarmClient) -> None:
    script = "umask 077; mkdir -p a/b r; echo x > a/b/secret; echo y > r/f; chmod 555 r; chmod 0 a/b/secret"
    result = client.run(script)
    assert {name: download(output) for name, output in named(result).items()} == {"a/b/secret": b"x\n", "r/f": b"y\n"}


def test_files_of_an_earlier_job_never_appear_in_a_later_one(client: FarmClient) -> None:
    assert list(named(client.run("echo x > a.png"))) == ["a.png"]
    assert client.run("true").outputs == ()


# What is printed


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "script",
    ["for n in range(3000): print('a short line', n, file=out)", "print(5_000_000 * 'x', file=out)"],
    ids=["three thousand lines", "a line of five megabytes"],
)
def test_a_long_log_shows_head_and_tail_and_is_kept_whole(client: FarmClient, stream: str, script: str) -> None:
    result = client.run(
        f"import sys\nout = sys.{stream}\nprint('first', file=out)\n{script}\nprint('last', file=out)", "python"
    )
    shown, whole = getattr(result, stream), download(named(result)[f"{stream}.txt"]).decode()
    assert result.status is Status.SUCCEEDED
    assert getattr(result, f"{stream}_truncated")
    assert len(shown) < 17_000
    assert shown[:8000] == whole[:8000]
    assert shown[-8000:] == whole[-8000:]
    assert " bytes left out " in shown


def test_a_log_that_fits_is_whole_and_no_file(client: FarmClient) -> None:
    result = client.run("head -c 16000 /dev/zero | tr '\\0' x")
    assert (result.stdout, result.stdout_truncated, result.outputs) == ("x" * 16_000, False, ())


def test_a_script_that_prints_without_end_is_cut_and_the_worker_stays_small(farm: Farm, client: FarmClient) -> None:
    before = peak_memory(farm.children()["worker"])
    result = client.run("echo first; yes", timeout=3, wait=120)
    assert (result.status, result.stdout_truncated) == (Status.TIMED_OUT, True)
    assert result.stdout.startswith("first\ny\n")
    assert named(result)["stdout.txt"].bytes == 64 * MiB
    assert any("stdout.txt holds the first 67,108,864 of the" in note for note in result.notes)
    assert peak_memory(farm.children()["worker"]) - before < 64 * MiB


def peak_memory(pid: int) -> int:
    """The most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def test_colours_nul_and_bytes_that_are_no_text_arrive_as_text(client: FarmClient) -> None:
    result = client.run(r"""printf '\033[31mred\033[0m\0\xff\n{"jsonrpc":"2.0","id":1,"result":{}}\n'""")
    assert result.stdout == '\x1b[31mred\x1b[0m\0\ufffd\n{"jsonrpc":"2.0","id":1,"result":{}}\n'


# What Python scripts of the field do


def test_a_figure_needs_no_preparation(client: FarmClient) -> None:
    result = client.run(**python("import matplotlib.pyplot as plt", "plt.plot([1, 2])", "plt.savefig('a.png')"))
    assert (result.status, result.exit_code, result.stderr) == (Status.SUCCEEDED, 0, "")
    assert list(named(result)) == ["a.png"]
    assert download(named(result)["a.png"]).startswith(b"\x89PNG")


def test_the_user_has_a_name_and_a_home_to_write_in(client: FarmClient) -> None:
    script = (
        "import getpass, os, pathlib",
        "home = os.path.expanduser('~')",
        "pathlib.Path(home, 'x').write_text('x')",
        "print(getpass.getuser(), home)",
    )
    result = client.run(**python(*script))
    user, home = result.stdout.split()
    assert user
    assert home.startswith("/")
    assert result.outputs == ()


@pytest.mark.parametrize("cpus", [1, 2])
def test_linear_algebra_uses_as_many_threads_as_it_has_cores(client: FarmClient, cpus: int) -> None:
    script = (
        "import os, numpy",
        "numpy.linalg.svd(numpy.random.rand(500, 500))",
        "print(len(os.listdir('/proc/self/task')))",
    )
    result = client.run(**python(*script), cpus=cpus)
    assert (result.stderr, result.stdout) == ("", f"{cpus}\n")


@pytest.mark.parametrize(
    ("stdin", "exit_code", "stdout"),
    [("", 1, ""), ("one\ntwo\n", 0, "one two\n")],
    ids=["without stdin", "with two lines"],
)
def test_input_reads_stdin_and_never_waits(client: FarmClient, stdin: str, exit_code: int, stdout: str) -> None:
    result = client.run(**python("print(input(), input())"), stdin=stdin)
    assert (result.exit_code, result.stdout) == (exit_code, stdout)
    assert ("EOFError" in result.stderr) == (exit_code == 1)


def test_what_was_printed_before_the_timeout_is_not_lost(client: FarmClient) -> None:
    result = client.run(**python("import time", "print('so far')", "time.sleep(100)"), timeout=2)
    assert (result.status, result.stdout) == (Status.TIMED_OUT, "so far\n")


def test_files_saved_anywhere_in_the_working_folder_come_back_and_others_are_mentioned(client: FarmClient) -> None:
    script = ("import os", "os.makedirs('a/b/c')",
              "for p in ('1', '/sandbox/output/2', '/tmp/3', 'a/b/c/4'): open(p, 'w').write('x')")  # fmt: skip
    result = client.run(**python(*script))
    assert list(named(result)) == ["1", "2", "a/b/c/4"]
    assert any("/tmp" in note for note in result.notes)


# Limits


def test_processes_are_limited_and_the_job_is_told(client: FarmClient) -> None:
    script = ("import os, time", "for n in range(400):", "    if os.fork() == 0: time.sleep(100)", "print('all')")
    result = client.run(**python(*script))
    assert (result.status, result.exit_code, result.stdout) == (Status.FAILED, 1, "")
    assert "Resource temporarily unavailable" in result.stderr


def test_a_fork_bomb_does_not_disturb_the_next_job(farm: Farm, client: FarmClient) -> None:
    bomb = client.run("b() { b | b & }; b; sleep 100", timeout=3)
    result = client.run("echo fine")
    assert (bomb.status, result.stdout) == (Status.TIMED_OUT, "fine\n")
    eventually(lambda: not remains(farm))


def test_a_process_that_hides_from_its_session_does_not_outlive_the_job(farm: Farm, client: FarmClient) -> None:
    result = client.run("trap '' TERM; setsid sleep 98761.5 & exit")
    assert result.status is Status.SUCCEEDED
    assert not any("98761.5" in process for process in processes())


def test_a_full_disk_is_the_job_s_own(client: FarmClient) -> None:
    before = os.statvfs("/").f_bavail
    result = client.run("head -c 20G /dev/zero > big; code=$?; rm big; exit $code", timeout=120, wait=120)
    assert result.status is Status.FAILED
    assert "No space left on device" in result.stderr
    assert (before - os.statvfs("/").f_bavail) * os.statvfs("/").f_frsize < 4096 * MiB  # others work on this disk too


def test_files_in_scratch_count_as_the_job_s_memory(client: FarmClient) -> None:
    result = client.run("head -c 200M /dev/zero > big; rm -f big", memory="64MiB")
    assert result.status is Status.OUT_OF_MEMORY


def test_nothing_written_outside_the_working_folder_is_there_for_the_next_job(client: FarmClient) -> None:
    places = "/dev/shm /tmp /var/tmp ~ ~/.cache"
    client.run(f"mkdir -p ~/.cache; for d in {places}; do echo x > $d/left || exit 1; done; ls {places}")
    result = client.run(f"for d in {places}; do ls $d/left; done")
    assert result.stdout == ""
    assert result.stderr.count("No such file") == 5


# Isolation


@pytest.mark.parametrize(
    "family_kind_address",
    ["AF_INET, SOCK_STREAM, ('93.184.216.34', 80)", "AF_INET, SOCK_DGRAM, ('9.9.9.9', 53)",
     "AF_INET6, SOCK_STREAM, ('2606:4700::1111', 53)", "AF_INET, SOCK_STREAM, ('169.254.169.254', 80)"],
    ids=["tcp", "udp", "ipv6", "cloud metadata"],
)  # fmt: skip
def test_there_is_no_way_out(client: FarmClient, family_kind_address: str) -> None:
    family, kind, address = family_kind_address.split(", ", 2)
    script = python("import socket", f"socket.socket(socket.{family}, socket.{kind}).connect({address})")
    result = client.run(**script, timeout=10)
    assert result.status is Status.FAILED
    assert "unreachable" in result.stderr


def test_names_are_not_resolved(client: FarmClient) -> None:
    result = client.run(**python("import socket", "socket.create_connection(('example.org', 80))"), timeout=10)
    assert result.status is Status.FAILED
    assert "name resolution" in result.stderr


def test_the_farm_s_own_services_cannot_be_reached(farm: Farm, client: FarmClient) -> None:
    script = [
        "import os, socket",
        f"for port in ({farm.settings.api_port}, {farm.settings.s3_port}, 6379):",
        "    print(socket.socket().connect_ex(('127.0.0.1', port)) == 0)",
        f"print(os.path.exists({str(farm.state)!r}))",
    ]
    assert client.run(**python(*script)).stdout == "False\n" * 4


def test_the_environment_tells_nothing_of_the_host(farm: Farm, client: FarmClient) -> None:
    result = client.run("cat /etc/resolv.conf; env; cat /proc/self/mountinfo /proc/1/environ; hostname; ls -A /run")
    secrets = [*farm.settings.s3_keys(), "SCIFARM", "nameserver", os.uname().nodename]
    assert not [secret for secret in secrets if secret in result.stdout]


def test_only_harmless_variables_are_set(farm: Farm, client: FarmClient) -> None:
    names = {line.partition("=")[0] for line in client.run("env").stdout.splitlines()}
    runtime = load_runtimes(farm.settings.images)["bash"]
    ordinary = {"PATH", "HOME", "LANG", "TZ", "DEBIAN_FRONTEND", "HOSTNAME", "container", "PWD", "SHLVL", "_", "OLDPWD"}
    assert names <= ordinary | set(runtime.env)


@pytest.mark.parametrize(
    "script",
    ["echo 1 > /proc/sys/kernel/hostname", "echo 1 > /proc/sys/net/ipv4/ip_forward", "cat /proc/keys | grep .",
     "unshare -Ur true", "unshare -n true", "mount -t tmpfs x /tmp", "chroot / true", "mkdir /sys/fs/cgroup/x",
     "find /sys/fs/cgroup -name cgroup.procs -writable | grep .", "touch /usr/x", "touch /etc/hosts",
     "grep -L 'NoNewPrivs:.1' /proc/self/status | grep .", "grep '^Cap...:.*[1-9a-f]' /proc/self/status",
     "cp /bin/bash b; chmod 6755 b; ./b -p -c 'test -w /etc/passwd'", "test $(id -u) = 0", "su -c true", "dmesg"],
    ids=["sysctl", "network sysctl", "keys", "user namespace", "network namespace", "mount", "chroot", "make a cgroup",
         "write to a cgroup", "write to the image", "write to hosts", "new privileges", "capabilities", "setuid",
         "root", "su", "kernel log"],
)  # fmt: skip
def test_what_a_job_must_not_do_fails(client: FarmClient, script: str) -> None:
    assert client.run(f"{script} && echo it works").stdout.count("it works") == 0


@pytest.mark.parametrize("timeout", [0.001, 0.003, 0.01, 0.02, 0.03])
def test_a_timeout_that_comes_while_the_container_starts_is_a_timeout(client: FarmClient, timeout: float) -> None:
    result = client.run("sleep 30", timeout=timeout)
    assert (result.status, result.error) == (Status.TIMED_OUT, None)
    assert result.usage.wall_s < 20

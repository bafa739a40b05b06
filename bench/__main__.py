"""`make bench`: a plain `podman run` of a script and `run_script` over MCP, in turn, on the same image.

Machines are shared and noisy: the two are run alternately, and what counts is the ratio of their medians.
"""

import argparse
import asyncio
import base64
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client
from rich.console import Console
from rich.table import Table

from examples.demo import KINETICS, farm
from farm.runtime import Runtime, load_runtimes
from farm.settings import Settings
from worker.images import Images

MiB = 1024**2
console = Console()


class Case(NamedTuple):
    """A script to run both ways."""

    name: str
    runtime: str
    script: str
    files: dict[str, bytes]


CASES = (
    Case("bash, true", "bash", "true", {}),
    Case("python, print(1)", "python", "print(1)", {}),
    Case(
        "python, figure of the demo",
        "python",
        (KINETICS / "kinetics.py").read_text(encoding="utf-8"),
        {"kinetics.csv": (KINETICS / "kinetics.csv").read_bytes()},
    ),
)
BIG = "import os\nwith open('big.bin', 'wb') as f:\n    for _ in range(256): f.write(os.urandom(1 << 20))\n"


def podman_run(image: str, runtime: Runtime, case: Case) -> None:
    """What the simplest server of this kind does: a folder with the inputs, and the script on stdin of `podman run`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in case.files.items():
            (Path(folder) / name).write_bytes(content)
        variables = [f"--env={key}={value}" for key, value in runtime.env.items() if "{" not in value]
        flags = ["--rm", "-i", "--pull=never", "--network=none", "--cgroups=disabled", *variables]
        place = [f"--volume={folder}:/sandbox/output", "--workdir=/sandbox/output"]
        interpreter = {"bash": "bash", "python": "python3"}[case.runtime]
        command = ["podman", "run", *flags, *place, image, interpreter, "-s" if case.runtime == "bash" else "-"]
        subprocess.run(command, input=case.script.encode(), check=True, capture_output=True)


async def run_script(client: Client, runtime: str, script: str, files: dict[str, bytes]) -> dict[str, Any]:
    """The same through the farm."""
    encoded = {name: base64.b64encode(content).decode("ascii") for name, content in files.items()}
    answer = await client.call_tool(
        "run_script", {"runtime": runtime, "script": script, "input_files": encoded, "memory": "3GiB"}
    )
    result = dict(answer.structured_content or {})
    if result.get("status") != "succeeded":
        raise SystemExit(f"{script[:40]!r} did not succeed: {answer.content}")
    return result


async def seconds(action: Callable[[], Awaitable[Any]]) -> float:
    """How long an action takes."""
    start = time.perf_counter()
    await action()
    return time.perf_counter() - start


async def compare(client: Client, settings: Settings, runs: int) -> Table:
    """Every case both ways, in turn."""
    runtimes, built = load_runtimes(settings.images), Images(settings.images, settings.image_register).built()
    table = Table("script", "podman run", "p95", "run_script", "p95", "ratio of medians", box=None, header_style="bold")
    for case in CASES:
        plain, through = [], []
        for turn in range(runs + 1):
            image, runtime = built[case.runtime].id, runtimes[case.runtime]
            a = await seconds(lambda: asyncio.to_thread(podman_run, image, runtime, case))  # noqa: B023 (awaited here)
            b = await seconds(lambda: run_script(client, case.runtime, case.script, case.files))  # noqa: B023
            if turn:  # the first of each warms the caches
                plain.append(a)
                through.append(b)
        ratio = statistics.median(through) / statistics.median(plain)
        table.add_row(case.name, *_figures(plain), *_figures(through), f"{ratio:.2f}")
    return table


def _figures(times: list[float]) -> tuple[str, str]:
    return f"{statistics.median(times):.3f} s", f"{statistics.quantiles(times, n=20)[-1]:.3f} s"


async def publish_big(client: Client, worker: int) -> str:
    """The growth of the worker's resident memory while a 256 MiB output is collected and uploaded."""
    await run_script(client, "bash", "true", {})
    before, peak, stop = resident(worker), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.01):
            peak = max(peak, resident(worker))

    watcher = threading.Thread(target=watch)
    watcher.start()
    took = await seconds(lambda: run_script(client, "python", BIG, {}))
    stop.set()
    watcher.join()
    return f"a 256 MiB output: {took:.1f} s, the worker's memory grew by {max(0, peak - before) / MiB:.0f} MiB"


def resident(pid: int) -> int:
    """Private resident memory of a process, in bytes: without pages of files and of shared memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def worker_of(state: Path) -> int:
    """The process id of the worker that runs on a state folder."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"worker" in words and f"SCIFARM_STATE={state}".encode() in (folder / "environ").read_bytes().split(
                b"\0"
            ):
                return int(folder.name)
        except OSError:
            continue
    raise SystemExit("no worker is running")


async def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="counted runs of each script each way")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, farm(Path(folder)) as url:
        async with Client(url) as client:
            console.print(await compare(client, Settings.from_env(), arguments.runs))
            console.print(await publish_big(client, worker_of(Path(folder))))
    console.print(f"{os.cpu_count()} cores, {arguments.runs} runs each, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    asyncio.run(main())

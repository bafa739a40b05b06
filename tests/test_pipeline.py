"""From an MCP client to a file that can be downloaded, through every real part of a farm."""

import os
import sys

import pytest
from conftest import REPOSITORY, Farm, FarmClient, download, named
from mcp import StdioServerParameters

from farm.job import Status


@pytest.mark.parametrize(
    ("arguments", "status", "exit_code", "signal"),
    [
        ({"script": "true"}, Status.SUCCEEDED, 0, None),
        ({"script": "exit 3"}, Status.FAILED, 3, None),
        ({"script": "kill -SEGV $$"}, Status.FAILED, 139, "SIGSEGV"),
        ({"script": "sleep 100", "timeout": 0.5}, Status.TIMED_OUT, None, None),
        ({"script": "head -c 200m /dev/zero | tail | wc -c", "memory": "64MiB"}, Status.OUT_OF_MEMORY, 0, None),
    ],
    ids=["succeeded", "failed", "killed by a signal", "timed out", "out of memory"],
)
def test_every_way_a_script_can_end_has_its_status(
    client: FarmClient, arguments: dict[str, object], status: Status, exit_code: int | None, signal: str | None
) -> None:
    script = f"echo partial > partial.txt; echo said; {arguments.pop('script')}"
    result = client.run(script, **arguments)
    assert (result.status, result.exit_code, result.signal) == (status, exit_code, signal)
    assert result.stdout.startswith("said\n")
    assert download(named(result)["partial.txt"]) == b"partial\n"


def test_the_same_over_stdio(farm: Farm, connect) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "cli", "mcp"], env=farm.env, cwd=str(REPOSITORY))
    result = connect(server).run("import sys; print(sys.version_info[:2]); open('a.txt', 'w').write('x')", "python")
    assert result.status is Status.SUCCEEDED
    assert download(named(result)["a.txt"]) == b"x"
    assert os.environ.get("SCIFARM_STATE") is None  # the server's settings are its own

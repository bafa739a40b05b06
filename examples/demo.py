"""`make demo`: a farm of its own, one figure through a real MCP client, and the check that the bytes are right.

Also an example of how a program talks to a farm.
"""

import asyncio
import base64
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client

KINETICS = Path(__file__).with_name("kinetics")
PATIENCE = 60.0  # seconds for the farm to come up


async def run_job(url: str) -> dict[str, Any]:
    """Send the script and its data to the farm at `url` and return the structured answer."""
    arguments = {
        "runtime": "python",
        "script": (KINETICS / "kinetics.py").read_text(encoding="utf-8"),
        "input_files": {"kinetics.csv": base64.b64encode((KINETICS / "kinetics.csv").read_bytes()).decode("ascii")},
        "label": "demo",
    }

    async def told(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        print(f"  {message}")

    async with Client(url) as client:
        answer = await client.call_tool("run_script", arguments, progress_callback=told)
    if answer.is_error or answer.structured_content is None:
        sys.exit(f"the farm refused: {answer.content}")
    return dict(answer.structured_content)


def show(result: dict[str, Any], folder: Path) -> bool:
    """Print the result, download its outputs to `folder`, and return whether every one is what was promised."""
    print(f"\njob {result['job_id']}: {result['status']} in {result['usage']['wall_s']:.2f} s")
    print(result["stdout"] + result["stderr"])
    right = result["status"] == "succeeded" and bool(result["outputs"])
    for output in result["outputs"]:
        content = httpx2.get(output["url"]).raise_for_status().content
        matches = hashlib.sha256(content).hexdigest() == output["sha256"]
        (folder / output["name"]).write_bytes(content)
        right = right and matches
        print(f"{output['name']}  {output['bytes']:,} bytes  {output['mime']}\n  SHA-256 {output['sha256']}")
        print(f"  {output['url']}\n  downloaded: SHA-256 {'matches' if matches else 'DOES NOT MATCH'}\n")
    return right


@contextmanager
def farm(state: Path) -> Iterator[str]:
    """A farm on free ports that lives as long as the block; gives the URL of its MCP endpoint."""
    api, s3 = free_port(), free_port()
    environment = os.environ | {"SCIFARM_STATE": str(state), "SCIFARM_API_PORT": str(api), "SCIFARM_S3_PORT": str(s3)}
    log = state / "up.log"
    with log.open("wb") as file:
        up = subprocess.Popen(["scifarm", "up"], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + PATIENCE
        while not healthy(f"http://127.0.0.1:{api}/healthz"):
            if up.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the farm did not come up:\n{log.read_text(encoding='utf-8', errors='replace')}")
            time.sleep(0.1)
        yield f"http://127.0.0.1:{api}/mcp"
    finally:
        up.send_signal(signal.SIGINT)
        up.wait()


def healthy(url: str) -> bool:
    """Whether every part of the farm answers."""
    try:
        return httpx2.get(url, timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Run the demonstration."""
    folder = Path(tempfile.mkdtemp(prefix="scifarm-demo-"))
    folder.chmod(0o755)
    state = folder / "state"
    state.mkdir(mode=0o700)
    print("starting a farm")
    with farm(state) as url:
        print(f"sending examples/kinetics to {url}")
        right = show(asyncio.run(run_job(url)), folder)
    shutil.rmtree(state)
    print(f"The farm is stopped; the figure is kept as {folder}/kinetics.png")
    print("Next: `scifarm up` starts a farm that stays, `scifarm run SCRIPT --input FILE` runs your own script on it,")
    print("and the README tells how to connect an MCP client.")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()

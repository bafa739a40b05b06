"""The real parts that tests talk to: a farm, a Redis, an S3 server. Nothing here stands in for anything."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp_types import CallToolResult, TextContent

from cli.admin import write_policy
from farm.job import Artifact, JobResult
from farm.settings import Settings
from storage.ledger import Ledger
from storage.objects import ObjectStore

REPOSITORY = Path(__file__).resolve().parent.parent


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(condition: Callable[[], Any], patience: float = 30.0) -> Any:
    """The first true value of `condition`; fails when there is none within `patience` seconds."""
    deadline = time.monotonic() + patience
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {patience:g} s: {condition}"
        time.sleep(0.02)
    return value


class Answer:
    """What a tool answered: the structured part, the text a person reads, and whether it is an error."""

    def __init__(self, raw: CallToolResult) -> None:
        self.error = bool(raw.is_error)
        self.text = "\n".join(part.text for part in raw.content if isinstance(part, TextContent))
        self.data: dict[str, Any] = dict(raw.structured_content or {})

    @property
    def job(self) -> JobResult:
        """The answer as a job's result."""
        assert not self.error, self.text
        return JobResult.model_validate(self.data)


class Farm:
    """A farm of its own, as `scifarm up` starts it, and a real MCP client of it."""

    def __init__(self, **settings: str) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="farm-"))
        ports = {"api_port": str(free_port()), "s3_port": str(free_port())}
        given = {"state": str(self.state), **ports, **settings}
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("SCIFARM_")}
        self.env = inherited | {f"SCIFARM_{key.upper()}": value for key, value in given.items()}
        self.settings = Settings.from_env(self.env)
        self.log = self.state / "up.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Farm":
        """Start it and wait until every part answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command("up"), env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=REPOSITORY
            )
        try:
            eventually(lambda: self.health().get("status") == "up", 60)
        except AssertionError:
            pytest.fail(f"the farm does not come up:\n{self.log.read_text(errors='replace')[-4000:]}")
        return self

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """End it as Ctrl-C does; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(timeout=90)
        self.process = None
        return code

    def remove(self) -> None:
        """Stop it if it runs, and remove what it kept."""
        if self.process is not None:
            self.stop()
        shutil.rmtree(self.state, ignore_errors=True)

    def command(self, *args: str) -> list[str]:
        """A `scifarm` command line."""
        return [sys.executable, "-m", "cli", *args]

    def cli(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a `scifarm` command against this farm."""
        return subprocess.run(
            self.command(*args),
            env=self.env,
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            check=False,
            timeout=120,
            **options,
        )

    def health(self) -> dict[str, Any]:
        """What /healthz says; empty while nobody answers."""
        try:
            return dict(httpx2.get(f"{self.settings.public_url}/healthz", timeout=10).json())
        except (httpx2.HTTPError, json.JSONDecodeError):
            return {}

    def children(self) -> dict[str, int]:
        """The process ids of the farm's parts, by name."""
        assert self.process is not None
        found: dict[str, int] = {}
        for pid in children_of(self.process.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            name = next((n for n in ("housekeeping", "worker", "api") if n in words), None)
            found[name or ("s3" if "s3" in words else "redis")] = pid
        return found

    @property
    def ledger(self) -> Ledger:
        """The farm's ledger."""
        return Ledger(self.settings.redis_url)

    @property
    def objects(self) -> ObjectStore:
        """The farm's object store."""
        return ObjectStore(self.settings)


class FarmClient:
    """One MCP session, called from synchronous tests."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client
        self.progress: list[str] = []

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool; what it tells while it works lies in `progress`."""
        self.progress = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append(message or "")

        async def ask() -> CallToolResult:
            return await self._client.call_tool(tool, arguments, progress_callback=told)

        return Answer(self._portal.call(ask))

    def run(self, script: str, runtime: str = "bash", **arguments: Any) -> JobResult:
        """Run a script to its end."""
        return self.call("run_script", runtime=runtime, script=script, **arguments).job

    def tools(self) -> dict[str, Any]:
        """The tools as the server lists them, by name."""
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool for tool in listed.tools}


def download(output: Artifact) -> bytes:
    """The bytes behind an output's presigned URL, checked against its SHA-256."""
    answer = httpx2.get(str(output.url), timeout=60)
    answer.raise_for_status()
    assert hashlib.sha256(answer.content).hexdigest() == output.sha256
    assert len(answer.content) == output.bytes
    return answer.content


def named(result: JobResult) -> dict[str, Artifact]:
    """A job's outputs by name."""
    return {output.name: output for output in result.outputs}


def children_of(pid: int) -> list[int]:
    """The ids of the living children of a process."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


@pytest.fixture(scope="session")
def farm() -> Iterator[Farm]:
    """One farm for all tests that do not break it."""
    farm = Farm().start()
    yield farm
    farm.remove()


@pytest.fixture(scope="session")
def portal() -> Iterator[BlockingPortal]:
    """An event loop in a thread of its own."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def connect(portal: BlockingPortal) -> Iterator[Callable[..., FarmClient]]:
    """Opens MCP sessions that end with the test: to a URL, or to a started program."""
    opened: list[Any] = []

    def open_session(server: Any, **options: Any) -> FarmClient:
        session = portal.wrap_async_context_manager(Client(server, **options))
        client = session.__enter__()
        opened.append(session)
        return FarmClient(portal, client)

    yield open_session
    for session in reversed(opened):
        session.__exit__(None, None, None)


@pytest.fixture
def client(farm: Farm, connect: Callable[..., FarmClient]) -> FarmClient:
    """An MCP session over HTTP with the farm."""
    return connect(farm.settings.mcp_url)


@pytest.fixture
def new_farm() -> Iterator[Callable[..., Farm]]:
    """Makes farms to break; they are gone when the test is over."""
    made: list[Farm] = []

    def make(policy: str | None = None, **settings: str) -> Farm:
        farm = Farm(**settings)
        made.append(farm)
        if policy is None:
            write_policy(farm.settings.policy)
        else:
            farm.settings.policy.write_text(policy)
        return farm

    yield make
    for farm in made:
        farm.remove()


class RedisServer:
    """A Redis that a test may stop for as long as it likes; what it holds survives."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="redis-"))
        self.url = f"unix://{self.folder}/sock"
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        command = ["redis-server", "--port", "0", "--unixsocket", str(self.folder / "sock"), "--dir", str(self.folder)]
        durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self.process = subprocess.Popen([*command, *durable], stdout=subprocess.DEVNULL)
        eventually((self.folder / "sock").exists)

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.process.kill()
        self.process.wait()
        (self.folder / "sock").unlink(missing_ok=True)

    def remove(self) -> None:
        """End it and remove what it held."""
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis of the tests' own."""
    server = RedisServer()
    yield server.url
    server.remove()


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A Redis to break."""
    server = RedisServer()
    yield server
    server.remove()


class StoreServer:
    """An S3 server that a test may stop for as long as it likes; what it holds survives."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="store-"))
        self.port = free_port()
        self.given = {
            "s3_endpoint": f"http://127.0.0.1:{self.port}",
            "s3_access_key": "key",
            "s3_secret_key": "secret",
        }
        self.store = ObjectStore(Settings.from_env({f"SCIFARM_{key.upper()}": v for key, v in self.given.items()}))
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        rclone = str(Path(sys.executable).with_name("rclone"))
        command = [rclone, "serve", "s3", f"--addr=127.0.0.1:{self.port}", "--config=", str(self.folder)]
        keys = {"RCLONE_AUTH_KEY": '"key,secret"'}
        self.process = subprocess.Popen(command, env=os.environ | keys, stderr=subprocess.DEVNULL)
        eventually(lambda: _answers(self.store))

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def remove(self) -> None:
        """End it and remove what it held."""
        self.kill()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectStore]:
    """An object store of the tests' own."""
    server = StoreServer()
    yield server.store
    server.remove()


@pytest.fixture
def store() -> Iterator[StoreServer]:
    """An object store to break."""
    server = StoreServer()
    yield server
    server.remove()


def _answers(store: ObjectStore) -> bool:
    try:
        store.ensure_bucket()
    except Exception:
        return False
    return True

"""`scifarm up`: Redis, S3, housekeeping, worker and api as children of one process manager."""

import json
import os
import secrets
import shutil
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from circus.arbiter import Arbiter
from circus.exc import ConflictError
from circus.watcher import Watcher
from tornado import gen

from cli import show
from cli.admin import write_policy
from cli.host import own_command
from farm.errors import Misconfigured
from farm.policy import Policy
from farm.runtime import load_runtimes
from farm.settings import Settings

GRACE = 30.0  # seconds that a child has to end by itself
_COLOURS = {"redis": 31, "s3": 33, "housekeeping": 35, "worker": 32, "api": 36}
_printing = threading.Lock()


def run_farm(settings: Settings) -> None:
    """Start what the settings do not place elsewhere, and stay until a signal stops all of it.

    Raises:
        Misconfigured: a port or a socket is taken, or a program is missing.
    """
    settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    if write_policy(settings.policy):
        show.err.print(f"wrote {settings.policy}", style="dim")
    Policy.load(settings.policy).refuse_strangers(settings.api_host)
    load_runtimes(settings.images)
    _refuse_taken(settings)
    children = _children(settings)
    width = max(map(len, children))
    watchers = [
        Watcher(
            name,
            command[0],
            args=command[1:],
            env=os.environ | environment,
            copy_env=False,
            working_dir=str(settings.state),
            priority=priority,
            graceful_timeout=GRACE,
            close_child_stdin=True,
            stdout_stream={"stream": _Prefixed(name, width)},
            stderr_stream={"stream": _Prefixed(name, width)},
        )
        for priority, (name, (command, environment)) in zip(range(len(children), 0, -1), children.items(), strict=True)
    ]
    control = {
        "endpoint": f"ipc://{settings.state}/control.sock",
        "pubsub_endpoint": f"ipc://{settings.state}/events.sock",
    }
    show.err.print(f"the farm starts; MCP will be at {settings.mcp_url}, Ctrl-C stops it", style="bold")
    arbiter = _Farm(watchers, **control, check_delay=1.0)
    try:
        arbiter.start()
    finally:
        arbiter.stop()
        for name in ("control.sock", "events.sock"):
            (settings.state / name).unlink(missing_ok=True)


def _children(settings: Settings) -> dict[str, tuple[list[str], dict[str, str]]]:
    """Command and environment of each child, in the order of their start; they stop in the opposite one."""
    children: dict[str, tuple[list[str], dict[str, str]]] = {}
    if settings.own_redis:
        children["redis"] = (_redis(settings), {})
    if settings.own_s3:
        children["s3"] = _s3(settings)
    for name in ("housekeeping", "worker", "api"):
        children[name] = (own_command(name), {})
    return children


def _redis(settings: Settings) -> list[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise Misconfigured("redis-server is not installed; `make setup` installs it, or set SCIFARM_REDIS_URL")
    data = settings.state / "redis"
    data.mkdir(exist_ok=True, mode=0o700)
    # Every write is on disk before it is answered: what was accepted survives a power cut.
    options = {
        "port": "0",
        "unixsocket": str(settings.state / "redis.sock"),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "loglevel": "warning",
    }
    return [program, *(part for key, value in options.items() for part in (f"--{key}", value))]


def _s3(settings: Settings) -> tuple[list[str], dict[str, str]]:
    if not settings.credentials_file.exists():
        keys = {"access_key": secrets.token_hex(10), "secret_key": secrets.token_urlsafe(32)}
        draft = os.open(settings.credentials_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(draft, "w", encoding="utf-8") as file:
            json.dump(keys, file)
    objects = settings.state / "objects"
    objects.mkdir(exist_ok=True, mode=0o700)
    access, secret = settings.s3_keys()
    program = Path(sys.executable).with_name("rclone")
    command = [str(program), "serve", "s3", f"--addr=127.0.0.1:{settings.s3_port}", "--vfs-cache-mode=off",
               "--config=", "--log-level=NOTICE", str(objects)]  # fmt: skip
    # Keys in the environment, for a command line is everybody's to read.
    return command, {"RCLONE_AUTH_KEY": f'"{access},{secret}"'}


def _refuse_taken(settings: Settings) -> None:
    ports = {"SCIFARM_API_PORT": (settings.api_host, settings.api_port)}
    if settings.own_s3:
        ports["SCIFARM_S3_PORT"] = ("127.0.0.1", settings.s3_port)
    for variable, address in ports.items():
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                raise Misconfigured(
                    f"{address[0]}:{address[1]}: {error.strerror}; stop what listens there, or choose with {variable}"
                ) from None
    with socket.socket(socket.AF_UNIX) as probe:
        path = settings.state / "redis.sock"
        if settings.own_redis and path.exists() and probe.connect_ex(str(path)) == 0:
            raise Misconfigured(f"{path} is in use: a farm runs on this state folder; set SCIFARM_STATE for another")


class _Farm(Arbiter):  # type: ignore[misc]
    """An arbiter that stops its children one after the other, the last started first: what others need ends last."""

    def manage_watchers(self) -> Any:
        """Look after the children, unless they are being started or stopped."""
        if self._stopping:
            return None
        try:
            return super().manage_watchers()
        except ConflictError:
            return None

    @gen.coroutine
    def _stop_watchers(self, close_output_streams: bool = False, watcher_iter_func: Any = None) -> Any:
        watchers = (watcher_iter_func or self.iter_watchers)(reverse=False)
        for watcher in watchers:
            yield watcher._stop(close_output_streams)


class _Prefixed:
    """Writes a child's lines with its name before each, in its colour on a terminal."""

    def __init__(self, name: str, width: int) -> None:
        self._prefix = f"{name:<{width}} | "
        if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
            self._prefix = f"\033[{_COLOURS[name]}m{self._prefix}\033[0m"
        self._rest = b""

    def __call__(self, data: dict[str, Any]) -> None:
        """Take what the child wrote."""
        *lines, self._rest = (self._rest + data["data"]).split(b"\n")
        self._write(lines)

    def close(self) -> None:
        """Write what had no line end."""
        if self._rest:
            self._write([self._rest])

    def _write(self, lines: list[bytes]) -> None:
        with _printing:
            for line in lines:
                sys.stdout.write(f"{self._prefix}{line.decode(errors='replace')}\n")
            sys.stdout.flush()

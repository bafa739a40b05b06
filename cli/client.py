"""The shell's way to the farm: an MCP client like any other, over HTTP."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent

from farm import names
from farm.errors import FarmError
from farm.job import Artifact, JobResult
from farm.settings import Settings

_T = TypeVar("_T")
Progress = Callable[[str], None]


class CannotReach(FarmError):
    """The farm does not answer."""

    kind = "cannot_reach"


class Refused(FarmError):
    """The farm answered with an error."""

    kind = "refused"


class FarmClient:
    """Calls the farm's tools."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.mcp_url
        self._headers = {"authorization": f"Bearer {settings.token}"} if settings.token else {}

    def job(self, tool: str, hear: Progress | None = None, **arguments: Any) -> JobResult:
        """Call a tool that answers a job."""
        return JobResult.model_validate(self.call(tool, hear, **arguments))

    def call(self, tool: str, hear: Progress | None = None, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured answer.

        Raises:
            CannotReach: nobody answers there, or the token is wrong.
            Refused: with the tool's own words.
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
            if hear and message:
                hear(message)

        async def ask(client: Client) -> dict[str, Any]:
            given = {key: value for key, value in arguments.items() if value is not None}
            answer = await client.call_tool(tool, given, progress_callback=told if hear else None)
            if answer.is_error:
                raise Refused("\n".join(part.text for part in answer.content if isinstance(part, TextContent)))
            return dict(answer.structured_content or {})

        return self._run(ask)

    def _run(self, action: Callable[[Client], Awaitable[_T]]) -> _T:
        async def session() -> _T:
            http = create_mcp_http_client(headers=self._headers, timeout=httpx2.Timeout(30, read=700))
            async with http, Client(streamable_http_client(self._url, http_client=http)) as client:
                return await action(client)

        try:
            return asyncio.run(session())
        except Exception as error:
            first = _first(error)
            if isinstance(first, FarmError):
                raise first from None
            if not isinstance(first, (httpx2.HTTPError, MCPError, OSError)):
                raise
            raise CannotReach(
                f"no farm answers at {self._url} ({first or type(first).__name__}); start one with `scifarm up`, "
                "or set SCIFARM_PUBLIC_URL and, where tokens are needed, SCIFARM_TOKEN"
            ) from None


def save(output: Artifact, folder: Path) -> Path:
    """Download an output below `folder` and check its SHA-256.

    Raises:
        Refused: the bytes that came are not those that were promised, or the name leads out of the folder.
    """
    target = folder / bytes(names.to_bytes(output.name)).decode("utf-8", "surrogateescape")
    if not target.resolve().is_relative_to(folder.resolve()):
        raise Refused(f"{names.shown(output.name)}: this name leads out of {folder}")
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with httpx2.stream("GET", str(output.url), timeout=60) as answer, target.open("wb") as file:
        answer.raise_for_status()
        for block in answer.iter_bytes():
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != output.sha256:
        target.unlink()
        raise Refused(f"{names.shown(output.name)}: the downloaded bytes have SHA-256 {digest.hexdigest()}")
    return target


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

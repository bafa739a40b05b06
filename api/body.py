"""Reads request bodies before anything parses them for real: within a size, and only JSON that has one meaning."""

import json
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BadBody(ValueError):
    """A body that is refused with this HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StrictBodies:
    """Answers 413 to bodies above `limit` bytes, declared or sent, and 400 to JSON that parsers read differently.

    That is NaN and Infinity, keys that stand twice in an object, integers of thousands of digits, and nesting that
    would exhaust a parser's stack.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
            check(body)
        except BadBody as error:
            await JSONResponse({"error": "bad_request", "message": str(error)}, error.status)(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self._limit:
            raise BadBody(413, f"the body has {declared[:20]} bytes; {self._limit} are allowed")
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise BadBody(400, "the body ended early")
            body += message.get("body", b"")
            if len(body) > self._limit:
                raise BadBody(413, f"the body has more than {self._limit} bytes")
            if not message.get("more_body", False):
                return bytes(body)


def check(body: bytes) -> None:
    """Raise BadBody unless these bytes are JSON with one meaning."""
    try:
        json.loads(body, object_pairs_hook=_unique, parse_constant=_refuse)
    except BadBody:
        raise
    except (ValueError, RecursionError) as error:
        raise BadBody(400, f"the body is not JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadBody(400, "the body is not JSON: a key stands twice in an object")
    return found


def _refuse(constant: str) -> None:
    raise BadBody(400, f"the body is not JSON: {constant} is no number")

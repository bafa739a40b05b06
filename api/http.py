"""The ASGI app: the MCP endpoint, who may use it, short download links, and health."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api.body import StrictBodies
from api.dispatch import Dispatch
from farm.errors import Expired, FarmError, TryAgain
from farm.policy import LOCAL, Policy, is_loopback
from farm.settings import Settings

OPEN = ("/a/", "/healthz")  # paths that ask for no token: the first carry an unguessable one
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
}

log = logging.getLogger(__name__)


def build_app(server: MCPServer[Any], dispatch: Dispatch, settings: Settings) -> ASGIApp:
    """The whole front door."""
    mcp = server.streamable_http_app(
        streamable_http_path="/mcp",
        max_request_body_size=settings.body_limit,
        transport_security=_transport_security(settings),
    )
    mcp.router.routes[:0] = [
        Route("/a/{link}/{name:path}", _download(dispatch), methods=["GET", "HEAD"]),
        Route("/healthz", _health(dispatch), methods=["GET"]),
    ]
    strict = StrictBodies(mcp, settings.body_limit)
    return Guard(strict, dispatch.policy, open_to_all=is_loopback(settings.api_host) and not dispatch.policy.tenants)


def tenant_of(ctx: Context[Any, Any]) -> str:
    """The tenant that the guard let in with this request; on stdio, the one of this machine."""
    request = ctx.request_context.request
    return str(request.state.tenant) if isinstance(request, Request) else LOCAL


class Guard:
    """Lets nobody in who has no token, unless everybody who can knock is on this machine; marks every answer safe."""

    def __init__(self, app: ASGIApp, policy: Policy, *, open_to_all: bool) -> None:
        self._app = app
        self._policy = policy
        self._open = open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                extra = ((k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in present)
                message = message | {"headers": [*message["headers"], *extra]}
            await send(message)

        if not scope["path"].startswith(OPEN):
            tenant = LOCAL if self._open else self._policy.tenant_of(_bearer(scope))
            if tenant is None:
                await _unauthorized(scope, receive, safely)
                return
            scope.setdefault("state", {})["tenant"] = tenant
        await self._app(scope, receive, safely)


def _bearer(scope: Scope) -> str:
    """The token of the Authorization header, never one from the URL."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, token = value.decode("latin-1").partition(" ")
            return token.strip() if kind.lower() == "bearer" else ""
    return ""


async def _unauthorized(scope: Scope, receive: Receive, send: Send) -> None:
    body = {"error": "unauthorized", "message": "send a token of this farm as `Authorization: Bearer …`"}
    response = JSONResponse(body, 401, headers={"www-authenticate": 'Bearer realm="scifarm"'})
    await response(scope, receive, send)


def _transport_security(settings: Settings) -> TransportSecuritySettings:
    """Which Host and Origin headers are answered: this machine's names, and those that were configured."""
    local = ["127.0.0.1:*", "localhost:*", "[::1]:*"]
    configured = [host for name in settings.allowed_hosts for host in (name, f"{name}:*")]
    own = settings.public_url.partition("://")[2].partition("/")[0]
    hosts = [*local, own, *configured]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts],
    )


def _download(dispatch: Dispatch) -> Callable[[Request], Any]:
    async def download(request: Request) -> Response:
        link, name = request.path_params["link"], request.path_params["name"]
        try:
            return RedirectResponse(await asyncio.to_thread(dispatch.linked, link, name), 307)
        except Expired as error:
            return PlainTextResponse(f"{error}\n", 410)
        except TryAgain as error:
            return PlainTextResponse(f"{error}\n", 503, headers={"retry-after": "5"})
        except FarmError:
            return PlainTextResponse("no such link\n", 404)

    return download


def _health(dispatch: Dispatch) -> Callable[[Request], Any]:
    async def health(_: Request) -> Response:
        checks = {"redis": dispatch.ledger.ping, "s3": dispatch.objects.ensure_bucket}
        states = dict(zip(checks, await asyncio.gather(*map(_state, checks.values())), strict=True))
        up = all(state == "up" for state in states.values())
        body = json.dumps({"status": "up" if up else "degraded", **states}).encode()
        return Response(body, 200 if up else 503, media_type="application/json")

    return health


async def _state(check: Callable[[], object]) -> str:
    try:
        await asyncio.wait_for(asyncio.to_thread(check), 5)
    except (FarmError, TimeoutError) as error:
        log.warning("health: %s", error)
        return "down"
    return "up"


def serve(app: ASGIApp, settings: Settings) -> None:
    """Listen until told to stop."""
    config = uvicorn.Config(
        app, host=settings.api_host, port=settings.api_port, log_level="warning", access_log=False,
        timeout_graceful_shutdown=3, h11_max_incomplete_event_size=64 * 1024, server_header=False,
    )  # fmt: skip
    uvicorn.Server(config).run()

"""The front end's processes: MCP over HTTP, and MCP over stdio."""

import logging
import sys
from importlib.metadata import version

import anyio

from api.dispatch import Dispatch
from api.http import build_app, serve, tenant_of
from api.server import build_server
from farm.catalogue import Catalogue
from farm.policy import Policy
from farm.runtime import load_runtimes
from farm.settings import Settings
from storage.broker import celery_app
from storage.connect import connect

log = logging.getLogger(__name__)


def build_dispatch(settings: Settings) -> Dispatch:
    """The farm as its callers see it, when its services answer."""
    policy = Policy.load(settings.policy)
    ledger, objects = connect(settings)
    app = celery_app(settings.broker_url, policy.ceilings.timeout)
    return Dispatch(
        ledger,
        objects,
        app,
        policy,
        load_runtimes(settings.images),
        Catalogue(settings.catalogues),
        settings.public_url,
    )


def run_http(settings: Settings) -> None:
    """Serve MCP over streamable HTTP, downloads and health.

    Raises:
        Misconfigured: it would listen beyond this machine without asking for tokens.
    """
    Policy.load(settings.policy).refuse_strangers(settings.api_host)
    dispatch = build_dispatch(settings)
    server = build_server(dispatch, tenant_of, version("scifarm"))
    log.info("MCP at %s", settings.mcp_url)
    serve(build_app(server, dispatch, settings), settings)


def run_stdio(settings: Settings) -> None:
    """Serve MCP on stdin and stdout, for the user who started it. Nothing but the protocol is printed on stdout."""
    print("scifarm: MCP on stdio", file=sys.stderr)
    server = build_server(build_dispatch(settings), tenant_of, version("scifarm"))
    anyio.run(server.run_stdio_async)

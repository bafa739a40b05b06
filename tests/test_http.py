"""The front door as a stranger tries it: other hosts, other origins, no token, broken bodies, guessed links."""

import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal
from conftest import Answer, Farm, FarmClient, download, eventually, named
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from cli.admin import POLICY
from farm.job import Status
from farm.policy import token_digest

BODY_LIMIT = 20_000
TOKENS = {"alice": "a" * 43, "bob": "b" * 43}
MCP = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def knock(farm: Farm, content: Any = None, query: str = "", **headers: str) -> httpx2.Response:
    """POST a body to the MCP endpoint; without one, a client's first message."""
    body = json.dumps(HELLO).encode() if content is None else content
    return httpx2.post(f"{farm.settings.mcp_url}{query}", content=body, headers=MCP | headers, timeout=60)


def bearer(tenant: str) -> dict[str, str]:
    """The header that lets a tenant in."""
    return {"authorization": f"Bearer {TOKENS[tenant]}"}


def link_to(answer: Answer, name: str) -> str:
    """The short link of an output, as the answer's text shows it."""
    line = next(line for line in answer.text.splitlines() if line.startswith(f"{name} ("))
    return line.rpartition(": ")[2]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Farm]:
    """A farm with two tenants and a small limit on bodies."""
    farm = Farm(body_limit=str(BODY_LIMIT))
    tenants = [f"  {name}:\n    token_sha256: [{token_digest(token)}]" for name, token in TOKENS.items()]
    farm.settings.policy.write_text("\n".join([POLICY.read_text(), "tenants:", *tenants]))
    yield farm.start()
    farm.remove()


@pytest.fixture
def as_tenant(guarded: Farm, portal: BlockingPortal) -> Iterator[Callable[[str], FarmClient]]:
    """Opens a session of a tenant with the guarded farm."""

    @asynccontextmanager
    async def session(tenant: str) -> AsyncIterator[Client]:
        http = create_mcp_http_client(headers=bearer(tenant))
        async with http, Client(streamable_http_client(guarded.settings.mcp_url, http_client=http)) as client:
            yield client

    with ExitStack() as stack:
        yield lambda tenant: FarmClient(portal, stack.enter_context(portal.wrap_async_context_manager(session(tenant))))


# Who is let in


def test_a_greeting_is_answered(farm: Farm) -> None:
    assert knock(farm).status_code == 200


@pytest.mark.parametrize("host", ["evil", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:8815"])
def test_another_host_is_misdirected(farm: Farm, host: str) -> None:
    assert knock(farm, host=host).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil", "https://evil.example", "null", "http://127.0.0.1.evil.example"])
def test_another_origin_is_forbidden(farm: Farm, origin: str) -> None:
    assert knock(farm, origin=origin).status_code == 403


def test_a_page_of_this_machine_is_let_in(farm: Farm) -> None:
    assert knock(farm, origin=farm.settings.public_url).status_code == 200


def test_a_token_lets_its_tenant_in(guarded: Farm) -> None:
    assert knock(guarded, **bearer("alice")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"authorization": "Bearer wrong"}, ""),
        ({"authorization": "Bearer"}, ""),
        ({"authorization": f"Basic {TOKENS['alice']}"}, ""),
        ({"authorization": f"Bearer {token_digest(TOKENS['alice'])}"}, ""),
        ({}, f"?token={TOKENS['alice']}"),
        ({}, f"?access_token={TOKENS['alice']}"),
    ],
    ids=["missing", "wrong", "bare", "basic", "the hash", "in the query", "access_token in the query"],
)
def test_without_the_token_nobody_is_let_in(guarded: Farm, headers: dict[str, str], query: str) -> None:
    answer = knock(guarded, query=query, **headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"] == "unauthorized"


def test_health_and_links_ask_for_no_token(guarded: Farm, as_tenant: Callable[[str], FarmClient]) -> None:
    answer = as_tenant("alice").call("run_script", runtime="bash", script="echo x > a.txt")
    assert guarded.health()["status"] == "up"
    assert httpx2.get(link_to(answer, "a.txt"), follow_redirects=True).content == b"x\n"


@pytest.mark.parametrize("tool", ["get_job", "cancel_job"])
def test_another_tenant_s_job_is_as_unknown_as_one_that_never_was(
    as_tenant: Callable[[str], FarmClient], tool: str
) -> None:
    alice, bob = as_tenant("alice"), as_tenant("bob")
    job = alice.call("run_script", runtime="bash", script="sleep 2; echo done", wait=0).job.job_id
    asked, made_up = bob.call(tool, job_id=job), bob.call(tool, job_id="0" * len(job))
    assert asked.error
    assert asked.text.replace(job, "ID") == made_up.text.replace("0" * len(job), "ID")
    result = alice.call("get_job", job_id=job, wait=60).job
    assert (result.status, result.stdout) == (Status.SUCCEEDED, "done\n")


def test_a_tenant_lists_only_its_own_jobs(as_tenant: Callable[[str], FarmClient]) -> None:
    alice, bob = as_tenant("alice"), as_tenant("bob")
    job = alice.run("true").job_id
    assert job in [line["job_id"] for line in alice.call("list_jobs").data["jobs"]]
    assert bob.call("list_jobs", limit=500).data == {"jobs": []}


def test_a_server_without_tenants_refuses_to_listen_beyond_this_machine(new_farm: Callable[..., Farm]) -> None:
    ended = new_farm(api_host="0.0.0.0").cli("api")
    assert ended.returncode == 78
    assert "SCIFARM_API_HOST=0.0.0.0" in ended.stderr
    assert "scifarm token new" in ended.stderr


# What is sent


@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 50 * 1024**2], ids=["a byte", "megabytes"])
@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
def test_a_body_above_the_limit_is_too_large(guarded: Farm, size: int, chunked: bool) -> None:
    block = b" " * 1001

    def blocks() -> Iterator[bytes]:
        for start in range(0, size, len(block)):
            yield block[: size - start]

    try:
        answer = knock(guarded, blocks() if chunked else b" " * size, **bearer("alice"))
    except httpx2.WriteError:  # the server answered and closed while we were still sending
        assert size > 1024**2
    else:
        assert answer.status_code == 413
    assert guarded.health()["status"] == "up"


def test_a_body_below_the_limit_is_taken(as_tenant: Callable[[str], FarmClient]) -> None:
    assert as_tenant("alice").run("wc -c", stdin="x" * (BODY_LIMIT // 2)).stdout == f"{BODY_LIMIT // 2}\n"


def with_number(text: str) -> bytes:
    """A client's first message, with `text` where a number may stand."""
    params = HELLO["params"] | {"capabilities": {"experimental": {"x": {"n": "NUMBER"}}}}
    return json.dumps(HELLO | {"params": params}).replace('"NUMBER"', text).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"a":' * 200_000,
        with_number("9" * 5000),
        with_number("NaN"),
        with_number("-Infinity"),
        with_number('1, "n": 2'),
        json.dumps(HELLO)[:-1].encode() + b', "id": 2}',
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        json.dumps(HELLO)[:-1].encode(),
        json.dumps(HELLO | {"method": 42}).encode(),
    ],
    ids=["deep lists", "deep objects", "long integer", "NaN", "infinity", "duplicate key", "duplicate id", "empty",
         "no unicode", "null", "list", "text", "no message", "cut short", "number as method"],
)  # fmt: skip
def test_a_body_that_is_no_message_is_the_client_s_error(farm: Farm, body: bytes) -> None:
    assert 400 <= knock(farm, body).status_code < 500
    assert knock(farm, with_number("1")).status_code == 200


# What comes down


def test_a_short_link_redirects_to_the_bytes(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="mkdir 'd e'; echo x > 'd e/é.txt'")
    link = link_to(answer, "d e/é.txt")
    sent = httpx2.get(link)
    assert sent.status_code == 307
    assert httpx2.get(sent.headers["location"]).content == b"x\n"
    assert httpx2.head(link).status_code == 307
    assert httpx2.head(link).headers["location"].startswith(sent.headers["location"].partition("?")[0])


@pytest.mark.parametrize("name", ["", "b.txt", "../a.txt", "%00", "a.txt/"])
def test_a_link_to_what_the_job_did_not_make_is_not_found(client: FarmClient, name: str) -> None:
    answer = client.call("run_script", runtime="bash", script="echo x > a.txt")
    assert httpx2.get(link_to(answer, "a.txt").removesuffix("a.txt") + name, follow_redirects=True).status_code == 404


@pytest.mark.parametrize("path", ["/a/guess/a.txt", "/a/*/a.txt", "/a//a.txt", "/a/", "/elsewhere", "/"])
def test_an_unknown_link_is_not_found(farm: Farm, path: str) -> None:
    assert httpx2.get(f"{farm.settings.public_url}{path}").status_code == 404


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
        ("a.html", "<!DOCTYPE html><html><script>alert(1)</script></html>"),
        ("a.txt", "<html><body onload=alert(1)></html>"),
        ("a.xml", '<?xml version="1.0"?><x xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></x>'),
        ("a.xhtml", '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></html>'),
    ],
    ids=["svg", "html", "html by content", "xml", "xhtml"],
)
def test_what_a_browser_would_run_comes_down_as_an_inert_attachment(
    client: FarmClient, name: str, content: str
) -> None:
    result = client.run('cp in "$1"', args=[name], input_files={"in": {"text": content}})
    answer = httpx2.get(str(named(result)[name].url))
    assert answer.headers["content-disposition"] == f"attachment; filename*=UTF-8''{name}"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.text == content


def test_a_figure_is_shown_in_the_browser(client: FarmClient) -> None:
    script = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('a.png')\nplt.savefig('a.pdf')"
    outputs = named(client.run(script, "python"))
    for name, mime in (("a.png", "image/png"), ("a.pdf", "application/pdf")):
        answer = httpx2.get(str(outputs[name].url))
        assert answer.headers["content-type"] == mime
        assert answer.headers["content-disposition"].startswith("inline")
        download(outputs[name])


@pytest.mark.parametrize(
    ("ask", "status"),
    [
        (lambda farm: httpx2.get(f"{farm.settings.public_url}/healthz"), 200),
        (lambda farm: httpx2.get(f"{farm.settings.public_url}/a/x/y"), 404),
        (knock, 401),
        (lambda farm: knock(farm, **bearer("alice")), 200),
        (lambda farm: knock(farm, host="evil", **bearer("alice")), 421),
        (lambda farm: knock(farm, b" " * 30_000, **bearer("alice")), 413),
        (lambda farm: knock(farm, b"{", **bearer("alice")), 400),
    ],
    ids=["health", "unknown link", "no token", "greeting", "host", "large", "broken"],
)
def test_every_answer_has_its_safety_headers(
    guarded: Farm, ask: Callable[[Farm], httpx2.Response], status: int
) -> None:
    answer = ask(guarded)
    assert answer.status_code == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"].startswith("no-")
    assert "server" not in answer.headers


def test_a_redirect_has_its_safety_headers(client: FarmClient) -> None:
    answer = client.call("run_script", runtime="bash", script="echo x > a.txt")
    assert httpx2.get(link_to(answer, "a.txt")).headers["referrer-policy"] == "no-referrer"


# Health


def test_health_tells_what_is_up(farm: Farm) -> None:
    answer = httpx2.get(f"{farm.settings.public_url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "up", "redis": "up", "s3": "up"})


@pytest.mark.parametrize("service", ["s3", "redis"])
def test_health_is_degraded_while_a_service_does_not_answer(guarded: Farm, service: str) -> None:
    os.kill(guarded.children()[service], signal.SIGSTOP)
    try:
        answer = httpx2.get(f"{guarded.settings.public_url}/healthz", timeout=30)
    finally:
        os.kill(guarded.children()[service], signal.SIGCONT)
    assert answer.status_code == 503
    assert answer.json() == {"status": "degraded", "redis": "up", "s3": "up"} | {service: "down"}
    assert eventually(lambda: guarded.health().get("status") == "up", 90)

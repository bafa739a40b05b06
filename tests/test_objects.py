"""The object store on a real S3 server: what is stored is what was hashed, and a URL gives that and nothing else."""

import hashlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

import httpx2
import pytest
from conftest import eventually, free_port

from farm.errors import Misconfigured, TryAgain
from farm.settings import Settings
from storage.objects import HashMismatch, ObjectStore, input_key

MiB = 1024**2


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def stored(store: ObjectStore, key: str) -> bytes:
    with store.open(key) as body:
        return bytes(body.read())


def at(endpoint: str, **more: str) -> ObjectStore:
    """A store at this endpoint, with the keys that the tests' servers know."""
    given = {"S3_ENDPOINT": endpoint, "S3_ACCESS_KEY": "key", "S3_SECRET_KEY": "secret", **more}
    return ObjectStore(Settings.from_env({f"SCIFARM_{name}": value for name, value in given.items()}))


@pytest.fixture
def url(objects: ObjectStore) -> str:
    """A presigned URL of ten digits."""
    objects.put("outputs/url/digits", b"0123456789")
    return objects.presign("outputs/url/digits", "digits.txt", "text/plain", 60)


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 4096], ids=["nothing", "a byte", "a megabyte"])
def test_what_is_put_comes_back(objects: ObjectStore, data: bytes) -> None:
    key = input_key(sha256(data))
    objects.put(key, data)
    assert stored(objects, key) == data
    assert objects.size(key) == len(data)


@pytest.mark.parametrize("size", [0, 1, 8 * MiB, 8 * MiB + 1, 20 * MiB], ids="{:,} bytes".format)
def test_what_is_uploaded_comes_back(objects: ObjectStore, size: int) -> None:
    data = os.urandom(size)
    objects.upload("outputs/upload", io.BytesIO(data), size, sha256(data))
    assert stored(objects, "outputs/upload") == data
    assert objects.size("outputs/upload") == size


@pytest.mark.parametrize("size", [1000, 20 * MiB], ids=["in one request", "in parts"])
@pytest.mark.parametrize(
    "sent",
    [lambda data: data[:-1] + b"!", lambda data: data + b"grown", lambda data: data[:-1]],
    ids=["another byte", "grown", "cut short"],
)
def test_bytes_that_are_not_those_that_were_hashed_are_not_kept(
    objects: ObjectStore, size: int, sent: Callable[[bytes], bytes]
) -> None:
    data = bytes(size)
    with pytest.raises(HashMismatch, match="outputs/changed/file"):
        objects.upload("outputs/changed/file", io.BytesIO(sent(data)), size, sha256(data))
    assert objects.keys("outputs/changed/") == []


def test_a_presigned_url_gives_the_bytes_to_anybody(url: str) -> None:
    answer = httpx2.get(url)
    assert answer.status_code == 200
    assert answer.content == b"0123456789"


def test_a_presigned_url_gives_a_range_of_the_bytes(url: str) -> None:
    answer = httpx2.get(url, headers={"Range": "bytes=3-5"})
    assert answer.status_code in (
        200,
        206,
    )  # S3 says 206; the server that comes with the farm gives the range, yet says 200
    assert answer.content == b"345"
    assert answer.headers["content-range"] == "bytes 3-5/10"


def endpoint_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def altered(url: str, **query: str) -> str:
    parts = urlsplit(url)
    fields = {name: values[0] for name, values in parse_qs(parts.query).items()} | query
    return urlunsplit(parts._replace(query=urlencode(fields, quote_via=quote)))


def test_altering_nothing_leaves_a_url_valid(url: str) -> None:
    assert httpx2.get(altered(url)).status_code == 200


@pytest.mark.parametrize(
    "alter",
    [
        lambda url: altered(url, **{"X-Amz-Signature": "0" * 64}),
        lambda url: altered(url, **{"X-Amz-Expires": "86400"}),
        lambda url: altered(url, **{"response-content-type": "text/html"}),
        lambda url: altered(url, **{"response-content-disposition": "inline"}),
        lambda url: altered(url, **{"response-cache-control": "public"}),
        lambda url: url.replace("/outputs/url/digits?", "/outputs/url/other?"),
        lambda url: url.replace("/outputs/url/digits?", "?"),
        lambda url: url.partition("?")[0],
    ],
    ids=["signature", "expiry", "type", "disposition", "another header", "key", "bucket listing", "no signature"],
)
def test_an_altered_url_is_refused(objects: ObjectStore, url: str, alter: Callable[[str], str]) -> None:
    objects.put("outputs/url/other", b"secret")
    answer = httpx2.get(alter(url))
    assert answer.status_code in (400, 401, 403)
    assert b"0123456789" not in answer.content
    assert b"secret" not in answer.content


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_a_url_for_reading_can_neither_write_nor_delete(objects: ObjectStore, url: str, method: str) -> None:
    assert httpx2.request(method, url, content=b"overwritten").status_code in (400, 403, 405)
    assert stored(objects, "outputs/url/digits") == b"0123456789"


def test_a_url_works_until_its_time_is_over(objects: ObjectStore) -> None:
    objects.put("outputs/url/short", b"brief")
    url = objects.presign("outputs/url/short", "a.txt", "text/plain", 1)
    assert eventually(lambda: (status := httpx2.get(url).status_code) != 200 and status) in (400, 403)
    lasting = objects.presign("outputs/url/short", "a.txt", "text/plain", 60)
    assert httpx2.get(lasting).content == b"brief"


@pytest.mark.parametrize(
    ("mime", "sent_as", "way"),
    [
        ("image/png", "image/png", "inline"),
        ("application/pdf", "application/pdf", "inline"),
        ("text/csv", "text/csv", "inline"),
        ("text/plain", "text/plain", "inline"),
        ("application/json", "application/json", "inline"),
        ("application/zip", "application/zip", "attachment"),
        ("application/octet-stream", "application/octet-stream", "attachment"),
        ("text/html", "application/octet-stream", "attachment"),
        ("image/svg+xml", "application/octet-stream", "attachment"),
        ("application/xhtml+xml", "application/octet-stream", "attachment"),
        ("text/xml", "application/octet-stream", "attachment"),
        ("application/xml", "application/octet-stream", "attachment"),
        ("text/javascript", "application/octet-stream", "attachment"),
    ],
)
def test_what_a_browser_would_run_comes_down_as_a_file_of_an_inert_type(
    objects: ObjectStore, mime: str, sent_as: str, way: str
) -> None:
    objects.put("outputs/typed", b"<script>alert(1)</script>")
    answer = httpx2.get(objects.presign("outputs/typed", "a.x", mime, 60))
    assert answer.headers["content-type"] == sent_as
    assert answer.headers["content-disposition"] == f"{way}; filename*=UTF-8''a.x"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("figure 1.png", "figure%201.png"),
        ("Figura é.png", "Figura%20%C3%A9.png"),
        ("図 🌍.png", "%E5%9B%B3%20%F0%9F%8C%8D.png"),
        ("a/b/c.png", "c.png"),
        ('a"; x=y.png', "a%22%3B%20x%3Dy.png"),
        ("a\r\nSet-Cookie: x", "a%0D%0ASet-Cookie%3A%20x"),
        (r"\xc3", "%5Cxc3"),
        ("-rf", "-rf"),
        ("gpj.\u202eexe", "gpj.%E2%80%AEexe"),
        ("x" * 255, "x" * 255),
    ],
    ids=ascii,
)
def test_a_file_comes_down_under_its_own_name_whatever_that_is(objects: ObjectStore, name: str, told: str) -> None:
    objects.put("outputs/named", b"x")
    answer = httpx2.get(objects.presign("outputs/named", name, "image/png", 60))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f"inline; filename*=UTF-8''{told}"
    assert "set-cookie" not in answer.headers


def test_urls_are_signed_for_the_public_endpoint(objects: ObjectStore, url: str) -> None:
    public = endpoint_of(url).replace("127.0.0.1", "localhost")
    behind = at(endpoint_of(url), S3_PUBLIC_ENDPOINT=public)
    seen = behind.presign("outputs/url/digits", "digits.txt", "text/plain", 60)
    assert seen.startswith(f"{public}/")
    assert httpx2.get(seen).content == b"0123456789"
    assert httpx2.get(seen.replace("localhost", "127.0.0.1")).status_code == 403


def test_all_below_a_prefix_is_deleted_and_nothing_beside_it(objects: ObjectStore) -> None:
    beside = {"outputs/job-2/a", "outputs/jo/b"}
    below = [f"outputs/job/1/{n:04}" for n in range(1100)]  # more than one page of a listing
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: objects.put(key, b"x"), [*below, *beside]))
    objects.delete_below("outputs/job/")
    assert objects.keys("outputs/job/") == []
    assert set(objects.keys("outputs/jo")) == beside


def test_deleting_what_is_not_there_is_no_error(objects: ObjectStore) -> None:
    objects.put("outputs/there", b"x")
    objects.delete(["outputs/not-there", "outputs/there"])
    objects.delete([])
    objects.delete_below("outputs/nobody/")
    assert objects.keys("outputs/there") == []


def test_the_bucket_is_made_once(objects: ObjectStore, url: str) -> None:
    other = at(endpoint_of(url), S3_BUCKET="another-bucket")
    other.ensure_bucket()
    other.put("a", b"x")
    other.ensure_bucket()
    assert stored(other, "a") == b"x"
    assert objects.keys("a") == []


CALLS: dict[str, Callable[[ObjectStore], object]] = {
    "ensure_bucket": lambda store: store.ensure_bucket(),
    "put": lambda store: store.put("k", b"x"),
    "upload": lambda store: store.upload("k", io.BytesIO(b"x"), 1, sha256(b"x")),
    "upload in parts": lambda store: store.upload("k", io.BytesIO(bytes(9 * MiB)), 9 * MiB, sha256(bytes(9 * MiB))),
    "open": lambda store: stored(store, "k"),
    "size": lambda store: store.size("k"),
    "keys": lambda store: store.keys("k"),
    "delete": lambda store: store.delete(["k"]),
    "delete_below": lambda store: store.delete_below("k"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_everything_says_try_again_when_the_store_is_away(call: Callable[[ObjectStore], object]) -> None:
    with pytest.raises(TryAgain, match=r"S3.*try again"):
        call(at(f"http://127.0.0.1:{free_port()}"))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "ensure_bucket"])
def test_everything_says_try_again_when_the_store_refuses(url: str, name: str) -> None:
    with pytest.raises(TryAgain, match=r"S3.*refuses"):
        CALLS[name](at(endpoint_of(url), S3_SECRET_KEY="wrong"))


def test_wrong_keys_are_told_at_the_start_as_what_they_are(url: str) -> None:
    with pytest.raises(Misconfigured, match="keys"):
        at(endpoint_of(url), S3_SECRET_KEY="wrong").ensure_bucket()


class Server(NamedTuple):
    """A store, and the folder in which its server keeps the objects."""

    store: ObjectStore
    bucket: Path


@pytest.fixture
def server() -> Iterator[Server]:
    """An S3 server to break."""
    folder = Path(tempfile.mkdtemp(prefix="store-"))
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(Path(sys.executable).with_name("rclone")),
        "serve",
        "s3",
        f"--addr={address}",
        "--config=",
        str(folder),
    ]
    process = subprocess.Popen(command, env=os.environ | {"RCLONE_AUTH_KEY": '"key,secret"'}, stderr=subprocess.DEVNULL)
    store = at(f"http://{address}")
    eventually(lambda: answers(store))
    yield Server(store, folder / store.bucket)
    process.terminate()
    process.wait()
    subprocess.run(["chmod", "-R", "u+rwx", folder], check=True)
    subprocess.run(["rm", "-r", folder], check=True)


def answers(store: ObjectStore) -> bool:
    try:
        store.ensure_bucket()
    except TryAgain:
        return False
    return True


@pytest.mark.parametrize(
    "remove",
    [lambda store: store.delete(["d/a"]), lambda store: store.delete_below("d/")],
    ids=["delete", "delete_below"],
)
def test_an_object_that_the_store_does_not_remove_is_told_and_not_tried_forever(
    server: Server, remove: Callable[[ObjectStore], object]
) -> None:
    server.store.put("d/a", b"x")
    (server.bucket / "d").chmod(0o555)
    outcome: list[BaseException | None] = []

    def attempt() -> None:
        try:
            remove(server.store)
        except TryAgain as error:
            outcome.append(error)
        else:
            outcome.append(None)

    attempting = Thread(target=attempt, daemon=True)
    attempting.start()
    attempting.join(20)
    (server.bucket / "d").chmod(0o755)  # so that it ends now, if it has not
    attempting.join(60)
    assert isinstance(outcome[0], TryAgain)


def test_a_store_that_cannot_write_says_try_again_and_keeps_nothing(server: Server) -> None:
    server.bucket.chmod(0o555)
    for call in ("put", "upload", "upload in parts"):
        with pytest.raises(TryAgain, match=r"S3.*refuses"):
            CALLS[call](server.store)
    server.bucket.chmod(0o755)
    assert server.store.keys("") == []
    server.store.put("k", b"x")
    assert stored(server.store, "k") == b"x"


def test_an_object_that_vanished_says_try_again(server: Server) -> None:
    server.store.put("k", b"x")
    (server.bucket / "k").unlink()
    with pytest.raises(TryAgain):
        stored(server.store, "k")

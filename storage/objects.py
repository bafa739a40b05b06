"""Inputs and outputs in an S3-compatible store. What is true of them stands in the ledger and in their keys, never in
object metadata, which some servers drop.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import quote

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from farm.errors import FarmError, Misconfigured, TryAgain
from farm.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MiB = 1024**2
SMALL = 5 * MiB  # one request up to here, several parts above; the smallest part that S3 takes
TRANSFER = TransferConfig(multipart_threshold=SMALL, multipart_chunksize=SMALL, max_concurrency=2)
TRANSFER.max_in_memory_upload_chunks = 1  # read ahead of those being sent; boto would hold ten
# A page opened from the store could run script in its origin: these come down as files, whatever asks for them.
ACTIVE = ("text/html", "image/svg+xml", "application/xhtml+xml", "text/xml", "application/xml", "text/javascript")
INLINE = ("image/", "text/", "application/pdf", "application/json")


class HashMismatch(FarmError):
    """The bytes that were sent are not those that were hashed before."""

    kind = "hash_mismatch"


class ObjectStore:
    """One bucket.

    Raises:
        TryAgain: from any method that talks to the store, when it is away or refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self.bucket = settings.s3_bucket
        self._client = _client(settings, settings.s3_endpoint)
        self._signer = _client(settings, settings.s3_public_endpoint)

    def ensure_bucket(self) -> None:
        """Make the bucket unless it is there."""
        with self._reachable():
            try:
                self._client.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if _status(error) in (401, 403):
                    raise Misconfigured(f"the object store refuses the keys it was given ({error})") from None
                if _status(error) != 404:
                    raise
                self._client.create_bucket(Bucket=self.bucket)

    def put(self, key: str, data: bytes) -> None:
        """Store a few bytes."""
        with self._reachable():
            self._client.put_object(Bucket=self.bucket, Key=key, Body=data)

    def upload(self, key: str, source: IO[bytes], size: int, sha256: str) -> None:
        """Stream `size` bytes from `source` to `key`, hashing what is sent.

        Raises:
            HashMismatch: it was not what `sha256` says; the object is removed again.
        """
        reader = _Hashing(source)
        with self._reachable():
            if size <= SMALL:
                self._client.put_object(Bucket=self.bucket, Key=key, Body=reader.read())
            else:
                self._client.upload_fileobj(cast("IO[bytes]", reader), self.bucket, key, Config=TRANSFER)
        if (reader.digest, reader.size) != (sha256, size):
            self.delete([key])
            raise HashMismatch(f"{key}: {reader.size} bytes with SHA-256 {reader.digest} were sent")

    @contextmanager
    def open(self, key: str) -> Iterator[Any]:
        """The object's bytes, as a stream to read from."""
        with self._reachable():
            body = self._client.get_object(Bucket=self.bucket, Key=key)["Body"]
            with body:
                yield body

    def size(self, key: str) -> int:
        """The object's size in bytes, as the store reports it."""
        with self._reachable():
            return self._client.head_object(Bucket=self.bucket, Key=key)["ContentLength"]

    def presign(self, key: str, name: str, mime: str, expires_in: int) -> str:
        """A URL on the public endpoint from which anybody can read the object for `expires_in` seconds.

        It comes down under `name`. HTML, SVG and whatever else a browser would run come down as attachments of an
        inert type.
        """
        active = mime in ACTIVE
        way = "inline" if mime.startswith(INLINE) and not active else "attachment"
        return self._signer.generate_presigned_url(
            "get_object",
            Params={
                "Bucket": self.bucket,
                "Key": key,
                "ResponseContentType": "application/octet-stream" if active else mime,
                "ResponseContentDisposition": f"{way}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
            },
            ExpiresIn=expires_in,
        )

    def keys(self, prefix: str, limit: int = 1000) -> list[str]:
        """At most `limit` keys that begin with `prefix`."""
        with self._reachable():
            found = self._client.list_objects_v2(Bucket=self.bucket, Prefix=prefix, MaxKeys=limit)
            return [entry["Key"] for entry in found.get("Contents", ())]

    def delete(self, keys: list[str]) -> None:
        """Remove objects; one that is not there is no error."""
        if keys:
            with self._reachable():
                answer = self._client.delete_objects(
                    Bucket=self.bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
                )
            for error in answer.get("Errors", ()):
                raise TryAgain(f"the object store (S3) does not delete {error.get('Key')}: {error.get('Message')}")

    def delete_below(self, prefix: str) -> None:
        """Remove every object whose key begins with `prefix`."""
        while keys := self.keys(prefix):
            self.delete(keys)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            raise TryAgain(f"the object store (S3) is away or refuses: {error}; try again in a moment") from error


def input_key(sha256: str) -> str:
    """Where an input lies: its content is its name."""
    return f"inputs/{sha256}"


class _Hashing:
    """A reader that hashes what passes through it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._hash = hashlib.sha256()
        self.size = 0

    def read(self, count: int = -1) -> bytes:
        data = self._source.read(count)
        self._hash.update(data)
        self.size += len(data)
        return data

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _client(settings: Settings, endpoint: str) -> "S3Client":
    access, secret = settings.s3_keys()
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        region_name=settings.s3_region,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=5,
            read_timeout=60,
            retries={"max_attempts": 3, "mode": "standard"},
            max_pool_connections=32,
            # The SHA-256 of every object is checked by its readers; not every server knows S3's newer checksums.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )

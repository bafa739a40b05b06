"""Where this farm's services are. Read from the environment at entry points only, and passed down from there."""

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, ValidationError

from farm.errors import Misconfigured
from farm.job import Model

PREFIX = "SCIFARM_"


class Settings(Model):
    """Every setting is an environment variable: `SCIFARM_` and the field's name in capitals.

    Left out, the services are those that `scifarm up` starts under the state folder.
    """

    state: Path
    images: Path
    image_register: Path
    policy: Path
    redis_url: str = Field(repr=False)
    broker_url: str = Field(repr=False)
    s3_endpoint: str
    s3_public_endpoint: str
    s3_access_key: str = ""
    s3_secret_key: str = Field(default="", repr=False)
    s3_bucket: str = "scifarm"
    s3_region: str = "us-east-1"
    s3_port: int = Field(default=8817, ge=1, le=65535)
    api_host: str = "127.0.0.1"
    api_port: int = Field(default=8815, ge=1, le=65535)
    public_url: str
    token: str = Field(default="", repr=False)
    allowed_hosts: tuple[str, ...] = ()
    body_limit: int = Field(default=64 * 1024**2, gt=0)
    slots: int = Field(default_factory=lambda: os.cpu_count() or 1, gt=0)
    cgroup: str = "scifarm"
    own_redis: bool
    own_s3: bool

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Self:
        """Read the settings from the environment.

        Raises:
            Misconfigured: a value is not understood; the message names the variable.
        """
        env = os.environ if env is None else env
        given = {
            key.removeprefix(PREFIX).lower(): value
            for key, value in env.items()
            if key.startswith(PREFIX) and key.removeprefix(PREFIX).lower() in cls.model_fields
        }
        home = Path(env.get("HOME") or Path.home())
        state = Path(given.get("state") or home / ".local" / "state" / "scifarm").absolute()
        given["state"] = str(state)
        own = {"own_redis": "redis_url" not in given, "own_s3": "s3_endpoint" not in given}
        given.setdefault("images", str(files("images")))
        given.setdefault("image_register", str(home / ".local" / "share" / "scifarm" / "images.json"))
        given.setdefault("policy", str(state / "policy.yaml"))
        given.setdefault("redis_url", f"unix://{state}/redis.sock")
        given.setdefault("broker_url", broker_url(given["redis_url"]))
        given.setdefault("s3_endpoint", f"http://127.0.0.1:{given.get('s3_port', 8817)}")
        given.setdefault("s3_public_endpoint", given["s3_endpoint"])
        host = given.get("api_host", "127.0.0.1")
        given.setdefault("public_url", f"http://{f'[{host}]' if ':' in host else host}:{given.get('api_port', 8815)}")
        values = given | {"allowed_hosts": tuple(given.get("allowed_hosts", "").replace(",", " ").split())}
        try:
            return cls.model_validate(values | own)
        except ValidationError as error:
            first = error.errors()[0]
            name = PREFIX + str(first["loc"][0]).upper()
            raise Misconfigured(f"{name}={first['input']!r}: {first['msg'].lower()}") from None

    @property
    def mcp_url(self) -> str:
        """Where MCP clients connect."""
        return f"{self.public_url.rstrip('/')}/mcp"

    @property
    def catalogues(self) -> Path:
        """The folder of what each image has in it, beside the register of the images."""
        return self.image_register.with_name("catalogue")

    @property
    def credentials_file(self) -> Path:
        """Where `scifarm up` keeps the random keys of its own S3 server, for its user only."""
        return self.state / "s3-credentials.json"

    def s3_keys(self) -> tuple[str, str]:
        """Access and secret key of the object store.

        Raises:
            Misconfigured: neither the settings nor the credentials file has them.
        """
        if self.s3_access_key and self.s3_secret_key:
            return self.s3_access_key, self.s3_secret_key
        try:
            keys = json.loads(self.credentials_file.read_text(encoding="utf-8"))
            return str(keys["access_key"]), str(keys["secret_key"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Misconfigured(
                f"no keys for the object store: set SCIFARM_S3_ACCESS_KEY and SCIFARM_S3_SECRET_KEY, "
                f"or start `scifarm up` once, which makes {self.credentials_file} ({error})"
            ) from None


def broker_url(redis_url: str) -> str:
    """The Celery broker URL for a Redis URL: Celery spells unix sockets another way."""
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    login = parts.netloc.rpartition("@")[0]
    database = parse_qs(parts.query).get("db", ["0"])[0]
    return f"redis+socket://{login}{'@' if login else ''}{parts.path}?virtual_host={database}"

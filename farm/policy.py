"""What this farm allows: runtimes, limits, tenants. Read from policy.yaml; there is no permissive fallback."""

import hashlib
import hmac
import ipaddress
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import ByteSize, Field, ValidationError, model_validator

from farm.errors import InvalidRequest, Misconfigured
from farm.job import Limits, Model, Sha256

LOCAL = "local"  # the tenant of callers on this machine, where no token is asked for


class InputRules(Model):
    """Caps on what a caller may send with one job."""

    count: int = Field(default=500, ge=0)
    bytes: ByteSize = ByteSize(48 * 1024**2)
    script_bytes: ByteSize = ByteSize(1024**2)
    stdin_bytes: ByteSize = ByteSize(8 * 1024**2)
    args: int = Field(default=1000, ge=0)


class OutputRules(Model):
    """Caps on what is collected from one job.

    Files, bytes a file and in all, folders below each other, seconds of looking, and bytes of each log that are kept.
    """

    count: int = Field(default=1000, gt=0)
    file_bytes: ByteSize = ByteSize(2 * 1024**3)
    total_bytes: ByteSize = ByteSize(4 * 1024**3)
    depth: int = Field(default=32, gt=0)
    seconds: float = Field(default=60, gt=0)
    log_bytes: ByteSize = ByteSize(64 * 1024**2)


class Tenant(Model):
    """Somebody who may use the farm; the token is known here only by its SHA-256."""

    token_sha256: tuple[Sha256, ...] = ()


class Policy(Model):
    """policy.yaml."""

    runtimes: tuple[str, ...] | None = None
    defaults: Limits
    ceilings: Limits
    inputs: InputRules = InputRules()
    outputs: OutputRules = OutputRules()
    ttl: int = Field(default=24 * 3600, gt=0, description="seconds that results are kept")
    attempts: int = Field(default=3, gt=0)
    tenants: Mapping[str, Tenant] = {}

    @model_validator(mode="after")
    def _defaults_within_ceilings(self) -> Self:
        for name in Limits.model_fields:
            if getattr(self.defaults, name) > getattr(self.ceilings, name):
                raise ValueError(f"defaults.{name} is above ceilings.{name}")
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and check a policy file.

        Raises:
            Misconfigured: it cannot be read, or says something that is not understood.
        """
        try:
            return cls.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise Misconfigured(
                f"policy file {path}: {error.strerror}; `scifarm policy init` writes one, SCIFARM_POLICY names it"
            ) from None
        except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
            raise Misconfigured(f"policy file {path}: {error}") from None

    def allows(self, runtime: str) -> bool:
        """Whether jobs of this runtime are accepted."""
        return self.runtimes is None or runtime in self.runtimes

    def limits(self, asked: Mapping[str, Any]) -> Limits:
        """The limits of a job that asks for these (`None`: the default).

        Raises:
            InvalidRequest: a limit is not a positive number, or above its ceiling. Nothing is clamped in silence.
        """
        given = {name: value for name, value in asked.items() if value is not None}
        for name, value in given.items():
            if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
                raise InvalidRequest(f"{name}={_cut(value)} is not a limit; up to {self._shown(name)} is allowed")
        try:
            limits = Limits.model_validate(self.defaults.model_dump() | given)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            reason = "write a size as 512MiB or 2GiB" if "byte" in first["type"] else first["msg"].lower()
            raise InvalidRequest(
                f"{name}={_cut(first['input'])}: {reason}; up to {self._shown(name)} is allowed"
            ) from None
        for name, value in given.items():
            if getattr(limits, name) > getattr(self.ceilings, name):
                raise InvalidRequest(f"{name}={_cut(value)} is above this farm's ceiling of {self._shown(name)}")
        return limits

    def _shown(self, name: str) -> str:
        ceiling = getattr(self.ceilings, name)
        return ceiling.human_readable() if isinstance(ceiling, ByteSize) else f"{ceiling:g}"

    def refuse_strangers(self, host: str) -> None:
        """Raise Misconfigured when a server on `host` would be open to other machines without asking for tokens."""
        if not is_loopback(host) and not self.tenants:
            raise Misconfigured(
                f"SCIFARM_API_HOST={host} is reachable from other machines, but the policy has no tenants; "
                "`scifarm token new NAME` makes a token and says what to add to the policy"
            )

    def tenant_of(self, token: str) -> str | None:
        """The tenant whose token this is, compared in constant time with every one that is known."""
        digest = token_digest(token)
        found = None
        for name, tenant in self.tenants.items():
            for known in tenant.token_sha256:
                if hmac.compare_digest(known, digest):
                    found = name
        return found


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}…"


def token_digest(token: str) -> str:
    """What the policy keeps of a token. Tokens are 256 random bits, so a plain SHA-256 cannot be guessed back."""
    return hashlib.sha256(token.encode()).hexdigest()

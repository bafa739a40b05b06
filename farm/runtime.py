"""A runtime is a folder under images/: its Containerfile says what is in it, its runtime.yaml how to run a script."""

import fnmatch
import hashlib
import math
from collections.abc import Mapping
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from farm.errors import InvalidRequest, Misconfigured
from farm.inputs import check_name
from farm.job import Limits, Model

BASE = "base"  # the folder whose image every runtime is built on


class BaseImage(Model):
    """What an image is built on, instead of images/base: an image where a registry answers, else a Debian suite."""

    image: str
    suite: str


class Runtime(Model):
    """One images/*/runtime.yaml, with the folder's name.

    `command` runs the script: `{script}` stands for the file named `script`, the caller's arguments follow. In the
    values of `env`, `{cpus}` stands for the job's cores (rounded up) and `{memory_mb}` for its memory in MiB.
    `scratch` lists patterns of files that are never results, `logs` of those that are only when the job failed.
    `missing` lists regular expressions whose group is the name of a package that a script asked for in vain, `offline`
    those of what is printed when somebody tried to fetch something.
    """

    name: str
    version: str
    description: str
    script: str
    command: tuple[str, ...] = Field(min_length=1)
    env: Mapping[str, str] = {}
    scratch: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    offline: tuple[str, ...] = ()
    base: BaseImage | None = None
    example: str

    def is_litter(self, name: str, *, succeeded: bool) -> bool:
        """Whether a file of this name is no result; a pattern matches in every folder below the working folder."""
        patterns = (*self.scratch, *self.logs) if succeeded else self.scratch
        return any(fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(name, f"*/{p}") for p in patterns)

    def argv(self, args: tuple[str, ...]) -> list[str]:
        """The command line of a job with these arguments."""
        return [part.replace("{script}", self.script) for part in self.command] + list(args)

    def environment(self, limits: Limits) -> dict[str, str]:
        """The environment of a job under these limits."""
        values = {"{cpus}": str(math.ceil(limits.cpus)), "{memory_mb}": str(limits.memory // 1024**2)}

        def fill(text: str) -> str:
            for mark, value in values.items():
                text = text.replace(mark, value)
            return text

        return {key: fill(value) for key, value in self.env.items()}


def load_runtimes(images: Path) -> dict[str, Runtime]:
    """Every runtime under `images`, by name.

    Raises:
        Misconfigured: the folder holds no runtime, or a runtime.yaml is not one; the message names the file.
    """
    runtimes = {path.parent.name: _load(path) for path in sorted(images.glob("*/runtime.yaml"))}
    if not runtimes:
        raise Misconfigured(f"no runtime.yaml under {images}; SCIFARM_IMAGES names the folder of the runtimes")
    return runtimes


def _load(path: Path) -> Runtime:
    try:
        fields = yaml.safe_load(path.read_text(encoding="utf-8"))
        runtime = Runtime(name=path.parent.name, **fields)
        check_name(runtime.script)
    except InvalidRequest as error:
        raise Misconfigured(f"{path}: script: {error}") from None
    except (yaml.YAMLError, ValidationError, TypeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path}: {error}") from None
    return runtime


def folder_hash(folder: Path) -> str:
    """A digest of every file's path, executable bit and bytes under `folder`: 16 hexadecimal digits.

    Equal folders give equal hashes on every machine, so an unchanged image is not built again.
    """
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
        mode = "x" if path.stat().st_mode & 0o100 else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder)}\0{mode}\0{content}\n".encode())
    return digest.hexdigest()[:16]

"""From a hostile folder to a list of files: by descriptor, never through a link, within caps, nothing left out in
silence. It runs when every process of the job is dead and the file system is read-only.
"""

import hashlib
import mimetypes
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from typing import NamedTuple

import magic

from farm import names
from farm.job import Artifact, InputFile, Rejected
from farm.policy import OutputRules

TEXT_BYTES = 4096  # text files below this come inline
HEAD_BYTES = 16 * 1024  # enough for libmagic to tell a type
BLOCK = 1024 * 1024
NAMED_REJECTS = 50  # rejected paths that are listed one by one
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_KINDS = {
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe (fifo)",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class Output(NamedTuple):
    """A file to publish: its path below the folder as bytes, and what is known of its content."""

    path: bytes
    artifact: Artifact


class Collected(NamedTuple):
    """What was found, and what was not taken."""

    outputs: list[Output]
    rejected: tuple[Rejected, ...]


def collect(
    root: int,
    rules: OutputRules,
    inputs: Mapping[str, InputFile] | None = None,
    is_litter: Callable[[str], bool] = lambda _: False,
) -> Collected:
    """Every new or changed regular file below the folder `root` (a descriptor), hidden ones included.

    A file whose content equals the input of its name was not changed; what `is_litter` says of a name is the runtime's
    own, not a result. When there are more than the rules allow, the first in the order of their paths are kept.
    """
    rejects = _Rejects()
    outputs: list[Output] = []
    total = 0
    deadline = time.monotonic() + rules.seconds
    for path, info in sorted(_files(root, rules, deadline, rejects)):
        name = names.to_text(path)
        if is_litter(name):
            continue
        if len(outputs) == rules.count:
            rejects.count_only(f"too many files: the first {rules.count} in the order of their names were kept")
        elif time.monotonic() > deadline:
            rejects.count_only(f"too slow: looking through the outputs may take {rules.seconds:g} s")
        elif info.st_size > rules.file_bytes:
            allowed = int(rules.file_bytes)
            rejects.add(path, f"too large: {allowed} bytes are allowed", f", it has {info.st_size}")
        elif total + info.st_size > rules.total_bytes:
            rejects.add(path, f"too much: all outputs together may have {int(rules.total_bytes)} bytes")
        else:
            artifact = _describe(root, path, name, rejects)
            if artifact is None or _unchanged(artifact, (inputs or {}).get(os.fsdecode(path))):
                continue
            outputs.append(Output(path, artifact))
            total += artifact.bytes
    return Collected(outputs, rejects.all())


@contextmanager
def open_beneath(root: int, path: bytes) -> Iterator[FileIO]:
    """Open a regular file below `root`, one component at a time and through no link.

    Raises:
        OSError: it is not there, not reachable that way, or no regular file.
    """
    *folders, last = path.split(b"/")
    at = os.dup(root)
    try:
        for folder in folders:
            inner = os.open(folder, _OPEN | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        file = os.open(last, _OPEN, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(f"{names.shown(names.to_text(path))} is no regular file")
    with FileIO(file) as stream:
        yield stream


def _files(
    root: int, rules: OutputRules, deadline: float, rejects: "_Rejects"
) -> Iterator[tuple[bytes, os.stat_result]]:
    """The regular files below `root`. Folders are visited by name below their parent's descriptor."""
    pending: list[tuple[bytes, ...]] = [()]
    while pending:
        parts = pending.pop()
        at = _descend(root, parts)
        if at is None:
            rejects.add(b"/".join(parts), "folder cannot be read")
            continue
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    if time.monotonic() > deadline:
                        rejects.count_only(f"too slow: looking through the outputs may take {rules.seconds:g} s")
                        return
                    inner = (*parts, os.fsencode(entry.name))
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(info.st_mode):
                        yield b"/".join(inner), info
                    elif stat.S_ISDIR(info.st_mode) and len(inner) <= rules.depth:
                        pending.append(inner)
                    elif reason := _reason(info, rules):
                        rejects.add(b"/".join(inner), reason)
        finally:
            os.close(at)


def _reason(info: os.stat_result, rules: OutputRules) -> str:
    """Why what is no regular file is not taken; empty for an overlay's note that an input was deleted."""
    if stat.S_ISDIR(info.st_mode):
        return f"too deep: {rules.depth} folders below each other are allowed"
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:  # no job can make a device itself
        return ""
    return f"{_KINDS.get(stat.S_IFMT(info.st_mode), 'special file')}, not a regular file"


def _descend(root: int, parts: tuple[bytes, ...]) -> int | None:
    at = os.open(b".", _OPEN | os.O_DIRECTORY, dir_fd=root)
    for part in parts:
        try:
            inner = os.open(part, _OPEN | os.O_DIRECTORY, dir_fd=at)
        except OSError:
            return None
        finally:
            os.close(at)
        at = inner
    return at


def _unchanged(artifact: Artifact, staged: InputFile | None) -> bool:
    return staged is not None and (staged.bytes, staged.sha256) == (artifact.bytes, artifact.sha256)


def _describe(root: int, path: bytes, name: str, rejects: "_Rejects") -> Artifact | None:
    """Read a file once: its size as read, its hash, its type, and its text where it is a small text."""
    digest, size, head = hashlib.sha256(), 0, b""
    block = memoryview(bytearray(BLOCK))
    try:
        with open_beneath(root, path) as file:
            while count := file.readinto(block):
                if not size:
                    head = bytes(block[: min(count, HEAD_BYTES)])
                digest.update(block[:count])
                size += count
    except OSError as error:
        rejects.add(path, "cannot be read", f": {error.strerror or error}")
        return None
    mime = media_type(name, head)
    text = _text(head) if size < TEXT_BYTES and (mime.startswith("text/") or mime == "application/json") else None
    return Artifact(name=name, bytes=size, sha256=digest.hexdigest(), mime=mime, text=text)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


_PLAIN = {"text/plain", "application/octet-stream", "application/x-empty", "inode/x-empty"}
_EXTENSIONS = mimetypes.MimeTypes()
_MAGIC = threading.local()  # libmagic's handles are not for two threads at a time


def media_type(name: str, head: bytes) -> str:
    """The media type of a file from its first bytes; where those say only text or nothing, from its name."""
    if not hasattr(_MAGIC, "handle"):
        _MAGIC.handle = magic.Magic(mime=True)
    told = str(_MAGIC.handle.from_buffer(head)) if head else "application/x-empty"
    if told not in _PLAIN:
        return told
    guess = _EXTENSIONS.guess_type(name, strict=False)[0]
    if guess and (told != "text/plain" or guess.startswith("text/") or guess in ("application/json", "image/svg+xml")):
        return guess
    return "application/octet-stream" if told.endswith("x-empty") else told


class _Rejects:
    """What was not taken, bounded: the first paths by name, the rest as counts."""

    def __init__(self) -> None:
        self._named: list[Rejected] = []
        self._counts: dict[str, int] = {}

    def add(self, path: bytes, reason: str, detail: str = "") -> None:
        """`detail` is told with a name only: what is counted must be few different reasons."""
        if len(self._named) < NAMED_REJECTS:
            self._named.append(Rejected(name=names.to_text(path), reason=f"{reason}{detail}"))
        else:
            self.count_only(reason)

    def count_only(self, reason: str) -> None:
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def all(self) -> tuple[Rejected, ...]:
        counted = (Rejected(name=f"({count} more)", reason=reason) for reason, count in self._counts.items())
        return (*self._named, *counted)

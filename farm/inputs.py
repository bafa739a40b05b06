"""Input files as callers send them: names that stay inside the working folder, and base64 that is really base64."""

import base64
import binascii
import re
from collections.abc import Iterable

from farm.errors import InvalidRequest

_DATA_URI = re.compile(r"^data:[^,]{0,200};base64,", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_ALPHABET = re.compile(r"[A-Za-z0-9+/]*")


def decode_base64(name: str, text: str) -> bytes:
    """Decode the content of an input file, exactly or not at all.

    White space, missing padding, the URL-safe alphabet and a `data:…;base64,` prefix are understood.

    Raises:
        InvalidRequest: anything else; the message names the file. (Python's default decoder skips what it does not
            know, and so answers a corrupt file.)
    """
    body = _SPACE.sub("", _DATA_URI.sub("", text, count=1))
    padded = body.replace("-", "+").replace("_", "/")
    body = padded.rstrip("=")
    padding = len(padded) - len(body)
    if padding and (padding > 2 or len(padded) % 4):
        raise InvalidRequest(f"input file {name!r}: not valid base64 (wrong padding)")
    if not _ALPHABET.fullmatch(body):
        bad = next((c for c in body if c != "=" and not _ALPHABET.fullmatch(c)), "=")
        raise InvalidRequest(
            f"input file {name!r}: {bad!r} cannot stand there in base64; encode the file's bytes as base64"
        )
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except binascii.Error as error:
        raise InvalidRequest(f"input file {name!r}: not valid base64 ({error})") from None


def check_name(name: str) -> str:
    """Return `name` when it is a relative path that stays inside the working folder.

    Raises:
        InvalidRequest: empty, absolute, with a `.`, `..` or empty part, a NUL, or longer than the
            255 bytes a part and 1,024 bytes a path that file systems take.
    """
    parts = name.split("/")
    wrong = (
        "is empty" if not name
        else "contains a NUL" if "\0" in name
        else "is absolute" if name.startswith("/")
        else "has an empty, '.' or '..' part" if any(part in ("", ".", "..") for part in parts)
        else "is not valid Unicode" if not _encodes(name)
        else "is too long" if len(name.encode()) > 1024 or any(len(part.encode()) > 255 for part in parts)
        else None
    )  # fmt: skip
    if wrong:
        raise InvalidRequest(
            f"input file name {name!r} {wrong}; use a relative path such as 'data.csv' or 'data/a.csv'"
        )
    return name


def check_names(names: Iterable[str], script: str) -> None:
    """Check every name, and that no two of them (the staged script included) need the same path.

    Raises:
        InvalidRequest: as `check_name`, or two names collide (`d` and `d/f`).
    """
    seen = {script: "the script itself"}
    folders = dict.fromkeys(_parents(script), "the script itself")
    for name in names:
        check_name(name)
        other = seen.get(name) or folders.get(name) or next((seen[p] for p in _parents(name) if p in seen), None)
        if other:
            raise InvalidRequest(f"input file {name!r} collides with {other}: both need the same path")
        seen[name] = f"input file {name!r}"
        folders |= dict.fromkeys(_parents(name), f"input file {name!r}")


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _encodes(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

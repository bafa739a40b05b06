"""File names are bytes on disk and text in an answer: a reversible way between the two, and a safe way to show."""

import re

_BACKSLASH = re.compile(r"\\(\\|x[0-9a-f]{2})")


def to_text(name: bytes) -> str:
    r"""Text for a name on disk: UTF-8 as it is, a backslash as `\\`, a byte that is not UTF-8 as `\xNN`."""
    return name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def to_bytes(text: str) -> bytes:
    """The name on disk that `to_text` was given."""
    parts = _BACKSLASH.split(text)
    return b"".join(
        part.encode() if n % 2 == 0 else b"\\" if part == "\\" else bytes.fromhex(part[1:])
        for n, part in enumerate(parts)
    )


def shown(text: str) -> str:
    """`text` with everything that a terminal or a log line could obey made visible."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

"""A job's stdout and stderr: read to the end whatever comes, kept within bounds, told while it runs."""

import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

CHARS = 8000  # of the head and of the tail, in an answer
_KEEP = 4 * CHARS  # bytes that hold so many characters in UTF-8
_READ = 256 * 1024
_TELL_EVERY = 0.4  # seconds
_SPOOL_IN_MEMORY = 256 * 1024


class Log:
    """One stream, drained by a thread of its own from `pipe` (a descriptor, closed at the end).

    `limit` bytes are kept whole, in memory while they are few and else in a nameless file in `folder`. `tell` is given
    the newest text now and then.
    """

    def __init__(self, pipe: int, folder: Path, limit: int, tell: Callable[[str], None]) -> None:
        self._pipe = pipe
        self._limit = limit
        self._tell = tell
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOL_IN_MEMORY, dir=str(folder))  # noqa: SIM115 (closed below)
        self.size = 0
        self.kept = 0
        self._tail = bytearray()
        self._thread = threading.Thread(target=self._drain, name="log", daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        told = time.monotonic()
        try:
            while block := os.read(self._pipe, _READ):
                self.size += len(block)
                if room := self._limit - self.kept:
                    self.kept += self.file.write(block[:room])
                self._tail += block
                del self._tail[:-_KEEP]
                if time.monotonic() - told > _TELL_EVERY:
                    self._tell(self._tail[-2000:].decode(errors="replace"))
                    told = time.monotonic()
        finally:
            os.close(self._pipe)

    def finish(self) -> None:
        """Wait for the end of the stream. All writers must be dead."""
        self._thread.join()

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    @property
    def text(self) -> str:
        """All of it, or its head and tail with a line between that says how much was left out."""
        self.file.seek(0)
        head = self.file.read(2 * _KEEP)
        if not self.truncated:
            return head.decode(errors="replace")
        first = head.decode(errors="surrogateescape")[:CHARS].encode(errors="surrogateescape")
        last = self._tail.decode(errors="surrogateescape")[-CHARS:].encode(errors="surrogateescape")
        note = f"… {self.size - len(first) - len(last):,} bytes left out …"
        return f"{first.decode(errors='replace')}\n{note}\n{last.decode(errors='replace')}"

    @property
    def truncated(self) -> bool:
        """Whether `text` leaves something out."""
        if self.kept < self.size or self.size > 2 * _KEEP:
            return True
        self.file.seek(0)
        return len(self.file.read().decode(errors="surrogateescape")) > 2 * CHARS

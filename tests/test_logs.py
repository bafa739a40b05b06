"""A job's stdout and stderr: all that comes is read, what is kept is bounded, and what is left out is told."""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import eventually

from worker.logs import CHARS, Log

MiB = 1024**2


def unheard(_text: str) -> None:
    """For whom nobody waits."""


class Script:
    """A log and the end of its pipe that a script would hold."""

    def __init__(self, folder: Path, limit: int = MiB, tell: Callable[[str], None] = unheard) -> None:
        reader, self._writer = os.pipe2(os.O_CLOEXEC)
        self._open = True
        self.log = Log(reader, folder, limit, tell)

    def say(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writer, data) :]

    def end(self) -> Log:
        if self._open:
            self._open = False
            os.close(self._writer)
        self.log.finish()
        return self.log


Start = Callable[..., Script]
Print = Callable[..., Log]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts scripts, as `Script` does; their logs are closed with the test."""
    started: list[Script] = []

    def one(**options: Any) -> Script:
        started.append(Script(tmp_path, **options))
        return started[-1]

    yield one
    for script in started:
        script.end().close()


@pytest.fixture
def printed(start: Start) -> Print:
    """The log of a script that printed this and ended."""

    def whole_run(data: bytes, limit: int = MiB) -> Log:
        script = start(limit=limit)
        script.say(data)
        return script.end()

    return whole_run


def whole(log: Log) -> bytes:
    log.file.seek(0)
    return log.file.read()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "no newline at the end",
        "x" * (2 * CHARS),
        "é" * (2 * CHARS),
        "🌍" * (2 * CHARS),
        "\0\x1b[31m\r\n",
    ],
    ids=[
        "nothing",
        "one line",
        "no newline",
        "as much as is shown",
        "of two bytes each",
        "of four bytes each",
        "control codes",
    ],
)
def test_what_is_short_is_shown_whole(printed: Print, text: str) -> None:
    log = printed(text.encode())
    assert log.text == text
    assert not log.truncated
    assert log.size == log.kept == len(text.encode())


@pytest.mark.parametrize("char", ["x", "é", "図", "🌍"], ids=["one byte", "two bytes", "three bytes", "four bytes"])
@pytest.mark.parametrize("more", [1, 12_345, 200_000], ids=["one more", "some more", "many more"])
def test_what_is_long_is_shown_by_head_and_tail_with_the_number_of_bytes_between(
    printed: Print, char: str, more: int
) -> None:
    log = printed((char * (2 * CHARS + more)).encode(), 8 * MiB)
    assert log.text == f"{char * CHARS}\n… {more * len(char.encode()):,} bytes left out …\n{char * CHARS}"
    assert log.truncated


def test_head_and_tail_are_the_first_and_the_last_that_was_printed(printed: Print) -> None:
    lines = "".join(f"line {n}\n" for n in range(50_000))
    log = printed(lines.encode())
    head, _, tail = log.text.split("\n…")[0], *log.text.split("…\n")
    assert lines.startswith(head)
    assert lines.endswith(tail)
    assert len(head) == len(tail) == CHARS


def test_a_character_cut_by_the_bounds_spoils_neither_head_nor_tail(printed: Print) -> None:
    for shift in range(4):
        log = printed(b"." * shift + "🌍".encode() * 40_000 + b"\n", 8 * MiB)
        assert "\ufffd" not in log.text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"caf\xe9 \xff\n", "caf\ufffd \ufffd\n"),
        (b"\xc3", "\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    ],
    ids=["Latin-1", "cut short", "half a surrogate pair"],
)
def test_bytes_that_are_no_text_are_replaced_where_shown_and_kept_in_the_file(
    printed: Print, data: bytes, text: str
) -> None:
    log = printed(data)
    assert log.text == text
    assert whole(log) == data
    log.text.encode()


def test_the_number_left_out_counts_the_bytes_that_were_printed_not_those_that_stand_for_them(printed: Print) -> None:
    log = printed(b"\xff" * 20_000)
    assert log.text == "\ufffd" * CHARS + "\n… 4,000 bytes left out …\n" + "\ufffd" * CHARS
    assert log.truncated


def test_what_is_longer_than_is_shown_is_kept_whole_in_a_file_that_has_no_name(printed: Print, tmp_path: Path) -> None:
    data = os.urandom(3 * MiB)
    log = printed(data, 4 * MiB)
    assert whole(log) == data
    assert log.kept == log.size == len(data)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [0, 1, 100, 20_000, 64_000, 100_000], ids=str)
def test_beyond_the_limit_the_beginning_is_kept_and_the_tail_still_shown(printed: Print, limit: int) -> None:
    data = b"".join(b"%07d\n" % n for n in range(30_000))
    log = printed(data, limit)
    assert (log.size, log.kept) == (len(data), limit)
    assert whole(log) == data[:limit]
    assert log.truncated
    assert log.text.startswith(data[: min(limit, CHARS)].decode())
    assert log.text.endswith(data[-CHARS:].decode())


def test_a_limit_below_what_is_shown_loses_nothing_in_silence(printed: Print) -> None:
    log = printed(b"a" * 1000 + b"b" * 5000, 1000)
    assert log.text.endswith("b" * 5000)
    assert log.truncated or "a" * 1000 + "b" * 5000 in log.text


def test_exactly_the_limit_is_kept_whole(printed: Print) -> None:
    log = printed(b"x" * 1000, 1000)
    assert log.text == "x" * 1000
    assert not log.truncated


def test_memory_stays_flat_however_much_is_printed(start: Start) -> None:
    block = b"y\n" * MiB
    tracemalloc.start()
    try:
        script = start(limit=16 * MiB)
        for _ in range(100):
            script.say(block)
        log = script.end()
        assert log.text.startswith("y\n")
        assert log.truncated
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert log.size == 200 * MiB
    assert peak < 12 * MiB


def test_whoever_listens_is_told_the_newest_text_while_the_script_runs(start: Start) -> None:
    heard: list[str] = []
    script = start(tell=heard.append)
    script.say(b"old\n" * 2000)

    def tick() -> bool:
        script.say("é tick\n".encode())
        return bool(heard)

    eventually(tick)
    script.end()
    assert heard[0].endswith("é tick\n")
    assert len(heard[0]) <= 2000

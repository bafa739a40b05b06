"""File names: bytes on disk, text in answers, and nothing in between that is lost, mixed up or obeyed."""

import itertools
import random

import pytest

from farm.names import shown, to_bytes, to_text

# What escapes are made of, and bytes that are not UTF-8: alone, cut short, overlong, and half of a surrogate pair.
PIECES = [
    b"\\",
    b"x",
    b"\\x",
    b"c3",
    b"\\xc3",
    b"\xc3",
    b"\xc3\xa9",
    b"\xe2\x82",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\n",
    b"a",
    b"\xff",
]


def test_every_single_byte_survives_the_way_to_text_and_back() -> None:
    for byte in range(256):
        assert to_bytes(to_text(bytes([byte]))) == bytes([byte])


def test_every_mixture_of_escapes_and_broken_utf8_survives() -> None:
    for parts in itertools.product(PIECES, repeat=4):
        name = b"".join(parts)
        assert to_bytes(to_text(name)) == name


def test_random_names_survive() -> None:
    source = random.Random(17)
    for _ in range(20_000):
        name = source.randbytes(source.randrange(1, 40))
        assert to_bytes(to_text(name)) == name


def test_no_two_names_have_the_same_text() -> None:
    pairs = {bytes(pair) for pair in itertools.product(range(256), repeat=2)}
    mixtures = {b"".join(parts) for parts in itertools.product(PIECES, repeat=3)}
    assert len({to_text(name) for name in pairs | mixtures}) == len(pairs | mixtures)


def test_the_text_of_a_name_can_be_sent_as_json_and_utf8() -> None:
    for parts in itertools.product(PIECES, repeat=3):
        to_text(b"".join(parts)).encode()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"figure 1.png", "figure 1.png"),
        ("Figura é – 図.png".encode(), "Figura é – 図.png"),
        (b"\xc3", r"\xc3"),
        (b"a\xffb", r"a\xffb"),
        (rb"a\b", r"a\\b"),
        (rb"\xc3", r"\\xc3"),
        (b"\\\xc3", r"\\\xc3"),
        (b"a\nb", "a\nb"),
        (b"", ""),
    ],
    ids=ascii,
)
def test_text_for_a_name_is_utf8_where_it_can_be_and_an_escape_where_it_cannot(name: bytes, text: str) -> None:
    assert to_text(name) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\nb", r"a\nb"),
        ("a\rb\tc", r"a\rb\tc"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\0b", r"a\x00b"),
        ("a\x7fb", r"a\x7fb"),
        ("a\x85b", r"a\x85b"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("gpj.\u202eexe", r"gpj.\u202eexe"),
        ("a\u200fb", r"a\u200fb"),
        ("\ufeffa", r"\ufeffa"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
    ids=ascii,
)
def test_what_a_terminal_or_a_log_could_obey_is_shown_as_an_escape(text: str, seen: str) -> None:
    assert shown(text) == seen


@pytest.mark.parametrize(
    "text", ["figure 1.png", "-rf", "a..b.txt", "Figura é.png", "数据.csv", "שלום", "🌍", r"\xc3", ""]
)
def test_what_can_be_read_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_nothing_that_is_shown_breaks_a_line_or_moves_a_cursor() -> None:
    everything = "".join(map(chr, range(0x110000)))
    seen = shown(everything)
    assert seen.isprintable()
    assert len(seen.splitlines()) == 1

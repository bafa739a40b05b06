"""Input files: base64 is decoded exactly or refused by name, and names stay inside the working folder."""

import base64
import random
import textwrap
from collections.abc import Callable

import pytest

from farm.errors import InvalidRequest
from farm.inputs import check_name, check_names, decode_base64

SAMPLES = [bytes(range(256)), *(random.Random(n).randbytes(n) for n in range(1, 70)), b"\xfb\xef\xff", b""]


def standard(data: bytes) -> str:
    return base64.b64encode(data).decode()


SPELLINGS: dict[str, Callable[[bytes], str]] = {
    "standard": standard,
    "without padding": lambda data: standard(data).rstrip("="),
    "URL-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "URL-safe without padding": lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
    "line-wrapped": lambda data: base64.encodebytes(data).decode(),
    "wrapped by CRLF and indented": lambda data: "\r\n\t".join(["", *textwrap.wrap(standard(data), 19), ""]),
    "data URI": lambda data: f"data:text/csv;base64,{standard(data)}",
    "data URI with parameters": lambda data: f"data:text/csv;charset=utf-8;base64,{standard(data)}",
    "data URI without a type": lambda data: f"data:;base64,{standard(data)}",
    "data URI in capitals": lambda data: f"DATA:image/PNG;BASE64,{standard(data)}",
    "data URI, URL-safe, wrapped": lambda data: f"data:;base64,\n{base64.urlsafe_b64encode(data).decode()}\n",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_of_base64_that_clients_use_gives_exactly_the_bytes(spelling: Callable[[bytes], str]) -> None:
    for data in SAMPLES:
        assert decode_base64("data.csv", spelling(data)) == data


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("aGk=!!!!", id="garbage after the padding"),
        pytest.param("!!!!aGk=", id="garbage before"),
        pytest.param("aG!k", id="garbage between"),
        pytest.param("time,value\n1,2\n", id="plain CSV"),
        pytest.param("hello world, this is text.", id="plain text"),
        pytest.param("aGk=aGk=", id="two encodings in a row"),
        pytest.param("aG=k", id="padding inside"),
        pytest.param("YWJjZ", id="one character left over"),
        pytest.param("Y", id="one character"),
        pytest.param("====", id="nothing but padding"),
        pytest.param("YWJj=", id="padding where none belongs"),
        pytest.param("aGk==", id="more padding than belongs"),
        pytest.param("data:text/csv,1,2", id="data URI that is not base64"),
        pytest.param("data:text/csv;base64,a%47k%3D", id="data URI with percent signs"),
        pytest.param("data:;base64,data:;base64,aGk=", id="data URI twice"),
        pytest.param("aGk\0", id="NUL"),
        pytest.param("aG\u212a=", id="a Kelvin sign for a K"),
        pytest.param("\uff41\uff27\uff4b\uff1d", id="full-width letters"),
        pytest.param("aGk\ud800", id="half a surrogate pair"),
    ],
)
def test_anything_else_is_refused_with_the_name_of_the_file(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"input file 'run 7\.csv'"):
        decode_base64("run 7.csv", text)


def test_a_refusal_shows_the_first_wrong_character_and_not_the_whole_content() -> None:
    with pytest.raises(InvalidRequest, match="'!'") as refusal:
        decode_base64("a.bin", "QUJD" * 100_000 + "!")
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "name",
    [
        "data.csv", "chapters/one.tex", "a/b/c/d", ".hidden", "..data", "a..b.txt", "...", "-rf", "my paper  (v2).tex",
        "Figura é.png", "数据.csv", "x" * 255, "é" * 127, "/".join(["x" * 200] * 5), "a\\b", "a\nb", "\x1b[0m",
    ],
    ids=ascii,
)  # fmt: skip
def test_a_relative_name_is_taken_as_it_is(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "is empty"),
        ("../x", "'..'"),
        ("..", "'..'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
        (".", "'.'"),
        ("./x", "'.'"),
        ("a/./b", "'.'"),
        ("a//b", "empty"),
        ("a/", "empty"),
        ("/x", "absolute"),
        ("/", "absolute"),
        ("//x", "absolute"),
        ("a\0b", "NUL"),
        ("\0", "NUL"),
        ("a\ud800", "Unicode"),
        ("x" * 256, "too long"),
        ("é" * 128, "too long"),
        ("/".join(["x" * 200] * 6), "too long"),
    ],
    ids=ascii,
)
def test_a_name_that_leads_elsewhere_is_refused_with_the_name_and_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        check_name(name)
    assert repr(name) in str(refusal.value)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("names", "script"),
    [
        (["a/f", "b/f"], "main.sh"),
        (["d/f", "d/g", "d/e/f"], "main.sh"),
        (["d", "d.txt", "d-e/f"], "main.sh"),
        (["f", "d/f", "d/e/f"], "main.sh"),
        (["src/main.sh"], "main.sh"),
        (["src/helper.py"], "src/main.py"),
        ([f"part-{n}/data.csv" for n in range(500)], "main.sh"),
        ([], "main.sh"),
    ],
    ids=["same name in two folders", "one folder", "names that begin alike", "name and folder",
         "the script's name further down", "beside the script in its folder", "500 files", "none"],
)  # fmt: skip
def test_names_that_all_find_their_place_are_accepted(names: list[str], script: str) -> None:
    check_names(names, script)


@pytest.mark.parametrize(
    ("names", "script", "culprit"),
    [
        (["d", "d/f"], "main.sh", "d/f"),
        (["d/f", "d"], "main.sh", "d"),
        (["a/b/c/d", "a/b"], "main.sh", "a/b"),
        (["a/b", "x", "a/b/c/d"], "main.sh", "a/b/c/d"),
        (["a", "a"], "main.sh", "a"),
        (["main.sh"], "main.sh", "main.sh"),
        (["main.sh/x"], "main.sh", "main.sh/x"),
        (["src"], "src/main.py", "src"),
    ],
    ids=["file, then folder", "folder, then file", "folder further up", "file further up", "twice", "the script",
         "below the script", "the script's folder"],
)  # fmt: skip
def test_two_names_that_need_the_same_path_are_refused(names: list[str], script: str, culprit: str) -> None:
    with pytest.raises(InvalidRequest, match="collides with") as refusal:
        check_names(names, script)
    assert str(refusal.value).startswith(f"input file {culprit!r}")


def test_one_bad_name_among_good_ones_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"'\.\./b'"):
        check_names(["a", "../b", "c"], "main.sh")

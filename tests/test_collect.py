"""What a hostile folder is collected as: regular files, within caps, and a reason for all that is not taken."""

import gzip
import hashlib
import io
import os
import socket
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ByteSize

from farm.job import Artifact, InputFile
from farm.names import to_bytes
from farm.policy import OutputRules
from worker.collect import Collected, collect, open_beneath

SECRET = "nobody may see this"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A working folder beside a secret file."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "passwd").write_text(SECRET)
    made = tmp_path / "tree"
    made.mkdir()
    yield made
    # Trees too deep for the standard library, and folders that nobody may enter.
    subprocess.run(["chmod", "-R", "u+rwx", made], check=True)
    subprocess.run(["rm", "-rf", made], check=True)


def gathered(
    tree: Path,
    *,
    inputs: dict[str, bytes] | None = None,
    is_litter: Callable[[str], bool] = lambda _: False,
    **rules: Any,
) -> Collected:
    """Collect `tree`, opened as the worker does it."""
    staged = {
        name: InputFile(name=name, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        for name, data in (inputs or {}).items()
    }
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return collect(root, OutputRules(**rules), staged, is_litter)
    finally:
        os.close(root)


def taken(found: Collected) -> dict[str, Artifact]:
    return {output.artifact.name: output.artifact for output in found.outputs}


def reasons(found: Collected) -> dict[str, str]:
    return {rejected.name: rejected.reason for rejected in found.rejected}


def fill(tree: Path, *names: str, data: bytes = b"x") -> None:
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


def test_every_regular_file_is_an_output_with_its_size_and_hash_nested_and_hidden_ones_too(tree: Path) -> None:
    names = ["a.txt", "deep/er/b.txt", ".hidden", ".config/settings", "deep/.c"]
    for name in names:
        fill(tree, name, data=name.encode())
    found = gathered(tree)
    assert list(taken(found)) == sorted(names)
    assert not found.rejected
    for name, artifact in taken(found).items():
        assert (artifact.bytes, artifact.sha256) == (len(name), hashlib.sha256(name.encode()).hexdigest())


def test_an_empty_folder_gives_nothing(tree: Path) -> None:
    assert gathered(tree) == Collected([], ())


def test_empty_files_are_outputs(tree: Path) -> None:
    fill(tree, "empty.txt", data=b"")
    assert taken(gathered(tree))["empty.txt"].bytes == 0


def test_a_file_larger_than_any_buffer_is_hashed_whole(tree: Path) -> None:
    data = os.urandom(5_000_001)
    fill(tree, "big.bin", data=data)
    [artifact] = taken(gathered(tree)).values()
    assert (artifact.bytes, artifact.sha256) == (len(data), hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize(
    "target",
    ["../secret/passwd", "/etc/passwd", "good.txt", "nowhere", "link", "/proc/self/environ", "/dev/zero"],
    ids=["file outside", "absolute", "file inside", "dangling", "itself", "magic", "device"],
)
def test_a_symbolic_link_is_rejected_and_nothing_of_its_target_is_read(tree: Path, target: str) -> None:
    fill(tree, "good.txt", data=b"good")
    (tree / "link").symlink_to(target)
    found = gathered(tree)
    assert list(taken(found)) == ["good.txt"]
    assert reasons(found) == {"link": "symbolic link, not a regular file"}
    assert SECRET not in repr(found)


@pytest.mark.parametrize("target", ["../secret", "/etc", ".", ".."], ids=["outside", "absolute", "loop", "parent"])
def test_a_symbolic_link_to_a_folder_is_not_entered(tree: Path, target: str) -> None:
    (tree / "d").symlink_to(target)
    found = gathered(tree)
    assert not found.outputs
    assert reasons(found) == {"d": "symbolic link, not a regular file"}


def test_a_fifo_is_rejected_without_waiting_for_a_writer(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    assert reasons(gathered(tree)) == {"pipe": "named pipe (fifo), not a regular file"}


def test_a_socket_is_rejected(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)  # the path of a socket may have 107 bytes
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        assert reasons(gathered(tree)) == {"sock": "socket, not a regular file"}


def test_an_input_that_the_script_deleted_is_no_output_and_no_reject(tree: Path) -> None:
    os.mknod(tree / "data.csv", 0o020000 | 0o600, os.makedev(0, 0))  # how an overlay notes it
    assert gathered(tree, inputs={"data.csv": b"1,2"}) == Collected([], ())


def test_a_huge_sparse_file_is_rejected_unread(tree: Path) -> None:
    fill(tree, "small")
    sparse(tree / "big", 2**43)
    found = gathered(tree)
    assert list(taken(found)) == ["small"]
    assert reasons(found) == {"big": f"too large: {2 * 1024**3} bytes are allowed, it has {2**43}"}


@pytest.mark.parametrize(("size", "kept"), [(1000, True), (1001, False)])
def test_the_cap_on_a_file_s_size_is_kept_to_the_byte(tree: Path, size: int, kept: bool) -> None:
    fill(tree, "a", data=b"x" * size)
    found = gathered(tree, file_bytes=ByteSize(1000))
    assert bool(found.outputs) is kept
    assert bool(found.rejected) is not kept


def test_the_cap_on_all_outputs_leaves_out_what_does_not_fit_and_names_it(tree: Path) -> None:
    fill(tree, "a", "b", "d/c", data=b"x" * 40)
    fill(tree, "e", data=b"x" * 20)
    found = gathered(tree, total_bytes=ByteSize(100))
    assert list(taken(found)) == ["a", "b", "e"]
    assert reasons(found) == {"d/c": "too much: all outputs together may have 100 bytes"}


def test_of_too_many_files_the_first_by_name_are_kept_and_the_rest_counted(tree: Path) -> None:
    fill(tree, *(f"{n:05}" for n in range(20_000)), data=b"")
    found = gathered(tree, count=100)
    assert list(taken(found)) == [f"{n:05}" for n in range(100)]
    assert reasons(found) == {"(19900 more)": "too many files: the first 100 in the order of their names were kept"}


def test_exactly_as_many_files_as_allowed_are_all_kept(tree: Path) -> None:
    fill(tree, *map(str, range(10)))
    found = gathered(tree, count=10)
    assert len(found.outputs) == 10
    assert not found.rejected


def test_folders_deeper_than_allowed_are_rejected_at_the_first_too_deep_one(tree: Path) -> None:
    fill(tree, "a/b/here", "a/b/c/there", "a/b/c/d/e/far")
    found = gathered(tree, depth=2)
    assert list(taken(found)) == ["a/b/here"]
    assert reasons(found) == {"a/b/c": "too deep: 2 folders below each other are allowed"}


def test_a_thousand_folders_below_each_other_are_one_reject(tree: Path) -> None:
    fill(tree, "top")
    subprocess.run(["mkdir", "--parents", "/".join(["d"] * 1000)], cwd=tree, check=True)
    found = gathered(tree)
    assert list(taken(found)) == ["top"]
    assert reasons(found) == {"/".join(["d"] * 33): "too deep: 32 folders below each other are allowed"}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"a\nb", "a\nb"),
        (b"-rf", "-rf"),
        (b"a..b.txt", "a..b.txt"),
        (b"...", "..."),
        (b" ", " "),
        (b"x" * 255, "x" * 255),
        ("a\u200fb\u202ec".encode(), "a\u200fb\u202ec"),
        ("Figura é 図.png".encode(), "Figura é 図.png"),
        (b"\xc3", r"\xc3"),
        (rb"\xc3", r"\\xc3"),
        (b"d\xff/a\xfe", r"d\xff/a\xfe"),
        (b"\x1b[31m", "\x1b[31m"),
    ],
    ids=ascii,
)
def test_an_odd_name_is_kept_and_leads_back_to_its_file(tree: Path, raw: bytes, text: str) -> None:
    fill(tree, os.fsdecode(raw))
    [output] = gathered(tree).outputs
    assert output.artifact.name == text
    assert output.path == to_bytes(text) == raw
    output.artifact.model_dump_json()


def test_an_odd_name_that_is_rejected_can_be_told_as_well(tree: Path) -> None:
    (tree / os.fsdecode(b"\xc3\n")).symlink_to("x")
    [rejected] = gathered(tree).rejected
    assert rejected.name == "\\xc3\n"
    rejected.model_dump_json()


def test_what_nobody_may_read_is_rejected_with_the_reason(tree: Path) -> None:
    fill(tree, "file", "folder/inner", "other")
    (tree / "file").chmod(0)
    (tree / "folder").chmod(0)
    found = gathered(tree)
    assert list(taken(found)) == ["other"]
    assert reasons(found) == {"file": "cannot be read: Permission denied", "folder": "folder cannot be read"}


def test_an_input_that_was_not_changed_is_no_output(tree: Path) -> None:
    inputs = {"same.csv": b"1,2", "changed.csv": b"1,2", "d/same": b"", r"back\slash": b"1"}
    for name, data in inputs.items():
        fill(tree, name, data=data)
    fill(tree, "changed.csv", data=b"1,3")
    fill(tree, "copy.csv", data=b"1,2")
    assert list(taken(gathered(tree, inputs=inputs))) == ["changed.csv", "copy.csv"]


def test_unchanged_inputs_count_for_no_cap(tree: Path) -> None:
    inputs = {f"in-{n}": b"x" * 60 for n in range(5)}
    for name, data in inputs.items():
        fill(tree, name, data=data)
    fill(tree, "out", data=b"x" * 60)
    found = gathered(tree, inputs=inputs, count=1, total_bytes=ByteSize(100))
    assert list(taken(found)) == ["out"]
    assert not found.rejected


def test_the_runtime_s_litter_is_no_output_and_counts_for_no_cap(tree: Path) -> None:
    fill(tree, "paper.pdf", "paper.aux", "chapters/one.aux", data=b"x" * 60)
    found = gathered(tree, is_litter=lambda name: name.endswith(".aux"), count=1, total_bytes=ByteSize(100))
    assert list(taken(found)) == ["paper.pdf"]
    assert not found.rejected


@pytest.mark.parametrize(
    ("name", "data", "inline"),
    [
        ("a.txt", b"x" * 4095, True),
        ("a.txt", b"x" * 4096, False),
        ("a.txt", "é".encode() * 2047, True),
        ("a.txt", "é".encode() * 2048, False),
        ("a.json", b'{"a": 1}', True),
        ("a.csv", b"a,b\n1,2\n", True),
        ("noname", b"plain words\n", True),
        ("a.txt", b"", True),
        ("a.txt", b"caf\xe9\n", False),
        ("a.bin", bytes(range(256)), False),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", False),
    ],
    ids=["4095 bytes", "4096 bytes", "4094 bytes of two-byte letters", "4096 bytes of them", "JSON", "CSV",
         "no extension", "empty", "Latin-1", "binary", "PNG"],
)  # fmt: skip
def test_text_comes_inline_below_four_kilobytes(tree: Path, name: str, data: bytes, inline: bool) -> None:
    fill(tree, name, data=data)
    assert taken(gathered(tree))[name].text == (data.decode() if inline else None)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
HTML = b"<!DOCTYPE html><html><script>alert(1)</script></html>"


@pytest.mark.parametrize(
    ("name", "data", "mime"),
    [
        ("figure.png", PNG, "image/png"),
        ("figure", PNG, "image/png"),
        ("figure.txt", PNG, "image/png"),
        ("paper.pdf", b"%PDF-1.7\n", "application/pdf"),
        ("figure.svg", SVG, "image/svg+xml"),
        ("figure.svg", SVG.partition(b"\n")[2], "image/svg+xml"),
        ("figure.png", SVG, "image/svg+xml"),
        ("page.html", HTML, "text/html"),
        ("figure.png", HTML, "text/html"),
        ("table.csv", b"a,b\n1,2\n", "text/csv"),
        ("table.tsv", b"a\tb\n1\t2\n", "text/tab-separated-values"),
        ("fit.json", b'{"rate": 0.8}', "application/json"),
        ("notes.txt", b"words\n", "text/plain"),
        ("figure.png", b"no picture\n", "text/plain"),
        ("notes", "Größe\n".encode(), "text/plain"),
        ("a.zip", zipped(), "application/zip"),
        ("a.gz", gzip.compress(b"a"), "application/gzip"),
        ("noise", b"\0\xde\xad\0\xbe\xef\1\x80" * 9, "application/octet-stream"),
        ("empty.csv", b"", "text/csv"),
        ("empty", b"", "application/octet-stream"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_media_type_is_what_the_content_says_and_the_name_only_where_that_says_little(
    tree: Path, name: str, data: bytes, mime: str
) -> None:
    fill(tree, name, data=data)
    assert taken(gathered(tree))[name].mime == mime


@pytest.mark.parametrize(
    "litter",
    [
        lambda tree, n: (tree / f"{n:04}").symlink_to("x"),
        lambda tree, n: os.mkfifo(tree / f"{n:04}"),
        lambda tree, n: sparse(tree / f"{n:04}", 5000),
        lambda tree, n: (tree / "d" / f"{n:04}").mkdir(parents=True),
    ],
    ids=["symbolic links", "fifos", "large files", "deep folders"],
)
def test_rejects_are_named_up_to_a_number_and_counted_beyond_it(
    tree: Path, litter: Callable[[Path, int], object]
) -> None:
    for n in range(200):
        litter(tree, n)
    rejected = gathered(tree, file_bytes=ByteSize(1000), depth=1).rejected
    assert len(rejected) == 51
    assert rejected[-1].name == "(150 more)"
    assert rejected[0].reason.startswith(rejected[-1].reason)


def test_rejects_are_bounded_though_each_has_another_reason(tree: Path) -> None:
    for n in range(500):
        sparse(tree / f"{n:04}", 1001 + n)
    rejected = gathered(tree, file_bytes=ByteSize(1000)).rejected
    assert len(rejected) <= 60
    assert "450 more" in rejected[-1].name


def test_looking_ends_when_its_time_is_over_and_says_so(tree: Path) -> None:
    fill(tree, *map(str, range(1000)))
    found = gathered(tree, seconds=1e-9)
    assert not found.outputs
    assert "too slow: looking through the outputs may take" in found.rejected[-1].reason


def test_collecting_leaves_no_descriptor_open(tree: Path) -> None:
    fill(tree, "a", "b/c", "b/d/e")
    (tree / "link").symlink_to("a")
    (tree / "b" / "pipe").symlink_to("x")
    gathered(tree)  # libmagic's own files
    before = open_files()
    gathered(tree, depth=1)
    assert open_files() == before


@pytest.mark.parametrize("path", [b"link", b"d/passwd", b"pipe", b"folder", b"missing", b"folder/missing"])
def test_nothing_but_a_regular_file_below_the_root_can_be_opened(tree: Path, path: bytes) -> None:
    (tree / "link").symlink_to("../secret/passwd")
    (tree / "d").symlink_to("../secret")
    (tree / "folder").mkdir()
    os.mkfifo(tree / "pipe")
    root = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    before = open_files()
    with pytest.raises(OSError), open_beneath(root, path):  # noqa: PT011 (any errno of these)
        pass
    assert open_files() == before
    os.close(root)

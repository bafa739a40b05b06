"""A runtime is a folder: what stands in it is checked when it is loaded, and its hash says when it changed."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import REPOSITORY
from pydantic import ByteSize

from farm.errors import Misconfigured
from farm.inputs import check_name
from farm.job import Limits
from farm.runtime import Runtime, folder_hash, load_runtimes

IMAGES = REPOSITORY / "images"
SHIPPED = sorted(path.parent.name for path in IMAGES.glob("*/runtime.yaml"))
MINIMAL = {"version": "1", "description": "d", "script": "main.x", "command": ["run", "{script}"], "example": "x\n"}


def images(tmp_path: Path, text: str, name: str = "tool") -> Path:
    (tmp_path / name).mkdir()
    (tmp_path / name / "runtime.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def runtime(tmp_path: Path, **fields: object) -> Runtime:
    return load_runtimes(images(tmp_path, yaml.safe_dump(MINIMAL | fields)))["tool"]


def limits(cpus: float = 1.0, memory: int = 1024**3) -> Limits:
    return Limits(memory=ByteSize(memory), cpus=cpus, timeout=10, pids=64, scratch=ByteSize(1024**2))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_runtime_that_ships_loads_under_the_name_of_its_folder(name: str) -> None:
    loaded = load_runtimes(IMAGES)[name]
    assert loaded.name == name
    assert loaded.version
    assert loaded.description
    assert check_name(loaded.script) == loaded.script
    assert loaded.script in loaded.argv(())


@pytest.mark.parametrize("name", SHIPPED)
def test_every_runtime_has_an_image_an_example_and_a_smoke_script(name: str) -> None:
    assert (IMAGES / name / "Containerfile").is_file()
    assert load_runtimes(IMAGES)[name].example.strip()
    [smoke] = (IMAGES / name).glob("smoke.*")
    script = Path(load_runtimes(IMAGES)[name].script)
    assert script.suffix in ("", smoke.suffix)  # GRASS takes shell and Python under one name
    assert smoke.read_text(encoding="utf-8").strip()


def test_a_new_folder_is_a_new_runtime(tmp_path: Path) -> None:
    images(tmp_path, yaml.safe_dump(MINIMAL), "one")
    images(tmp_path, yaml.safe_dump(MINIMAL), "two")
    (tmp_path / "base").mkdir()
    assert list(load_runtimes(tmp_path)) == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (yaml.safe_dump(MINIMAL | {"comand": ["x"]}), "comand"),
        (yaml.safe_dump(MINIMAL | {"name": "other"}), "name"),
        (yaml.safe_dump({key: value for key, value in MINIMAL.items() if key != "script"}), "script"),
        (yaml.safe_dump({key: value for key, value in MINIMAL.items() if key != "example"}), "example"),
        (yaml.safe_dump(MINIMAL | {"command": []}), "command"),
        (yaml.safe_dump(MINIMAL | {"command": "python3 {script}"}), "command"),
        (yaml.safe_dump(MINIMAL | {"version": 3.1}), "version"),
        (yaml.safe_dump(MINIMAL | {"env": {"THREADS": 1}}), "THREADS"),
        (yaml.safe_dump(MINIMAL | {"env": ["THREADS=1"]}), "env"),
        (yaml.safe_dump(MINIMAL | {"script": "../main.x"}), "../main.x"),
        (yaml.safe_dump(MINIMAL | {"script": "/main.x"}), "/main.x"),
        (yaml.safe_dump(MINIMAL | {"script": ""}), "script"),
        ("", ""),
        ("- a list", ""),
        ("1", ""),
        ("version: [", ""),
        ("a: !!python/object/apply:os.system ['true']", ""),
    ],
    ids=["unknown field", "a name of its own", "no script", "no example", "empty command", "command as one string",
         "number for a version", "number in the environment", "environment as a list", "script outside",
         "absolute script", "empty script", "empty file", "list",
         "number", "broken YAML", "YAML that wants to run code"],
)  # fmt: skip
def test_a_runtime_that_is_not_understood_is_refused_with_the_file_and_the_place(
    tmp_path: Path, text: str, culprit: str
) -> None:
    with pytest.raises(Misconfigured) as refusal:
        load_runtimes(images(tmp_path, text))
    assert str(tmp_path / "tool" / "runtime.yaml") in str(refusal.value)
    assert culprit in str(refusal.value)


def test_a_runtime_in_another_encoding_is_refused(tmp_path: Path) -> None:
    images(tmp_path, "")
    (tmp_path / "tool" / "runtime.yaml").write_bytes("description: für alle".encode("latin-1"))
    with pytest.raises(Misconfigured, match=r"tool/runtime\.yaml"):
        load_runtimes(tmp_path)


def test_a_folder_without_runtimes_is_refused_with_the_variable_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="SCIFARM_IMAGES"):
        load_runtimes(tmp_path)


def test_the_command_line_is_the_command_with_the_script_and_the_caller_s_arguments_untouched(tmp_path: Path) -> None:
    loaded = runtime(tmp_path, script="src/main.x", command=["run", "--file={script}", "{script}"])
    args = ("{script}", "", "a b", "--", "{cpus}", "é")
    assert loaded.argv(args) == ["run", "--file=src/main.x", "src/main.x", *args]


@pytest.mark.parametrize(("cpus", "threads"), [(0.1, "1"), (1, "1"), (1.01, "2"), (4, "4"), (7.5, "8")])
def test_the_environment_tells_the_cores_rounded_up(tmp_path: Path, cpus: float, threads: str) -> None:
    loaded = runtime(tmp_path, env={"THREADS": "{cpus}", "BOTH": "-t {cpus} -m {memory_mb}M", "PLAIN": "{other}"})
    assert loaded.environment(limits(cpus)) == {
        "THREADS": threads,
        "BOTH": f"-t {threads} -m 1024M",
        "PLAIN": "{other}",
    }


def test_the_environment_tells_the_memory_in_mib(tmp_path: Path) -> None:
    loaded = runtime(tmp_path, env={"HEAP": "{memory_mb}m"})
    assert loaded.environment(limits(memory=512 * 1024**2)) == {"HEAP": "512m"}


@pytest.mark.parametrize(
    ("name", "succeeded", "litter"),
    [
        ("paper.aux", True, True),
        ("paper.aux", False, True),
        ("chapters/one.aux", True, True),
        ("paper.log", True, True),
        ("paper.log", False, False),
        ("d/e/paper.log", True, True),
        ("__pycache__/a.pyc", True, True),
        ("lib/__pycache__/a.pyc", False, True),
        ("paper.pdf", True, False),
        ("paper.auxx", True, False),
        ("paper.AUX", True, False),
        ("aux", True, False),
        ("pycache/a.pyc", True, False),
    ],
)
def test_scratch_is_litter_always_and_logs_only_when_the_job_succeeded(
    tmp_path: Path, name: str, succeeded: bool, litter: bool
) -> None:
    loaded = runtime(tmp_path, scratch=["*.aux", "__pycache__/*"], logs=["*.log"])
    assert loaded.is_litter(name, succeeded=succeeded) is litter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two files and one below."""
    made = tmp_path / "folder"
    (made / "sub").mkdir(parents=True)
    for name in ("Containerfile", "smoke.sh", "sub/data"):
        (made / name).write_text(f"this is {name}\n", encoding="utf-8")
        (made / name).chmod(0o644)
    return made


def test_equal_folders_have_equal_hashes_wherever_and_whenever_they_were_made(folder: Path, tmp_path: Path) -> None:
    before = folder_hash(folder)
    copy = tmp_path / "elsewhere"
    shutil.copytree(folder, copy)
    for path in (*copy.rglob("*"), copy):
        os.utime(path, (1, 1))
    (copy / "Containerfile").chmod(0o600)
    assert folder_hash(copy) == before == folder_hash(folder)
    assert len(before) == 16


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "smoke.sh").write_text("this is smoke.sX\n", encoding="utf-8"),
        lambda folder: (folder / "smoke.sh").write_text("", encoding="utf-8"),
        lambda folder: (folder / "smoke.sh").rename(folder / "smoke.py"),
        lambda folder: (folder / "sub").rename(folder / "below"),
        lambda folder: (folder / "sub" / "data").rename(folder / "data"),
        lambda folder: (folder / "smoke.sh").chmod(0o755),
        lambda folder: (folder / "smoke.sh").unlink(),
        lambda folder: (folder / "empty").touch(),
        lambda folder: (folder / ".hidden").touch(),
    ],
    ids=["a byte", "emptied", "a file's name", "a folder's name", "moved", "executable", "removed", "added", "hidden"],
)
def test_a_change_of_content_name_or_executable_bit_changes_the_hash(
    folder: Path, change: Callable[[Path], object]
) -> None:
    before = folder_hash(folder)
    change(folder)
    assert folder_hash(folder) != before


def test_what_two_files_hold_matters_not_only_all_of_it_together(folder: Path) -> None:
    before = folder_hash(folder)
    one, other = folder / "Containerfile", folder / "smoke.sh"
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    assert folder_hash(folder) != before


def test_what_python_compiled_does_not_count(folder: Path) -> None:
    before = folder_hash(folder)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "smoke.cpython-311.pyc").write_bytes(b"\0")
    assert folder_hash(folder) == before

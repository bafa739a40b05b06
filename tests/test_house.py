"""The plan of the house: who imports whom, and what is shipped. Needs no container."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import REPOSITORY

ALLOWED = {
    "farm": set(),
    "storage": {"farm"},
    "worker": {"farm", "storage"},
    "api": {"farm", "storage"},
    "cli": {"farm", "storage", "worker", "api"},
}
OWNERS = {
    "podman": {"worker/images.py"},
    "boto3": {"storage/objects.py"},
    "botocore": {"storage/objects.py"},
    "magic": {"worker/collect.py", "cli/doctor.py"},
    "redis": {"storage/ledger.py"},
    "circus": {"cli/up.py"},
    "yaml": {"farm/runtime.py", "farm/policy.py"},
}
MODULES = [path for room in ALLOWED for path in sorted((REPOSITORY / room).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """The top-level names of everything that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_room_imports_only_the_rooms_below_it(path: Path) -> None:
    room = path.relative_to(REPOSITORY).parts[0]
    rooms = imported(path) & {*ALLOWED, "images", "tests", "bench", "examples"}
    assert rooms <= ALLOWED[room] | {room}


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_has_one_owner(library: str) -> None:
    users = {str(path.relative_to(REPOSITORY)) for path in MODULES if library in imported(path)}
    assert users <= OWNERS[library]


def test_the_wheel_holds_the_rooms_and_the_runtimes_and_nothing_else(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if tracked.returncode != 0:
        pytest.skip("not a checkout: which files belong to the project is not known")
    source = copy(tracked.stdout.split("\n"), tmp_path / "source")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*build, f"--wheel-dir={tmp_path}", str(source)], check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    belongs = (*ALLOWED, "images")
    assert shipped == {name for name in tracked.stdout.split("\n") if name.partition("/")[0] in belongs}


def copy(names: list[str], target: Path) -> Path:
    """The tracked files alone, so that building leaves nothing in the checkout."""
    for name in filter(None, names):
        if (source := REPOSITORY / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(source.read_bytes())
    return target

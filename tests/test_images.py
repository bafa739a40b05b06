"""Every runtime through the farm: its smoke script, the example of its runtime.yaml, a piece of work, its catalogue."""

import base64
from pathlib import Path

import pytest
from conftest import REPOSITORY, FarmClient, download

from farm.catalogue import Catalogue
from farm.job import JobResult, Status
from farm.runtime import load_runtimes
from worker.advice import advise
from worker.seccomp import FORBIDDEN, tighten

RUNTIMES = load_runtimes(REPOSITORY / "images")
FIGURES = ("image/png", "image/svg+xml", "application/pdf")
BLANK = "import matplotlib.image as m, sys; print(m.imread('a.png').std() > 0.01)"


def succeeded(result: JobResult) -> JobResult:
    """The result, which must be a success that left none of the runtime's litter."""
    assert result.status is Status.SUCCEEDED, f"{result.stdout}\n{result.stderr}\n{result.error}"
    litter = [o.name for o in result.outputs if RUNTIMES[result.runtime].is_litter(o.name, succeeded=True)]
    assert litter == []
    return result


def example(runtime: str) -> tuple[Path, dict[str, str]]:
    """The script of an example, and everything else in its folder as input files."""
    folder = REPOSITORY / "examples" / runtime
    suffix = Path(RUNTIMES[runtime].script).suffix or ".py"
    (script,) = folder.glob(f"main{suffix}") if (folder / f"main{suffix}").exists() else folder.glob(f"*{suffix}")
    others = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != script)
    return script, {str(p.relative_to(folder)): base64.b64encode(p.read_bytes()).decode("ascii") for p in others}


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_everything_that_an_image_is_there_for_works_in_it(client: FarmClient, runtime: str) -> None:
    (smoke,) = (REPOSITORY / "images" / runtime).glob("smoke.*")
    succeeded(client.run(smoke.read_text(encoding="utf-8"), runtime, timeout=300, memory="4GiB", wait=300))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_example_that_a_caller_is_shown_works(client: FarmClient, runtime: str) -> None:
    result = succeeded(client.run(RUNTIMES[runtime].example, runtime, timeout=120, wait=120))
    assert result.outputs or result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_piece_of_work_gives_a_figure_worth_looking_at(client: FarmClient, runtime: str) -> None:
    script, files = example(runtime)
    result = succeeded(
        client.run(script.read_text(encoding="utf-8"), runtime, input_files=files, timeout=180, wait=200)
    )
    figures = [output for output in result.outputs if output.mime in FIGURES]
    assert figures
    for png in (output for output in figures if output.mime == "image/png"):
        image = {"a.png": base64.b64encode(download(png)).decode("ascii")}
        assert client.run(BLANK, "python", input_files=image).stdout == "True\n"


@pytest.mark.parametrize(
    ("search", "runtime"),
    [("sf", "r"), ("tikz", "latex"), ("Noto Sans CJK JP", "bash"), ("gdal_translate", "gmt"), ("NumPy", "python")],
)
def test_the_catalogue_tells_which_runtime_has_something(client: FarmClient, search: str, runtime: str) -> None:
    answer = client.call("list_runtimes", search=search)
    found = {entry["runtime"]: entry for entry in answer.data["found"]}
    assert runtime in found
    assert found[runtime]["name"].casefold().removesuffix(".sty") == search.casefold()
    assert set(found) == {shown["name"] for shown in answer.data["runtimes"]}


def test_what_nobody_has_is_found_nowhere(client: FarmClient) -> None:
    answer = client.call("list_runtimes", search="no-such-thing-anywhere")
    assert (answer.data["found"], answer.data["runtimes"]) == ([], [])


def test_a_part_of_a_name_is_enough_when_nothing_has_it_whole(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"packages": {"ggplot2": "3.5", "ggthemes": "5"}, "fonts": ["Lato"]}')
    catalogue = Catalogue(tmp_path)
    assert [entry.name for entry in catalogue.search("GG")] == ["ggplot2", "ggthemes"]
    assert [(entry.name, entry.version) for entry in catalogue.search("lato")] == [("Lato", "font")]
    assert catalogue.search(" ") == []


def test_a_missing_package_is_named_with_the_runtime_that_has_it(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"packages": {"sf": "1.0"}}')
    printed = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'sf.io'\n"
    assert advise(printed, RUNTIMES["python"], Catalogue(tmp_path)) == [
        "sf.io is not in the python image; it is in r (1.0)"
    ]
    assert advise("all is well", RUNTIMES["python"], Catalogue(tmp_path)) == []


def test_the_tightened_profile_allows_nothing_that_is_forbidden_and_no_namespaces() -> None:
    allow = [["read", "clone", "unshare"], ["bpf"]]
    profile = {"syscalls": [{"names": names, "action": "SCMP_ACT_ALLOW"} for names in allow]}
    tight = tighten(profile)["syscalls"]
    assert not {name for rule in tight for name in rule["names"]} & FORBIDDEN
    assert [rule["names"] for rule in tight if "args" not in rule] == [["read"]]
    assert [rule["args"][0]["op"] for rule in tight if rule["names"] == ["clone"]] == ["SCMP_CMP_MASKED_EQ"]


def test_a_misspelt_variable_is_not_taken_for_a_missing_package(client: FarmClient) -> None:
    result = client.run("total = 1;\ndisp (totl)\n", "octave")
    assert (result.status, result.notes) == (Status.FAILED, ())


def test_a_session_s_own_files_are_not_told_as_lost(client: FarmClient) -> None:
    assert client.run("g.region -p", "grass").notes == ()


@pytest.mark.parametrize("runtime", ["python", "r", "julia", "octave"])
def test_threads_follow_the_cores_that_were_asked_for(client: FarmClient, runtime: str) -> None:
    script = {
        "python": "import os; print(os.environ['OMP_NUM_THREADS'])",
        "r": "cat(Sys.getenv('OMP_NUM_THREADS'), fill = TRUE)",
        "julia": "println(Threads.nthreads())",
        "octave": "disp (getenv ('OMP_NUM_THREADS'))",
    }[runtime]
    assert client.run(script, runtime, cpus=2).stdout.split()[-1] == "2"


def test_processes_can_share_memory(client: FarmClient) -> None:
    script = """
import multiprocessing as mp
from multiprocessing import shared_memory
def work(n): return n * n
if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=50_000_000)
    memory.buf[:] = bytes(50_000_000)
    with mp.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, range(4)))
    memory.close(); memory.unlink()
"""
    result = client.run(script, "python")
    assert result.stdout == "[0, 1, 4, 9]\n", result.stderr

"""What people hit when scientific scripts run in containers: one row a report, its input under tests/cases/.

The ids are those of the collection of public bug reports that the rows come from (PY, R, OC, JL, TX, GM, GR, GP, SH),
and of the attacks on runtimes (attack …); the others are of the same kinds.
"""

import base64
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import REPOSITORY, FarmClient

from cli.main import script_text
from farm.job import JobResult, Status

CASES = REPOSITORY / "tests" / "cases"
OK, FAILS = Status.SUCCEEDED, Status.FAILED


@dataclass(frozen=True)
class Row:
    """A script, what it is run with, and what must come of it.

    A script in a folder of its own has everything else there beside it. `outputs` names all outputs, `has` some. Texts
    must be found in stdout (`out`), stderr (`err`) or the notes (`notes`); `never` must be in neither log.
    """

    name: str
    script: str
    status: Status = OK
    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    outputs: frozenset[str] | None = None
    has: tuple[str, ...] = ()
    clean: bool = False
    args: tuple[str, ...] = ()
    stdin: str = ""
    cpus: float = 1
    timeout: float = 120
    files: tuple[tuple[str, str], ...] = ()

    @property
    def runtime(self) -> str:
        """The runtime is the folder's name."""
        return self.script.partition("/")[0]


def only(*names: str) -> frozenset[str]:
    """These outputs and no others."""
    return frozenset(names)


PYTHON = [
    Row("PY01 a figure with nothing writable but the home", "python/PY01.py", outputs=only("one.png"), clean=True),
    Row("PY03 the user has a name and a home", "python/PY03.py", out=("researcher /home/researcher True",)),
    Row("PY05 threads follow the cores", "python/PY05.py", out=("{2}",), cpus=2, clean=True),
    Row("PY06 input without stdin fails at once", "python/PY06.py", FAILS, err=("EOFError",)),
    Row("PY06 input with stdin", "python/PY06.py", out=("1-2",), stdin="1\n2\n"),
    Row("PY07 shown figures come back", "python/PY07.py", outputs=only("figure-1.png", "figure-2.png")),
    Row("PY09 CJK labels are drawn", "python/PY09.py", has=("labels.png", "labels.pdf", "labels.svg"), clean=True),
    Row("PY10 text before a timeout is kept", "python/PY10.py", Status.TIMED_OUT, out=("before the end",), timeout=3),
    Row("PY11 long output is no reason to fail", "python/PY11.py", has=("stdout.txt",)),
    Row("PY14 coastlines without a network", "python/PY14.py", has=("world.png", "alps.png"), err=("drawn at 50m",)),
    Row(
        "PY15 files saved anywhere", "python/PY15.py", notes=("/tmp/lost.png",),
        outputs=only("here.png", "there.png", "output/a/b/c/deep.png"),
    ),
    Row("python: a backend with windows", "python/PY-tk.py", has=("saved.png", "figure-1.png", "figure-2.png")),
    Row("python: Agg by choice", "python/PY-agg.py", has=("late.png",)),
    Row("python: Latin-1", "python/PY-latin1.py", FAILS, out=("café",), err=('main.py", line 3',)),
    Row(
        "SH01 python: CRLF, a mark", "python/SH01-crlf-bom.py", FAILS, out=("'ä', 'b c'",), err=('main.py", line 5',),
        args=("ä", "b c"), files=(("helper.py", "x = 1\r\n"),),
    ),
    Row("attack R7 pip", "python/PY-pip.py", FAILS, notes=("polars is not in the python image", "no network")),
    Row("python: a missing package", "python/PY-missing.py", FAILS, notes=("polars is not in the python image",)),
]  # fmt: skip
R = [
    Row("R01 ggsave leaves no empty Rplots.pdf", "r/R01.R", outputs=only("a.png")),
    Row("R02 the default device", "r/R02.R", outputs=only("figure-1.png")),
    Row("R03 devices without a display", "r/R03.R", outputs=only("a.png", "a.jpg", "a.tif", "a.svg")),
    Row("R04 text is UTF-8", "r/R04.R", out=("≥ é 中文",), has=("text.txt",)),
    Row("R06 the time zone has a name", "r/R06.R", out=('"UTC"',), clean=True),
    Row("R10 stdin reaches the script", "r/R10.R", out=("[1] 3",), stdin="1\n2\n"),
    Row("R11 stderr is no failure", "r/R11.R", has=("good.csv",)),
    Row(
        "R12 a plot and a missing package",
        "r/R12.R",
        FAILS,
        err=("at main.R:3",),
        notes=("notapkg",),
        has=("figure-1.png",),
    ),
    Row("r: errors tell where", "r/R-where.R", FAILS, err=("at main.R:5", "at main.R:11"), never=("never",)),
    Row("r: a syntax error", "r/R-syntax.R", FAILS, out=("one",), err=("main.R:4:5",)),
    Row("r: an error at the top", "r/R-top.R", FAILS, out=("one",), err=("at main.R:2",)),
    Row("attack R7 install.packages", "r/R-install.R", FAILS, notes=("no network",)),
    Row("r: installing by other means", "r/R-install2.R", FAILS, notes=("fuzzyjoin",)),
    Row("r: Latin-1", "r/R-latin1.R", FAILS, out=("café",), err=("at main.R:3",), has=("figure-1.png",)),
    Row("SH01 r: CRLF, helpers", "r/R-crlf/main.R", FAILS, err=("at helper.R:3", "at main.R:8"), args=("ä", "b c")),
    Row("r: several pages", "r/R-pages.R", has=("figure-1.png", "figure-4.png", "own.pdf")),
]
OCTAVE = [
    Row("OC01 a surface", "octave/OC01.m", has=("peaks.png",), clean=True),
    Row("OC03 vector formats", "octave/OC03.m", has=("both.pdf", "both.svg", "both.eps")),
    Row("OC04 Forge packages", "octave/OC04.m"),
    Row("OC05 a table and a helper", "octave/OC05/main.m", out=("2", "8"), clean=True),
    Row("OC06 an error", "octave/OC06-error.m", FAILS, err=("line 2",), never=("word",)),
    Row("OC06 a syntax error", "octave/OC06-syntax.m", FAILS, err=("line 3",)),
    Row("octave: figures left open", "octave/OC-figures.m", has=("figure-1.png", "figure-2.png", "saved.png", "x.png")),
    Row("octave: exit codes", "octave/OC-exit.m", FAILS, has=("figure-1.png",)),
    Row("octave: a missing package", "octave/OC-missing.m", FAILS, notes=("nosuchpkg",)),
    Row("octave: installing", "octave/OC-pkg.m", FAILS, notes=("no network",)),
    Row("SH01 octave: CRLF and Latin-1", "octave/OC-crlf.m", FAILS, out=("café", "42"), stdin="42", args=("ä", "b c")),
]
JULIA = [
    Row("JL01 no plotting package", "julia/JL01.jl", FAILS, err=("Package Plots not found",), notes=("Plots",)),
    Row("JL02 stdlib and a module beside", "julia/JL02/main.jl", out=("5.0 1.5 8",), clean=True),
    Row("JL04 a plot as last line", "julia/JL04.jl", FAILS, err=("Package Plots not found",)),
    Row("julia: what can be shown is kept", "julia/JL-display.jl", has=("figure-1.png", "figure-2.png")),
    Row("julia: an error", "julia/JL-error.jl", FAILS, out=("true",), err=("main.jl:2",), never=("word",)),
    Row("julia: a syntax error", "julia/JL-syntax.jl", FAILS, err=("main.jl:3",)),
    Row("attack R7 Pkg.add", "julia/JL-pkg.jl", FAILS, notes=("CSV", "no network")),
    Row("SH01 julia: CRLF, include", "julia/JL-crlf/main.jl", FAILS, err=("main.jl:6",), stdin="37", cpus=2),
    Row("julia: Latin-1", "julia/JL-latin1.jl", FAILS, out=("café",), err=("main.jl:2",)),
]
GNUPLOT = [
    Row("GP01 no terminal, no output", "gnuplot/GP01.gp", outputs=only("figure-1.png"), clean=True),
    Row("gnuplot: terminals with windows", "gnuplot/GP-windows.gp", has=("figure-1.png", "figure-3.svg", "own.png")),
    Row("SH01 gnuplot: CRLF", "gnuplot/SH01-crlf.gp", FAILS, err=("line 3",), has=("figure-1.png",)),
    Row("attack R6 commands in a plot", "gnuplot/ATTACK-R6.gp", err=("researcher",), has=("own.png",)),
]
SHELL = [
    Row(
        "SH01 bash: CRLF", "bash/SH01/crlf.sh", FAILS, out=("main ran", "stdin: hello"), never=("not reached",),
        err=("main.sh: line 11: nosuchcommand",), notes=("nosuchcommand",), stdin="hello\n", args=("arg1",),
    ),
    Row("SH01 bash: a mark", "bash/SH01/bom.sh", out=("bom ok 2",), clean=True),
    Row("SH01 bash: Latin-1", "bash/SH01/latin1.sh", out=("café “quoted”",)),
    Row("SH02 ImageMagick reads PDF", "bash/SH02/convert.sh", has=("in.pdf", "out.png")),
    Row("GM01 remote grids", "gmt/GM01/remote.sh", FAILS, err=("main.sh: line 2",), notes=("no network",)),
    Row("GM02 sub-shells", "gmt/GM02/subshells.sh", has=("map1.png", "map2.png", "map3.png", "map4.png")),
    Row("GM04 two formats", "gmt/GM04/both.sh", outputs=only("x.png", "x.pdf")),
    Row("GM04 Ghostscript fails", "gmt/GM04/ghostscript.sh", FAILS, out=("done",), err=("line 6",)),
    Row("gmt: a failing module", "gmt/GMT/failing_module.sh", FAILS, out=("done",), err=("line 3",), has=("x.png",)),
    Row("gmt: a handled failure", "gmt/GMT/handled.sh", out=("done",), clean=True),
    Row("gmt: set -e", "gmt/GMT/errexit.sh", FAILS, err=("line 4",), never=("never",), has=("x.png",)),
    Row("gmt: an unclosed session", "gmt/GMT/unclosed.sh", has=("unclosed.png",)),
    Row("gmt: classic mode", "gmt/GMT/classic.sh", outputs=only("map.ps", "map.png")),
    Row("GR01 grass from Python", "grass/GR01/python.sh", out=("15000",), has=("m.png",)),
    Row("GR01 grass from the shell", "grass/GR01/shell.sh", out=("15000",), has=("m.png",)),
    Row("grass: displays", "grass/GRASS/display.sh", has=("figure-1.png", "figure-2.png", "saved.png", "own.png")),
    Row("grass: an error in Python", "grass/GRASS/error.py.sh", FAILS, err=("line 3",)),
    Row("grass: an error in the shell", "grass/GRASS/error.sh", FAILS, err=("nosuchmap",)),
    Row("grass: a session in a session", "grass/GRASS/nested.sh", out=("EPSG:32632",)),
    Row("attack R7 g.extension", "grass/GRASS/extension.sh", FAILS, err=("r.stream.order",), notes=("no network",)),
    Row("grass: Latin-1", "grass/GRASS/latin1.sh", FAILS, out=("café",), err=("line 4",)),
    Row("grass: matplotlib", "grass/GRASS/mpl.sh", has=("figure-1.png", "saved.png")),
    Row("grass: time series", "grass/GRASS/temporal.sh", out=("mean=11",)),
]  # fmt: skip
LATEX = [
    Row("TX01 fonts by LuaTeX", "latex/TX01/main.tex", outputs=only("main.pdf")),
    Row("TX01 no PDF is no success", "latex/TX01/nopdf.tex", FAILS, err=("No pages of output", "no main.pdf was made")),
    Row("TX03 include from a sub-folder", "latex/TX03/main.tex", out=("3 pages",), outputs=only("main.pdf")),
    Row(
        "TX04 errors",
        "latex/TX04/main.tex",
        FAILS,
        err=("main.tex:5: Undefined",),
        has=("main.pdf", "main.log"),
    ),
    Row("TX05 bibtex", "latex/TX05/bibtex.tex", err=("citation 'missing' is undefined",), has=("main.pdf",)),
    Row("TX05 biber", "latex/TX05/biber.tex", err=("citation 'missing' is undefined",), has=("main.pdf",)),
    Row("TX07 minted", "latex/TX07/minted.tex", has=("main.pdf",)),
    Row("TX07 no shell escape", "latex/TX07/write18.tex", err=("shell escape is off",), outputs=only("main.pdf")),
    Row(
        "TX08 a font that is not there",
        "latex/TX08/times.tex",
        FAILS,
        err=("Times New Roman",),
        notes=("Times New Roman",),
    ),
    Row("TX08 a font that is there", "latex/TX08/latin_modern.tex", has=("main.pdf",)),
    Row("TX09 accents and spaces in names", "latex/TX09/names.tex", has=("main.pdf",)),
    Row("TX09 double spaces", "latex/TX09/double_space.tex", FAILS, err=("rename that file",)),
    Row("attack R1 write18 and pipes", "latex/R1/main.tex", FAILS, err=("shell escape is off",)),
    Row("attack R2 /etc/passwd", "latex/R2/main.tex", has=("main.pdf",)),
    Row("attack R3 writing elsewhere", "latex/R3/main.tex", FAILS, err=("../x",)),
    Row("attack R4 an endless macro", "latex/R4/main.tex", Status.TIMED_OUT, timeout=5),
    Row("latex: characters the font lacks", "latex/LATEX/chars.tex", err=("lacks",), has=("main.pdf",)),
    Row(
        "latex: a missing style",
        "latex/LATEX/missing_style.tex",
        FAILS,
        err=("main.tex:3:",),
        notes=("nosuchstyle.sty",),
    ),
    *(
        Row(f"latex: {name}", f"latex/LATEX/{name}.tex", has=("main.pdf",))
        for name in ("arabic", "bom", "chinese", "eps", "index", "japanese", "latin1", "platex")
    ),
]
ROWS = [*PYTHON, *R, *OCTAVE, *JULIA, *GNUPLOT, *SHELL, *LATEX]


def beside(script: Path) -> dict[str, str]:
    """What lies in the script's own folder, as input files."""
    folder = script.parent
    if folder.parent == CASES:
        return {}
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != script)
    mains = {"main.R", "main.tex", "main.sh", "main.m", "main.jl"}
    return {
        str(path.relative_to(folder)): base64.b64encode(path.read_bytes()).decode("ascii")
        for path in files
        if path.name not in mains
    }


def told(result: JobResult) -> str:
    """What to look at when a row fails."""
    return (
        f"{result.status} {result.exit_code}\n{result.stdout}\n---\n{result.stderr}\n---\n{result.notes} {result.error}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_people_hit_comes_out_right(client: FarmClient, row: Row) -> None:
    script = CASES / row.script
    files: dict[str, object] = {**beside(script), **{name: {"text": text} for name, text in row.files}}
    result = client.run(
        script_text(script.read_bytes()), row.runtime, input_files=files, args=list(row.args), stdin=row.stdin,
        cpus=row.cpus, timeout=row.timeout, memory="4GiB", wait=180,
    )  # fmt: skip
    names = {output.name for output in result.outputs}
    assert result.status is row.status, told(result)
    assert row.outputs in (None, names), told(result)
    assert set(row.has) <= names, told(result)
    for expected, seen in ((row.out, result.stdout), (row.err, result.stderr), (row.notes, "\n".join(result.notes))):
        assert [text for text in expected if text not in seen] == [], told(result)
    assert [text for text in row.never if text in result.stdout + result.stderr] == []
    assert not (row.clean and result.stderr), told(result)

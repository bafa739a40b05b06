"""A matplotlib backend whose windows are files: figure-1.png, figure-2.png, … in the job's output folder.

It stands in for every backend with windows. A figure is written when `plt.show()` would have shown it, or when the script
ends with it open, unless the script saved it itself. A figure that cannot be written is a note on stderr, never a failure.
"""

import atexit
import contextlib
import dataclasses
import io
import itertools
import os
import sys
import weakref

import matplotlib

OUTPUT = "/sandbox/output" if os.access("/sandbox/output", os.W_OK) else os.getcwd()
FONT_LIST = "/usr/share/scifarm/python/fontlist.json"
NOTO_CJK = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"
FALLBACK_FONTS = ["/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", NOTO_CJK]

# What fontconfig answers for fonts that scripts ask for by name and that Debian may not ship; matplotlib does not ask it.
STAND_INS = {
    "Liberation Sans": ["Arial", "Helvetica", "Helvetica Neue"],
    "Liberation Serif": ["Times New Roman", "Times"],
    "Liberation Mono": ["Courier New", "Courier"],
    "Noto Sans CJK JP": [
        "SimHei", "Microsoft YaHei", "Microsoft JhengHei", "PingFang SC", "Heiti SC", "Heiti TC", "Arial Unicode MS",
        "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK SC", "Noto Sans CJK TC", "Noto Sans CJK KR", "Source Han Sans SC",
        "MS Gothic", "Yu Gothic", "Meiryo", "Hiragino Sans", "IPAexGothic", "TakaoGothic",
        "Malgun Gothic", "NanumGothic", "AppleGothic",
    ],
    "Noto Serif CJK JP": ["SimSun", "NSimSun", "KaiTi", "FangSong", "STSong", "Songti SC", "Noto Serif CJK SC", "MS Mincho", "Batang"],
}  # fmt: skip

_saved = weakref.WeakKeyDictionary()  # figure -> what it held when the script saved it
_process = os.getpid()


def before(module):
    """Acts before one of matplotlib's modules is loaded: puts the image's list of fonts where matplotlib looks for its own."""
    if module.__name__ == "matplotlib.font_manager" and os.path.exists(FONT_LIST):
        with contextlib.suppress(Exception):
            os.symlink(FONT_LIST, os.path.join(matplotlib.get_cachedir(), "fontlist-v390.json"))


def after(module):
    """Acts after one of matplotlib's modules is loaded."""
    with contextlib.suppress(Exception):
        if module.__name__ == "matplotlib.font_manager":
            _add_fallback_fonts(module.FontManager)
        else:
            _watch_saving(module.FigureCanvasBase)
            _replace_windows()
            atexit.register(save_open_figures)


def save_open_figures():
    """Writes every open figure that the script has not saved as it stands now."""
    from matplotlib._pylab_helpers import Gcf

    if os.getpid() != _process:  # a fork that ends by itself still holds its parent's figures
        return
    for manager in Gcf.get_all_fig_managers():
        figure = manager.canvas.figure
        if len(figure.get_children()) > 1 and _saved.get(figure) != _contents(figure):
            _save(figure)


def _save(figure):
    path = _free_name()
    try:
        figure.savefig(path, format="png")
    except Exception as error:
        os.unlink(path)
        print(f"note: an open figure could not be drawn: {type(error).__name__}: {error}", file=sys.stderr)


def _free_name():
    for number in itertools.count(1):
        path = os.path.join(OUTPUT, f"figure-{number}.png")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            return path


def _contents(figure):
    """Tells a figure from the same figure cleared and drawn again, or with something added."""
    return [(id(part), len(part.get_children())) for part in (figure, *figure.axes)]


def _is_output(target):
    if isinstance(target, (str, os.PathLike)):
        return os.path.realpath(target).startswith(os.path.realpath(OUTPUT) + os.sep)
    return not isinstance(target, io.BytesIO)


def _watch_saving(canvas):
    print_figure = canvas.print_figure

    def print_and_remember(self, filename, *args, **kwargs):
        figure = self.figure
        result = print_figure(self, filename, *args, **kwargs)
        if _is_output(filename):
            _saved[figure] = _contents(figure)
        return result

    canvas.print_figure = print_and_remember


def _replace_windows():
    from matplotlib.backends.registry import BackendFilter, BackendRegistry

    load = BackendRegistry.load_backend_module

    def load_without_windows(self, backend):
        windowed = {name.lower() for name in self.list_builtin(BackendFilter.INTERACTIVE)}
        return load(self, f"module://{__name__}" if str(backend).lower() in windowed else backend)

    BackendRegistry.load_backend_module = load_without_windows


def _add_fallback_fonts(font_manager):
    find = font_manager._find_fonts_by_props

    def find_with_fallback(self, prop, fontext="ttf", *args, **kwargs):
        paths = find(self, prop, fontext, *args, **kwargs)
        return paths + [path for path in FALLBACK_FONTS if fontext == "ttf" and path not in paths]

    font_manager._find_fonts_by_props = find_with_fallback


def write_font_list():
    """Writes the image's list of fonts, stand-ins included. Called when the image is built."""
    from matplotlib import font_manager

    fonts = font_manager.FontManager()
    for family, names in STAND_INS.items():
        entries = [entry for entry in fonts.ttflist if entry.name == family]
        known = {entry.name for entry in fonts.ttflist}
        fonts.ttflist += [dataclasses.replace(e, name=n) for n in names if n not in known for e in entries]
    os.makedirs(os.path.dirname(FONT_LIST), exist_ok=True)
    font_manager.json_dump(fonts, FONT_LIST)


def __getattr__(name):
    """The backend itself, made on demand: its base classes load while this module is already in use."""
    if name not in ("FigureCanvas", "FigureManager"):
        raise AttributeError(name)
    from matplotlib._pylab_helpers import Gcf
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class FigureManager(FigureManagerBase):
        @classmethod
        def pyplot_show(cls, *, block=None):
            if block or (block is None and not matplotlib.is_interactive()):
                save_open_figures()
                Gcf.destroy_all()  # as when a person has closed the windows

        def show(self):
            """The figure is written when the script ends."""

    class FigureCanvas(FigureCanvasAgg):
        manager_class = FigureManager

        def start_event_loop(self, timeout=0):
            """No events will come: plt.pause() and plt.ginput() go on at once."""

    globals().update(FigureCanvas=FigureCanvas, FigureManager=FigureManager)
    return globals()[name]

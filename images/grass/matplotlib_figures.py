"""Matplotlib's backend in this runtime: figures that are shown, or still open at the end, and were not saved become figure-N.png."""

import atexit
import itertools
from pathlib import Path

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

folder = Path.cwd()


class FigureManager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *, block=None):
        for manager in Gcf.get_all_fig_managers():
            if not manager.canvas.saved:
                free = next(name for n in itertools.count(1) if not (name := folder / f"figure-{n}.png").exists())
                manager.canvas.print_figure(free)
        Gcf.destroy_all()


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager
    saved = False

    def print_figure(self, *args, **options):
        result = super().print_figure(*args, **options)
        self.saved = True
        return result


@atexit.register
def show_the_rest():
    try:
        FigureManager.pyplot_show()
    except Exception:  # a figure that cannot be drawn is no failure of the script
        pass

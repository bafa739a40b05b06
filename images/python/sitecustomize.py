"""Start-up of a job's Python: figures that nobody saves are kept, whatever backend the script asks for.

Nothing is imported here: scifarm_figures comes in when, and if, the script imports matplotlib.
"""

import sys
from _frozen_importlib_external import PathFinder


class _AroundImport:
    """Meta path finder that lets scifarm_figures act before and after two of matplotlib's modules are loaded."""

    hooked = {"matplotlib.font_manager", "matplotlib.backend_bases"}

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in cls.hooked:
            return None
        cls.hooked.remove(name)
        spec = PathFinder.find_spec(name, path, target)
        if spec is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            try:
                import scifarm_figures as figures
            except Exception:
                return load(module)
            figures.before(module)
            load(module)
            figures.after(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _AroundImport)

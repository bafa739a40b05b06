"""What is inside the images: packages, LaTeX styles, commands and fonts, as each image told when it was built."""

import json
from pathlib import Path
from typing import NamedTuple

from farm.job import Model

FONT = "font"


class Entry(Model):
    """Something that a runtime has; fonts have no version of their own."""

    runtime: str
    name: str
    version: str


class _Known(NamedTuple):
    exact: dict[str, list[Entry]]
    entries: list[Entry]


class Catalogue:
    """The catalogues under a folder, one NAME.json an image: {"packages": {name: version}, "fonts": [family]}.

    They are read at the first question and kept; a rebuilt image is seen when the process starts again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: _Known | None = None

    def search(self, text: str, limit: int = 40) -> list[Entry]:
        """What has this name, in any case; or, when nothing has, what has it as a part of its name."""
        wanted = _key(text.strip())
        if not wanted:
            return []
        known = self._load()
        found = known.exact.get(wanted) or [entry for entry in known.entries if wanted in entry.name.casefold()]
        return found[:limit]

    def having(self, name: str) -> list[Entry]:
        """What has exactly this name, in any case."""
        return self._load().exact.get(_key(name), [])

    def _load(self) -> _Known:
        if self._known is None:
            entries = [entry for path in sorted(self._folder.glob("*.json")) for entry in _entries(path)]
            exact: dict[str, list[Entry]] = {}
            for entry in entries:
                exact.setdefault(_key(entry.name), []).append(entry)
            self._known = _Known(exact, entries)
        return self._known


def _key(name: str) -> str:
    """What names are compared by: in no case, and LaTeX's styles and classes as they are loaded."""
    return name.casefold().removesuffix(".sty").removesuffix(".cls")


def _entries(path: Path) -> list[Entry]:
    told = json.loads(path.read_text(encoding="utf-8"))
    packages = [Entry(runtime=path.stem, name=name, version=version) for name, version in told["packages"].items()]
    return packages + [Entry(runtime=path.stem, name=name, version=FONT) for name in told.get("fonts", ())]

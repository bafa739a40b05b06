"""Why a script failed, where it is a package that is not there or a network that is not there."""

import re

from farm.catalogue import Catalogue
from farm.runtime import Runtime

MOST = 3  # packages that are named


def advise(printed: str, runtime: Runtime, catalogue: Catalogue) -> list[str]:
    """Notes on what a failed script printed: packages it missed and which runtime has them, and that it was offline."""
    found = [m.group(1) for pattern in runtime.missing for m in re.finditer(pattern, printed, re.MULTILINE)]
    notes = [_missing(name, runtime.name, catalogue) for name in dict.fromkeys(found[:MOST])]
    if any(re.search(pattern, printed, re.MULTILINE) for pattern in runtime.offline):
        notes.append(
            "jobs have no network, so nothing can be installed or fetched while one runs; "
            "send data as input_files, and ask list_runtimes(search=…) for what the images have"
        )
    return notes


def _missing(name: str, runtime: str, catalogue: Catalogue) -> str:
    top = re.split(r"[./]", name.removesuffix(".sty").removesuffix(".cls"))[0] or name
    others = [entry for entry in catalogue.having(top) if entry.runtime != runtime]
    if not others:
        return f"{name} is not in the {runtime} image, nor in another"
    where = ", ".join(f"{entry.runtime} ({entry.version})" for entry in others[:MOST])
    return f"{name} is not in the {runtime} image; it is in {where}"

"""The sized scratch of one job: an overlay of the staged inputs and a tmpfs, so that the script finds its inputs where
it stands, what it changes is exactly the upper layer, and the host's disk is never touched.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Self

from worker.mounts import MS_NODEV, MS_NOSUID, MS_RDONLY, MS_REMOUNT, mount, unmount

JOB_UID = 1000  # the user of every image, inside the worker's user namespace
INODES = 65_536  # files a job may have at a time; a tmpfs inode costs the host about a kilobyte
TMP = "/tmp"  # noqa: S108 (as the job sees its own)
SAFE = MS_NOSUID | MS_NODEV


class Workspace:
    """A slot: `input` is what was staged, `output` the working folder, `changed` what the job left in it.

    `home` and `tmp` are writable and thrown away; `bundle` is the worker's own and not shown to the job. Everything
    lies on one tmpfs of `scratch` bytes beside the inputs.
    """

    def __init__(self, folder: Path, scratch: int, staged: int) -> None:
        self.folder = folder
        self._options = f"size={scratch + staged + 2**20},nr_inodes={INODES},mode=755"
        self.input, self.changed, self.output = folder / "input", folder / "changed", folder / "output"
        self.home, self.tmp, self.bundle = folder / "home", folder / "tmp", folder / "bundle"
        self._work = folder / "work"
        self._overlaid = False

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True)
        mount("tmpfs", self.folder, SAFE, self._options)
        for path in (self.input, self.changed, self._work, self.home, self.tmp):
            path.mkdir()
            os.chown(path, JOB_UID, JOB_UID)
        self.tmp.chmod(0o1777)
        self.output.mkdir()
        self.bundle.mkdir(mode=0o700)
        return self

    def stage(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Put a file among the inputs: `write` fills it. `name` was checked to be relative and inside."""
        path = self.input / name
        for parent in reversed(path.relative_to(self.input).parents[:-1]):
            folder = self.input / parent
            if not folder.exists():
                folder.mkdir()
                os.chown(folder, JOB_UID, JOB_UID)
        with path.open("xb") as file:
            write(file)
            os.fchown(file.fileno(), JOB_UID, JOB_UID)

    def overlay(self) -> None:
        """Show the staged files in the working folder; from now on the inputs are complete."""
        layers = f"lowerdir={self.input},upperdir={self.changed},workdir={self._work},userxattr"
        mount("overlay", self.output, SAFE, layers)
        self._overlaid = True

    def stray(self) -> list[str]:
        """Files that the script left in TMP, where they are not kept."""
        with os.scandir(self.tmp) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return sorted(name for name in names if not name.startswith("."))

    def freeze(self) -> None:
        """Make all of it read-only: what is collected cannot change any more, by the kernel's word."""
        self._unmount_overlay()
        mount("tmpfs", self.folder, SAFE | MS_REMOUNT | MS_RDONLY, self._options)

    def __exit__(self, *_: object) -> None:
        self._unmount_overlay()
        unmount(self.folder)
        self.folder.rmdir()

    def _unmount_overlay(self) -> None:
        if self._overlaid:
            unmount(self.output)
            self._overlaid = False

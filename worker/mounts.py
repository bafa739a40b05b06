"""mount(2) and umount2(2), which the standard library does not have. Flags and errors as in their manual pages."""

import ctypes
import os
from pathlib import Path

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_REMOUNT = 32
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def mount(kind: str, target: Path, flags: int, options: str) -> None:
    """Mount a file system of `kind` on `target`.

    Raises:
        OSError: the kernel refuses; the errno is its reason.
    """
    done = _libc.mount(kind.encode(), bytes(target), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _check(done, f"mount {kind} on {target} ({options})")


def unmount(target: Path) -> None:
    """Take what is mounted on `target` away, now for everybody who looks and in the end when the last user is done."""
    _check(_libc.umount2(bytes(target), MNT_DETACH), f"unmount {target}")


def _check(done: int, what: str) -> None:
    if done != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")

"""From whoever typed the command to the user and the place where the farm runs.

As root the farm runs as the service user, with control groups delegated to it; as anybody else it runs as that user.
"""

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from farm.errors import Misconfigured
from worker.cage import ROOT, V1_CONTROLLERS
from worker.sandbox import in_user_namespace

_M_MMAP_THRESHOLD = -3  # malloc.h
SERVICE_USER = "scifarm"
SYSTEMD = Path("/run/systemd/system")
_SCOPE = "SCIFARM_IN_SCOPE"
_KEPT = ("TERM", "LANG", "COLUMNS", "NO_COLOR", "CI", "SSL_CERT_FILE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# A mount namespace of our own, in which cgroup v1 is not mixed with v2: crun refuses the mixture.
_PLACE = 'if mountpoint -q "$0"; then umount "$0"; fi; mount --make-rshared / && exec "$@"'


def as_service_user(command: Sequence[str]) -> None:
    """When called by root, become the service user and run `command` in its place; otherwise return.

    Raises:
        Misconfigured: there is no service user yet.
    """
    if os.geteuid() != 0 or in_user_namespace():
        return
    user = service_user()
    runtime_folder = Path(f"/run/user/{user.pw_uid}")
    if not runtime_folder.exists():
        runtime_folder.mkdir(parents=True, mode=0o700)
        os.chown(runtime_folder, user.pw_uid, user.pw_gid)
    _delegate(user, command)
    environment = {key: value for key, value in os.environ.items() if key in _KEPT or key.startswith("SCIFARM_")}
    environment |= {
        "HOME": user.pw_dir,
        "USER": user.pw_name,
        "XDG_RUNTIME_DIR": str(runtime_folder),
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "--"]
    place = ["unshare", "--mount", "--propagation=private", "sh", "-c", _PLACE, str(ROOT / "unified")]
    os.chdir(user.pw_dir)
    os.execvpe(place[0], [*place, *drop, *command], environment)


def service_user() -> pwd.struct_passwd:
    """The account that runs jobs.

    Raises:
        Misconfigured: it was not made yet.
    """
    try:
        return pwd.getpwnam(SERVICE_USER)
    except KeyError:
        raise Misconfigured(f"there is no user {SERVICE_USER!r}; `make setup` makes it") from None


def into_user_namespace(command: Sequence[str]) -> None:
    """Run `command` in podman's user namespace and a mount namespace of its own; return when we are there already.

    Podman's pause process holds the namespace. Joining it, rather than running below `podman unshare`, keeps the
    process id: whoever started us can still signal us. The mounts vanish with the last process inside.

    Raises:
        Misconfigured: podman cannot make the namespace.
    """
    if in_user_namespace():
        return
    made = subprocess.run(["podman", "unshare", "true"], capture_output=True, text=True, encoding="utf-8", check=False)
    pause = Path(os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "libpod/tmp/pause.pid"
    if made.returncode != 0 or not pause.exists():
        raise Misconfigured(
            f"`podman unshare` does not work: {made.stderr.strip()}; `scifarm doctor` looks for the reason"
        )
    join = [
        "nsenter",
        f"--target={pause.read_text(encoding='ascii').strip()}",
        "--user",
        "--mount",
        "--preserve-credentials",
    ]
    apart = ["unshare", "--mount", "--propagation=private"]
    environment = os.environ | {
        "_CONTAINERS_USERNS_CONFIGURED": "done",
        "_CONTAINERS_ROOTLESS_UID": str(os.getuid()),
        "_CONTAINERS_ROOTLESS_GID": str(os.getgid()),
    }
    os.execvpe(join[0], [*join, *apart, *command], environment)


def return_freed_memory() -> None:
    """Let every large block go back to the system when it is freed, for processes that live long and move big files.

    By itself glibc raises the size from which it does so to what was freed last, and keeps what is below in each
    thread's arena: mallopt(3), M_MMAP_THRESHOLD. Other C libraries do not have the call and need none.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


def own_command(*args: str) -> list[str]:
    """The command line of one of our own sub-commands."""
    return [sys.executable, "-m", "cli", *args]


def _delegate(user: pwd.struct_passwd, command: Sequence[str]) -> None:
    if not (ROOT / "cgroup.controllers").exists():
        for controller in V1_CONTROLLERS:
            folder = ROOT / controller / "scifarm"
            folder.mkdir(exist_ok=True)
            _give(user, folder)
        return
    own = ROOT / Path("/proc/self/cgroup").read_text(encoding="ascii").rpartition("0::/")[2].strip()
    if SYSTEMD.exists() and _SCOPE not in os.environ and not _delegated(own) and shutil.which("systemd-run"):
        scope = ["systemd-run", "--scope", "--quiet", "--property=Delegate=yes", f"--setenv={_SCOPE}=1"]
        os.execvpe(scope[0], [*scope, *own_command("enter", "--", *command)], os.environ | {_SCOPE: "1"})
    if SYSTEMD.exists():
        _give(user, own)
        return
    controllers = " ".join(f"+{name}" for name in ("memory", "pids", "cpu"))
    (ROOT / "cgroup.subtree_control").write_text(controllers, encoding="ascii")
    folder = ROOT / f"scifarm-{os.getpid()}"
    folder.mkdir()
    (folder / "cgroup.procs").write_text("0", encoding="ascii")
    _give(user, folder)


def _delegated(group: Path) -> bool:
    """Whether systemd left this group to us: a unit's with Delegate=yes, which must not be left for a scope."""
    try:
        return os.getxattr(group, "trusted.delegate") == b"1"
    except OSError:
        return False


def _give(user: pwd.struct_passwd, folder: Path) -> None:
    """Let a user make groups below `folder`: the folder and the files that cgroups(7) names for delegation."""
    for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"):
        path = folder / name
        if path.exists():
            os.chown(path, user.pw_uid, user.pw_gid)

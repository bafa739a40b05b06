"""A fresh rootless container a job.

Podman owns the images, the user namespace and the specification: once an image, a container is created and initialised
with the flags below, and what podman would have given to crun, its OCI runtime, is read and kept. A job is then crun on
that specification, with the job's own command, mounts and environment. That spares podman's client, conmon and the
locks of its store, which together cost several times what the kernel needs to start a container.
"""

import copy
import hashlib
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple

from farm.errors import FarmError
from farm.job import Limits
from farm.runtime import Runtime
from worker.cage import Cell
from worker.images import BuiltImage
from worker.launch import enter
from worker.seccomp import tighten
from worker.workspace import JOB_UID, Workspace

WORKING_FOLDER = "/sandbox/output"
LABEL = "scifarm"
FLAGS = (
    "--pull=never", "--init", "--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges",
    "--cgroups=disabled", "--ulimit=core=0:0", f"--user={JOB_UID}:{JOB_UID}", "--hostname=sandbox",
    f"--workdir={WORKING_FOLDER}", f"--label={LABEL}=spec",
)  # fmt: skip
# Made anew for each job, or of no use to it.
_REPLACED = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/dev/shm", "/sys/fs/cgroup",
             "/tmp", "/var/tmp", "/run", "/sandbox", WORKING_FOLDER}  # fmt: skip
_BIND = ["bind", "rprivate", "nosuid", "nodev"]


class SandboxError(FarmError):
    """The container could not be made or started: the farm's fault, not the script's."""

    kind = "sandbox"


class _Template(NamedTuple):
    root: str
    spec: dict[str, Any]


class Sandboxes:
    """Starts containers. `folder` is the worker's own, for crun's state and the files every container shows as /etc."""

    def __init__(self, folder: Path) -> None:
        self._crun = folder / "crun"
        self._etc = folder / "etc"
        self._crun.mkdir(parents=True, exist_ok=True)
        self._etc.mkdir(exist_ok=True)
        for name, text in (
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
            ("hostname", "sandbox\n"),
            ("resolv.conf", ""),
        ):
            (self._etc / name).write_text(text, encoding="ascii")
            (self._etc / name).chmod(0o444)
        self._owner = hashlib.sha256(bytes(folder)).hexdigest()[:12]
        self._templates: dict[str, _Template] = {}
        self._lock = threading.Lock()

    def prepare(self, image: BuiltImage) -> None:
        """Do now what the first job of this image would wait for."""
        self._template(image)

    def start(
        self, name: str, image: BuiltImage, runtime: Runtime, args: tuple[str, ...], limits: Limits,
        workspace: Workspace, cell: Cell, stdin: int, stdout: int, stderr: int,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Start the staged script in a new container `name` inside `cell`; `stdin` to `stderr` are descriptors.

        The returned process ends when the script does, with its exit code, or 128 plus the number of the signal that
        ended it.
        """
        template = self._template(image)
        spec = copy.deepcopy(template.spec)
        spec["process"]["args"] = [*spec["process"]["args"], *runtime.argv(args)]
        environment = _environment(spec["process"]["env"]) | runtime.environment(limits)
        spec["process"]["env"] = [f"{key}={value}" for key, value in environment.items()]
        spec["mounts"] += self._mounts(Path(template.root), environment["HOME"], limits, workspace)
        (workspace.bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")
        crun = ["crun", "--cgroup-manager=disabled", f"--root={self._crun}", f"--log={workspace.bundle / 'crun.log'}"]
        command = [*crun, "run", "--bundle", str(workspace.bundle), name]
        return subprocess.Popen(enter(cell, command), stdin=stdin, stdout=stdout, stderr=stderr, cwd="/")

    def failure(self, workspace: Workspace) -> str:
        """What crun had to say: empty unless it could not start the container."""
        try:
            return (workspace.bundle / "crun.log").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def discard(self, name: str) -> None:
        """Remove what crun remembers of a container whose processes are dead."""
        shutil.rmtree(self._crun / name, ignore_errors=True)

    def discard_all(self) -> None:
        """The same for every container of a former worker."""
        for path in self._crun.iterdir():
            self.discard(path.name)

    def _mounts(self, root: Path, home: str, limits: Limits, workspace: Workspace) -> list[dict[str, Any]]:
        binds = [
            (workspace.output, WORKING_FOLDER, []),
            (workspace.input, "/sandbox/input", ["ro"]),
            (workspace.home, home, []),
            (workspace.tmp, "/tmp", []),
            (workspace.tmp, "/var/tmp", []),
            # The image is read-only: where it lacks a file, nothing can be mounted on it.
            *(
                (file, f"/etc/{file.name}", ["ro"])
                for file in self._etc.iterdir()
                if (root / "etc" / file.name).exists()
            ),
        ]
        shared_memory = f"size={limits.memory // 2}"
        return [
            # /run comes first of all mounts in the template, for podman's init is shown in it.
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
             "options": ["nosuid", "noexec", "nodev", "mode=1777", shared_memory]},
            *({"destination": to, "type": "bind", "source": str(source), "options": _BIND + extra}
              for source, to, extra in binds),
        ]  # fmt: skip

    def _template(self, image: BuiltImage) -> _Template:
        with self._lock:
            if image.id not in self._templates:
                self._templates[image.id] = _template(image, f"{LABEL}-{self._owner}-{image.id[:12]}")
            return self._templates[image.id]


def _template(image: BuiltImage, name: str) -> _Template:
    """What podman gives to crun for a container of this image with our flags, less what each job has of its own.

    A container of this `name` that a former worker died over is replaced.
    """
    container = _podman("create", "--replace", f"--name={name}", *FLAGS, image.id, "SCRIPT")
    try:
        _podman("init", container)
        path = _podman("inspect", "--type=container", "--format={{.OCIConfigPath}}", container)
        spec = json.loads(Path(path).read_text(encoding="utf-8"))
    finally:
        _podman("rm", "--force", container)
    spec["root"] = {"path": _podman("image", "mount", image.id), "readonly": True}
    spec["process"]["args"] = [part for part in spec["process"]["args"] if part != "SCRIPT"]
    spec["process"]["env"] = [f"{k}={v}" for k, v in _environment(spec["process"]["env"]).items() if k != "TERM"]
    spec["annotations"] = {}
    spec["linux"]["seccomp"] = tighten(spec["linux"]["seccomp"])
    run = {"destination": "/run", "type": "tmpfs", "source": "run",
           "options": ["nosuid", "nodev", "noexec", "mode=755", "size=256k", "nr_inodes=32"]}  # fmt: skip
    spec["mounts"] = [run, *(m for m in spec["mounts"] if m["destination"] not in _REPLACED)]
    return _Template(spec["root"]["path"], spec)


def _environment(pairs: list[str]) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in pairs)


def _podman(*args: str) -> str:
    done = subprocess.run(["podman", *args], capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise SandboxError(f"podman {args[0]}: {done.stderr.strip()}; `scifarm doctor` looks for the reason")
    return done.stdout.strip()


def in_user_namespace() -> bool:
    """Whether this process is root of a user namespace that is not the machine's own."""
    mapping = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    return os.geteuid() == 0 and mapping[:3] != ["0", "0", "4294967295"]

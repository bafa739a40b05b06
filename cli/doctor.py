"""`scifarm doctor`: every precondition of a farm on this machine, and for each that fails the command that mends it."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

import httpx2
import magic
from rich.text import Text

from cli import show
from farm.errors import FarmError
from farm.policy import Policy
from farm.runtime import load_runtimes
from farm.settings import Settings
from storage.ledger import Ledger
from storage.objects import ObjectStore
from worker.cage import Cage
from worker.canary import prove
from worker.images import Images

GiB = 1024**3
ROOM = 5 * GiB  # that images, objects and logs want at least
SKEW = 60.0  # seconds: signed URLs fail in a quarter of an hour, leases are the ledger's own


class Finding(NamedTuple):
    """One precondition: whether it holds, what was seen, and what mends it."""

    what: str
    holds: bool
    seen: str
    mend: str = ""


def examine(settings: Settings) -> bool:
    """Look at everything, show it, and return whether all of it holds."""
    table = show.table("", "what", "seen")
    broken: list[Finding] = []
    with show.err.status("looking"):
        for finding in _findings(settings):
            table.add_row("[green]ok[/green]" if finding.holds else "[red]no[/red]", finding.what, Text(finding.seen))
            broken += [] if finding.holds else [finding]
    show.out.print(table)
    for finding in broken:
        show.out.print(Text(f"{finding.what}: {finding.mend}", style="red"), soft_wrap=True)
    return not broken


def _findings(settings: Settings) -> Iterator[Finding]:
    checks: list[Callable[[Settings], Iterator[Finding]]] = [
        _programs, _user, _caps, _libmagic, _policy, _redis, _store, _images, _disk,
    ]  # fmt: skip
    for check in checks:
        try:
            yield from check(settings)
        except (FarmError, OSError, subprocess.SubprocessError) as error:
            yield Finding(check.__name__.strip("_"), False, str(error), "see the message; `make setup` mends most")


def _programs(settings: Settings) -> Iterator[Finding]:
    wanted = ["podman", "crun", "nsenter", "unshare", "newuidmap", "mmdebstrap"]
    if settings.own_redis and not shutil.which("valkey-server"):
        wanted.append("redis-server")
    for program in wanted:
        path = shutil.which(program)
        if program == "mmdebstrap" and not path:
            yield Finding(program, True, "missing: needed only where no registry answers")
            continue
        seen = _version(program) if path and program in ("podman", "crun") else (path or "missing")
        yield Finding(program, path is not None, seen, "`make setup` installs it")


def _version(program: str) -> str:
    lines = _output(program, "--version").splitlines()
    return lines[0] if lines else ""


def _user(_: Settings) -> Iterator[Finding]:
    name = _output("id", "-un")
    for kind in ("uid", "gid"):
        file = Path(f"/etc/sub{kind}")
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        count = sum(int(line.split(":")[2]) for line in lines if line.split(":")[0] == name)
        mend = f"`sudo usermod --add-sub{kind}s 100000-165535 {name}`, then `podman system migrate`"
        yield Finding(f"sub-{kind}s", count >= 65536, f"{name} has {count}", mend)
    apart = subprocess.run(["podman", "unshare", "true"], capture_output=True, text=True, encoding="utf-8", check=False)
    yield Finding("user namespace", apart.returncode == 0, apart.stderr.strip() or "podman unshare works",
                  "`podman system migrate`; is user.max_user_namespaces above 0?")  # fmt: skip
    driver = _output("podman", "info", "--format={{.Store.GraphDriverName}}")
    mend = 'write driver = "overlay" below [storage] in ~/.config/containers/storage.conf, then `podman system reset`'
    yield Finding("overlay driver", driver == "overlay", driver, mend)


def _caps(settings: Settings) -> Iterator[Finding]:
    cage = Cage.find(settings.cgroup, "doctor")
    for proof in prove(cage):
        mend = "the kernel ignores this cap: is its controller enabled (cgroup_enable=memory swapaccount=1)?"
        yield Finding(f"cap on {proof.cap}", proof.holds, f"{proof.seen} (cgroup v{cage.version})", mend)
    cage.close()


def _libmagic(_: Settings) -> Iterator[Finding]:
    told = magic.from_buffer(b"%PDF-1.7\n", mime=True)
    yield Finding("libmagic", told == "application/pdf", f"a PDF is {told}", "`make setup` installs libmagic1")


def _policy(settings: Settings) -> Iterator[Finding]:
    policy = Policy.load(settings.policy)
    yield Finding("policy", True, f"{settings.policy}, {len(policy.tenants)} tenants")


def _redis(settings: Settings) -> Iterator[Finding]:
    socket = settings.redis_url.removeprefix("unix://")
    if settings.own_redis and not Path(socket).exists():
        yield Finding("Redis", True, "`scifarm up` starts it; none runs now")
        return
    Ledger(settings.redis_url).ping()
    yield Finding("Redis", True, f"answers at {socket}")


def _store(settings: Settings) -> Iterator[Finding]:
    if settings.own_s3:
        program = Path(sys.executable).with_name("rclone")
        yield Finding("rclone", program.exists(), str(program), "`make setup` installs it")
    try:
        answer = httpx2.get(settings.s3_endpoint, timeout=5)
    except httpx2.HTTPError as error:
        seen = "`scifarm up` starts it; none runs now" if settings.own_s3 else f"{settings.s3_endpoint}: {error}"
        yield Finding("S3", settings.own_s3, seen, "is SCIFARM_S3_ENDPOINT right, and the server up?")
        return
    ObjectStore(settings).ensure_bucket()
    yield Finding("S3", True, f"bucket {settings.s3_bucket} at {settings.s3_endpoint}")
    if "date" in answer.headers:
        skew = abs(parsedate_to_datetime(answer.headers["date"]).timestamp() - time.time())
        yield Finding("clock", skew < SKEW, f"{skew:.0f} s from the store's", "`sudo timedatectl set-ntp true`")


def _images(settings: Settings) -> Iterator[Finding]:
    images = Images(settings.images, settings.image_register)
    present = set(_output("podman", "images", "--quiet", "--no-trunc").replace("sha256:", "").split())
    for name in load_runtimes(settings.images):
        image = images.built().get(name)
        mend = f"`scifarm images build {name}`"
        if image is None or image.id not in present:
            yield Finding(f"image {name}", False, "missing", mend)
        else:
            current = image.tag == images.tag(name)
            yield Finding(f"image {name}", current, "current" if current else "its folder changed since", mend)


def _disk(settings: Settings) -> Iterator[Finding]:
    store = Path(_output("podman", "info", "--format={{.Store.GraphRoot}}"))
    mend = f"make room: at least {ROOM / GiB:.0f} GiB; `podman image prune` removes unused images"
    for what, folder in (("state", settings.state), ("podman's store", store)):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(there).free
        yield Finding(f"room for {what}", free > ROOM, f"{free / GiB:.0f} GiB free at {there}", mend)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False).stdout.strip()

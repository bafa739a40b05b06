"""Images: built once for each content of their folder, pinned by ID, listed in a register that workers read.

The base comes from a registry where one answers, and otherwise from the distribution's own packages.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import podman
from podman.domain.images import Image as PodmanImage
from podman.errors import APIError, ImageNotFound
from pydantic import TypeAdapter

from farm.errors import FarmError, Misconfigured
from farm.job import Model
from farm.runtime import BASE, BaseImage, folder_hash, load_runtimes

DISTRIBUTION, SUITE = "debian", "trixie"
HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
CATALOGUE = "/usr/share/scifarm/catalogue.json"
Say = Callable[[str], None]


class BuildFailed(FarmError):
    """An image could not be built."""

    kind = "build_failed"


class BuiltImage(Model):
    """An image as it was built: its tag names the content of its folder."""

    name: str
    tag: str
    id: str
    digest: str
    size: int
    seconds: float
    built: float


_REGISTER = TypeAdapter(dict[str, BuiltImage])


class Images:
    """The images of the runtimes under `folder`, and the `register` of what this user has built of them."""

    def __init__(self, folder: Path, register: Path) -> None:
        self.folder = folder
        self.catalogues = register.with_name("catalogue")
        self._path = register
        self._seen: tuple[int, dict[str, BuiltImage]] = (0, {})
        self._tags: dict[str, str] = {}

    def tag(self, name: str) -> str:
        """The tag that the image of this folder has when it is up to date. (A process reads each folder once.)"""
        if name not in self._tags:
            self._tags[name] = self._current_tag(name)
        return self._tags[name]

    def _current_tag(self, name: str) -> str:
        content = folder_hash(self.folder / name)
        if name != BASE and self._own_base(name) is None:
            content = f"{content[:8]}{folder_hash(self.folder / BASE)[:8]}"
        return f"localhost/scifarm-{name}:{content}"

    def built(self) -> dict[str, BuiltImage]:
        """What was built on this machine, by name; read again only when it changed."""
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if self._seen[0] != changed:
            self._seen = (changed, _REGISTER.validate_json(self._path.read_bytes()))
        return self._seen[1]

    def build(self, names: list[str], say: Say) -> list[BuiltImage]:
        """Build what is not up to date, the base first; returns all that were asked for.

        Raises:
            Misconfigured: there is no such folder.
            BuildFailed: with the last lines that podman printed.
        """
        if unknown := [name for name in names if not (self.folder / name / "Containerfile").is_file()]:
            raise Misconfigured(f"no images/{unknown[0]}/Containerfile under {self.folder}")
        with podman_api() as client:
            return [self._one(client, name, say) for name in names]

    def _one(self, client: podman.PodmanClient, name: str, say: Say) -> BuiltImage:
        tag = self.tag(name)
        known = self.built().get(name)
        image = _find(client, tag)
        if image is not None and known is not None and known.tag == tag and known.id == image.id:
            say(f"{name}: up to date")
            return known
        start = time.monotonic()
        if image is None:
            base = self._base(client, name, say)
            _build(name, self.folder / name, tag, base, say)
            image = _find(client, tag)
            if image is None:
                raise BuildFailed(f"{name}: podman built no {tag}")
        done = BuiltImage(
            name=name, tag=tag, id=str(image.id), digest=str(image.attrs["Digest"]), size=int(image.attrs["Size"]),
            seconds=round(time.monotonic() - start, 1), built=time.time(),
        )  # fmt: skip
        if name != BASE:
            self._keep_catalogue(done)
        self._register(done)
        _prune(client, name, tag)
        return done

    def _base(self, client: podman.PodmanClient, name: str, say: Say) -> str:
        """The tag of what the image of `name` is built on, made where it is missing."""
        own = self._own_base(name)
        if name != BASE and own is None:
            return self._one(client, BASE, say).tag
        wanted = own or BaseImage(image=f"{DISTRIBUTION}:{SUITE}-slim", suite=SUITE)
        tag = f"localhost/scifarm-{wanted.image.replace(':', '-')}:{wanted.suite}"
        if _find(client, tag) is None:
            _bootstrap(name, wanted, tag, say)
        return tag

    def _own_base(self, name: str) -> BaseImage | None:
        return None if name == BASE else load_runtimes(self.folder)[name].base

    def _keep_catalogue(self, image: BuiltImage) -> None:
        """Copy what the image tells of itself to where it is read without starting a container."""
        command = [
            "podman",
            "run",
            "--rm",
            "--network=none",
            "--cgroups=disabled",
            "--pull=never",
            image.id,
            "cat",
            CATALOGUE,
        ]
        told = subprocess.run(command, capture_output=True, check=False, cwd="/")
        if told.returncode == 0:
            self.catalogues.mkdir(parents=True, exist_ok=True)
            (self.catalogues / f"{image.name}.json").write_bytes(told.stdout)

    def _register(self, image: BuiltImage) -> None:
        entries = self.built() | {image.name: image}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        draft.write_bytes(_REGISTER.dump_json(entries, indent=2))
        draft.replace(self._path)


def _bootstrap(name: str, wanted: BaseImage, tag: str, say: Say) -> None:
    """Give `tag` to the base of an image: from a registry where one answers, else made from the suite's packages."""
    say(f"{name}: asking the registry for {wanted.image}")
    pull = ["podman", "pull", "--quiet", wanted.image]
    if subprocess.run(pull, capture_output=True, timeout=600, check=False).returncode == 0:
        _run(["podman", "tag", wanted.image, tag], name, say)
        return
    say(f"{name}: no registry answers; making {wanted.suite} from its packages (about 20 s)")
    with tempfile.TemporaryDirectory(prefix="scifarm-") as folder:
        archive = str(Path(folder) / "base.tar")
        make = ["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet", wanted.suite, archive]
        _run(["podman", "unshare", *make], name, say)
        _run(["podman", "import", "--quiet", archive, tag], name, say)


def _build(name: str, folder: Path, tag: str, base: str, say: Say) -> None:
    """Build with the host's network; its certificates are at hand for pip, for it may reach its mirror by a proxy."""
    say(f"{name}: building {tag}")
    command = ["podman", "build", "--isolation=chroot", "--network=host", "--pull=never", "--layers",
               f"--build-arg=BASE={base}", f"--tag={tag}", f"--label=scifarm.runtime={name}"]  # fmt: skip
    if HOST_CERTIFICATES.exists():
        command += [
            f"--volume={HOST_CERTIFICATES.resolve()}:/run/host-certificates:ro",
            "--build-arg=PIP_CERT=/run/host-certificates",
        ]
    _run([*command, str(folder)], name, say)


def _run(command: list[str], name: str, say: Say) -> None:
    last: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        encoding="utf-8", errors="replace", cwd="/",
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            last = [*last[-29:], line.rstrip()]
            if line.startswith(("STEP", "Setting up", "I: ")):
                say(f"{name}: {line.strip()}")
    if process.returncode != 0:
        tail = "\n".join(last)
        raise BuildFailed(f"{name}: `{' '.join(command[:3])} …` ended with {process.returncode}:\n{tail}")


def _find(client: podman.PodmanClient, tag: str) -> PodmanImage | None:
    try:
        return client.images.get(tag)
    except ImageNotFound:
        return None


def _prune(client: podman.PodmanClient, name: str, keep: str) -> None:
    """Remove the tags of former contents, and what only they named; an image that a worker still shows stays."""
    for image in client.images.list(filters={"label": f"scifarm.runtime={name}"}):
        for tag in image.tags:
            if tag.startswith(f"localhost/scifarm-{name}:") and tag != keep:
                with suppress(APIError):
                    client.images.remove(tag)


@contextmanager
def podman_api() -> Iterator[podman.PodmanClient]:
    """A client of podman's REST API, on a socket that lives as long as the block."""
    with tempfile.TemporaryDirectory(prefix="scifarm-") as folder:
        socket = Path(folder) / "podman.sock"
        service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
        )  # fmt: skip
        try:
            _await(socket, service)
            with podman.PodmanClient(base_url=f"unix://{socket}", timeout=600) as client:
                yield client
        finally:
            service.terminate()
            service.wait()


def _await(socket: Path, service: subprocess.Popen[bytes], patience: float = 120.0) -> None:
    deadline = time.monotonic() + patience
    while not socket.exists():
        if service.poll() is not None:
            assert service.stderr is not None
            raise Misconfigured(f"podman does not run: {service.stderr.read().decode(errors='replace').strip()}")
        if time.monotonic() > deadline:
            raise Misconfigured(f"podman's service made no socket within {patience:g} s")
        time.sleep(0.01)


def example_names(folder: Path) -> list[str]:
    """Every folder under images/ that has a Containerfile, the base first."""
    found = sorted(path.parent.name for path in folder.glob("*/Containerfile"))
    return sorted(found, key=lambda name: name != BASE)

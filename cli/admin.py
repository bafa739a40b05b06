"""The commands of whoever runs a farm."""

import secrets
import sys
import time
from pathlib import Path

import click
from rich.text import Text

from cli import show
from cli.client import FarmClient
from cli.host import as_service_user, into_user_namespace, own_command, return_freed_memory
from farm.errors import InvalidRequest
from farm.job import Status
from farm.names import shown
from farm.policy import Policy, token_digest
from farm.runtime import load_runtimes
from farm.settings import Settings
from worker.images import Images, example_names

POLICY = Path(__file__).with_name("policy.yaml")


def clock(seconds: float) -> str:
    """A time of day for people, with its date."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


@click.command()
@click.pass_obj
def up(settings: Settings) -> None:
    """The whole farm in the foreground: Redis, S3, housekeeping, worker, api. Ctrl-C stops all of it."""
    from cli.up import run_farm  # noqa: PLC0415 (the process manager is slow to import)

    as_service_user(own_command("up"))
    run_farm(settings)


@click.command(hidden=True)
@click.pass_obj
def worker(settings: Settings) -> None:
    """One worker, in the foreground."""
    as_service_user(own_command("worker"))
    into_user_namespace(own_command("worker"))
    return_freed_memory()
    from worker.main import run_worker  # noqa: PLC0415 (Celery is slow to import)

    run_worker(settings)


@click.command(hidden=True)
@click.pass_obj
def housekeeping(settings: Settings) -> None:
    """Celery beat and the sweeper, in the foreground."""
    as_service_user(own_command("housekeeping"))
    return_freed_memory()
    from worker.main import run_housekeeping  # noqa: PLC0415

    run_housekeeping(settings)


@click.command(hidden=True)
@click.pass_obj
def api(settings: Settings) -> None:
    """The HTTP front end, in the foreground."""
    as_service_user(own_command("api"))
    return_freed_memory()
    from api.main import run_http  # noqa: PLC0415

    run_http(settings)


@click.command()
@click.pass_obj
def mcp(settings: Settings) -> None:
    """MCP on stdin and stdout, for clients that start their servers."""
    as_service_user(own_command("mcp"))
    from api.main import run_stdio  # noqa: PLC0415

    run_stdio(settings)


@click.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True)
def enter(command: tuple[str, ...]) -> None:
    """Run COMMAND as the service user, where the farm runs."""
    import os  # noqa: PLC0415

    as_service_user(command)
    os.execvp(command[0], command)


@click.group()
def images() -> None:
    """The images of the runtimes."""


@images.command("build")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.pass_obj
def build(settings: Settings, names: tuple[str, ...]) -> None:
    """Build the images that changed since they were built: those named, or all."""
    as_service_user(own_command("images", "build", *names))
    every = Images(settings.images, settings.image_register)
    with show.err.status("images") as line:
        told = line.update if show.err.is_terminal else show.err.print
        done = every.build(list(names) or example_names(settings.images), lambda text: told(Text(text[:160])))
    table = show.table("image", "size", "digest", "seconds")
    for image in done:
        table.add_row(image.name, f"{image.size / 1e6:,.0f} MB", image.digest[:19], f"{image.seconds:.1f}")
    show.out.print(table)


@images.command("list")
@click.pass_obj
def list_images(settings: Settings) -> None:
    """The images that are built, and whether they are up to date."""
    as_service_user(own_command("images", "list"))
    every = Images(settings.images, settings.image_register)
    table = show.table("image", "state", "size", "digest", "built")
    for name in example_names(settings.images):
        image = every.built().get(name)
        if image is None:
            table.add_row(name, "[red]missing[/red]")
        else:
            state = "[green]current[/green]" if image.tag == every.tag(name) else "[yellow]outdated[/yellow]"
            table.add_row(name, state, f"{image.size / 1e6:,.0f} MB", image.digest[:19], clock(image.built))
    show.out.print(table)


@images.command("test")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@click.pass_obj
def test_images(settings: Settings, names: tuple[str, ...]) -> None:
    """Run the smoke scripts of the runtimes on the running farm: those named, or all."""
    client = FarmClient(settings)
    table = show.table("runtime", "status", "seconds", "left")
    failed = False
    for name in names or load_runtimes(settings.images):
        smoke = next(iter((settings.images / name).glob("smoke.*")), None)
        if smoke is None:
            raise InvalidRequest(f"{name}: there is no images/{name}/smoke.*")
        with show.progress(name) as tell:
            script = smoke.read_text(encoding="utf-8")
            result = client.job("run_script", tell, runtime=name, script=script, timeout=300, memory="4GiB", wait=300)
        failed = failed or result.status is not Status.SUCCEEDED
        left = ", ".join(shown(output.name) for output in result.outputs)
        table.add_row(name, show.status_text(result.status), f"{result.usage.wall_s:.1f}", Text(left))
        if result.status is not Status.SUCCEEDED:
            show.job(result)
    show.out.print(table)
    sys.exit(1 if failed else 0)


@click.command()
@click.pass_obj
def doctor(settings: Settings) -> None:
    """Check everything that a farm on this machine needs, and say how to mend what is wrong."""
    as_service_user(own_command("doctor"))
    from cli.doctor import examine  # noqa: PLC0415

    sys.exit(0 if examine(settings) else 1)


@click.group()
def token() -> None:
    """Tokens of tenants."""


@token.command("new")
@click.argument("name")
def new_token(name: str) -> None:
    """Make a token for tenant NAME. It is shown once; the policy holds only its hash."""
    made = secrets.token_urlsafe(32)
    print(made)
    show.err.print(Text(f"add to the policy file:\n\ntenants:\n  {name}:\n    token_sha256: [{token_digest(made)}]"))


@click.group()
def policy() -> None:
    """The policy file."""


@policy.command("init")
@click.pass_obj
def init_policy(settings: Settings) -> None:
    """Write a policy file with this farm's defaults, unless there is one."""
    as_service_user(own_command("policy", "init"))
    write_policy(settings.policy)
    show.err.print(Text(f"{settings.policy}"))


def write_policy(path: Path) -> bool:
    """Write the default policy unless there is a file; returns whether it was written."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(POLICY.read_text(encoding="utf-8"), encoding="utf-8")
    Policy.load(path)
    return True


COMMANDS = (up, worker, housekeeping, api, mcp, enter, images, doctor, token, policy)

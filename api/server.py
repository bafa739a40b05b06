"""The MCP tools."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from api.dispatch import Dispatch, Tell
from api.request import Amount, InputFiles, RunRequest, Size, Strings, explain
from api.text import describe
from farm.catalogue import Entry
from farm.errors import FarmError, InvalidRequest, TryAgain
from farm.job import JobRecord, JobResult, Limits, Model, Status
from farm.names import shown
from farm.runtime import Runtime

WAIT = 45.0  # seconds that run_script waits by itself: under the usual time limit of clients
LONGEST_WAIT = 600.0
TenantOf = Callable[[Context[Any, Any]], str]

INSTRUCTIONS = """\
Runs scripts in R, Python and other scientific languages, each in a fresh container without network.
The working folder holds the script and the input_files under their names; read them by relative path. Every file that
the script leaves there comes back as a link. Save figures to files (PNG, PDF, SVG). Nothing is kept between jobs.
run_script waits for the result; a long job answers its job_id, which get_job(wait=…) takes. list_runtimes tells what
each runtime has, its limits and an example."""

JobId = Annotated[str, Field(description="as run_script answered it")]
Wait = Annotated[float, Field(description="seconds to wait for the result")]


class JobLine(Model):
    """A job in a list."""

    job_id: str
    status: Status
    runtime: str
    label: str
    created: float


class JobList(Model):
    """A tenant's newest jobs."""

    jobs: list[JobLine]


class RuntimeInfo(Model):
    """A runtime as callers see it."""

    name: str
    version: str
    description: str
    example: str


class RuntimeList(Model):
    """What can be run, within which limits."""

    runtimes: list[RuntimeInfo]
    found: tuple[Entry, ...] = ()
    defaults: Limits
    ceilings: Limits


class StrictTool(Tool):
    """A tool that refuses fields it does not know, and whose errors are sentences."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        """Run the tool; the SDK's errors are put in the farm's words."""
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(explain(cause, self.fn_metadata.arg_model.model_fields)) from cause
            if isinstance(cause, FarmError):
                raise ToolError(str(cause)) from cause
            raise


def build_server(dispatch: Dispatch, tenant_of: TenantOf, version: str) -> MCPServer[Any]:
    """The MCP server over one dispatch; `tenant_of` tells who calls."""
    tools = Tools(dispatch, tenant_of)
    read = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    run = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
    stop = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
    return MCPServer(
        "scifarm",
        title="scifarm",
        version=version,
        instructions=INSTRUCTIONS,
        tools=[
            _tool(tools.run_script, "Run a script", run),
            _tool(tools.get_job, "Ask for a job", read),
            _tool(tools.cancel_job, "Cancel a job", stop),
            _tool(tools.list_jobs, "List jobs", read),
            _tool(tools.list_runtimes, "List runtimes", read),
        ],
        log_level="WARNING",
    )


def _tool(function: Callable[..., Any], title: str, annotations: ToolAnnotations) -> Tool:
    tool = StrictTool.from_function(function, title=title, annotations=annotations)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = _lean(arguments.model_json_schema(), _NOISE)
    if tool.fn_metadata.output_schema:
        tool.fn_metadata.output_schema = _lean(tool.fn_metadata.output_schema, _NOISE_IN_ANSWERS)
    return tool


# Bounds and patterns are checked all the same, and refused in a sentence.
_NOISE = frozenset({"title", "pattern", "minimum", "exclusiveMinimum", "ge"})
_NOISE_IN_ANSWERS = _NOISE | {"default", "additionalProperties", "description"}


def _lean(schema: Any, noise: frozenset[str], inside: str = "") -> Any:
    """A JSON schema without what every prompt would pay for and no model needs."""
    if isinstance(schema, list):
        return [_lean(part, noise) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if inside in ("properties", "$defs"):
        return {name: _lean(part, noise) for name, part in schema.items()}
    kept = {key: _lean(part, noise, key) for key, part in schema.items() if key not in noise}
    if "properties" in schema:
        kept.pop("description", None)
    if kept.get("default", ...) is None:
        del kept["default"]
    choices = kept.get("anyOf", ())
    if choices and all(set(choice) == {"type"} for choice in choices):
        del kept["anyOf"]
        kept["type"] = [choice["type"] for choice in choices]
    return kept


class Tools:
    """The tools' bodies. Their docstrings and parameters are what a model reads."""

    def __init__(self, dispatch: Dispatch, tenant_of: TenantOf) -> None:
        self._dispatch = dispatch
        self._tenant_of = tenant_of

    async def run_script(
        self,
        ctx: Context[Any, Any],
        runtime: Annotated[str, Field(description="a name from list_runtimes, such as python")],
        script: Annotated[str, Field(description="the script's text")],
        input_files: Annotated[
            InputFiles | None, Field(description='{"name": base64} or {"name": {"text": "…"}}; sub-folders are fine')
        ] = None,
        args: Strings | None = None,
        stdin: str | None = None,
        timeout: Annotated[Amount | None, Field(description="seconds")] = None,
        memory: Annotated[Size | None, Field(description='such as "2GiB"')] = None,
        cpus: Amount | None = None,
        label: str | None = None,
        wait: Wait = WAIT,
    ) -> Annotated[CallToolResult, JobResult]:
        """Run a script in a fresh container and return its output and links to the files it wrote."""
        request = RunRequest.parse(
            {
                "runtime": runtime,
                "script": script,
                "input_files": input_files,
                "args": args,
                "stdin": stdin,
                "timeout": timeout,
                "memory": memory,
                "cpus": cpus,
                "label": label,
            }
        )
        seconds = _checked_wait(wait)
        tenant = self._tenant_of(ctx)
        record = await asyncio.to_thread(self._dispatch.accept, tenant, request)
        try:
            return await self._answer(ctx, tenant, record.job_id, seconds)
        except TryAgain as error:  # the job is accepted: a caller who is not told its id would send it twice
            return self._result(record, f"accepted, but {error}")

    async def get_job(
        self, ctx: Context[Any, Any], job_id: JobId, wait: Wait = 0
    ) -> Annotated[CallToolResult, JobResult]:
        """The status and, once it has ended, the result of a job, with fresh links."""
        return await self._answer(ctx, self._tenant_of(ctx), job_id, _checked_wait(wait))

    async def cancel_job(self, ctx: Context[Any, Any], job_id: JobId) -> Annotated[CallToolResult, JobResult]:
        """Stop a job, or take it out of the queue. What it printed and wrote so far is kept."""
        tenant = self._tenant_of(ctx)
        record, met = await asyncio.to_thread(self._dispatch.cancel, tenant, job_id)
        if not met:
            return self._result(record, f"nothing to cancel: the job had ended before ({record.status})")
        record = await self._dispatch.wait(tenant, job_id, 5.0, _silent)
        return self._result(record)

    async def list_jobs(
        self,
        ctx: Context[Any, Any],
        status: Annotated[str | None, Field(description="only these, such as running or failed")] = None,
        limit: int = 20,
    ) -> JobList:
        """Your newest jobs."""
        records = await asyncio.to_thread(self._dispatch.list, self._tenant_of(ctx), _statuses(status), limit)
        return JobList(jobs=[_line(record) for record in records])

    async def list_runtimes(
        self,
        search: Annotated[str | None, Field(description="a package, command, LaTeX style or font")] = None,
    ) -> RuntimeList:
        """The languages with an example each, and the limits of a job; or which of them has what you search for."""
        policy = self._dispatch.policy
        found = await asyncio.to_thread(self._dispatch.catalogue.search, search) if search else []
        found = [entry for entry in found if policy.allows(entry.runtime)]
        wanted = {entry.runtime for entry in found} if search else None
        runtimes = [r for r in self._dispatch.runtimes.values() if policy.allows(r.name)]
        return RuntimeList(
            runtimes=[_info(r) for r in runtimes if wanted is None or r.name in wanted],
            found=tuple(found),
            defaults=policy.defaults,
            ceilings=policy.ceilings,
        )

    async def _answer(self, ctx: Context[Any, Any], tenant: str, job_id: str, seconds: float) -> CallToolResult:
        record = await self._dispatch.wait(tenant, job_id, seconds, _progress(ctx))
        return self._result(record)

    def _result(self, record: JobRecord, note: str | None = None) -> CallToolResult:
        result = self._dispatch.answer(record)
        text = describe(result, lambda output: self._dispatch.short_url(record, output))
        return CallToolResult(
            content=[TextContent(type="text", text=f"{note}\n{text}" if note else text)],
            structured_content=result.model_dump(mode="json"),
        )


def _progress(ctx: Context[Any, Any]) -> Tell:
    """Tell a client that asked for progress how its job stands."""
    steps = itertools.count(1)

    async def tell(event: dict[str, str]) -> None:
        if text := _event_text(event):
            await ctx.report_progress(next(steps), message=text)

    return tell


def _event_text(event: dict[str, str]) -> str:
    match event:
        case {"status": "queued", "ahead": ahead}:
            return f"queued, {ahead} ahead"
        case {"status": "uploading"}:
            return "collecting outputs"
        case {"status": status}:
            return status
        case {"text": text}:
            newest = text.rstrip().rpartition("\n")[2]
            return f"running: {shown(newest[-200:])}"
        case _:
            return ""


async def _silent(_: dict[str, str]) -> None:
    return None


def _checked_wait(seconds: float) -> float:
    if not 0 <= seconds <= LONGEST_WAIT:
        raise InvalidRequest(f"wait={seconds:g}: 0 to {LONGEST_WAIT:g} seconds are allowed")
    return seconds


def _statuses(text: str | None) -> list[Status] | None:
    if not text:
        return None
    try:
        return [Status(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise InvalidRequest(f"status={text!r}: known are {', '.join(Status)}") from None


def _line(record: JobRecord) -> JobLine:
    return JobLine(
        job_id=record.job_id, status=record.status, runtime=record.spec.runtime, label=record.spec.label,
        created=record.created,
    )  # fmt: skip


def _info(runtime: Runtime) -> RuntimeInfo:
    return RuntimeInfo.model_validate(runtime.model_dump(include=set(RuntimeInfo.model_fields)))

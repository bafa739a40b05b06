"""The nouns of the farm: what a job is asked to be, what it became, and what it left behind."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ByteSize, ConfigDict, Field

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Model(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Status(StrEnum):
    """Where a job stands. The first four are on the way, the others final."""

    AWAITING_APPROVAL = "awaiting_approval"
    QUEUED = "queued"
    RUNNING = "running"
    UPLOADING = "uploading"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    CANCELLED = "cancelled"
    LOST = "lost"
    ERROR = "error"

    @property
    def final(self) -> bool:
        """Whether the job will never change again."""
        return self not in _ON_THE_WAY


_ON_THE_WAY = {Status.AWAITING_APPROVAL, Status.QUEUED, Status.RUNNING, Status.UPLOADING}


class Limits(Model):
    """The caps of one job.

    memory: bytes, swap and files in scratch included; cpus: cores' worth of time; timeout: wall seconds;
    pids: processes and threads; scratch: bytes the job may write, outputs and temporary files together.
    """

    memory: ByteSize = Field(ge=16 * 1024**2)
    cpus: float = Field(gt=0, allow_inf_nan=False)
    timeout: float = Field(gt=0, allow_inf_nan=False)
    pids: int = Field(ge=8)
    scratch: ByteSize = Field(ge=1024**2)


class InputFile(Model):
    """A file staged into the working folder: its relative name, and the object that holds its bytes."""

    name: str
    bytes: int = Field(ge=0)
    sha256: Sha256


class JobSpec(Model):
    """All that is needed to run a job, and to run it again."""

    runtime: str
    script: str = Field(min_length=1)
    inputs: tuple[InputFile, ...] = ()
    args: tuple[str, ...] = ()
    stdin: str = ""
    label: str = ""
    limits: Limits


class Artifact(Model):
    """A file that a job made.

    In the ledger `url` and `expires_in` (seconds) are empty: they are filled in when somebody asks, for that caller.
    `text` is the content of a text file under 4 KB.
    """

    name: str
    bytes: int = Field(ge=0)
    sha256: Sha256
    mime: str
    url: str | None = None
    expires_in: int | None = None
    text: str | None = None


class Rejected(Model):
    """A path in the working folder that was not taken as an output, and why."""

    name: str
    reason: str


class Usage(Model):
    """What a job used: seconds in the queue, wall and CPU seconds, and the memory peak in bytes."""

    queued_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0


class Image(Model):
    """The image a job ran in, pinned by the digest of its content."""

    name: str
    digest: str


class Problem(Model):
    """Why the farm, not the script, failed: a kind for programs and a message for people."""

    kind: str
    message: str


class JobResult(Model):
    """The answer about a job, the same in MCP, in the CLI's --json and in the ledger."""

    job_id: str
    status: Status
    runtime: str
    label: str = ""
    exit_code: int | None = None
    signal: str | None = None
    stdout: str = ""
    stderr: str = ""
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    outputs: tuple[Artifact, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    usage: Usage = Usage()
    limits: Limits
    image: Image | None = None
    attempt: int = 0
    notes: tuple[str, ...] = ()
    error: Problem | None = None


class JobRecord(Model):
    """A job as the ledger knows it. Times are seconds since the epoch by the ledger's clock.

    `prefix` is the unguessable part of its outputs' keys, `link` that of its short download links. `fence` grows with
    every claim: only the holder of the newest may publish.
    """

    job_id: str
    tenant: str
    spec: JobSpec
    status: Status = Status.QUEUED
    prefix: str
    link: str
    created: float = 0.0
    started: float | None = None
    expires: float | None = None
    attempt: int = 0
    fence: int = 0
    result: JobResult | None = None

    @property
    def outcome(self) -> JobResult:
        """The final result, or as much of it as is known on the way."""
        if self.result is not None:
            return self.result
        return JobResult(
            job_id=self.job_id,
            status=self.status,
            runtime=self.spec.runtime,
            label=self.spec.label,
            limits=self.spec.limits,
            attempt=self.attempt,
        )

    def ended(self, status: Status, problem: Problem | None = None, notes: tuple[str, ...] = ()) -> JobResult:
        """The result of a job that ends without having run to its end."""
        return self.outcome.model_copy(update={"status": status, "error": problem, "notes": notes})

    @property
    def output_prefix(self) -> str:
        """What the keys of this claim's outputs begin with; a lost claim never writes where a later one does."""
        return f"{self.prefix}/{self.fence}/"

    def output_key(self, artifact: Artifact) -> str:
        """Where the bytes of one of this job's outputs lie in the object store."""
        return f"{self.output_prefix}{artifact.sha256}"

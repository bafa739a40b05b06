"""What callers are told. The message says what happened, to which input, and what to do."""


class FarmError(Exception):
    """The farm cannot do what was asked."""

    kind = "error"


class InvalidRequest(FarmError):
    """The request is wrong; sending it again unchanged will not help."""

    kind = "invalid_request"


class UnknownJob(FarmError):
    """There is no such job, or it is not yours."""

    kind = "unknown_job"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"unknown job {job_id!r}; list_jobs shows yours")


class Expired(FarmError):
    """The job's results outlived their time and were removed. Its tenant may know that; to others it is unknown."""

    kind = "expired"

    def __init__(self, job_id: str, tenant: str) -> None:
        super().__init__(f"the results of job {job_id} have expired and were removed; run it again to get them back")
        self.tenant = tenant


class TryAgain(FarmError):
    """A service that the farm needs is away; the same request will work when it is back."""

    kind = "try_again"


class Misconfigured(FarmError):
    """The farm cannot start as it is set up."""

    kind = "misconfigured"

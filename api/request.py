"""What a caller of `run_script` may say, in every spelling that clients use, and what it means."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, ValidationError

from farm.errors import InvalidRequest
from farm.inputs import check_names, decode_base64
from farm.job import Model
from farm.policy import Policy
from farm.runtime import Runtime


def _unwrap(value: Any) -> Any:
    """Lists and objects that arrive as JSON in a string, which some clients send."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"neither the value nor JSON of it ({error})") from None
    return value


def _as_mapping(value: Any) -> Any:
    """`[{"name": …, "content": …}, …]` as `{name: content, …}`."""
    value = _unwrap(value)
    if not isinstance(value, list):
        return value
    files: dict[str, Any] = {}
    for entry in value:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ValueError("each input file in a list is {name, content} or {name, text}")
        rest = {key: part for key, part in entry.items() if key != "name"}
        if entry["name"] in files:
            raise ValueError(f"two input files are named {entry['name']!r}")
        files[entry["name"]] = rest.get("content") if set(rest) == {"content"} else rest
    return files


class TextFile(Model):
    """An input given as text, for files that need no base64."""

    text: str


def _number(value: Any) -> Any:
    """Numbers, also as text, which some clients send; not true and false, which Python would take for 1 and 0."""
    return str(value) if isinstance(value, bool) else value


Amount = Annotated[float | str, BeforeValidator(_number)]
Size = Annotated[int | str, BeforeValidator(_number)]
InputFiles = Annotated[dict[str, str | TextFile], BeforeValidator(_as_mapping)]
Strings = Annotated[list[str], BeforeValidator(_unwrap)]


class RunRequest(Model):
    """A job as it is asked for."""

    runtime: str
    script: str
    input_files: InputFiles = Field(default_factory=dict)
    args: Strings = Field(default_factory=list)
    stdin: str = ""
    label: str = ""
    timeout: Amount | None = None
    memory: Size | None = None
    cpus: Amount | None = None

    @classmethod
    def parse(cls, fields: Mapping[str, Any]) -> "RunRequest":
        """Check the shape of a request.

        Raises:
            InvalidRequest: names the first field that is wrong, and why.
        """
        try:
            return cls.model_validate({key: value for key, value in fields.items() if value is not None})
        except ValidationError as error:
            raise InvalidRequest(explain(error, cls.model_fields)) from None


class Checked(NamedTuple):
    """A request that keeps the rules, its files decoded."""

    request: RunRequest
    files: dict[str, bytes]


def check(request: RunRequest, runtimes: Mapping[str, Runtime], policy: Policy) -> Checked:
    """Hold a request against what this farm has and allows.

    Raises:
        InvalidRequest: says which part is wrong, and what is allowed.
    """
    known = sorted(name for name in runtimes if policy.allows(name))
    if request.runtime not in known:
        raise InvalidRequest(f"unknown runtime {request.runtime!r}; this farm has {', '.join(known)}")
    rules = policy.inputs
    _within("script", request.script.encode("utf-8", "surrogatepass"), int(rules.script_bytes))
    _within("stdin", request.stdin.encode("utf-8", "surrogatepass"), int(rules.stdin_bytes))
    if not request.script.strip():
        raise InvalidRequest("script is empty; send the text of the script")
    texts = (("script", request.script), ("stdin", request.stdin), ("label", request.label))
    for what, text in (*texts, *(("args", arg) for arg in request.args)):
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise InvalidRequest(f"{what} is not valid Unicode: it has half of a surrogate pair")
    if any("\0" in arg for arg in request.args):
        raise InvalidRequest("args: an argument cannot contain a NUL")
    if len(request.args) > rules.args:
        raise InvalidRequest(f"args: {len(request.args)} arguments; up to {rules.args} are allowed")
    if len(request.label) > 200:
        raise InvalidRequest(f"label has {len(request.label)} characters; up to 200 are allowed")
    if len(request.input_files) > rules.count:
        raise InvalidRequest(f"{len(request.input_files)} input files; up to {rules.count} are allowed")
    check_names(request.input_files, runtimes[request.runtime].script)
    files = {
        name: decode_base64(name, content) if isinstance(content, str) else _encoded(name, content.text)
        for name, content in request.input_files.items()
    }
    if (total := sum(map(len, files.values()))) > rules.bytes:
        raise InvalidRequest(f"input files have {total} bytes together; up to {int(rules.bytes)} are allowed")
    return Checked(request, files)


def explain(error: ValidationError, known: Mapping[str, Any]) -> str:
    """One sentence about the first thing that a validation found wrong."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"unknown field {field!r}; known are {', '.join(known)}"
    if first["type"] == "missing":
        return f"{field} is missing"
    reason = str(first["msg"]).removeprefix("Value error, ")
    return f"{field}: {reason[0].lower()}{reason[1:]}"


def _within(what: str, data: bytes, limit: int) -> None:
    if len(data) > limit:
        raise InvalidRequest(f"{what} has {len(data)} bytes; up to {limit} are allowed")


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"input file {name!r}: its text is not valid Unicode") from None

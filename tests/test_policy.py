"""What the farm allows: limits are refused, never bent; tenants known by their tokens; a bad policy refused."""

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY

from farm.errors import InvalidRequest, Misconfigured
from farm.policy import Policy, token_digest

MiB = 1024**2
GiB = 1024**3
SHIPPED = REPOSITORY / "cli" / "policy.yaml"
LIMITS = """
defaults: {memory: 512MiB, cpus: 1, timeout: 10, pids: 64, scratch: 64MiB}
ceilings: {memory: 1GiB, cpus: 2, timeout: 60, pids: 128, scratch: 128MiB}
"""


def policy(tmp_path: Path, more: str = "", limits: str = LIMITS) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(limits + more, encoding="utf-8")
    return Policy.load(path)


def test_the_policy_that_ships_with_the_farm_loads() -> None:
    shipped = Policy.load(SHIPPED)
    assert shipped.defaults.memory == 2 * GiB
    assert shipped.ceilings.timeout == 3600
    assert shipped.inputs.bytes == 48 * MiB
    assert shipped.ttl == 24 * 3600
    assert not shipped.tenants
    assert shipped.allows("python")


def test_a_job_that_asks_for_nothing_gets_the_defaults(tmp_path: Path) -> None:
    farm = policy(tmp_path)
    assert farm.limits({}) == farm.defaults
    assert farm.limits({"timeout": None, "memory": None, "cpus": None}) == farm.defaults


@pytest.mark.parametrize(
    ("name", "asked", "given"),
    [
        ("memory", "256MiB", 256 * MiB),
        ("memory", "1GiB", GiB),
        ("memory", "500MB", 500_000_000),
        ("memory", 100 * MiB, 100 * MiB),
        ("memory", str(100 * MiB), 100 * MiB),
        ("cpus", 0.5, 0.5),
        ("cpus", "1.5", 1.5),
        ("cpus", 2, 2.0),
        ("timeout", 60, 60.0),
        ("timeout", "30", 30.0),
        ("timeout", 0.25, 0.25),
    ],
)
def test_a_limit_up_to_the_ceiling_is_given_exactly(tmp_path: Path, name: str, asked: object, given: float) -> None:
    farm = policy(tmp_path)
    limits = farm.limits({name: asked})
    assert getattr(limits, name) == given
    assert limits.model_copy(update={name: getattr(farm.defaults, name)}) == farm.defaults


@pytest.mark.parametrize(
    "asked",
    [
        {"timeout": -1},
        {"timeout": 0},
        {"timeout": -0.0},
        {"timeout": math.nan},
        {"timeout": math.inf},
        {"timeout": "nan"},
        {"timeout": "inf"},
        {"timeout": "1e999"},
        {"timeout": "soon"},
        {"timeout": "60 s"},
        {"timeout": ""},
        {"timeout": True},
        {"timeout": False},
        {"timeout": []},
        {"timeout": 10**400},
        {"timeout": 60.001},
        {"timeout": 1e9},
        {"cpus": -0.5},
        {"cpus": 0},
        {"cpus": math.nan},
        {"cpus": "-inf"},
        {"cpus": "all"},
        {"cpus": "1,5"},
        {"cpus": True},
        {"cpus": {}},
        {"cpus": 3},
        {"memory": -1},
        {"memory": 0},
        {"memory": 1},
        {"memory": "1KiB"},
        {"memory": "-1GiB"},
        {"memory": "lots"},
        {"memory": "512 million"},
        {"memory": ""},
        {"memory": "nan"},
        {"memory": math.nan},
        {"memory": math.inf},
        {"memory": True},
        {"memory": [GiB]},
        {"memory": GiB + 1},
        {"memory": "2GiB"},
        {"memory": "1PiB"},
        {"memory": 10**30},
    ],
    ids=lambda asked: " ".join(f"{name} {str(value)[:12]!r}" for name, value in asked.items()),
)
def test_a_limit_that_makes_no_sense_or_is_above_the_ceiling_is_refused_with_what_is_allowed(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    ceilings = {"timeout": "60", "cpus": "2", "memory": "1.0GiB"}
    [(name, value)] = asked.items()
    with pytest.raises(InvalidRequest) as refusal:
        policy(tmp_path).limits(asked)
    assert str(refusal.value).startswith(f"{name}={value!r}"[:40])
    assert ceilings[name] in str(refusal.value)


@pytest.mark.parametrize("value", ["9" * 5000, "x" * 100_000, 10**400], ids=["digits", "letters", "a huge number"])
@pytest.mark.parametrize("name", ["timeout", "memory", "cpus"])
def test_a_refusal_does_not_repeat_a_whole_absurd_value(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        policy(tmp_path).limits({name: value})
    assert len(str(refusal.value)) < 400


def test_one_limit_above_its_ceiling_is_refused_though_the_others_are_fine(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cpus=4 is above"):
        policy(tmp_path).limits({"timeout": 5, "memory": "64MiB", "cpus": 4})


def test_only_the_runtimes_of_the_policy_are_allowed(tmp_path: Path) -> None:
    assert policy(tmp_path).allows("whatever there is")
    some = policy(tmp_path, "runtimes: [bash]")
    assert some.allows("bash")
    assert not some.allows("python")
    assert not policy(tmp_path, "runtimes: []").allows("bash")


def test_a_token_is_known_by_its_hash_and_leads_to_its_tenant(tmp_path: Path) -> None:
    farm = policy(
        tmp_path,
        f"tenants: {{alice: {{token_sha256: [{token_digest('old')}, {token_digest('new')}]}}, "
        f"bob: {{token_sha256: [{token_digest('bob 0')}]}}, carol: {{}}}}",
    )
    assert [farm.tenant_of(token) for token in ("old", "new", "bob 0")] == ["alice", "alice", "bob"]


@pytest.mark.parametrize("token", ["", "alice", "Secret", "secret ", "secre", token_digest("secret"), "é", "x" * 10**6])
def test_any_other_token_leads_to_nobody(tmp_path: Path, token: str) -> None:
    farm = policy(tmp_path, f"tenants: {{alice: {{token_sha256: [{token_digest('secret')}]}}}}")
    assert farm.tenant_of(token) is None


def test_without_tenants_no_token_leads_anywhere(tmp_path: Path) -> None:
    assert policy(tmp_path).tenant_of("") is None


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", ""),
        ("- a\n- list", ""),
        ("just words", ""),
        ("defaults: {memory: [", ""),
        ("a: !!python/object/apply:os.system ['true']", ""),
        ("defaults: {memory: 1GiB, cpus: 1, timeout: 1, pids: 64, scratch: 1GiB}", "ceilings"),
        (LIMITS + "time_to_live: 3", "time_to_live"),
        (LIMITS + "inputs: {bytez: 3}", "bytez"),
        (LIMITS + "ttl: 0", "ttl"),
        (LIMITS + "ttl: -5", "ttl"),
        (LIMITS + "ttl: soon", "ttl"),
        (LIMITS + "attempts: 0", "attempts"),
        (LIMITS + "inputs: {count: -1}", "inputs.count"),
        (LIMITS + "inputs: {args: -1}", "inputs.args"),
        (LIMITS + "inputs: {bytes: -1}", "inputs.bytes"),
        (LIMITS + "inputs: {stdin_bytes: -1}", "inputs.stdin_bytes"),
        (LIMITS + "outputs: {count: 0}", "outputs.count"),
        (LIMITS + "outputs: {file_bytes: -1}", "outputs.file_bytes"),
        (LIMITS + "outputs: {total_bytes: -1}", "outputs.total_bytes"),
        (LIMITS + "outputs: {depth: 0}", "outputs.depth"),
        (LIMITS + "outputs: {seconds: .nan}", "outputs.seconds"),
        (LIMITS + "outputs: {log_bytes: -1}", "outputs.log_bytes"),
        (LIMITS + "outputs: {file_bytes: a lot}", "outputs.file_bytes"),
        (LIMITS + "tenants: {alice: {token_sha256: [secret]}}", "tenants.alice"),
        (LIMITS + "tenants: {alice: {token: secret}}", "tenants.alice"),
        (LIMITS.replace("timeout: 60", "timeout: .nan"), "ceilings.timeout"),
        (LIMITS.replace("timeout: 60", "timeout: .inf"), "ceilings.timeout"),
        (LIMITS.replace("memory: 1GiB", "memory: 256MiB"), "defaults.memory"),
        (LIMITS.replace("pids: 128", "pids: 32"), "defaults.pids"),
        (LIMITS.replace("cpus: 1,", "cpus: 0,"), "defaults.cpus"),
    ],
    ids=lambda value: value.replace(LIMITS, "").strip() if value.startswith(LIMITS) else None,
)
def test_a_policy_that_is_not_understood_is_refused_with_the_file_and_the_place(
    tmp_path: Path, text: str, culprit: str
) -> None:
    with pytest.raises(Misconfigured) as refusal:
        policy(tmp_path, limits=text)
    assert str(tmp_path / "policy.yaml") in str(refusal.value)
    assert culprit in str(refusal.value)


def test_a_policy_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(LIMITS.encode() + "# für alle".encode("latin-1"))
    with pytest.raises(Misconfigured, match=r"policy\.yaml"):
        Policy.load(path)


def test_a_missing_policy_is_refused_with_the_command_that_writes_one(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="scifarm policy init") as refusal:
        Policy.load(tmp_path / "nowhere.yaml")
    assert str(tmp_path / "nowhere.yaml") in str(refusal.value)


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="policy file"):
        Policy.load(tmp_path)

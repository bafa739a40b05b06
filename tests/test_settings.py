"""Settings: every one an environment variable, sensible where left out, refused by its name where wrong."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from farm.errors import Misconfigured
from farm.settings import Settings, broker_url


def settings(**given: object) -> Settings:
    """What the environment says: these variables, with `SCIFARM_` before their names, and a home."""
    return Settings.from_env(
        {"HOME": "/home/ada"} | {f"SCIFARM_{key.upper()}": str(value) for key, value in given.items()}
    )


def test_an_empty_environment_means_the_services_that_the_farm_starts_itself() -> None:
    found = settings()
    assert found.state == Path("/home/ada/.local/state/scifarm")
    assert found.policy == found.state / "policy.yaml"
    assert found.redis_url == "unix:///home/ada/.local/state/scifarm/redis.sock"
    assert found.broker_url == "redis+socket:///home/ada/.local/state/scifarm/redis.sock?virtual_host=0"
    assert found.s3_endpoint == found.s3_public_endpoint == "http://127.0.0.1:8817"
    assert found.mcp_url == "http://127.0.0.1:8815/mcp"
    assert (found.images / "python" / "runtime.yaml").is_file()
    assert found.own_redis
    assert found.own_s3
    assert found.slots >= 1


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("state", "/srv/farm", Path("/srv/farm")),
        ("images", "/srv/images", Path("/srv/images")),
        ("image_register", "/srv/images.json", Path("/srv/images.json")),
        ("policy", "/etc/scifarm/policy.yaml", Path("/etc/scifarm/policy.yaml")),
        ("redis_url", "redis://db:6379/3", "redis://db:6379/3"),
        ("broker_url", "amqp://mq", "amqp://mq"),
        ("s3_endpoint", "https://s3.lab.example", "https://s3.lab.example"),
        ("s3_public_endpoint", "https://files.lab.example", "https://files.lab.example"),
        ("s3_access_key", "key", "key"),
        ("s3_secret_key", "hush", "hush"),
        ("s3_bucket", "results", "results"),
        ("s3_region", "eu-central-1", "eu-central-1"),
        ("s3_port", "9000", 9000),
        ("api_host", "0.0.0.0", "0.0.0.0"),
        ("api_port", "80", 80),
        ("public_url", "https://farm.lab.example/", "https://farm.lab.example/"),
        ("token", "hush", "hush"),
        ("body_limit", "1000", 1000),
        ("slots", "3", 3),
        ("cgroup", "lab/farm", "lab/farm"),
    ],
)
def test_every_setting_is_a_variable(name: str, text: str, value: object) -> None:
    assert getattr(settings(**{name: text}), name) == value


def test_no_variable_lacks_a_row_above() -> None:
    derived = {"own_redis", "own_s3", "allowed_hosts"}
    rows = test_every_setting_is_a_variable.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {name for name, *_ in rows} | derived == set(Settings.model_fields)


@pytest.mark.parametrize("text", ["a.example b.example:81", "a.example,b.example:81", " a.example , b.example:81 ,"])
def test_allowed_hosts_are_a_list_with_spaces_or_commas(text: str) -> None:
    assert settings(allowed_hosts=text).allowed_hosts == ("a.example", "b.example:81")


def test_no_allowed_hosts_are_none() -> None:
    assert settings().allowed_hosts == settings(allowed_hosts="").allowed_hosts == ()


def test_what_is_not_set_follows_what_is() -> None:
    found = settings(state="/srv/farm", s3_port=9000, api_host="10.0.0.5", api_port=80)
    assert found.policy == Path("/srv/farm/policy.yaml")
    assert found.credentials_file.parent == Path("/srv/farm")
    assert found.redis_url == "unix:///srv/farm/redis.sock"
    assert found.s3_endpoint == found.s3_public_endpoint == "http://127.0.0.1:9000"
    assert found.mcp_url == "http://10.0.0.5:80/mcp"


def test_an_ipv6_address_makes_a_url_that_can_be_called() -> None:
    assert settings(api_host="::1").mcp_url == "http://[::1]:8815/mcp"


def test_a_laboratory_s_own_services_are_not_started_by_the_farm() -> None:
    found = settings(redis_url="redis://db", s3_endpoint="https://s3.lab.example")
    assert not found.own_redis
    assert not found.own_s3
    assert found.broker_url == "redis://db"
    assert found.s3_public_endpoint == "https://s3.lab.example"


def test_nobody_can_say_whose_the_services_are_by_a_variable() -> None:
    assert settings(own_redis="false", own_s3="no").own_redis
    assert not settings(own_redis="true", redis_url="redis://db").own_redis


def test_a_relative_state_folder_gives_a_socket_in_that_folder() -> None:
    assert settings(state="farm").redis_url == f"unix://{Path.cwd()}/farm/redis.sock"


@pytest.mark.parametrize(
    ("redis", "broker"),
    [
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix://:hush@/run/redis.sock", "redis+socket://:hush@/run/redis.sock?virtual_host=0"),
        ("redis://:hush@db:6379/3", "redis://:hush@db:6379/3"),
        ("rediss://db", "rediss://db"),
    ],
    ids=["socket", "socket and database", "socket and password", "TCP", "TLS"],
)
def test_the_broker_is_the_same_redis_as_celery_spells_it(redis: str, broker: str) -> None:
    assert broker_url(redis) == broker
    assert settings(redis_url=redis).broker_url == broker


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("api_port", "http"),
        ("api_port", ""),
        ("api_port", "80.5"),
        ("api_port", "-1"),
        ("api_port", "70000"),
        ("s3_port", "70000"),
        ("s3_port", "nine"),
        ("slots", "0"),
        ("slots", "-2"),
        ("slots", "many"),
        ("body_limit", "0"),
        ("body_limit", "64 MB"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable_and_itself(name: str, text: str) -> None:
    with pytest.raises(Misconfigured) as refusal:
        settings(**{name: text})
    assert str(refusal.value).startswith(f"SCIFARM_{name.upper()}={text!r}: ")


def test_secrets_do_not_show_when_settings_are_printed() -> None:
    found = settings(
        token="hush", s3_secret_key="hush", redis_url="redis://:hush@db", broker_url="amqp://farm:hush@mq",
        s3_access_key="key",
    )  # fmt: skip
    assert "hush" not in repr(found)
    assert "hush" not in str(found)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        settings().slots = 5


def test_other_variables_are_not_ours() -> None:
    assert (
        Settings.from_env({"HOME": "/home/ada", "STATE": "/x", "SCIFARM_IN_SCOPE": "1", "scifarm_state": "/y"})
        == settings()
    )


def test_keys_of_the_store_come_from_the_settings_first(tmp_path: Path) -> None:
    found = settings(state=tmp_path, s3_access_key="key", s3_secret_key="secret")
    found.credentials_file.write_text(json.dumps({"access_key": "other", "secret_key": "other"}))
    assert found.s3_keys() == ("key", "secret")


def test_keys_of_the_store_come_from_the_farm_s_own_file_otherwise(tmp_path: Path) -> None:
    found = settings(state=tmp_path)
    found.credentials_file.write_text(json.dumps({"access_key": "a", "secret_key": "s"}))
    assert found.s3_keys() == ("a", "s")


@pytest.mark.parametrize("text", [None, "", "{", "{}", "[]", '{"access_key": "a"}'], ids=str)
def test_without_keys_the_message_says_how_to_give_them(tmp_path: Path, text: str | None) -> None:
    found = settings(state=tmp_path)
    if text is not None:
        found.credentials_file.write_text(text)
    with pytest.raises(Misconfigured, match=r"SCIFARM_S3_ACCESS_KEY.*scifarm up"):
        found.s3_keys()

"""Secrets are masked, but text about tokens and keys is kept."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest

from flink_triage.logs.text.redact import redact, redact_path
from flink_triage.logs.text.secret_forms import PEM_REST

CANARY = "cAnArY7Zq9"

KEYS = (
    "password",
    "s3.secret-key",
    "s3.access-key",
    "fs.s3a.secret.key",
    "fs.azure.account.key.acct.blob.core.windows.net",
    "security.ssl.internal.key-password",
    "javax.net.ssl.trustStorePassword",
    "ssl.truststore.password",
    "ssl.keystore.password",
    "sasl.password",
    "client_secret",
    "clientSecret",
    "api_key",
    "apikey",
    "x-api-key",
    "accessToken",
    "access_token",
    "refresh-token",
    "session_token",
    "aws.sessionToken",
    "security-token",
    "oauth.token",
    "private_key",
    "AccountKey",
    "SharedAccessKey",
    "service-key",
    "passwd",
    "passphrase",
    "db.pwd",
    "MYSQL_PWD",
    "basic-auth",
    "auth-params",
)

CARRIERS: dict[str, Callable[[str, str], str]] = {
    "key=value": lambda key, value: f"connecting with {key}={value}, retries=3",
    "yaml": lambda key, value: f"{key}: {value}",
    "json": lambda key, value: json.dumps({"a": 1, key: value, "b": 2}),
    "escaped json": lambda key, value: json.dumps({"body": json.dumps({key: value})}),
    "xml": lambda key, value: f"<name>{key}</name><value>{escape(value)}</value>",
    "jvm option": lambda key, value: f"java -D{key}={value} -Xmx1g",
    "command line": lambda key, value: f"run --{key} {value} --parallelism 2",
    "flink's configuration": lambda k, v: f"Loading configuration property: {k}, {v}",
    "url-encoded": lambda key, value: f"x=1&{key}%3D{quote(value)}&y=2",
    "exception": lambda k, v: f"java.io.IOException: no login ({k}='{v}')\n\tat a.B.c(B.java:1)",
}


@pytest.mark.parametrize("carrier", CARRIERS.values(), ids=CARRIERS.keys())
@pytest.mark.parametrize("key", KEYS)
def test_value_of_a_secret_key_is_redacted(key: str, carrier: Callable[[str, str], str]) -> None:
    text = carrier(key, CANARY)
    redacted, count = redact(text)
    assert CANARY not in redacted
    assert sum(count.values()) == 1
    assert redact(redacted) == (redacted, {})


# The secrets are assembled here, so that scanners do not report this file as a leak.
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256"}', b'{"sub":"cAnArY"}', b"cAnArY-signature")
)
SHAPES = {
    "jwt": f"got {JWT} from the server",
    "aws access key": "using " + "AKIA" + "IOSFODNN7EXAMPLE",
    "aws temporary key": "using " + "ASIA" + "IOSFODNN7EXAMPLE",
    "github": "clone with " + "ghp_" + "a1B2" * 9,
    "databricks": "token " + "dapi" + "0123456789abcdef" * 2,
    "slack token": "xoxb-" + "123456789012-abcdefghij",
    "slack hook": "https://hooks.slack.com/" + "services/T000/B000/XXXXabcd",
    "google": "key " + "AIza" + "S" * 35,
    "bearer": f"Authorization: Bearer {CANARY}",
    "bearer in json": f'{{"authorization": "Bearer {CANARY}abc"}}',
    "bearer without a header": f"sent Bearer {CANARY}abcdef",
    "basic": "Authorization: Basic " + base64.b64encode(b"user:" + CANARY.encode()).decode(),
    "url": f"https://u:{CANARY}@h/db",
    "url with delimiters in the password": f"jdbc:mysql://u:{CANARY}@ss/w+rd@h/db",
    "sas": f"https://a.blob.core.windows.net/c?sv=1&sig={CANARY}%2Babc&se=2020",
    "amazon signature": f"https://s3/x?X-Amz-Signature={CANARY}",
    "kafka scram": f'ScramLoginModule required username="u" password="{CANARY}";',
    "escaped quote": f'{{"password":"a\\"{CANARY}"}}',
    "delimiters inside": f"password=a@b/c+d%{CANARY},e;f&g h=1",
    "closing bracket behind": f"Config{{password={CANARY}, user=b}}",
    "wrapped behind the equals sign": f"password=\\\n  {CANARY}",
    "hadoop delegation token": "Kind: HDFS, Ident: " + "ca fe ba be " * 6,
}
MUST_GO = (CANARY, "IOSFODNN7EXAMPLE", "a1B2a1B2", "0123456789abcdef", "abcdefghij", "XXXXabcd",
           "SSSS", "cAnArY", base64.b64encode(b"user:" + CANARY.encode()).decode(), JWT[-12:],
           "ca fe ba be")  # fmt: skip


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_secret_with_a_known_shape_is_redacted(text: str) -> None:
    redacted, count = redact(text)
    assert sum(count.values()) == 1
    assert [secret for secret in MUST_GO if secret in redacted] == []
    assert redact(redacted) == (redacted, {})


@pytest.mark.parametrize("block", [f"\n  {CANARY}\n", f"  a\n\n  {CANARY}", f"  \n \n  {CANARY}"])
def test_blank_lines_do_not_end_a_yaml_block(block: str) -> None:
    text, redactions = redact(f"password: |\n{block}\nretries: 3")
    assert CANARY not in text
    assert text.endswith("\nretries: 3")
    assert redactions["password"]


def test_pem_block_is_redacted_and_keeps_its_line_count() -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"] * 30)
    text = f"key:\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nnext"
    redacted, count = redact(text)
    assert "MIIE" not in redacted
    assert sum(count.values()) == 1
    assert redacted.count("\n") == text.count("\n")
    assert redacted.endswith("\nnext")


def test_truncated_pem_block_is_redacted() -> None:
    redacted, _ = redact("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nMIIE")
    assert "MIIE" not in redacted


HARMLESS = (
    "pekko.tcp://flink@host:6123/user/rpc/taskmanager_0",
    "akka.tcp://flink@10.0.0.1:6123/user/rpc/jobmanager_0#-1234",
    "org.apache.hadoop.security.token.Token: foo",
    "DefaultDelegationTokenManager - Obtaining delegation tokens",
    "key.deserializer = class org.apache.kafka.common.serialization.StringDeserializer",
    "KeyGroupRange{startKeyGroup=0, endKeyGroup=63} keyBy(Order::customer)",
    "job 3c445f31a6d0c5b1f0c8e4a7b2d9e6f1 switched from RUNNING to FAILED",
    "hdfs://ns/flink/checkpoints/3c445f31a6d0c5b1f0c8e4a7b2d9e6f1/chk-7/_metadata",
    "token bucket is empty",
    "password=******",
    "Loading configuration property: security.ssl.key-password, ******",
    "sasl.jaas.config = [hidden]",
    "ssl.key.password = null",
    "password=${DB_PASSWORD}",
    "http://host:8081/path@x",
    "Fencing token not set: Ignoring message RemoteFencedMessage",
    "Unexpected token: EOF",
    "method signature: (Lorg/foo;)V",
    "basic statistics are computed",
    "Basic authentication is not enabled",
)


@pytest.mark.parametrize("text", HARMLESS)
def test_text_about_secrets_is_not_redacted(text: str) -> None:
    assert redact(text) == (text, {})


def test_personal_data_is_redacted_on_demand_only() -> None:
    text = "ann@example.org from 10.1.2.3 read /home/ann/x via 127.0.0.1"
    assert redact(text) == (text, {})
    assert redact(text, pii=True) == (
        "[REDACTED:email] from [REDACTED:ip] read /home/[REDACTED:user]/x via 127.0.0.1",
        {"email": 1, "ip": 1, "user": 1},
    )


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("https://ann:cAnArY7Zq9@host/a", "https://ann:[REDACTED:url-password]@host/a"),
        ("https://abcdefghij1234567890@host/a", "https://[REDACTED:url-user]@host/a"),
        (
            "s3://logs/password=cAnArY7Zq9/http://x/y",
            "s3://logs/password=[REDACTED:password]/http://x/y",
        ),
        ("s3://logs/2026/jm.log", "s3://logs/2026/jm.log"),
        ("/var/log/password=cAnArY7Zq9/jm.log", "/var/log/password=[REDACTED:password]/jm.log"),
    ],
)
def test_secrets_in_a_path_are_redacted(path: str, shown: str) -> None:
    assert redact_path(path) == redact_path(shown) == shown


HOSTILE = {
    "words": "password",
    "assignments": "password=",
    "commas": "password=,a",
    "urls": "://a:b@",
    "jwt heads": "eyJaaaaaaaa.",
    "pem heads": "-----BEGIN PRIVATE KEY-----",
    "escapes": 'password="a\\',
    "dashes": "--a-token ",
    "xml": "<password>a",
    "option names": "token.a.b.c-",
    "indexes": "password[a](b)",
    "brackets": "secret=[[a",
    "names of pairs": "(a.password,",
    "sentences": "password is a1 ",
    "columns": "password   a1b",
    "tables": "a,password\n",
    "blocks": "password: |\n",
    "commands": "curl -u ",
    "headers": "curl -H 'X-Auth: ",
    "query": "?key=a1",
    "users": "https://a1b2c3d4e5f6g7h8@",
    "hooks": "/hooks/a",
    "escaped": "password\\u003d",
    "invisible": "pass\u200bword\u200b",
    "base64": "cGFzc3dvcmQ9",
    "base64 lines": f"{'cGFzc3dvcmQ9' * 6}\n",
    "key lines": f"{'MIIEvQIBADANBgkq' * 4}\n",
    "wrapped": f"password={'a1' * 40}\n",
    "web keys": '"kty" "d" ',
    "dotted": "token.a.",
    "blanks": "token" + " " * 60,
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.timing
def test_cost_grows_with_the_length(unit: str) -> None:
    def cost(repeats: int) -> float:
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            redact(unit * repeats)
            best = min(best, time.process_time() - began)
        return best

    # With eight times the text, quadratic cost would be 64 times as high.
    assert cost(1200) < 25 * cost(150) + 0.01


def test_lines_that_could_be_of_a_key_cost_no_more_than_others() -> None:
    run, others = ((f"{'A' * 60}\n{end}" * 1_000) for end in ("", "!\n"))
    assert PEM_REST.sub("", run + "-----END PRIVATE KEY-----") == "-----END PRIVATE KEY-----"
    assert _processor_seconds_of_search(run) < 10 * _processor_seconds_of_search(others)


def _processor_seconds_of_search(text: str) -> float:
    began = time.process_time()
    for _ in range(10):
        PEM_REST.sub("", text)
    return time.process_time() - began

"""Files behind a URI: recognition, credentials, and read-ahead that changes no byte."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_triage.errors import EnvironmentProblem, UsageError
from flink_triage.logs.inputs import storage
from flink_triage.logs.inputs.storage import (
    StorageOptions,
    is_uri,
    list_stored,
    local_path,
    split_uri,
)

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3a://bucket/key", True),
        ("abfss://container@account.dfs.core.windows.net/logs", True),
        ("hdfs://name:8020/logs", True),
        ("/var/log/flink", False),
        ("logs/jm.log", False),
        ("file:///var/log", False),
        ("a folder: with://in it", False),
    ],
)
def test_uri_is_distinguished_from_a_path(path: str, expected: bool) -> None:
    assert is_uri(path) is expected


@pytest.mark.parametrize("given_path", ["file:/var/log", "file:///var/log", "/var/log"])
def test_a_file_uri_is_a_path(given_path: str) -> None:
    assert local_path(given_path) == "/var/log"


def test_nothing_in_a_key_is_decoded() -> None:
    assert split_uri("s3a://b/a%20b/c#d?e=f/") == ("s3a", "b", "a%20b/c#d?e=f")


def test_an_unknown_scheme_names_those_that_are_known() -> None:
    with pytest.raises(UsageError, match=r"'ftp://host/x' has an unknown scheme; expected .* s3a"):
        list_stored("ftp://host/x")


def test_a_missing_pyarrow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    with pytest.raises(
        EnvironmentProblem, match="pyarrow is required to access this URI; pip install"
    ):
        list_stored("s3://bucket/logs")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, {}, id="no options use Arrow's default credential chain"),
        pytest.param(
            {"fs.s3a.endpoint": "http://127.0.0.1:9000/", "fs.s3a.access.key": "a"},
            {"endpoint_override": "127.0.0.1:9000", "scheme": "http", "access_key": "a"},
            id="an endpoint with a scheme",
        ),
        pytest.param(
            {"fs.s3a.endpoint": "s3.local:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint_override": "s3.local:9000", "scheme": "http"},
            id="an endpoint without TLS",
        ),
        pytest.param(
            {"fs.s3a.secret.key": "all", "fs.s3a.bucket.logs.secret.key": "own"},
            {"secret_key": "own"},
            id="bucket options override global options",
        ),
        pytest.param(
            {"fs.s3a.bucket.other.secret.key": "own"}, {}, id="another bucket's key is not used"
        ),
        pytest.param(
            {"fs.s3a.aws.credentials.provider": "a.b.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
            id="a public bucket",
        ),
    ],
)  # fmt: skip
def test_s3a_options_mean_the_same_to_arrow(
    values: dict[str, str], expected: dict[str, object]
) -> None:
    assert storage._s3_arguments(StorageOptions(values), "logs") == expected


def test_an_azure_key_is_that_of_its_account() -> None:
    host = "acc.dfs.core.windows.net"
    options = StorageOptions({f"fs.azure.account.key.{host}": "k"})
    found = storage._azure_arguments(options, f"container@{host}")
    assert found == {"account_name": "acc", "account_key": "k"}
    other = storage._azure_arguments(options, "container@else.dfs.core.windows.net")
    assert other == {"account_name": "else"}


def test_secrets_are_in_no_text_of_the_options() -> None:
    options = StorageOptions({"fs.s3a.secret.key": "n0t-to-be-seen"})
    assert "n0t-to-be-seen" not in f"{options!r}{options}"


@pytest.mark.parametrize(
    "option",
    [
        "fs.s3a.secret.key",
        "fs.azure.account.key",
        "fs.azure.account.key.acc.dfs.core.chinacloudapi.cn",
    ],
)
def test_a_secret_is_cut_out_of_an_error(option: str) -> None:
    storage.use_options(StorageOptions({option: "n0t-to-be-seen"}))
    try:
        with (
            pytest.raises(OSError, match=r"denied for \*\*\*$"),
            storage._as_os_errors("s3a://b/k"),
        ):
            raise OSError("denied for n0t-to-be-seen")
    finally:
        storage.use_options(storage.NO_OPTIONS)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 900)),
        st.tuples(st.just("seek"), st.integers(0, 2_000)),
        st.tuples(st.just("end"), st.integers(-500, 0)),
    ),
    max_size=30,
)


@given(data=st.binary(max_size=1_500), steps=STEPS, first=st.integers(1, 300))
def test_reading_ahead_gives_the_bytes_of_the_file(
    data: bytes, steps: list[tuple[str, int]], first: int
) -> None:
    stream = storage._StoredStream("s3a://b/k", pa.BufferReader(data), first_bytes=first)
    plain = io.BytesIO(data)
    for what, number in steps:
        if what == "read":
            assert stream.read(number) == plain.read(number)
        elif what == "seek":
            assert stream.seek(number) == plain.seek(number)
        elif len(data) + number >= 0:
            assert stream.seek(number, io.SEEK_END) == plain.seek(number, io.SEEK_END)
        assert stream.tell() == plain.tell()
    assert stream.read() == plain.read()

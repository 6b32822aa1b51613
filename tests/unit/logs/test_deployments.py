"""Deployment names by folder and by file. Without a regex, folders have different names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from flink_triage.errors import UsageError
from flink_triage.logs.inputs.deployments import name_apart
from flink_triage.logs.inputs.files import InputFile, deployment_of, list_inputs

AT = datetime(2026, 1, 1, tzinfo=UTC)


def names(files: list[tuple[str, str]], group_by: str = "directory") -> list[str]:
    """Returns the deployments of (path, root) pairs, named together."""
    listed = name_apart([InputFile(path, 1, AT, root) for path, root in files])
    return [deployment_of(file, group_by) for file in listed]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param(
            [("/fleet/orders/jm.log", "/fleet"), ("/fleet/orders/logs/tm.log", "/fleet")],
            ["orders", "orders"],
            id="a folder and its logs folder are one deployment",
        ),
        pytest.param(
            [("/x/orders/jm.log", "/x/orders/jm.log"), ("/x/orders/tm.log", "/x/orders/tm.log")],
            ["orders", "orders"],
            id="separately listed files of a folder are one deployment",
        ),
        pytest.param(
            [("/a/orders/jm.log", "/a/orders"), ("/b/orders/jm.log", "/b/orders")],
            ["a/orders", "b/orders"],
            id="two inputs with the same base name are two deployments",
        ),
        pytest.param(
            [("/a/prod/orders/jm.log", "/a"), ("/b/prod/orders/jm.log", "/b")],
            ["a/prod/orders", "b/prod/orders"],
            id="two inputs with the same subfolders have distinct names",
        ),
        pytest.param(
            [("/a/x/orders/jm.log", "/a/x/orders"), ("/b/x/orders/jm.log", "/b/x/orders")],
            ["a/x/orders", "b/x/orders"],
            id="names are extended until they differ",
        ),
        pytest.param(
            [("/a/a/jm.log", "/a"), ("/a/jm.log", "/a"), ("/a/b/jm.log", "/a")],
            ["a/a", "a", "b"],
            id="an input and its subfolder of the same name are two deployments",
        ),
        pytest.param(
            [("s3a://logs/eu/orders/jm.log", "s3a://logs/eu"), ("s3a://logs/eu/jm.log", "s3a://logs/eu")],
            ["orders", "eu"],
            id="URIs are named like folders",
        ),
        pytest.param(
            [("s3a://eu/orders/jm.log", "s3a://eu"), ("s3a://us/orders/jm.log", "s3a://us/")],
            ["eu/orders", "us/orders"],
            id="two buckets with the same folders have distinct names",
        ),
        pytest.param(
            [("s3a://orders/jm.log", "s3a://orders")], ["orders"], id="a bucket is like a folder"
        ),
        pytest.param(
            [("/d/orders.tgz!/logs/jm.log", "/d/orders.tgz"), ("/d/pay.zip!/jm.log", "/d/pay.zip")],
            ["orders", "pay"],
            id="archives are like folders",
        ),
    ],
)  # fmt: skip
def test_a_folder_is_one_deployment(files: list[tuple[str, str]], expected: list[str]) -> None:
    assert names(files) == expected


def test_by_file_each_file_is_one() -> None:
    files = [("/a/jm.log", "/a/jm.log"), ("/b/jm.log", "/b/jm.log"), ("/b/tm.log", "/b")]
    assert names(files, "file") == ["a/jm.log", "b/jm.log", "tm.log"]


def test_a_regex_that_misses_falls_back_to_the_folder() -> None:
    files = [("/a/orders/jm.log", "/a/orders"), ("/b/orders/jm.log", "/b/orders")]
    assert names(files, "no-such-(.+)") == ["a/orders", "b/orders"]


def test_listed_inputs_with_the_same_name_are_separate_deployments(tmp_path: Path) -> None:
    for side in ("east", "west"):
        (tmp_path / side / "orders").mkdir(parents=True)
        (tmp_path / side / "orders" / "jm.log").write_text("x\n")
    listing = list_inputs([str(tmp_path / side / "orders") for side in ("east", "west")])
    assert [deployment_of(file) for file in listing.files] == ["east/orders", "west/orders"]


@pytest.mark.parametrize("group_by", ["(", "(" * 2_000], ids=["open", "nested too deep"])
def test_a_regex_that_does_not_compile_is_refused(group_by: str) -> None:
    with pytest.raises(UsageError, match=r"--group-by: .* is not directory, file or a regex"):
        names([("/fleet/orders/jm.log", "/fleet")], group_by)

"""A file whose name is not valid UTF-8 is read and shown with a name that any format can hold."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from flink_triage.local import Options, run_local
from flink_triage.logs.inputs.files import list_inputs, open_binary
from flink_triage.logs.inputs.path_names import on_disk, shown
from flink_triage.report import render

FAILURE = (
    "2026-11-21 06:47:23,468 ERROR org.apache.flink.Foo [] - write failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(b"plain.log", "plain.log", id="ASCII is unchanged"),
        pytest.param("süd.log".encode(), "süd.log", id="UTF-8 is unchanged"),
        pytest.param(b"s\xfcd.log", "s\\xfcd.log", id="Latin-1 is escaped"),
        pytest.param(b"a\\b.log", "a\\b.log", id="a backslash in the name is unchanged"),
        pytest.param(
            b"a\\xfc.log", "a\\x5cxfc.log", id="a name that looks like an escaped byte is distinct"
        ),
    ],
)
def test_a_name_is_shown_and_found_again(name: bytes, expected: str, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "wb") as log:
        log.write(FAILURE.encode())
    (file,) = list_inputs([str(tmp_path)]).files
    assert file.path == f"{tmp_path}/{expected}"
    with open_binary(file.path) as stream:
        assert stream.read() == FAILURE.encode()


def test_no_two_files_are_shown_alike(tmp_path: Path) -> None:
    """For example, an invalid byte and its escape sequence, or folder ``a!`` and archive ``a``."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in ("b.log", "c!/d.log"):
            info = tarfile.TarInfo(name)
            info.size = 6
            archive.addfile(info, io.BytesIO(b"member"))
    contents = {b"\xff.log": b"byte", b"\\xff.log": b"text", b"\\x5cxff.log": b"text2"}
    contents |= {b"a!/b.log": b"folder", b"z": b"file", b"z!/b.log": b"folder of z"}
    for written, content in {**contents, b"a": tar.getvalue()}.items():
        path = os.path.join(os.fsencode(tmp_path), written)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as log:
            log.write(content)
    files = list_inputs([str(tmp_path)]).files
    read = []
    for file in files:
        with open_binary(file.path) as stream:
            read.append(stream.read())
    assert len({file.path for file in files}) == len(files)
    assert sorted(read) == sorted([*contents.values(), b"member", b"member"])


def test_half_of_a_character_is_replaced() -> None:
    assert shown("a\ud800b") == "a�b"


def test_a_path_that_is_gone_stays_a_path() -> None:
    assert on_disk("/nowhere/a.log") == "/nowhere/a.log"


def test_every_format_holds_the_name(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"jm-\xff.log"), "w") as log:
        log.write(FAILURE)
    result = run_local([str(tmp_path)], Options())
    for form in ("text", "json", "markdown", "html"):
        assert "xff.log" in render(result, form).encode().decode()

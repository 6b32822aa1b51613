"""Intact data in damaged files, in compressed files, and under unusual names is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import socket
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from flink_triage.cli.main import main
from flink_triage.local import Options, Scanned, scan_inputs
from flink_triage.logs.detect.profile import probe
from flink_triage.logs.inputs.files import list_inputs
from flink_triage.logs.readers.scan import Scanner
from flink_triage.model import ByteRange
from flink_triage.settings import DEFAULT_SETTINGS, Settings

_LINE = "2026-11-21 06:47:{:02},468 INFO  org.apache.flink.Foo [] - message {}\n"
_STOCK = "".join(_LINE.format(n % 60, n) for n in range(200))
_FAILURE = (
    "2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - it failed\n"
    "java.io.IOException: No space left on device\n"
    "\tat org.apache.flink.Foo.bar(Foo.java:12)\n"
)
_TEXT = (_FAILURE + _STOCK).encode()


def _scan(*paths: Path | str, limits: Settings = DEFAULT_SETTINGS) -> Scanned:
    options = Options(settings=limits, workers=1)
    return scan_inputs([str(path) for path in paths], options, lambda done, total: None)


def _messages(scanned: Scanned) -> list[str]:
    return [o.event.message for r in scanned.results for o in r.observations if o.fingerprint]


def _problems(scanned: Scanned) -> list[str]:
    reasons = [q.reason for q in scanned.quarantined]
    return reasons + [p.reason for r in scanned.results for p in r.scan.problems]


# --- A: files and discovery --------------------------------------------------------------------


def test_missing_or_empty_input_is_refused_with_its_path(tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    assert main(["diagnose", str(tmp_path / "gone")]) == 2
    assert "gone" in capsys.readouterr().err
    assert main(["diagnose", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_empty_files_are_files_without_lines(tmp_path: Path) -> None:
    (tmp_path / "a.log").touch()
    (tmp_path / "b.log").touch()
    scanned = _scan(tmp_path)
    assert [profile.problem for profile, _ in scanned.profiles] == [None, None]
    assert _problems(scanned) == []


def test_a_file_of_one_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("java.io.IOException: No space left on device")
    scanned = _scan(tmp_path)
    assert sum(v.event_count for r in scanned.results for v in r.scan.volumes) == 1


@pytest.mark.parametrize(
    "name",
    [
        "_hidden.log", ".hidden.log", "with blank.log", "100%20.log", "a#b.log", "what?.log",
        "[0].log", "{a,b}.log", "*.log", "a:b.log", "it's.log", 'q"q.log', "new\nline.log",
        "x" * 251 + ".log", "\u202egol.log", "n\u00e4chtlich.log", b"bytes-\xff.log", "bundle!",
        "-v", "jm.log.1", "no-ending",
    ],
    ids=repr,
)  # fmt: skip
def test_any_name_is_read(name: str | bytes, tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), os.fsencode(name))
    with open(path, "wb") as file:
        file.write(_TEXT)
    scanned = _scan(tmp_path)
    assert _messages(scanned) == ["it failed"]
    # The name is escaped in the output.
    assert main(["diagnose", str(tmp_path), "--quiet", "--format", "text"]) == 0
    assert main(["diagnose", str(tmp_path), "--quiet", "--format", "json"]) == 0


def test_a_folder_whose_name_looks_like_an_archive(tmp_path: Path) -> None:
    folder = tmp_path / "bundle.tgz!" / "in"
    folder.mkdir(parents=True)
    (folder / "a.log").write_bytes(_TEXT)
    assert _messages(_scan(tmp_path)) == ["it failed"]


def test_links_are_followed_only_inside_and_read_once(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "a.log").write_bytes(_TEXT)
    (inside / "again.log").symlink_to(inside / "a.log")
    (inside / "loop").symlink_to(inside)
    (inside / "dangling.log").symlink_to(inside / "gone.log")
    outside = tmp_path / "secret.log"
    outside.write_bytes(_TEXT)
    (inside / "out.log").symlink_to(outside)
    scanned = _scan(inside)
    assert _messages(scanned) == ["it failed"]
    assert _problems(scanned) == ["a broken link", "a link that leads out of the input"]


def test_special_files_do_not_block_reading(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(_TEXT)
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "folder.log").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        short = os.path.relpath(tmp_path / "socket.log")
        server.bind(short if len(short) < 100 else str(tmp_path / "socket.log")[-100:])
        scanned = _scan(tmp_path)
    assert _messages(scanned) == ["it failed"]
    assert _problems(scanned) == ["not a regular file"] * 2


def test_a_file_that_vanishes_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(_TEXT)
    (tmp_path / "b.log").write_bytes(_TEXT)
    files = list_inputs([str(tmp_path)]).files
    profiles = [probe(file, DEFAULT_SETTINGS) for file in files]
    (tmp_path / "a.log").unlink()
    scanner = Scanner((), DEFAULT_SETTINGS)
    scans = [scanner.scan(ByteRange(profile, "d")) for profile in profiles]
    assert [p.reason for s in scans for p in s.problems] == ["no such file or directory"]
    assert scans[0].quarantined_bytes == len(_TEXT)
    assert [e.message for e in scans[1].events] == ["it failed"]
    (tmp_path / "b.log").unlink()
    assert probe(files[1], DEFAULT_SETTINGS).problem == "no such file or directory"


@pytest.mark.parametrize("head", ["", "> "], ids=["block reader", "line reader"])
def test_a_growing_file_is_read_as_far_as_it_reached(head: str, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    text = "".join(f"{head}{line}\n" for line in (_STOCK + _FAILURE).split("\n")[:-1])
    path.write_text(text)
    profile = probe(list_inputs([str(path)]).files[0], DEFAULT_SETTINGS)
    with path.open("a") as file:
        file.write(_FAILURE * 3)
    scan = Scanner((), DEFAULT_SETTINGS).scan(ByteRange(profile, "d"), is_active=True)
    owned = scan.event_bytes + scan.counted_bytes + scan.held_back_bytes
    assert owned == len(text)
    # The last event may be incomplete, so the next run reads it.
    assert scan.held_back_bytes > 0
    assert scan.events == ()


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(_TEXT)
    assert _messages(_scan(path, tmp_path, path)) == ["it failed"]


def test_modification_times_mean_nothing_to_one_process(tmp_path: Path) -> None:
    for name, seconds in (("past.log", 0), ("future.log", 4_000_000_000)):
        (tmp_path / name).write_bytes(_TEXT)
        os.utime(tmp_path / name, (seconds, seconds))
    assert _messages(_scan(tmp_path)) == ["it failed"] * 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"%PDF-1.7\n" + os.urandom(4000), "PDF document", id="PDF"),
        pytest.param(b"\x7fELF\x02\x01" + os.urandom(4000), "binary program", id="ELF"),
        pytest.param(b"JAVA PROFILE 1.0.2\0" + os.urandom(4000), "heap dump", id="heap dump"),
        pytest.param(b"7z\xbc\xaf\x27\x1c" + os.urandom(4000), "7z archive", id="7z"),
        pytest.param(bytes(10_000), "many NUL bytes and no newline", id="NUL"),
        pytest.param(bytes(range(256)) * 40, "too many control bytes", id="all bytes"),
        pytest.param(b"Rar!\x1a\x07" + bytes(1000), "rar archive", id="rar"),
    ],
)
def test_binary_content_is_quarantined(data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "core.log").write_bytes(data)
    scanned = _scan(tmp_path)
    assert [reason in problem for problem in _problems(scanned)] == [True]
    assert sum(r.scan.quarantined_bytes for r in scanned.results) == len(data)


# --- B: compression ----------------------------------------------------------------------------


def _zstd(data: bytes) -> bytes:
    from backports import zstd

    return zstd.compress(data)


def _lz4(data: bytes) -> bytes:
    import lz4.frame

    packed: bytes = lz4.frame.compress(data)
    return packed


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": _zstd,
    "lz4": _lz4,
}


@pytest.mark.parametrize("packer", sorted(_PACKERS))
@pytest.mark.parametrize("name", ["a.log", "a.gz", "a.zip", "a"])
def test_compression_is_detected_by_content(packer: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(_PACKERS[packer](_TEXT))
    scanned = _scan(tmp_path)
    assert (_messages(scanned), _problems(scanned)) == (["it failed"], [])


def test_text_called_gz_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(_TEXT)
    assert _messages(_scan(tmp_path)) == ["it failed"]


@pytest.mark.parametrize("packer", sorted(_PACKERS))
def test_members_one_after_another_are_one_file(packer: str, tmp_path: Path) -> None:
    pack = _PACKERS[packer]
    (tmp_path / "a.log").write_bytes(pack(_STOCK.encode()) + pack(_TEXT) + pack(_TEXT))
    scanned = _scan(tmp_path)
    assert (_messages(scanned), _problems(scanned)) == (["it failed"] * 2, [])
    assert sum(v.event_count for r in scanned.results for v in r.scan.volumes) == 602


@pytest.mark.parametrize("packer", sorted(_PACKERS))
def test_truncated_stream_is_read_up_to_the_cut(packer: str, tmp_path: Path) -> None:
    noise = "".join(f"{zlib.crc32(str(n).encode()):08x}" * 9 + "\n" for n in range(20_000))
    data = _PACKERS[packer](_TEXT + noise.encode())
    (tmp_path / "a.log").write_bytes(data[: len(data) * 2 // 3])
    scanned = _scan(tmp_path)
    assert _messages(scanned) == ["it failed"]
    assert ["partial" in problem for problem in _problems(scanned)] == [True]


def test_wrong_checksum_keeps_the_data_and_reports_a_problem(tmp_path: Path) -> None:
    data = gzip.compress(_TEXT)
    (tmp_path / "a.log").write_bytes(data[:-8] + b"\0\0\0\0" + data[-4:])
    scanned = _scan(tmp_path)
    assert _messages(scanned) == ["it failed"]
    assert len(_problems(scanned)) == 1


def test_padding_behind_gzip_is_nothing_and_garbage_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(gzip.compress(_TEXT) + bytes(1000))
    assert _problems(_scan(tmp_path)) == []
    (tmp_path / "a.log").write_bytes(gzip.compress(_TEXT) + b"garbage")
    scanned = _scan(tmp_path)
    assert _messages(scanned) == ["it failed"]
    assert ["followed by other data" in p for p in _problems(scanned)] == [True]


@pytest.mark.parametrize("packer", sorted(_PACKERS))
def test_decompression_bomb_is_read_up_to_the_limit(packer: str, tmp_path: Path) -> None:
    data = _PACKERS[packer](_TEXT + b"a" * 20_000_000)
    (tmp_path / "a.log").write_bytes(data)
    scanned = _scan(tmp_path, limits=Settings(max_file_bytes=100_000))
    assert _messages(scanned) == ["it failed"]
    assert ["limit" in problem for problem in _problems(scanned)] == [True]
    assert sum(v.byte_count for r in scanned.results for v in r.scan.volumes) == 100_000


def test_compressed_twice_is_named_not_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(gzip.compress(_TEXT)))
    scanned = _scan(tmp_path)
    assert [("binary" in problem) for problem in _problems(scanned)] == [True]


def test_an_encrypted_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.log.gpg").write_bytes(b"\x85\x02\x0c\x03" + os.urandom(5000))
    scanned = _scan(tmp_path)
    assert [("binary" in problem) for problem in _problems(scanned)] == [True]


def test_a_stream_that_cannot_be_read_to_its_end_is_partial(tmp_path: Path) -> None:
    from flink_triage.logs.inputs.compression import DecompressedStream

    class Breaking(io.RawIOBase):
        """A file whose storage fails after the first bytes, as NFS can."""

        def __init__(self) -> None:
            self.left = [_TEXT[:16], _TEXT[16:]]

        def read(self, size: int = -1, /) -> bytes:
            if not self.left:
                raise OSError(5, "Input/output error")
            return self.left.pop(0)

    stream = DecompressedStream(Breaking(), 1 << 30)  # type: ignore[arg-type]
    assert stream.read(len(_TEXT) + 10) == _TEXT
    assert stream.problem is not None
    assert "unreadable" in stream.problem

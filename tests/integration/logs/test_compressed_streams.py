"""Decompression uses little memory at any ratio and keeps all data before the damage."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from flink_triage.local import Options, run_local
from flink_triage.logs.inputs.compression import open_decompressed
from flink_triage.settings import MIB
from tests.fuzz.streams import (
    BOMB_BYTES,
    PACKERS,
    bomb,
    broken,
    packed,
    read_bounded,
    xz_with_dictionary,
    zstd_with_window,
)

PLAIN = b"".join(b"%d: a line of a log\n" % number for number in range(20_000))


@pytest.mark.parametrize("name", sorted(PACKERS))
def test_a_bomb_is_read_in_little_memory(name: str) -> None:
    assert read_bounded(bomb(name)) == (BOMB_BYTES, None)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(xz_with_dictionary(PLAIN, 30), id="xz"),
        pytest.param(zstd_with_window(PLAIN[:1000], 30), id="zstd"),
    ],
)
def test_a_window_of_a_gibibyte_is_refused(data: bytes) -> None:
    stream = open_decompressed(io.BytesIO(data), MIB)
    assert stream.read() == b""
    assert str(stream.problem).endswith("requires a window of more than 128 MiB to decompress")


def test_a_window_of_64_mebibytes_is_read() -> None:
    stream = open_decompressed(io.BytesIO(xz_with_dictionary(PLAIN, 26)), MIB)
    assert (stream.read(), stream.problem) == (PLAIN, None)


@pytest.mark.parametrize(
    ("name", "at"), [("bz2", -5), ("gzip", -5), ("lz4", -1), ("xz", -5), ("zstd", -1)]
)
def test_a_wrong_checksum_loses_nothing_before_it(name: str, at: int) -> None:
    data = bytearray(packed(name, iter((PLAIN,))))
    data[at] ^= 0xFF
    stream = open_decompressed(io.BytesIO(data), MIB)
    assert stream.read() == PLAIN
    assert "damaged" in str(stream.problem)


@pytest.mark.parametrize("name", ["lz4", "zstd"])
def test_frames_that_hold_no_log_are_skipped(name: str) -> None:
    frame = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"index"
    member = packed(name, iter((PLAIN,)))
    stream = open_decompressed(io.BytesIO(member + frame + member + frame), 2 * MIB)
    assert (stream.read(), stream.problem) == (PLAIN * 2, None)


def test_a_member_behind_much_padding_is_read() -> None:
    member = packed("gzip", iter((PLAIN,)))
    stream = open_decompressed(io.BytesIO(member + bytes(200_000) + member), 2 * MIB)
    assert (stream.read(), stream.problem) == (PLAIN * 2, None)


def test_no_damaged_stream_fails_a_check() -> None:
    assert broken(range(1, 101)) == {}


@pytest.mark.parametrize("name", sorted(PACKERS))
def test_a_damaged_file_does_not_end_the_command(name: str, tmp_path: Path) -> None:
    line = b"2026-11-21 06:47:23,468 ERROR org.apache.flink.Foo [] - write failed\n"
    data = bytearray(packed(name, iter((line * 20 + PLAIN,))))
    data[len(data) // 2] ^= 0xFF
    data[-1] ^= 0xFF
    (tmp_path / "broken.log").write_bytes(data)
    (tmp_path / "good.log").write_bytes(line)
    coverage = run_local([str(tmp_path)], Options(workers=1)).coverage
    assert coverage.files == 2
    assert coverage.events >= 1
    assert [Path(q.path).name for q in coverage.quarantined] == ["broken.log"]

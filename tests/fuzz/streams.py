"""Tests hostile and damaged compressed streams: memory is limited, and lost data is reported.

``python -m tests.fuzz.streams RUNS SEED`` decodes a bomb of each format in a process with limited
memory and CPU time, and prints the result. It then decodes RUNS damaged streams, and prints the
seed of each that fails a check.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lz4.frame
from backports import zstd

from flink_triage.logs.inputs.compression import DecompressedStream, open_decompressed
from flink_triage.settings import GIB, MIB

PACKERS: Mapping[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.compressobj(wbits=31),
    "bz2": lambda: bz2.BZ2Compressor(1),
    "xz": lambda: lzma.LZMACompressor(preset=0),
    "zstd": lambda: zstd.ZstdCompressor(options={zstd.CompressionParameter.checksum_flag: 1}),
    "lz4": lambda: _Lz4Compressor(),
}
# The functions of the libraries that decompress a whole file.
WHOLE: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
    "zstd": zstd.decompress,
    "lz4": lz4.frame.decompress,
}
# Maximum memory for decoding, in addition to that of the interpreter and the loaded modules.
MAX_DATA_BYTES = 32 * MIB
MAX_CPU_SECONDS = 60
BOMB_BYTES = 256 * MIB


class _Lz4Compressor:
    """The compressor of lz4, with the interface of the other compressors."""

    def __init__(self) -> None:
        self._lz4 = lz4.frame.LZ4FrameCompressor(content_checksum=True)
        self._head = bytes(self._lz4.begin())

    def compress(self, data: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._lz4.compress(data))

    def flush(self) -> bytes:
        return bytes(self._lz4.flush())


def packed(name: str, pieces: Iterator[bytes]) -> bytes:
    packer = PACKERS[name]()
    return b"".join(packer.compress(piece) for piece in pieces) + packer.flush()


def bomb(name: str, size: int = BOMB_BYTES) -> bytes:
    """One compressed member that contains ``size`` times the same letter."""
    return packed(name, (b"a" * MIB for _ in range(size // MIB)))


def xz_with_dictionary(data: bytes, bits: int) -> bytes:
    """``data`` as an xz stream that requires a dictionary of 1 << ``bits`` bytes."""
    stream = bytearray(lzma.compress(data, preset=0))
    # The block header follows the 12 bytes of the stream header: its size, its flags, and the
    # filter LZMA2 (0x21) with one byte of properties; its checksum is the last four bytes.
    end = 12 + (stream[12] + 1) * 4
    stream[stream.index(b"\x21\x01", 12, end) + 2] = 2 * (bits - 12)
    stream[end - 4 : end] = zlib.crc32(stream[12 : end - 4]).to_bytes(4, "little")
    return bytes(stream)


def zstd_with_window(data: bytes, bits: int) -> bytes:
    """``data`` as a zstd frame that requires a window of 1 << ``bits`` bytes."""
    head, block = b"\x28\xb5\x2f\xfd\x00", (len(data) << 3 | 1).to_bytes(3, "little")
    return head + bytes(((bits - 10) << 3,)) + block + data


def read_bounded(data: bytes) -> tuple[int, str | None]:
    """The number of bytes that a process with limited memory decompresses, and any problem."""
    command = [sys.executable, "-m", "tests.fuzz.streams"]
    folder = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, input=data, capture_output=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode()[-2000:])
    count, _, problem = done.stdout.decode().strip().partition(" ")
    return int(count), problem or None


def _read_here() -> None:
    data = sys.stdin.buffer.read()
    # Load the decoder's module before the memory is measured.
    open_decompressed(io.BytesIO(data[:64]), 1).read(1)
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    limit = used + MAX_DATA_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    stream = open_decompressed(io.BytesIO(data), 64 * GIB)
    count = 0
    while part := stream.read(MIB):
        count += len(part)
    print(count, stream.problem or "")


def damaged(seed: int) -> tuple[str, bytes, bytes]:
    """The compression format, some bytes, and a damaged compressed stream of them."""
    drawn = random.Random(seed)
    name = drawn.choice(sorted(PACKERS))
    words = [b"%x " % drawn.getrandbits(32) for _ in range(drawn.choice((1, 50, 2_000)))]
    plain = b"".join(drawn.choice(words) for _ in range(drawn.choice((1, 300, 60_000))))
    cut = drawn.randrange(len(plain) + 1) if drawn.random() < 0.4 else len(plain)
    stream = packed(name, iter((plain[:cut],)))
    if cut < len(plain):
        stream += packed(name, iter((plain[cut:],)))
    data = bytearray(stream)
    for _ in range(drawn.choice((0, 1, 1, 20))):
        data[drawn.randrange(len(data))] = drawn.randrange(256)
    if drawn.random() < 0.5:
        del data[drawn.randrange(len(data) + 1) :]
    if drawn.random() < 0.2:
        data += drawn.choice((b"garbage", bytes(200_000), stream[:10]))
    return name, plain, bytes(data)


def check(seed: int) -> None:
    """Raise ``AssertionError`` if the damaged stream of this seed fails a check."""
    name, plain, data = damaged(seed)
    stream = DecompressedStream(io.BytesIO(data), GIB, name)
    whole = stream.read()
    if stream.problem is None:
        # Some damage cannot be detected, for example after the last member.
        assert whole in (plain, WHOLE[name](data)), "data was lost, but no problem was reported"
    again = DecompressedStream(io.BytesIO(data), GIB, name)
    drawn = random.Random(seed)
    parts = []
    while part := again.read(drawn.choice((1, 100, 70_000, MIB))):
        parts.append(part)
    assert b"".join(parts) == whole, "the prefix depends on the size of the reads"
    assert again.problem == stream.problem, "the problem depends on the size of the reads"


def broken(seeds: Sequence[int]) -> dict[int, str]:
    """The seeds whose stream fails a check, each with the reason."""
    found: dict[int, str] = {}
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            found[seed] = f"{type(error).__name__}: {error}"
    return found


def main(runs: int, seed: int) -> int:
    bad = 0
    for name in PACKERS:
        count, problem = read_bounded(bomb(name, 2 * GIB))
        is_good = (count, problem) == (2 * GIB, None)
        bad += not is_good
        print(f"{'ok' if is_good else 'BROKEN':<8}a bomb of 2 GiB, {name}: {count}, {problem}")
    found = broken(range(seed, seed + runs))
    for number, reason in found.items():
        print(f"seed {number}: {reason}")
    print(f"{runs} damaged streams from seed {seed}: {len(found)} failed a check")
    return 1 if bad or found else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
    _read_here()

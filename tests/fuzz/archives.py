"""Tests hostile and damaged archives: memory and time are limited, and each is read or quarantined.

Of hostile archives except one, the intact members must be read. ``python -m tests.fuzz.archives
RUNS SEED`` reads each hostile archive in a separate process and prints the result. It then reads
RUNS damaged archives, and prints the seed of each that fails a check.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flink_triage.local import Options, run_local
from flink_triage.settings import KIB, MIB
from tests.fuzz.core import HangError, watched
from tests.fuzz.limits import read_apart

STOCK = "".join(
    f"2026-11-21 06:47:{n % 60:02},468 INFO  org.apache.flink.Foo [] - message {n}\n"
    for n in range(50)
).encode()
FAILURE = (
    b"2026-11-21 06:48:23,468 ERROR org.apache.flink.Foo [] - write failed\n"
    b"java.io.IOException: No space left on device\n"
    b"\tat java.io.FileOutputStream.writeBytes(Native Method)\n"
)
LOG = STOCK + FAILURE
BLOCK = tarfile.BLOCKSIZE
ZIP_METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bz2": zipfile.ZIP_BZIP2,
    "lzma": zipfile.ZIP_LZMA,
}
MAX_SECONDS = 30


def zipped(members: Mapping[str, bytes], method: str = "deflate") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", ZIP_METHODS[method]) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def zip_bomb(method: str, size: int) -> bytes:
    """A zip with a member that contains ``size`` times the same letter, between two logs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", ZIP_METHODS[method], compresslevel=1) as archive:
        archive.writestr("a.log", LOG)
        with archive.open("bomb.log", "w") as member:
            for _ in range(size // MIB):
                member.write(b"a" * MIB)
        archive.writestr("z.log", LOG)
    return out.getvalue()


def zip_with_dictionary(bits: int) -> bytes:
    """A zip whose second member requires a dictionary of 1 << ``bits`` bytes."""
    data = bytearray(zipped({"a.log": LOG, "b.log": LOG}, "lzma"))
    # The version, the size of the properties, and the first property precede the dictionary size.
    at = data.index(b"b.log") + len(b"b.log") + 5
    data[at : at + 4] = struct.pack("<I", 1 << bits)
    return bytes(data)


def zip_of_many(count: int) -> bytes:
    """A zip of ``count`` members, of which only the first contains a failure."""
    return zipped({"0.log": LOG} | {f"{n}.log": STOCK[:74] for n in range(1, count)}, "stored")


def zip_of_one_kernel(count: int) -> bytes:
    """A zip whose directory lists one member ``count`` times, under different names."""
    data = zipped({"a.log": LOG})
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry, name_at = data[start:end], 46
    entries = [
        entry[:name_at] + b"%05d" % n + entry[name_at + 5 :] if n else entry for n in range(count)
    ]
    directory = b"".join(entries)
    tail = bytearray(data[end:])
    tail[8:20] = struct.pack("<HHII", count, count, len(directory), start)
    return data[:start] + directory + bytes(tail)


def _header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mtime = size, kind, 1_795_000_000
    return info.tobuf(tarfile.GNU_FORMAT)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def tar_member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    return _header(name, len(data), kind) + _padded(data)


def pax_record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    size = len(body)
    while len(str(size)) + len(body) != size:
        size = len(str(size)) + len(body)
    return str(size).encode() + body


def _between(hostile: bytes) -> bytes:
    """A tar that contains ``hostile`` between two logs."""
    return tar_member("a.log", LOG) + hostile + tar_member("z.log", LOG) + bytes(2 * BLOCK)


def packed_with_large(kind: bytes, mebibytes: int) -> bytes:
    """A compressed tar with a large extended header of type ``kind`` before its second member."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as packed:
        packed.write(tar_member("a.log", LOG) + _header("large", mebibytes * MIB, kind))
        # If it is a pax header, it consists of one record.
        record = b"%d comment=" % (mebibytes * MIB)
        packed.write(record + b"a" * (MIB - len(record)))
        for _ in range(mebibytes - 1):
            packed.write(b"a" * MIB)
        packed.write(tar_member("bad.log", LOG) + tar_member("z.log", LOG) + bytes(2 * BLOCK))
    return out.getvalue()


def tar_with_chained_pax(count: int) -> bytes:
    header = tar_member("pax", pax_record("comment", "a"), tarfile.XHDTYPE)
    return _between(header * count + tar_member("after.log", LOG))


def tar_with_global_pax(count: int) -> bytes:
    """A tar with a global header of many keys, and many members to which the keys apply."""
    keys = b"".join(pax_record(f"k{n}", "v") for n in range(4_000))
    own = tar_member("pax", pax_record("comment", "a"), tarfile.XHDTYPE)
    members = b"".join(own + tar_member(f"{n}.log", b"x\n") for n in range(count))
    return _between(tar_member("pax", keys, tarfile.XGLTYPE) + members)


def tar_with_negative_size() -> bytes:
    block = bytearray(_header("bad.log", 0))
    block[124:136] = b"\xff" * 10 + b"\xfe\x00"  # -512, in base 256
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    return _between(bytes(block))


def tar_with_sparse_map(count: int) -> bytes:
    """A tar with a sparse file whose map fills ``count`` blocks."""
    block = bytearray(_header("sparse.log", 0, tarfile.GNUTYPE_SPARSE))
    block[482] = 1
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    more = bytearray((b"%011o\0" % 1) * 42 + bytes(8))
    more[504] = 1
    last = bytes(504) + bytes(8)
    return _between(bytes(block) + bytes(more) * count + last)


def tar_of_folders(count: int) -> bytes:
    return _between(_header("a/", 0, tarfile.DIRTYPE) * count)


def yarn(sections: int) -> bytes:
    """The output of ``yarn logs``; only the first section contains events."""
    return b"".join(
        b"Container: container_1600000000000_0001_01_%06d on node%d.example.com_45454\n"
        b"LogType:taskmanager.log\nLogLength:%d\nLog Contents:\n%s\n"
        % (n, n, len(LOG) if n == 0 else 2, LOG if n == 0 else b"x")
        for n in range(sections)
    )


# Nothing in this archive is read, because listing 200,000 members would require too much memory.
TOO_MANY = "a zip of 200,000 members"
# Each archive, with part of the reason if it or one of its members must be quarantined.
HOSTILE: Mapping[str, tuple[Callable[[], bytes], str | None]] = {
    **{
        f"a zip bomb of 512 MiB, {name}": (lambda name=name: zip_bomb(name, 512 * MIB), None)
        for name in ("deflate", "bz2", "lzma")
    },
    "a zip with a dictionary of 1 GiB": (lambda: zip_with_dictionary(30), "128 MiB"),
    "a zip of 9,000 members": (lambda: zip_of_many(9_000), None),
    TOO_MANY: (lambda: zip_of_many(200_000), "directory"),
    "a zip that names one member 9,000 times": (lambda: zip_of_one_kernel(9_000), "overlaps"),
    "a pax header of 256 MiB": (
        lambda: packed_with_large(tarfile.XHDTYPE, 256),
        "header of",
    ),
    "100,000 pax headers for one member": (lambda: tar_with_chained_pax(100_000), None),
    "a global pax header": (lambda: tar_with_global_pax(3_000), None),
    "a negative size": (tar_with_negative_size, "size"),
    "a sparse map of 50 MiB": (lambda: tar_with_sparse_map(100_000), "not a regular file"),
    "a million folders": (lambda: gzip.compress(tar_of_folders(1_000_000), 1), None),
    "a name of 256 MiB": (lambda: packed_with_large(tarfile.GNUTYPE_LONGNAME, 256), "name"),
    "300,000 sections of yarn logs": (lambda: yarn(300_000), "members"),
}


def small(drawn: random.Random) -> bytes:
    """An archive of a random kind that contains a few logs."""
    members = {f"{n}.log": LOG for n in range(drawn.choice((1, 3, 8)))}
    kind = drawn.choice(("zip", "tar", "pax", "yarn"))
    if kind == "zip":
        return zipped(members, drawn.choice(sorted(ZIP_METHODS)))
    if kind == "yarn":
        data = yarn(len(members))
    elif kind == "tar":
        data = b"".join(tar_member(name, log) for name, log in members.items()) + bytes(2 * BLOCK)
    else:
        data = tar_with_chained_pax(3)
    return drawn.choice((bytes, gzip.compress, bz2.compress, lzma.compress))(data)


def damaged(seed: int) -> bytes:
    """A small archive in which bytes may be changed, cut off, or added."""
    drawn = random.Random(seed)
    data = bytearray(small(drawn))
    for _ in range(drawn.choice((0, 1, 1, 5, 40))):
        data[drawn.randrange(len(data))] = drawn.choice((0, 0x2D, 0x7F, 0x80, 0xFF, 0x31))
    if drawn.random() < 0.3:
        del data[drawn.randrange(len(data) + 1) :]
    if drawn.random() < 0.2:
        data[drawn.randrange(len(data) + 1) : 0] = drawn.randbytes(drawn.choice((1, 512, 4 * KIB)))
    return bytes(data)


def broken(seeds: Sequence[int], folder: Path) -> dict[int, str]:
    """The seeds whose archive fails a check, each with the reason."""
    found: dict[int, str] = {}
    for seed in seeds:
        path = folder / f"{seed}.log"
        path.write_bytes(damaged(seed))
        try:
            with watched(MAX_SECONDS):
                result = run_local([str(path)], Options(workers=1))
            assert result.incidents or result.coverage.quarantined, "neither read nor quarantined"
        except (Exception, HangError) as error:
            found[seed] = f"{type(error).__name__}: {error}"
        path.unlink()
    return found


def read_hostile(name: str, folder: Path) -> list[str]:
    """Read a hostile archive in a separate process, and return the checks that it fails."""
    make, reason = HOSTILE[name]
    (folder / "bundle").write_bytes(make())
    found = read_apart([str(folder)])
    problems = list(found.problems)
    if name != TOO_MANY and "disk/full" not in found.signatures:
        problems.append("the intact members are not read")
    if reason is not None and not any(reason.lower() in said.lower() for said in found.quarantined):
        problems.append(f"{reason!r} is not in {found.quarantined[:3]}")
    print(f"{'BROKEN' if problems else 'ok':<8}{name:<42}{found.peak}", *problems, flush=True)
    return problems


def main(runs: int, seed: int) -> int:
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in HOSTILE:
            bad += bool(read_hostile(name, Path(folder)))
        found = broken(range(seed, seed + runs), Path(folder))
    for number, reason in found.items():
        print(f"seed {number}: {reason}")
    print(f"{len(HOSTILE)} hostile and {runs} damaged archives: {bad + len(found)} failed a check")
    return 1 if bad or found else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))

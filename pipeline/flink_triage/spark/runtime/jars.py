"""Fetches and caches the JARs of Delta and of Hadoop's S3A that the Spark wheel does not contain.

With ``spark.jars.packages``, Spark resolves Delta's whole dependency tree (33 JARs, 87 MB) on every
start, although the Spark wheel contains all but two of these JARs. This module therefore fetches
only those two, once, with the Ivy in the wheel. Later runs require neither Ivy nor network access.

Whenever a session is started, its JARs are verified against the SHA-256 checksums in
``jars.sha256``, which contains the tested versions (8 ms for the two Delta JARs). For other
versions, Ivy verifies the published SHA-1 checksums when it fetches the JARs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from flink_triage.disk_cache import cache_directory
from flink_triage.errors import EnvironmentProblem
from flink_triage.spark.runtime.java import find_java

SCALA_LINE = "2.13"
# Contains the path of an Ivy settings file, for example for a mirror.
IVY_SETTINGS_VARIABLE = "FLINK_TRIAGE_IVY_SETTINGS"
FETCH_TIMEOUT_SECONDS = 300
# The AWS SDK version in the hadoop-project POM of each Hadoop version.
AWS_SDK_VERSIONS = {"3.5.0": "2.35.4"}
DIGESTS = Path(__file__).with_name("jars.sha256")
S3_ANALYTICS = ("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1")


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def delta_jars() -> tuple[Jar, ...]:
    """The Delta JARs that match the installed pyspark and delta-spark.

    Raises ``EnvironmentProblem`` if one of these two packages is not installed.
    """
    spark, delta = installed_version("pyspark"), installed_version("delta-spark")
    if spark is None or delta is None:
        missing = "pyspark" if spark is None else "delta-spark"
        raise EnvironmentProblem(
            f"{missing}: not installed in this Python; pip install 'flink-triage[spark]'"
        )
    spark_line = ".".join(spark.split(".")[:2])
    return (
        Jar("io.delta", f"delta-spark_{spark_line}_{SCALA_LINE}", delta),
        Jar("io.delta", "delta-storage", delta),
    )


def installed_version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def jar_directory() -> Path:
    return cache_directory() / "jars"


def cached_jars(directory: Path | None = None) -> tuple[Path, ...] | None:
    """The cached files of ``delta_jars``, or ``None`` if one is missing or damaged.

    Raises the same errors as ``delta_jars``.
    """
    home = directory or jar_directory()
    paths = tuple(home / jar.file_name for jar in delta_jars())
    return paths if all(_is_intact(path) for path in paths) else None


def ensure_jars(directory: Path | None = None) -> tuple[Path, ...]:
    """The Delta JARs on disk; Ivy fetches those that are missing or damaged.

    Raises ``EnvironmentProblem`` if pyspark or delta-spark is not installed, if the directory
    cannot be created, or if a JAR cannot be fetched.
    """
    home = directory or jar_directory()
    found = cached_jars(home)
    if found is not None:
        return found
    _make(home)
    for jar in delta_jars():
        if not _is_intact(home / jar.file_name):
            _fetch(jar, home)
    return tuple(home / jar.file_name for jar in delta_jars())


def _make(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"{home}: cannot store JARs: {error.strerror}") from None


def ensure_s3a_jars(directory: Path | None = None) -> tuple[Path, ...]:
    """The JARs of Hadoop's S3A for a warehouse in S3, fetched by Ivy if one is missing or damaged.

    Their total size is 18 MB; that of the SDK bundle on which hadoop-aws depends is 600 MB. Raises
    ``EnvironmentProblem`` for an untested Hadoop version, if the directory cannot be created, or if
    the JARs cannot be fetched.
    """
    hadoop = _hadoop_version()
    if hadoop not in AWS_SDK_VERSIONS:
        raise EnvironmentProblem(
            f"hadoop-aws {hadoop}: not tested; tested versions: "
            f"{', '.join(AWS_SDK_VERSIONS)}; provide its JARs with spark-submit --packages"
        )
    home = directory or jar_directory()
    jars = _s3a_jars(home, hadoop)
    if not all(map(_is_intact, jars)):
        _make(home)
        _fetch_s3a(hadoop, home)
    return jars


def _s3a_jars(home: Path, hadoop: str) -> tuple[Path, ...]:
    return tuple(home / name for name in _digests() if name.startswith(f"s3a-{hadoop}/"))


def _hadoop_version() -> str:
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"))
    return found[0].stem.removeprefix("hadoop-client-api-") if found else "(none found)"


def _fetch_s3a(hadoop: str, home: Path) -> None:
    sdk = AWS_SDK_VERSIONS[hadoop]
    aws = ("s3", "s3-transfer-manager", "sts", "apache-client")
    wanted = [
        _ivy_dependency("org.apache.hadoop", "hadoop-aws", hadoop, "master"),
        _ivy_dependency(*S3_ANALYTICS, "master"),
        *(_ivy_dependency("software.amazon.awssdk", name, sdk, "default") for name in aws),
    ]
    with tempfile.TemporaryDirectory(dir=home, prefix=".fetch-") as scratch:
        module = Path(scratch) / "ivy.xml"
        module.write_text(
            '<ivy-module version="2.0"><info organisation="flink-triage" module="s3a"/>'
            '<configurations><conf name="default"/></configurations>'
            f"<dependencies>{''.join(wanted)}</dependencies></ivy-module>",
            encoding="utf-8",
        )
        fetched = Path(scratch) / f"s3a-{hadoop}"
        folder = home / fetched.name
        pattern = f"{fetched}/[artifact]-[revision](-[classifier]).[ext]"
        output = _run_ivy(["-ivy", str(module), "-retrieve", pattern], folder, Path(scratch))
        for jar in _s3a_jars(Path(scratch), hadoop):
            _check_fetched(jar, folder, output)
        if not all(map(_is_intact, _s3a_jars(home, hadoop))):
            shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # a concurrent first run was faster
            fetched.rename(folder)


def _ivy_dependency(group: str, artifact: str, version: str, conf: str) -> str:
    """The XML element; ``conf`` is ``master`` (the JAR) or ``default`` (with its dependencies)."""
    return f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->{conf}"/>'


@cache
def _digests() -> dict[str, str]:
    """The SHA-256 checksum of each JAR of the tested versions, by its path in the cache."""
    lines = DIGESTS.read_text("utf-8").rstrip().split("\n")
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {path: digest for digest, path in pairs}


def _expected_digest(path: Path) -> str | None:
    digests = _digests()
    return digests.get(path.name) or digests.get(f"{path.parent.name}/{path.name}")


def _is_intact(path: Path) -> bool:
    """Whether a JAR has its known checksum or, if none is known, is a complete archive."""
    expected = _expected_digest(path)
    try:
        return _is_complete(path) if expected is None else _sha256(path) == expected
    except OSError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _is_complete(path: Path) -> bool:
    """Whether a file begins and ends like a zip archive; a truncated download does not."""
    with path.open("rb") as handle:
        if handle.read(4) != b"PK\x03\x04":
            return False
        handle.seek(0, os.SEEK_END)
        handle.seek(max(0, handle.tell() - 65_557))
        return b"PK\x05\x06" in handle.read()


def _fetch(jar: Jar, home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home, prefix=".fetch-") as scratch:
        words = ["-notransitive", "-dependency", jar.group, jar.artifact, jar.version]
        words += ["-retrieve", f"{scratch}/[artifact]-[revision].[ext]"]
        output = _run_ivy(words, home, Path(scratch))
        fetched = Path(scratch) / jar.file_name
        _check_fetched(fetched, home, output)
        # Atomic: two simultaneous first runs write the same complete file.
        fetched.replace(home / jar.file_name)


def _check_fetched(path: Path, folder: Path, output: str) -> None:
    """Raise ``EnvironmentProblem`` if Ivy did not fetch a JAR, or if the JAR is not intact.

    ``folder`` is the folder of the cache to which the JAR will be moved.
    """
    if _is_intact(path):
        return
    remedy = f"copy the JAR to {folder}, or set {IVY_SETTINGS_VARIABLE} to an Ivy settings file"
    if not path.exists():
        raise EnvironmentProblem(
            f"{path.name}: missing or damaged in {folder}, and Ivy could not fetch it "
            f"({_reason(output)}); {remedy}"
        )
    expected = _expected_digest(path)
    if expected is None:
        raise EnvironmentProblem(f"{path.name}: Ivy fetched an incomplete JAR; {remedy}")
    raise EnvironmentProblem(
        f"{path.name}: Ivy fetched a file with the SHA-256 checksum {_sha256(path)}, "
        f"expected {expected}; {remedy}"
    )


def _run_ivy(words: list[str], folder: Path, scratch: Path) -> str:
    """The output of Ivy; ``EnvironmentProblem`` if Java or Ivy is missing, or if Ivy times out.

    ``folder`` is the folder of the cache that lacks the JARs.
    """
    command = [str(find_java().path), "-cp", _ivy_class_path(), "org.apache.ivy.Main"]
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    if settings:
        command += ["-settings", settings]
    command += ["-cache", str(scratch / "ivy"), "-confs", "default", *words]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(
            f"{folder}: Ivy did not fetch the JARs within {FETCH_TIMEOUT_SECONDS} s; "
            "copy them to this folder"
        ) from None
    return done.stdout + done.stderr


def _ivy_class_path() -> str:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    parts = sorted(jars.glob("ivy-*.jar")) + sorted(jars.glob("commons-cli-*.jar"))
    if len(parts) < 2:
        raise EnvironmentProblem(
            f"{jars}: ivy-*.jar or commons-cli-*.jar is missing; reinstall pyspark"
        )
    return os.pathsep.join(str(part) for part in parts)


def _reason(output: str) -> str:
    """The line of Ivy's output that most likely states the reason, cut to 160 characters."""
    lines = [line.strip(" \t:") for line in output.split("\n")]
    for word in ("invalid", "not found", "refused", "timed out", "UNRESOLVED", "rror"):
        for line in lines:
            if word in line:
                return line[:160]
    return "it gave no reason"


def free_bytes(path: Path) -> int:
    """Free disk space at ``path``, which need not exist."""
    at = path
    while not at.exists() and at != at.parent:
        at = at.parent
    return shutil.disk_usage(at).free

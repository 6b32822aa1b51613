"""Starts or reuses a Spark session with Delta, according to the flags of the command."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from pyspark.sql import SparkSession

from flink_triage.disk_cache import cache_directory, private_directory
from flink_triage.errors import EnvironmentProblem
from flink_triage.settings import GIB, MIB
from flink_triage.spark.runtime.jars import ensure_jars, ensure_s3a_jars
from flink_triage.spark.runtime.java import Java, find_java

# The first version with the iterator form of applyInArrow; from this version on, the artifact name
# of Delta also contains the Spark line.
OLDEST_SPARK = (4, 1)
QUIET_LOG4J = Path(__file__).with_name("log4j2-quiet.properties")
# Below these amounts of data, Spark spends more time on planning and compiling than on computing.
# In a run over 0.8 GB, computing Delta snapshots in eight partitions and adaptive execution took
# 18 s of CPU time. In a run over 3 GB, the optimizing JIT compiler took 30 s, and all tasks in the
# JVM 24 s.
LITTLE_BYTES = 512 * MIB
MEDIUM_BYTES = 8 * GIB
# Without perf data, the JVM writes no files outside the folders of this program.
EVERY_JVM = "-XX:-UsePerfData"
# Without the second flag, the code cache is 48 MB; a long notebook session fills it, and the JVM
# then interprets new code.
ONE_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# Together with a single compiler, this reduces session startup from 18.8 s to 12.6 s on two cores.
ONE_COLLECTOR = "-XX:+UseSerialGC"
PARALLEL_COLLECTOR = "-XX:+UseParallelGC"
# The default value of spark.connect.grpc.binding.port.
CONNECT_PORT = 15002
CONNECT_TIMEOUT_SECONDS = 10.0
# spark-submit sets this variable for the driver: the JVM is running, but has no session yet.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
DELTA_OPTIONS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Marks a session that this program started, with the amount of data that it is configured for.
OWN_SESSION = "spark.flinkTriage.ownSession"
_FEW_PARTITIONS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # VACUUM lists a folder in this many tasks; the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # With two partitions, adaptive execution has nothing to adapt.
    "spark.sql.adaptive.enabled": "false",
}
_CODEGEN = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
# Compiling generated code took 5 s of a run of 27 s.
_NO_CODEGEN = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Settings for planning and running queries, by amount of data.
QUERIES: dict[str, dict[str, str]] = {
    "little": _FEW_PARTITIONS | _NO_CODEGEN,
    "medium": _FEW_PARTITIONS | _CODEGEN,
    "much": {
        "spark.sql.shuffle.partitions": "16",
        "spark.databricks.delta.snapshotPartitions": "8",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
        "spark.sql.adaptive.enabled": "true",
    }
    | _CODEGEN,
}
# Settings that affect results, for the sessions that this program creates.
RESULT_OPTIONS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def get_session(
    master: str | None = None,
    remote: str | None = None,
    spark: SparkSession | None = None,
    verbose: bool = False,
    size_bytes: int | None = 0,
    warehouse: str | None = None,
) -> SparkSession:
    """Return an existing Spark session, or start one.

    ``spark``, a Spark Connect session (``remote`` or ``SPARK_REMOTE``, unless it begins with
    ``local``), an active session, and the session on Databricks are used unchanged, in this order
    of precedence. With ``spark-submit``, its command line determines the master, memory, and JARs;
    only missing options that this program requires are added. Otherwise, a session with Delta is
    started, on this machine unless ``master`` is set. It is configured for ``size_bytes`` of logs
    or tables (``None`` if unknown); a session for little data starts faster. If ``warehouse``
    begins with ``s3a:``, the S3A JARs are added. Raises ``EnvironmentProblem`` if Java, the JARs,
    or the server is missing, if Spark does not start, or if it is older than `OLDEST_SPARK`.
    """
    session = spark or _session(master, remote, verbose, size_bytes, warehouse)
    # Client and server may have different versions, and both must be recent enough.
    for version in (pyspark.__version__, session.version):
        if is_too_old(version):
            raise EnvironmentProblem(too_old(version))
    return session


def is_too_old(version: str) -> bool:
    """Whether a version such as ``4.0.1`` is below `OLDEST_SPARK`; false for other formats."""
    line = re.match(r"(\d+)\.(\d+)", version)
    return line is not None and (int(line[1]), int(line[2])) < OLDEST_SPARK


def too_old(version: str) -> str:
    oldest = ".".join(str(part) for part in OLDEST_SPARK)
    return f"Spark {version} is too old: {oldest} or newer is required"


def _session(
    master: str | None,
    remote: str | None,
    verbose: bool,
    size_bytes: int | None,
    warehouse: str | None,
) -> SparkSession:
    address = remote or os.environ.get("SPARK_REMOTE")
    if address and not address.startswith("local"):
        return _connect(address)
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return SparkSession.builder.getOrCreate()
    if SUBMITTED in os.environ and master is None and not address:
        return _submitted(verbose)
    return _start(master, address, verbose, size_bytes, warehouse)


def _submitted(verbose: bool) -> SparkSession:
    """The session of a driver that ``spark-submit`` started, on its cluster."""
    from pyspark import SparkConf

    given = SparkConf()
    builder = SparkSession.builder
    if not given.contains("spark.app.name"):
        builder = builder.appName("flink-triage")
    for key, value in (DELTA_OPTIONS | RESULT_OPTIONS).items():
        if not given.contains(key):
            builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        _ = session.range(0).columns
    except Exception as error:  # py4j and the launcher have no common base class
        raise _not_started(error) from error
    if not verbose:
        session.sparkContext.setLogLevel("WARN")
    return session


def _not_started(error: Exception) -> EnvironmentProblem:
    first_line = str(error).strip().split("\n")[0]
    if "io.delta" in str(error):
        first_line += "; add the Delta JARs to spark-submit with --packages or --jars"
    return EnvironmentProblem(f"Spark did not start: {first_line}")


def _connect(address: str) -> SparkSession:
    # Parameters after the first semicolon may include a token.
    shown = address.split(";")[0]
    _check_server(shown)
    try:
        session = SparkSession.builder.remote(address).getOrCreate()
        _ = session.version
        return session
    except ImportError as error:
        raise EnvironmentProblem(
            f"{shown}: Spark Connect requires additional packages; run "
            f"pip install 'flink-triage[connect]': {error}"
        ) from None
    except Exception as error:  # grpc and Connect have no common base class
        raise EnvironmentProblem(f"{shown}: no Spark Connect server answers: {error}") from None


def _check_server(address: str) -> None:
    """Raise ``EnvironmentProblem`` if no server listens; the client would retry for ten minutes.

    With a proxy in the environment, this is not checked.
    """
    if any(name.lower() in ("grpc_proxy", "https_proxy", "http_proxy") for name in os.environ):
        return
    place = urlsplit(address)
    try:
        host, port = place.hostname or "localhost", place.port or CONNECT_PORT
        socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(f"{address}: no Spark Connect server answers: {error}") from None


def _start(
    master: str | None,
    remote: str | None,
    verbose: bool,
    size_bytes: int | None,
    warehouse: str | None,
) -> SparkSession:
    java = find_java()
    jars = ensure_jars()
    if warehouse is not None and warehouse.startswith("s3a:"):
        jars += ensure_s3a_jars()
    options = session_options(
        jars, verbose=verbose, size_bytes=size_bytes, archive=_class_archive(java)
    )
    # Workers of a local session are started with the driver's environment.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Without this variable, Spark may use, or warn about, the address of the host name.
    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("flink-triage")
    builder = builder.remote(remote) if remote else builder.master(master or "local[*]")
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # these errors have no common base class
        raise _not_started(error) from error
    if not remote and not verbose:
        session.sparkContext.setLogLevel("ERROR")
    return session


def session_options(
    jars: tuple[Path, ...], *, verbose: bool, size_bytes: int | None, archive: str = ""
) -> dict[str, str]:
    """The options of a session that this program starts, for a job over ``size_bytes``.

    ``archive`` contains the JVM options for the archive of loaded classes; it may be empty.
    """
    is_much = size_bytes is None or _amount(size_bytes) == "much"
    scratch = _scratch_directory()
    jvm = PARALLEL_COLLECTOR if is_much else f"{ONE_COMPILER} {ONE_COLLECTOR}"
    jvm += f' {EVERY_JVM} "-Djava.io.tmpdir={scratch}"'
    # The log configuration also silences Hadoop's user lookup and Spark's banner.
    if not verbose:
        jvm += f" -Dlog4j2.configurationFile={QUIET_LOG4J.as_uri()}"
    jvm = " ".join(filter(None, (jvm, archive, _given_options())))
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        **DELTA_OPTIONS,
        **RESULT_OPTIONS,
        OWN_SESSION: _amount(size_bytes),
        "spark.driver.extraJavaOptions": jvm,
        "spark.driver.memory": os.environ.get("FLINK_TRIAGE_DRIVER_MEMORY", "2g"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true" if verbose else "false",
        # Python workers are reused across the stages of a run.
        "spark.python.worker.reuse": "true",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        # Up to this number of paths, files are listed on the driver, without a Spark job.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # Only smaller data from the driver becomes a local relation. The optimizer itself evaluates
        # local relations, which took 2 s for 50,000 rows.
        "spark.sql.execution.arrow.localRelationThreshold": "1m",
        **QUERIES[_amount(size_bytes)],
    }


def _scratch_directory() -> Path:
    """A private directory for Spark's temporary files, which Spark makes readable by all users."""
    path = Path(tempfile.gettempdir()) / f"flink-triage-{os.geteuid()}"
    try:
        return private_directory(path)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path}: {error.strerror}; remove it, or set TMPDIR to another folder"
        ) from None


# If the user has set one of these options, the JVM rejects or does not need the class archive.
_ARCHIVE_OPTIONS = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")


def _class_archive(java: Java) -> str:
    """The option with which the JVM archives its loaded classes for the next run (JDK-8261455).

    Empty before Java 19, and if the user has set such an option.
    """
    given = _given_options()
    if java.major < 19 or any(option in given for option in _ARCHIVE_OPTIONS):
        return ""
    archive = cache_directory() / f"classes-{java.major}.jsa"
    return f'-XX:+AutoCreateSharedArchive "-XX:SharedArchiveFile={archive}" -Xlog:cds=off'


def _given_options() -> str:
    return os.environ.get("FLINK_TRIAGE_JAVA_OPTIONS", "")


def suit(spark: SparkSession, size_bytes: int) -> None:
    """Adapt the session to queries over ``size_bytes``, if this program started it.

    The amount of new data is known only after the inputs are compared with the tables. Settings
    that were changed since the session was started are kept.
    """
    before = QUERIES.get(spark.conf.get(OWN_SESSION, "") or "")
    if before is None:
        return
    amount = _amount(size_bytes)
    for key, value in QUERIES[amount].items():
        if spark.conf.get(key, None) == before[key]:
            spark.conf.set(key, value)
    spark.conf.set(OWN_SESSION, amount)


def _amount(size_bytes: int | None) -> str:
    """The key of `QUERIES` for an amount of data; an unknown size counts as little."""
    if size_bytes is None or size_bytes < LITTLE_BYTES:
        return "little"
    return "medium" if size_bytes < MEDIUM_BYTES else "much"

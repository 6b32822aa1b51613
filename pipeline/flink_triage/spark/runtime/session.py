"""A Spark session with Delta: in go the flags of the command, out comes a session to work with."""

from __future__ import annotations

import os
import re
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pyspark
from pyspark.sql import SparkSession

from flink_triage.disk_cache import cache_directory
from flink_triage.errors import EnvironmentProblem
from flink_triage.settings import GIB, MIB
from flink_triage.spark.runtime.jars import ensure_jars, ensure_s3a_jars
from flink_triage.spark.runtime.java import Java, find_java

# The first with the iterator form of applyInArrow; from this version on, Delta also names the Spark
# line in its artifact.
OLDEST_SPARK = (4, 1)
QUIET_LOG4J = Path(__file__).with_name("log4j2-quiet.properties")
# A smaller run spends more time on planning than on computing.
SMALL_BYTES = 512 * MIB
# For less data the optimising compiler costs more than it saves: 30 s of processor time in a run
# over 3 GB whose tasks took 24 s of it in the JVM.
SHORT_BYTES = 8 * GIB
# Without perf data the JVM writes nothing outside our folders.
EVERY_JVM = "-XX:-UsePerfData"
# It alone reserves 48 MB for code; a notebook's session fills that and then interprets.
ONE_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# With one compiler this halves the start of a session (18.8 s to 12.6 s on two cores).
SMALL_JVM = "-XX:+UseSerialGC"
LARGE_JVM = "-XX:+UseParallelGC"
# spark.connect.grpc.binding.port by default.
CONNECT_PORT = 15002
KNOCK_SECONDS = 10.0
# Set by spark-submit for the driver that it starts: the JVM runs, its session does not yet exist.
SUBMITTED = "PYSPARK_GATEWAY_PORT"
DELTA_OPTIONS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# Marks a session that we started, with the amount of data that it was started for.
OWN_SESSION = "spark.flinkTriage.ownSession"
# Settings for planning and running queries, by amount of data.
QUERIES: dict[str, dict[str, str]] = {
    "little": {
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # VACUUM lists a folder in so many tasks, of which there are 10,000 by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        # A short run plans more than it computes: compiling generated code took 5 s of 27 s, and
        # adaptive execution has nothing to adapt in two partitions.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    },
    "much": {
        "spark.sql.shuffle.partitions": "16",
        "spark.databricks.delta.snapshotPartitions": "8",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
    },
}
# Settings that results depend on, wherever the session comes from.
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
    """The session to work in.

    ``spark`` is used as it is, and so is an active session; on Databricks and over Spark Connect
    (``remote``, or ``SPARK_REMOTE``) nothing is configured.  Under ``spark-submit`` the master,
    memory and jars are those of its command line; only what Delta needs is added where nothing
    was said of it.  Otherwise a local session (or one on ``master``) is started with Delta, made
    for a job over ``size_bytes`` of logs or tables, None where that is not known: one for little
    starts twice as fast.  A ``warehouse`` on ``s3a://`` adds what reaches it.
    Raises ``EnvironmentProblem`` when Java, the jars or the server are not there, and when Spark is
    older than `OLDEST_SPARK`.
    """
    session = spark or _session(master, remote, verbose, size_bytes, warehouse)
    # Client and server may be of different releases, and a run needs both to be recent enough.
    for version in (pyspark.__version__, session.version):
        if is_too_old(version):
            raise EnvironmentProblem(too_old(version))
    return session


def is_too_old(version: str) -> bool:
    """Whether a version such as ``4.0.1`` is below `OLDEST_SPARK`; an unreadable one is not."""
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
    """The session of a driver that ``spark-submit`` started, on the cluster that it named."""
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
    except Exception as error:  # py4j and the launcher have no common root
        raise _not_started(error) from error
    if not verbose:
        session.sparkContext.setLogLevel("WARN")
    return session


def _not_started(error: Exception) -> EnvironmentProblem:
    first_line = str(error).strip().split("\n")[0]
    if "io.delta" in str(error):
        first_line += "; give spark-submit the Delta jars with --packages or --jars"
    return EnvironmentProblem(f"Spark did not start: {first_line}")


def _connect(address: str) -> SparkSession:
    # Parameters after the first semicolon may include a token.
    shown = address.split(";")[0]
    _knock(shown)
    try:
        session = SparkSession.builder.remote(address).getOrCreate()
        _ = session.version
        return session
    except ImportError as error:
        raise EnvironmentProblem(
            f"{shown}: Spark Connect needs pip install 'flink-triage[connect]': {error}"
        ) from None
    except Exception as error:  # grpc and Connect have no common root
        raise EnvironmentProblem(f"{shown}: no Spark Connect server answers: {error}") from None


def _knock(address: str) -> None:
    """Raise ``EnvironmentProblem`` if no server listens; the client would retry for ten minutes."""
    if any(name.lower() in ("grpc_proxy", "https_proxy", "http_proxy") for name in os.environ):
        return
    place = urlsplit(address)
    try:
        host, port = place.hostname or "localhost", place.port or CONNECT_PORT
        socket.create_connection((host, port), KNOCK_SECONDS).close()
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
    # Without it Spark warns about, or takes, whatever address the host name resolves to.
    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("flink-triage")
    builder = builder.remote(remote) if remote else builder.master(master or "local[*]")
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # py4j, the gateway and the launcher have no common root
        raise _not_started(error) from error
    if not remote and not verbose:
        session.sparkContext.setLogLevel("ERROR")
    return session


def session_options(
    jars: tuple[Path, ...], *, verbose: bool, size_bytes: int | None, archive: str = ""
) -> dict[str, str]:
    """What a session that we start ourselves is given for a job over so many bytes.

    ``archive`` is the JVM's option for the archive of its classes.
    """
    small = size_bytes is not None and size_bytes < SMALL_BYTES
    short = size_bytes is not None and size_bytes < SHORT_BYTES
    jvm = " ".join([EVERY_JVM, *([ONE_COMPILER] * short), SMALL_JVM if small else LARGE_JVM])
    # Hadoop's user lookup and Spark's own banner fall silent with the log configuration.
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
        # Python workers live on between the stages of a run.
        "spark.python.worker.reuse": "true",
        "spark.sql.warehouse.dir": str(Path(os.environ.get("TMPDIR", "/tmp")) / "flink-triage"),
        # A few rows an action: neither compression codecs nor broadcasts need warming up.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        # Many rows made in the driver are written by tasks: the optimizer, which takes what is
        # local for its own, took 2 s over 50,000 of them.
        "spark.sql.execution.arrow.localRelationThreshold": "1m",
        **QUERIES[_amount(size_bytes)],
    }


def _class_archive(java: Java) -> str:
    """The option by which the JVM keeps its loaded classes for the next one (JDK-8261455)."""
    given = _given_options()
    if java.major < 19 or "SharedArchiveFile" in given or "-Xshare" in given:
        return ""
    archive = cache_directory() / f"classes-{java.major}.jsa"
    return f'-XX:+AutoCreateSharedArchive "-XX:SharedArchiveFile={archive}" -Xlog:cds=off'


def _given_options() -> str:
    return os.environ.get("FLINK_TRIAGE_JAVA_OPTIONS", "")


def suit(spark: SparkSession, size_bytes: int) -> None:
    """Make a session that we started one for queries over so many bytes; leave others as they are.

    How much is new is known only when the inputs have been compared with the tables.  What was set
    otherwise since the session was started stays.
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
    """An unknown size counts as little."""
    return "little" if size_bytes is None or size_bytes < SMALL_BYTES else "much"

"""Determines the product that logged an event: ``flink``, ``other``, or ``None`` (unknown).

Other products also embed Kafka clients, RocksDB, HDFS clients, and ZooKeeper, and fail with the
same messages. The remedies for Flink do not apply to these products.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from flink_triage.logs.formats.carriers import TAGS_OF_OTHERS
from flink_triage.model import Product, StackTrace
from flink_triage.traces import origin_of
from flink_triage.traces.packages import PRODUCTS

# Class prefixes of other products that embed the same libraries as Flink.
_OTHER_PRODUCTS = PRODUCTS["other"]
# Logger prefixes of servers. These are not searched for in stack frames, because a Flink job may
# log an exception that a server sent.
_SERVERS = (
    *PRODUCTS["server"],
    # Elasticsearch and OpenSearch abbreviate the names of their loggers this way.
    *(f"o.{product}.{part}." for product in "eo" for part in "abcdeghimnprstx"),
)

# The last parts of Spark's logger names, as printed by log4j's "%c{1}".
_OF_SPARK = re.compile(
    r"(?:Spark(?:Context|Env|UI|Submit)|DAGScheduler|TaskSetManager|TaskSchedulerImpl"
    r"|Yarn(?:Cluster|Client)?Scheduler(?:Backend)?|YarnAllocator|MapOutputTracker\w*"
    r"|BlockManager(?:Info|Master\w*)|CoarseGrained(?:Executor|Scheduler)Backend"
    r"|ExecutorAllocationManager|ShuffleBlockFetcherIterator|ShuffleMapStage|AsyncEventQueue"
    r"|File(?:Format|Scan)\w*|InsertIntoHadoopFsRelation\w*|HadoopMapReduceCommitProtocol"
    r"|\w{0,20}MicroBatch\w{0,30}|(?:WholeStage)?Code[Gg]en\w{0,20}|OneForOneBlockFetcher"
    r"|RetryingBlockTransferor|MemoryStore|TorrentBroadcast|LiveListenerBus|DiskBlockManager)"
    r"(?:\$.*)?"
    # Logger names as printed by Hadoop's tools: "tools.DistCp", "mapreduce.Job".
    r"|(?:tools\.(?:DistCp|\w*CopyListing)|mapred(?:uce)?\.\w+|streaming\.StreamJob)"
)
# Up to version 4, Elasticsearch's loggers have no class and begin below "org.elasticsearch".
_OF_ELASTICSEARCH = re.compile(
    r"(?:action|cluster|discovery|gateway|index|indices|monitor|transport)(?:\.[a-z0-9]{1,40}){1,6}"
)
# Cassandra and other servers print the source file instead of the logger ("%F:%L"). The layouts in
# Flink's distribution do not.
_SOURCE_FILE = re.compile(r"[A-Z]\w{1,80}\.java")
# Threads of servers, and of other programs that use the same libraries as Flink.
_THREADS = re.compile(
    r"(?:SinkRunner-PollingRunner|PollableSourceRunner|lifecycleSupervisor-|conf-file-poller-)"
    r"|Executor task launch worker|task-result-getter-\d|dag-scheduler-event-loop"
    r"|(?:data-plane-)?kafka-(?:request-handler|network-thread-\d+-ListenerName)|ReplicaFetcherThread-"
    r"|controller-event-thread|group-metadata-manager|kafka-log-cleaner|connect-\w|task-thread-"
    r"|http-nio-\d|https-jsse-nio-|DubboServerHandler|HiveServer2-|elasticsearch\["
    r"|Metastore-Handler-Pool|Camel \(|scheduling-\d|quartzScheduler|Daemon worker"
    r"|QuorumPeer\[|QuorumConnectionThread-|(?:Listener|Learner)Handler-|NIO(?:WorkerThread-|ServerCxn)"
    r"|ProcessThread\(|SyncThread:|CommitProcessor"
    r"|Jenkins|PriorityTaskQueue|SplitRunner-|IPC Server handler|main-SendThread\(.{0,200}\)-broker"
)

# Kafka brokers, ZooKeeper, and their tools print the logger last, sometimes with the line number,
# and so do the images of Debezium and Kafka Connect.
_LOGGER_AT_END = re.compile(
    r"\((?:org\.apache\.(?:kafka|zookeeper)|io\.confluent|kafka|state\.change)\.[\w.$]{1,200}"
    r"(?::\d{1,6})?\)$"
    r"| {3}\[(?:io\.debezium|org\.apache\.kafka\.connect)\.[\w.$]{1,200}\]$"
)
_NAMES_OTHER = re.compile(
    r"\borg\.apache\.(?:spark|cassandra|hadoop\.mapred(?:uce)?|hadoop\.hbase)\.|\borg\.springframework\."
    # Spring web applications.
    r"|\bdispatcherServlet\b"
    # MapReduce attempts and Spark tasks.
    r"|\battempt_\d{10,16}_\d{1,8}_[mr]_\d{6}|\bLost task \d+\.\d+ in stage \d"
    r"|\bSpark(?:Context\b| (?:session|context|application)\b)|\bin stage \d+\.\d+ \(TID \d"
    # Trino, without its JDBC driver.
    r"|\bio\.trino\.(?!jdbc\b)"
    # Build tools, and Flume and Spark threads, which some layouts print in the message.
    r"|^> Task :\S|\bGradle\b|\bExpiring Daemon\b|\bDaemon worker\b|\bnpm ERR!"
    r"|\bSinkRunner-PollingRunner\b|\bExecutor task launch worker\b|\belasticsearch\["
    # Hive's command line.
    r"|^(?:hive|\d: jdbc:hive2:\S{0,200})> |\bFAILED: Execution Error, return code \d"
    # dbt.
    r"|\[(?:ERROR|FAIL \d{1,9}) in \d{1,6}\.\d\ds\]"
    r"|\bDatabase Error in (?:model|test|snapshot|seed) \w"
    # Airflow modules, errors, and files.
    r"|\bairflow\.(?:cli|dag_processing|exceptions|executors|jobs|models|processor|providers|sdk"
    r"|task|utils)\.|\bAirflow[A-Z]\w{0,40}(?:Exception|Error)\b|/site-packages/airflow/"
    # Actor systems of other programs; those of Flink are "flink" and "flink-metrics".
    r"|\b(?:akka|pekko)(?:\.[a-z]{2,10}){0,3}://(?!flink\b)[A-Za-z]"
    rf"|\b{TAGS_OF_OTHERS}(?: |$)"
    # Kafka Streams.
    r"|\bstream-thread \["
    # Loggers of Rust programs.
    r"|\b(?:ERROR|WARN|INFO) {1,2}[a-z_]{2,60}(?:::[a-z_]{1,60}){1,8}:? "
)
# Every match of `_NAMES_OTHER` contains one of these strings. Searching for strings is much faster.
_WORDS_OF_OTHERS = (
    *("org.", "dispatcherServlet", "attempt_", "Lost task ", "Spark", "in stage ", "> Task :"),
    "io.trino.",
    *("Gradle", "Daemon", "npm ERR!", "SinkRunner-", "Executor task", "elasticsearch["),
    *("://", "]:", "::", "s]", "Database Error in ", "irflow"),
    "stream-thread [",
    *("hive> ", "jdbc:hive2:", "FAILED: Execution Error"),
)
# Fixed layouts of servers, each with a string that every match contains.
_LINES_OF_SERVERS = (
    # PostgreSQL, after the time: log_line_prefix is "%m [%p] " by default; %u@%d is often added.
    (
        ":  ",
        re.compile(
            r"\[\d{1,7}\] (?:\S{1,100} )?"
            r"(?:LOG|FATAL|PANIC|ERROR|WARNING|DETAIL|HINT|STATEMENT|CONTEXT):  "
        ),
    ),
    # The Apache HTTP Server.
    ("] [pid ", re.compile(r"\[[a-z_]{2,20}:(?:error|warn|notice|crit)\] \[pid \d")),
    # Elasticsearch, with abbreviated loggers.
    ("[o.", re.compile(r"\]\[(?:FATAL|ERROR|WARN|INFO) {0,2}\]\[o\.(?:e|o)\.")),
    # nginx: the process and thread IDs after the level.
    ("#", re.compile(r"(?:^|\] )\d{1,7}#\d{1,7}: ")),
)
# Texts of other programs that identify them even in the messages of exceptions, each with a string
# that every match contains.
_IN_ANY_MESSAGE = (
    # Kafka itself and programs with Kafka clients, which fail with the same messages as Flink.
    (
        "kafka.",
        re.compile(
            r"\bakka\.kafka\.|\bkafka\.(?:manager|server|controller|cluster|coordinator|network|zk)\."
        ),
    ),
    # A method of one of Spark's DataFrames that Python called.
    (
        "while calling o",
        re.compile(
            r"\bwhile calling o\d{1,9}\.(?:collectToPython|count|csv|insertInto|jdbc|json|load|orc"
            r"|parquet|pyWriteDynamic|save(?:AsTable)?|showString|sql|text)\b"
        ),
    ),
)
_MAX_CHARS = 4096
# Flink's SQL client prints this text before the exception of a statement.
_SQL_CLIENT = "could not execute sql statement. reason:"
# The state change of a task, which identifies Flink even in truncated text.
_TASK_STATE = re.compile(r"\(\d{1,6}/\d{1,6}\).{0,200}? switched from [A-Z]{4,12} to [A-Z]{4,12}\b")


def product_of(logger: str | None, message: str, trace: StackTrace | None) -> Product | None:
    """The product according to the logger, the message, and the stack trace.

    Any indication of Flink takes precedence over indications of other products.
    """
    names = [logger or ""]
    texts = [message]
    for throwable in trace.throwables if trace is not None else ():
        names.append(throwable.type)
        names.extend(frame.class_name for frame in throwable.frames)
        # In a truncated stack trace, the JARs of the frames may be the only indication of Flink.
        texts.extend(frame.jar for frame in throwable.frames if frame.jar is not None)
        texts.append(throwable.message)
    if any(_is_flink(name) for name in names) or any(_mentions_flink(text) for text in texts):
        return "flink"
    head = message[:_MAX_CHARS]
    if " switched from " in head and _TASK_STATE.search(head) is not None:
        return "flink"
    if any(name.startswith(_OTHER_PRODUCTS) for name in names):
        return "other"
    if _is_server(names[0]) or _names_other(head) or _contains_any(_LINES_OF_SERVERS, head):
        return "other"
    if any(_contains_any(_IN_ANY_MESSAGE, text[:_MAX_CHARS]) for text in texts):
        return "other"
    if message.endswith((")", "]")) and _LOGGER_AT_END.search(message[-_MAX_CHARS:]) is not None:
        return "other"
    frames = [f for t in trace.throwables for f in t.frames] if trace is not None else []
    # A class without a package is not evidence, because the layout may abbreviate names.
    if any("." in f.class_name and origin_of(f.class_name) == "user" for f in frames):
        return "other"
    return None


def product_of_thread(thread: str | None) -> Product | None:
    """``other`` if the thread belongs to a different program; otherwise ``None``."""
    return "other" if thread is not None and _THREADS.match(thread) else None


@lru_cache(maxsize=4096)
def _is_server(logger: str) -> bool:
    if logger.startswith(_SERVERS):
        return True
    if _SOURCE_FILE.fullmatch(logger) or _OF_ELASTICSEARCH.fullmatch(logger):
        return True
    return _OF_SPARK.fullmatch(_short(logger)) is not None


def _names_other(text: str) -> bool:
    is_likely = any(word in text for word in _WORDS_OF_OTHERS)
    return is_likely and _NAMES_OTHER.search(text) is not None


def _contains_any(forms: Iterable[tuple[str, re.Pattern[str]]], text: str) -> bool:
    """Whether a regex matches; ``forms`` pairs each with a string that every match contains."""
    return any(word in text and form.search(text) for word, form in forms)


def _short(logger: str) -> str:
    """The last part of a logger name.

    A name with two parts is returned unchanged if it starts with a lower-case letter.
    """
    return logger if logger.count(".") == 1 and logger[0].islower() else logger.rpartition(".")[2]


def _is_flink(name: str) -> bool:
    return "flink" in name.lower() or name.startswith("o.a.f.")


def _mentions_flink(text: str) -> bool:
    lowered = text.lower()
    if "flink" in lowered or "jobmanager" in lowered or _SQL_CLIENT in lowered:
        return True
    # Kafka Streams also has a class TaskManager.
    return "taskmanager" in lowered and "kafka.streams." not in lowered

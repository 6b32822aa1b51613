"""Whose log is this?  One event's texts in, ``flink``, ``other`` or ``None`` out.

Kafka clients, RocksDB, HDFS clients and ZooKeeper live in other products too and fail there with
the same words.  Their remedies are not Flink's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from flink_triage.model import Product, StackTrace
from flink_triage.traces import origin_of
from flink_triage.traces.packages import PRODUCTS

# Products that embed the libraries that Flink embeds; class prefixes of their own code.
_OTHER_PRODUCTS = PRODUCTS["other"]
# Loggers of servers; in frames they also are where a server's exception reached a client.
_SERVERS = (
    *PRODUCTS["server"],
    # As Elasticsearch and OpenSearch abbreviate their own.
    *(f"o.{product}.{part}." for product in "eo" for part in "abcdeghimnprstx"),
)

# Loggers of Spark by the last part of their names, which is all that its own layout prints.
_OF_SPARK = re.compile(
    r"(?:Spark(?:Context|Env|UI|Submit)|DAGScheduler|TaskSetManager|TaskSchedulerImpl"
    r"|Yarn(?:Cluster|Client)?Scheduler(?:Backend)?|YarnAllocator|MapOutputTracker\w*"
    r"|BlockManager(?:Info|Master\w*)|CoarseGrained(?:Executor|Scheduler)Backend"
    r"|ExecutorAllocationManager|ShuffleBlockFetcherIterator|ShuffleMapStage|AsyncEventQueue"
    r"|File(?:Format|Scan)\w*|InsertIntoHadoopFsRelation\w*|HadoopMapReduceCommitProtocol"
    r"|\w{0,20}MicroBatch\w{0,30}|(?:WholeStage)?Code[Gg]en\w{0,20}|OneForOneBlockFetcher"
    r"|RetryingBlockTransferor|MemoryStore|TorrentBroadcast|LiveListenerBus|DiskBlockManager)"
    r"(?:\$.*)?"
    # What Hadoop's own tools print of their loggers: "tools.DistCp", "mapreduce.Job".
    r"|(?:tools\.(?:DistCp|\w*CopyListing)|mapred(?:uce)?\.\w+|streaming\.StreamJob)"
)
# Threads of servers and of programs around the libraries that Flink uses.
_THREADS = re.compile(
    r"(?:SinkRunner-PollingRunner|PollableSourceRunner|lifecycleSupervisor-|conf-file-poller-)"
    r"|Executor task launch worker|task-result-getter-\d|dag-scheduler-event-loop"
    r"|(?:data-plane-)?kafka-(?:request-handler|network-thread-\d+-ListenerName)|ReplicaFetcherThread-"
    r"|controller-event-thread|group-metadata-manager|kafka-log-cleaner|connect-\w|task-thread-"
    r"|http-nio-\d|https-jsse-nio-|DubboServerHandler|HiveServer2-|elasticsearch\["
    r"|Metastore-Handler-Pool|Camel \(|scheduling-\d|quartzScheduler|Daemon worker"
    r"|Jenkins|PriorityTaskQueue|SplitRunner-|IPC Server handler|main-SendThread\(.{0,200}\)-broker"
)

# Brokers, ZooKeeper and the tools that come with them print the logger last, some with the line.
_LOGGER_AT_END = re.compile(
    r"\((?:org\.apache\.(?:kafka|zookeeper)|io\.confluent|kafka|state\.change)\.[\w.$]{1,200}"
    r"(?::\d{1,6})?\)$"
)
_NAMES_OTHER = re.compile(
    r"\borg\.apache\.(?:spark|hadoop\.mapred(?:uce)?|hadoop\.hbase)\.|\borg\.springframework\."
    # Of a web application in Spring.
    r"|\bdispatcherServlet\b"
    # Attempts and tasks of MapReduce and Spark.
    r"|\battempt_\d{10,16}_\d{1,8}_[mr]_\d{6}|\bLost task \d+\.\d+ in stage \d"
    r"|\bSpark(?:Context\b| (?:session|context|application)\b)|\bin stage \d+\.\d+ \(TID \d"
    # Build tools, and the threads of Flume and Spark where a layout leaves them in the message.
    r"|^> Task :\S|\bGradle\b|\bExpiring Daemon\b|\bDaemon worker\b|\bnpm ERR!"
    r"|\bSinkRunner-PollingRunner\b|\bExecutor task launch worker\b|\belasticsearch\["
    # dbt.
    r"|\[(?:ERROR|FAIL \d{1,9}) in \d{1,6}\.\d\ds\]"
    r"|\bDatabase Error in (?:model|test|snapshot|seed) \w"
    # Actor systems of other programs; Flink's are "flink" and "flink-metrics".
    r"|\b(?:akka|pekko)(?:\.ssl)?(?:\.tcp)?://(?!flink\b)[A-Za-z]"
    # Systemd's units and syslog's tags of other products.
    r"|\b(?:pulsar|kafka|bookie|elasticsearch|cassandra|zookeeper|trino|presto)\[\d{1,7}\]: "
    # The logger of a program in Rust.
    r"|\b(?:ERROR|WARN|INFO) {1,2}[a-z_]{2,60}(?:::[a-z_]{1,60}){1,8}:? "
)
# Of these each of its alternatives holds one: to look for words is much quicker.
_WORDS_OF_OTHERS = (
    *("org.", "dispatcherServlet", "attempt_", "Lost task ", "Spark", "in stage ", "> Task :"),
    *("Gradle", "Daemon", "npm ERR!", "SinkRunner-", "Executor task", "elasticsearch["),
    *("://", "]: ", "::", "s]", "Database Error in "),
)
# Programs around Kafka, whose clients fail with the words that Flink's fail with.
_NAMES_KAFKA = re.compile(
    r"\bakka\.kafka\.|\bkafka\.(?:manager|server|controller|cluster|coordinator|network|zk)\."
)
_MAX_CHARS = 4096
# Flink's SQL client, before the exception of a statement.
_SQL_CLIENT = "could not execute sql statement. reason:"
# A task's change of state, also where all that would name Flink was cut off.
_TASK_STATE = re.compile(r"\(\d{1,6}/\d{1,6}\).{0,200}? switched from [A-Z]{4,12} to [A-Z]{4,12}\b")


def product_of(logger: str | None, message: str, trace: StackTrace | None) -> Product | None:
    """What ``logger``, the text and the frames tell; any sign of Flink outweighs all others."""
    names = [logger or ""]
    texts = [message]
    for throwable in trace.throwables if trace is not None else ():
        names.append(throwable.type)
        names.extend(frame.class_name for frame in throwable.frames)
        # Of a trace that was cut off, the jars of the frames may be all that names Flink.
        texts.extend(frame.jar for frame in throwable.frames if frame.jar is not None)
        texts.append(throwable.message)
    if any(_is_flink(name) for name in names) or any(_speaks_of_flink(text) for text in texts):
        return "flink"
    head = message[:_MAX_CHARS]
    if " switched from " in head and _TASK_STATE.search(head) is not None:
        return "flink"
    if any(name.startswith(_OTHER_PRODUCTS) for name in names):
        return "other"
    if _is_server(names[0]) or _names_other(head):
        return "other"
    if any("kafka." in text and _NAMES_KAFKA.search(text[:_MAX_CHARS]) for text in texts):
        return "other"
    if message.endswith(")") and _LOGGER_AT_END.search(message[-_MAX_CHARS:]) is not None:
        return "other"
    frames = [f for t in trace.throwables for f in t.frames] if trace is not None else []
    if any(origin_of(frame.class_name) == "user" for frame in frames):
        return "other"
    return None


def product_of_thread(thread: str | None) -> Product | None:
    """What the name of a thread tells: threads of other programs only."""
    return "other" if thread is not None and _THREADS.match(thread) else None


@lru_cache(maxsize=4096)
def _is_server(logger: str) -> bool:
    return logger.startswith(_SERVERS) or _OF_SPARK.fullmatch(_short(logger)) is not None


def _names_other(text: str) -> bool:
    is_likely = any(word in text for word in _WORDS_OF_OTHERS)
    return is_likely and _NAMES_OTHER.search(text) is not None


def _short(logger: str) -> str:
    """The last part of a logger's name, as Spark's layout prints it, or all of a name of two."""
    return logger if logger.count(".") == 1 and logger[0].islower() else logger.rpartition(".")[2]


def _is_flink(name: str) -> bool:
    return "flink" in name.lower() or name.startswith("o.a.f.")


def _speaks_of_flink(text: str) -> bool:
    lowered = text.lower()
    if "flink" in lowered or "jobmanager" in lowered or _SQL_CLIENT in lowered:
        return True
    # Kafka Streams has a class of that name, which its logs print behind the message.
    return "taskmanager" in lowered and "kafka.streams." not in lowered

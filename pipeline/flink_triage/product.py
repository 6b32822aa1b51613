"""Whose log is this?  One event's texts in, ``flink``, ``other`` or ``None`` out.

Kafka clients, RocksDB, HDFS clients and ZooKeeper live in other products too and fail there with
the same words.  Their remedies are not Flink's.
"""

from __future__ import annotations

import re

from .model import Product, StackTrace
from .traces import origin_of

# Products that embed the libraries that Flink embeds; class prefixes of their own code.
_OTHER_PRODUCTS = (
    "akka.kafka.",
    # Its client and source are in jobs of Flink.
    "com.alibaba.fluss.server.",
    # Amazon's own consumer library; connectors of Flink use the client below it.
    "com.amazonaws.services.kinesis.clientlibrary.",
    "com.zendesk.maxwell.",
    "hudson.",
    "io.confluent.",
    "io.druid.",
    "io.trino.",
    "kafka.",
    "org.apache.bookkeeper.",
    "org.apache.cassandra.",
    # Flink's own copy is relocated; so is that of ZooKeeper.
    "org.apache.curator.",
    "org.apache.druid.",
    "org.apache.flume.",
    "org.apache.fluss.server.",
    "org.apache.hadoop.hbase.",
    "org.apache.hadoop.hive.ql.",
    # What a server does with a caller; its other frames reach clients in a RemoteException.
    "org.apache.hadoop.ipc.Server$Connection",
    "org.apache.hadoop.ipc.Server$Listener",
    "org.apache.hadoop.mapred.",
    "org.apache.hadoop.mapreduce.",
    # Tomcat, as Logback abbreviates it, too.
    "o.a.c.c.",
    "org.apache.catalina.",
    # HiveServer2.
    "org.apache.hive.service.",
    "org.apache.kafka.connect.runtime.",
    "org.apache.kafka.streams.",
    "org.apache.nifi.",
    "org.apache.pinot.",
    # Its client is in Flink's connector, too.
    "org.apache.pulsar.broker.",
    "org.apache.pulsar.functions.",
    "org.apache.pulsar.proxy.",
    "org.apache.samza.",
    "org.apache.seatunnel.",
    "org.apache.solr.",
    "org.apache.spark.",
    "org.apache.storm.",
    "org.apache.uniffle.",
    # Servers with a REST interface of their own: schema registries, Pinot, Kafka's REST proxy.
    "org.glassfish.jersey.",
    "org.springframework.",
)
# Loggers of servers; in frames they also stand where a server's exception reached a client.
_SERVERS = (
    "org.apache.hadoop.hdfs.server.",
    "org.apache.hadoop.yarn.server.",
    "org.apache.zookeeper.server.",
    # As Logback and Log4j abbreviate org.apache.seatunnel.engine, and org.apache.spark.executor.
    "o.a.s.e.",
)

# Loggers of Spark by the last part of their names, which is all that its own layout prints.
_OF_SPARK = re.compile(
    r"(?:Spark(?:Context|Env|UI|Submit)|DAGScheduler|TaskSetManager|TaskSchedulerImpl"
    r"|Yarn(?:Cluster|Client)?Scheduler(?:Backend)?|YarnAllocator|MapOutputTracker\w*"
    r"|BlockManager(?:Info|Master\w*)|CoarseGrained(?:Executor|Scheduler)Backend"
    r"|ExecutorAllocationManager|ShuffleBlockFetcherIterator|ShuffleMapStage)(?:\$.*)?"
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
    r"|\bSpark(?:Context\b| (?:session|context|application)\b)"
    # The logger of a program in Rust.
    r"|\b(?:ERROR|WARN|INFO) {1,2}[a-z_]{2,60}(?:::[a-z_]{1,60}){1,8}:? "
)
# Programs around Kafka, whose clients fail with the words that Flink's fail with.
_NAMES_KAFKA = re.compile(
    r"\bakka\.kafka\.|\bkafka\.(?:manager|server|controller|cluster|coordinator|network|zk)\."
)
_MAX_CHARS = 4096
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
    if _TASK_STATE.search(message[:_MAX_CHARS]) is not None:
        return "flink"
    if any(name.startswith(_OTHER_PRODUCTS) for name in names):
        return "other"
    if names[0].startswith(_SERVERS) or _OF_SPARK.fullmatch(names[0].rpartition(".")[2]):
        return "other"
    if _NAMES_OTHER.search(message[:_MAX_CHARS]) is not None:
        return "other"
    if any(_NAMES_KAFKA.search(text[:_MAX_CHARS]) is not None for text in texts):
        return "other"
    if message.endswith(")") and _LOGGER_AT_END.search(message[-_MAX_CHARS:]) is not None:
        return "other"
    frames = [f for t in trace.throwables for f in t.frames] if trace is not None else []
    if any(origin_of(frame.class_name) == "user" for frame in frames):
        return "other"
    return None


def _is_flink(name: str) -> bool:
    return "flink" in name.lower() or name.startswith("o.a.f.")


def _speaks_of_flink(text: str) -> bool:
    lowered = text.lower()
    return "flink" in lowered or "taskmanager" in lowered or "jobmanager" in lowered

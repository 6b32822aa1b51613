"""One ``at ...`` line in, a ``Frame`` with its origin out."""

from __future__ import annotations

import re
from functools import lru_cache

from flink_triage.logs.trace_lines import FRAME
from flink_triage.model import Frame, Origin

NATIVE_METHOD = "Native Method"
# The file, and in the JVM the class, of code that Python was given as a text.
PYTHON_STRING = "<string>"

JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.", PYTHON_STRING)

CONNECTOR = (
    "org.apache.flink.connector.",
    "org.apache.flink.connectors.",
    "org.apache.flink.streaming.connectors.",
    "org.apache.flink.cdc.",
    "com.ververica.cdc.",
    "com.ververica.flink.table.",
    "com.alibaba.ververica.",
    "com.alibaba.flink.connectors.",
    "org.apache.doris.",
    "org.apache.hudi.",
    "org.apache.iceberg.",
    "org.apache.kafka.",
    "org.apache.paimon.",
    "org.apache.flink.table.store.",
    "org.apache.pulsar.",
    "org.apache.hbase.",
    "org.apache.hadoop.hbase.",
    "org.apache.inlong.",
    "org.apache.seatunnel.",
    "org.elasticsearch.",
    "org.opensearch.",
    "com.starrocks.",
    "com.mongodb.",
    "com.mysql.",
    "com.rabbitmq.",
    "com.clickhouse.",
    "com.github.shyiko.mysql.",
    "com.dtstack.",
    "com.oceanbase.",
    "io.debezium.",
    "io.delta.",
    "oracle.jdbc.",
    "org.postgresql.",
    "ru.yandex.clickhouse.",
)

# These live under org.apache.flink but are what users start from.
FLINK_EXAMPLES = (
    "org.apache.flink.examples.",
    "org.apache.flink.streaming.examples.",
    "org.apache.flink.table.examples.",
    "org.apache.flink.playgrounds.",
    "org.apache.flink.training.",
    "org.apache.flink.walkthrough.",
)

LIBRARY = (
    "akka.",
    "avro.",
    "ch.qos.logback.",
    "clojure.",
    "com.alibaba.fluss.",
    "com.amazon.",
    "com.amazonaws.",
    "com.azure.",
    "com.codahale.",
    "com.esotericsoftware.",
    "com.fasterxml.",
    "com.github.benmanes.",
    "com.github.luben.",
    "com.google.",
    "com.microsoft.",
    "com.squareup.",
    "com.twitter.chill.",
    "com.typesafe.",
    "com.zaxxer.",
    "dev.failsafe.",
    "freemarker.",
    "groovy.",
    "io.confluent.",
    "io.fabric8.",
    "io.grpc.",
    "io.micrometer.",
    "io.netty.",
    "io.prometheus.",
    "io.vertx.",
    "javassist.",
    "kotlin.",
    "kotlinx.",
    "net.bytebuddy.",
    "net.jpountz.",
    "net.sf.cglib.",
    "okhttp3.",
    "okio.",
    "org.antlr.",
    "org.apache.",
    "org.aspectj.",
    "org.bouncycastle.",
    "org.codehaus.",
    "org.eclipse.",
    "org.glassfish.",
    "org.jboss.",
    "org.joda.",
    "org.json.",
    "org.lz4.",
    "org.objectweb.asm.",
    "org.quartz.",
    "org.reactivestreams.",
    "org.rocksdb.",
    "org.forstdb.",
    "org.slf4j.",
    "org.snakeyaml.",
    "org.springframework.",
    "org.xerial.",
    "org.yaml.",
    "pekko.",
    "pemja.",
    "py4j.",
    "reactor.",
    "redis.clients.",
    "rx.",
    "scala.",
    "software.amazon.",
)

# Code that Flink's planner generates with Janino: no package, a counter, no source file
# (org.apache.flink.table.planner.codegen.CodeGenUtils.newName).
GENERATED = re.compile(r"[A-Za-z_]\w{0,200}\$\d{1,9}(?:\$\w{1,200})*")
SHADED = re.compile(r"(?:^|\.)shaded\d{0,3}\.(?:[a-z]\w{0,40}\d\.(?=[a-z]\w*\.))?")


def parse_frame(line: str) -> Frame | None:
    """The frame of a stack-trace line, or ``None``.

    ``file`` is ``Native Method`` for native methods and ``None`` where the source is unknown.
    """
    return _known_frame(line) if len(line) < _SHORT_CHARS else _frame(line)


# The same few thousand frames make up all traces of a log.
_SHORT_CHARS = 400


@lru_cache(maxsize=32768)
def _known_frame(line: str) -> Frame | None:
    return _frame(line)


def _frame(line: str) -> Frame | None:
    match = FRAME.match(line)
    if match is None:
        return None
    class_name, _, method = _without_loader(match["name"]).rpartition(".")
    if not class_name:
        return None
    file, number = _source(match["source"])
    return Frame(
        class_name=class_name,
        method=method,
        file=file,
        line=number,
        jar=_jar(match["tail"]),
        origin=origin_of(class_name, file),
    )


def origin_of(class_name: str, file: str | None = None) -> Origin:
    """Whose code a class is, by its package.

    Shaded copies belong to what was shaded; a class of no known package is the user's.  ``native``
    is a native method of a library (RocksDB's JNI); the JDK's native methods stay ``jdk``.
    """
    if class_name.startswith(JDK):
        return "jdk"
    shaded = SHADED.search(class_name)
    if shaded is not None:
        inner = origin_of(class_name[shaded.end() :], file)
        return "library" if inner in ("user", "flink") else inner
    if class_name.startswith(CONNECTOR):
        return "connector"
    if class_name.startswith("org.apache.flink."):
        return "user" if class_name.startswith(FLINK_EXAMPLES) else "flink"
    if class_name.startswith(LIBRARY):
        return "native" if file == NATIVE_METHOD else "library"
    if "." not in class_name and file is None and GENERATED.fullmatch(class_name):
        return "flink"
    return "user"


def _without_loader(name: str) -> str:
    """Without ``app//``, ``java.base/``, ``loader/module@1/``; ``$$Lambda$1/0x2`` keeps its slash.

    Source: StackTraceElement.toString.
    """
    while "/" in name:
        head, _, tail = name.partition("/")
        if "$" in head or not tail:
            break
        name = tail
    return name


def _source(source: str) -> tuple[str | None, int | None]:
    text = source.strip()
    squeezed = text.replace(" ", "")
    if squeezed == "NativeMethod":
        return NATIVE_METHOD, None
    if squeezed in ("", "UnknownSource", "<unknown>", "<generated>", "<Unknown>"):
        return None, None
    file, colon, number = text.rpartition(":")
    if colon and number.isascii() and number.isdigit() and len(number) < 10:
        return (None if file in ("UnknownSource", "Unknown Source") else file or None), int(number)
    return text, None


def _jar(tail: str) -> str | None:
    start = tail.find("[")
    if start < 0:
        return None
    jar = tail[start + 1 :].partition("]")[0].rpartition(":")[0].strip()
    return None if jar in ("", "?", "na") else jar

"""One ``at ...`` line in, a ``Frame`` with its origin out."""

from __future__ import annotations

import re
from functools import lru_cache

from flink_triage.logs.text.trace_lines import FRAME
from flink_triage.model import Frame, Origin

NATIVE_METHOD = "Native Method"
# The file, and in the JVM the class, of code that Python was given as a text.
PYTHON_STRING = "<string>"

JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.", PYTHON_STRING)

CONNECTOR = (
    "com.aerospike.",
    "com.alibaba.flink.connectors.",
    "com.alibaba.hologres.",
    "com.alibaba.otter.",
    "com.alibaba.ververica.",
    "com.aliyun.openservices.",
    "com.amazon.redshift.",
    "com.clickhouse.",
    "com.couchbase.",
    "com.datastax.",
    "com.dmetasoul.lakesoul.",
    "com.dremio.",
    "com.dtstack.",
    "com.exasol.",
    "com.facebook.presto.",
    "com.getindata.",
    "com.github.housepower.",
    "com.github.shyiko.mysql.",
    "com.hazelcast.",
    "com.ibm.db2.",
    "com.influxdb.",
    "com.kingbase8.",
    "com.mongodb.",
    "com.mysql.",
    "com.netease.arctic.",
    "com.oceanbase.",
    "com.rabbitmq.",
    "com.sap.conn.",
    "com.sap.db.",
    "com.scylladb.",
    "com.singlestore.",
    "com.solacesystems.",
    "com.starrocks.",
    "com.taosdata.",
    "com.teradata.",
    "com.vertica.",
    "com.ververica.cdc.",
    "com.ververica.flink.table.",
    "com.vesoft.nebula.",
    "dm.jdbc.",
    "io.debezium.",
    "io.delta.",
    "io.lettuce.",
    "io.nats.",
    "io.pravega.",
    "io.streamnative.",
    "io.trino.",
    "net.snowflake.",
    "oracle.jdbc.",
    "org.apache.doris.",
    "org.apache.flink.cdc.",
    "org.apache.flink.connector.",
    "org.apache.flink.connectors.",
    "org.apache.flink.streaming.connectors.",
    "org.apache.flink.table.store.",
    "org.apache.hadoop.hbase.",
    "org.apache.hbase.",
    "org.apache.hudi.",
    "org.apache.iceberg.",
    "org.apache.inlong.",
    "org.apache.kafka.",
    "org.apache.paimon.",
    "org.apache.pulsar.",
    "org.apache.seatunnel.",
    "org.bson.",
    "org.elasticsearch.",
    "org.influxdb.",
    "org.mariadb.",
    "org.neo4j.",
    "org.opensearch.",
    "org.postgresql.",
    "org.redisson.",
    "org.tikv.",
    "ru.ivi.opensource.",
    "ru.yandex.clickhouse.",
    "tech.ydb.",
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
    "ai.djl.",
    "ai.onnxruntime.",
    "ai.timefold.",
    "akka.",
    "avro.",
    "brave.",
    "cats.",
    "ch.qos.logback.",
    "clojure.",
    "cn.hutool.",
    "com.alibaba.druid.",
    "com.alibaba.fastjson.",
    "com.alibaba.fastjson2.",
    "com.alibaba.fluss.",
    "com.alibaba.nacos.",
    "com.alicp.",
    "com.aliyun.",
    "com.amazon.",
    "com.amazonaws.",
    "com.azure.",
    "com.baomidou.",
    "com.beust.",
    "com.carrotsearch.",
    "com.codahale.",
    "com.ctrip.framework.",
    "com.dynatrace.",
    "com.esotericsoftware.",
    "com.fasterxml.",
    "com.github.benmanes.",
    "com.github.luben.",
    "com.github.rholder.",
    "com.google.",
    "com.googlecode.aviator.",
    "com.hazelcast.",
    "com.ibm.icu.",
    "com.intellij.",
    "com.jayway.",
    "com.jcraft.",
    "com.lmax.",
    "com.maxmind.",
    "com.microsoft.",
    "com.networknt.",
    "com.newrelic.",
    "com.obs.services.",
    "com.opencsv.",
    "com.qcloud.",
    "com.sksamuel.",
    "com.squareup.",
    "com.thoughtworks.",
    "com.twitter.chill.",
    "com.typesafe.",
    "com.uber.h3core.",
    "com.univocity.",
    "com.ververica.statefun.",
    "com.zaxxer.",
    "datadog.",
    "de.javakaffee.",
    "dev.failsafe.",
    "feign.",
    "freemarker.",
    "gnu.trove.",
    "groovy.",
    "io.circe.",
    "io.cloudevents.",
    "io.confluent.",
    "io.fabric8.",
    "io.github.resilience4j.",
    "io.grpc.",
    "io.jaegertracing.",
    "io.micrometer.",
    "io.netty.",
    "io.openlineage.",
    "io.opentelemetry.",
    "io.opentracing.",
    "io.prometheus.",
    "io.quarkus.",
    "io.reactivex.",
    "io.sentry.",
    "io.smallrye.",
    "io.vertx.",
    "it.unimi.dsi.",
    "jakarta.",
    "javassist.",
    "jep.",
    "jline.",
    "junit.",
    "kotlin.",
    "kotlinx.",
    "net.bytebuddy.",
    "net.jodah.",
    "net.jpountz.",
    "net.logstash.",
    "net.minidev.",
    "net.openhft.",
    "net.schmizz.",
    "net.sf.",
    "net.thisptr.",
    "ognl.",
    "okhttp3.",
    "okio.",
    "org.agrona.",
    "org.antlr.",
    "org.apache.",
    "org.aspectj.",
    "org.bouncycastle.",
    "org.codehaus.",
    "org.duckdb.",
    "org.eclipse.",
    "org.ehcache.",
    "org.forstdb.",
    "org.fusesource.",
    "org.glassfish.",
    "org.graalvm.",
    "org.gradle.",
    "org.h2.",
    "org.hibernate.",
    "org.infinispan.",
    "org.iq80.",
    "org.jboss.",
    "org.jctools.",
    "org.jline.",
    "org.joda.",
    "org.jooq.",
    "org.json.",
    "org.json4s.",
    "org.junit.",
    "org.locationtech.",
    "org.lz4.",
    "org.msgpack.",
    "org.mvel2.",
    "org.mybatis.",
    "org.objectweb.asm.",
    "org.ojalgo.",
    "org.quartz.",
    "org.reactivestreams.",
    "org.roaringbitmap.",
    "org.rocksdb.",
    "org.rogach.",
    "org.scalatest.",
    "org.slf4j.",
    "org.snakeyaml.",
    "org.springframework.",
    "org.sqlite.",
    "org.tensorflow.",
    "org.threeten.",
    "org.tukaani.",
    "org.xerial.",
    "org.yaml.",
    "pekko.",
    "pemja.",
    "picocli.",
    "play.api.",
    "py4j.",
    "reactor.",
    "redis.clients.",
    "retrofit2.",
    "rx.",
    "scala.",
    "scopt.",
    "shapeless.",
    "software.amazon.",
    "spray.json.",
    "zio.",
    "zipkin2.",
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

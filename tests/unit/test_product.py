"""Detects the product that wrote a line. Other products use the same libraries as Flink."""

from __future__ import annotations

import pytest

from flink_triage.log_product import product_of, product_of_thread
from flink_triage.traces import extract

AVRO = (
    "java.lang.ArrayIndexOutOfBoundsException: 12\n"
    "\tat org.apache.avro.io.parsing.Symbol$Alternative.getSymbol(Symbol.java:460)\n"
    "\tat org.apache.avro.io.ResolvingDecoder.readIndex(ResolvingDecoder.java:283)\n"
)


@pytest.mark.parametrize(
    ("logger", "message", "expected"),
    [
        ("org.apache.flink.runtime.taskmanager.Task", "Source (1/1) failed", "flink"),
        ("o.a.f.r.taskmanager.Task", "Source (1/1) failed", "flink"),
        ("org.apache.avro.Decoder", "of the TaskManager", "flink"),
        (None, "Source -> Sink (1/2) (ad54) switched from RUNNING to FAILED.", "flink"),
        ("org.apache.seatunnel.engine.server.dag.PhysicalVertex", "end with FAILED", "other"),
        ("o.a.s.e.s.d.p.PhysicalVertex", "end with state FAILED and Exception:", "other"),
        ("org.apache.spark.executor.Executor", "Exception in task 0.0", "other"),
        ("o.a.s.e.s.d.p.PhysicalVertex", "of Flink's engine", "flink"),
        ("o.e.b.ElasticsearchUncaughtExceptionHandler", "fatal error in thread", "other"),
        ("action.admin.indices.stats", "[shop-1] failed to execute", "other"),
        ("index.Loader", "failed to load", None),
        ("FileFormatWriter", "Aborting job 7f1c.", "other"),
        ("tools.DistCp", "Exception encountered", "other"),
        (None, "> Task :app:compileKotlin FAILED", "other"),
        (None, "[ERROR] Could not execute SQL statement. Reason:", "flink"),
        (None, "1 of 10 ERROR not_null_orders_id ..... [ERROR in 0.15s]", "other"),
        (None, "Closed (org.apache.kafka.streams.processor.internals.TaskManager)", "other"),
        (None, "Ask timed out on [Actor[akka://chat/user/rooms#-1]] after [3000 ms]", "other"),
        (None, "Ask timed out on [Actor[akka://flink/user/rpc#-1]] after [3000 ms]", "flink"),
        (
            None,
            "AssociationError [akka.trttl.tcp://shop@10.0.0.7:2552] -> [akka.tcp://shop]",
            "other",
        ),
        ("o.a.z.s.q.QuorumPeer", "Problem starting AdminServer", "other"),
        (None, "ERROR: org.apache.cassandra.exceptions.ConfigurationException: seeds", "other"),
        (None, "DAG bundles loaded: source=airflow.dag_processing.bundles.manager", "other"),
        (None, "AirflowRuntimeError: API_SERVER_ERROR", "other"),
        (None, "AirflowRuntimeError: flink run failed", "flink"),
        (None, "db | 2026-05-19 UTC [53] FATAL:  password authentication failed", "other"),
        (None, "2026-05-19 UTC [53] shop@orders ERROR:  deadlock detected", "other"),
        (None, "FATAL: password authentication failed for user shop", None),
        (None, "29060#29060: *2193 connect() failed (111: Connection refused)", "other"),
        (None, "[core:error] [pid 35708:tid 43286] File does not exist: /htdocs/a", "other"),
        (
            None,
            "[2026-05-19T09:09:20,299][ERROR][o.e.b.Bootstrap ] [shop] node validation",
            "other",
        ),
        (None, "Source: Orders (1/2)#0: waits", None),
        (None, "streaming  Producer failure   [io.debezium.pipeline.ErrorHandler]", "other"),
        (None, "streaming  Producer failure  [com.acme.Handler]", None),
        (None, "2025 ERROR dispatcher-1 io.trino.execution.QueryStateMachine cleaning up", "other"),
        (None, "Connection of io.trino.jdbc.TrinoDriver refused", None),
        (None, "Oct 21 02:34:46 node-a pulsar[6380]:", "other"),
        (None, "Oct 21 02:34:46 node-a flink[6380]:", "flink"),
        (None, "Oct 21 02:34:46 node-a app[6380]: spark[sql]:", None),
        ("o.a.k.s.p.internals.StreamThread", "stream-thread [a-StreamThread-2] fenced", "other"),
        ("CompactionTask.java", "Compacted 4 sstables", "other"),
        ("Task.java", "Orders (1/2)#0 (b2ae) switched from RUNNING to FAILED", "flink"),
        ("org.elasticsearch.client.RestClient", "request failed", None),
        ("org.apache.hadoop.hdfs.DFSClient", "Exception in createBlockOutputStream", None),
        (None, "end with state FAILED", None),
    ],
)
def test_a_sign_of_flink_outweighs_all_others(logger, message, expected):
    _, trace = extract(message, AVRO)
    assert product_of(logger, message, trace) == expected


@pytest.mark.parametrize(
    "text",
    [
        "py4j.protocol.Py4JJavaError: An error occurred while calling o96.orc.\n"
        "\tat com.google.cloud.hadoop.fs.gcs.A.b(A.java:1)\n",
        "java.net.BindException: Address already in use\n"
        "\tat org.apache.zookeeper.server.quorum.QuorumPeerMain.main(QuorumPeerMain.java:92)\n",
        "org.apache.kafka.connect.errors.ConnectException: Failed to describe the cluster\n"
        "\tat org.apache.kafka.connect.cli.ConnectDistributed.main(ConnectDistributed.java:79)\n",
    ],
    ids=["a DataFrame of PySpark", "a ZooKeeper server", "a worker of Kafka Connect"],
)
def test_stack_trace_identifies_another_product(text: str) -> None:
    message, trace = extract("", text)
    assert product_of(None, message, trace) == "other"


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        ("SinkRunner-PollingRunner-DefaultSinkProcessor", "other"),
        ("http-nio-8080-exec-3", "other"),
        ("QuorumPeer[myid=3](plain=0.0.0.0:2181)(secure=disabled)", "other"),
        ("flink-pekko.actor.default-dispatcher-4", None),
        ("Source: Orders (1/2)#0", None),
        (None, None),
    ],
)
def test_a_thread_may_be_of_another_program(thread, expected):
    assert product_of_thread(thread) == expected


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        ("com.acme.Orders.open(Orders.java:1)", "other"),
        ("KafkaWriter.open(KafkaWriter.java:1)", None),
    ],
)
def test_a_class_without_a_package_is_not_a_sign_of_another_program(frame, expected):
    message, trace = extract("java.lang.IllegalStateException: x", f"\tat {frame}\n")
    assert product_of(None, message, trace) == expected

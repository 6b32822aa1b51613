"""Maps classes to the name of their connector, library, or part of Flink."""

from __future__ import annotations

import pytest

from flink_triage.traces import part_of


@pytest.mark.parametrize(
    ("class_name", "part"),
    [
        ("org.apache.flink.connector.kafka.sink.KafkaWriter", "the Kafka connector"),
        ("org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumer", "the Kafka connector"),
        ("org.apache.flink.runtime.taskmanager.Task", "Flink"),
        ("org.apache.flink.kinesis.shaded.com.amazonaws.Response", "the AWS SDK"),
        ("org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.JsonParser", "Paimon"),
        ("io.debezium.connector.mysql.BinlogReader", "Debezium for MySQL"),
        ("org.apache.hadoop.fs.s3a.S3AUtils", "Hadoop's S3 client"),
        ("java.util.ArrayList", None),
        ("com.acme.Orders", None),
        ("org.apache.flinkless.A", None),
    ],
)
def test_part(class_name: str, part: str | None) -> None:
    assert part_of(class_name) == part

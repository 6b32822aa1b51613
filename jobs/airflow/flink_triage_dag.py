"""Airflow: read what is new in the logs every hour, and render the newest report."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator

TABLES = "--warehouse=s3a://lake/flink-triage"

with DAG(
    dag_id="flink_triage",
    schedule="7 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    # What a missed hour would have read, the next one reads.
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    # The command ends with 0, or a code that says what is wrong; code 5 (another run holds the
    # tables) is tried again as any other.
    ingest = BashOperator(
        task_id="ingest",
        bash_command=f"flink-triage run --input=s3a://flink-logs/fleet {TABLES} --format=text",
        execution_timeout=timedelta(hours=2),
    )
    report = BashOperator(
        task_id="report",
        bash_command=f"flink-triage report {TABLES} --report=/reports/flink-triage.html",
        execution_timeout=timedelta(minutes=20),
    )
    ingest >> report

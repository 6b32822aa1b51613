"""Airflow 3 DAG that reads new logs and renders the report hourly, and maintains tables daily."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.providers.standard.operators.python import PythonOperator, ShortCircuitOperator
from airflow.sdk import DAG

TABLES = "--warehouse=s3a://lake/flink-triage"
RUN = ["run", "--input=s3a://flink-logs/fleet", TABLES, "--format=text"]
REPORT = ["report", TABLES, "--report=/reports/flink-triage.html"]
MAINTAIN = ["maintain", TABLES, "--keep-days=365"]
# The environment failed, another run was active, or the command received SIGTERM, for example
# because its worker was shut down. A retry may succeed.
RETRIED = (4, 5, 143)


def call(*arguments: str) -> None:
    """Run the command. If it fails, raise an exception that determines whether it is retried."""
    code = subprocess.run(["flink-triage", *arguments], check=False).returncode
    message = f"flink-triage {arguments[0]} ended with exit code {code}"
    if code < 0 or code in RETRIED:
        raise AirflowException(message)
    if code:
        raise AirflowFailException(message)


def is_first_of_day(dag_run: Any) -> bool:
    """Whether this DAG run started in the hour after midnight UTC."""
    return bool(dag_run.start_date.hour == 0)


with DAG(
    dag_id="flink_triage",
    schedule="7 * * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    # The next run also reads the logs of a missed hour.
    catchup=False,
    # On S3, only one writer at a time is safe, so maintenance is a task in the same DAG run.
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    ingest = PythonOperator(
        task_id="ingest",
        python_callable=call,
        op_args=RUN,
        execution_timeout=timedelta(hours=2),
    )
    report = PythonOperator(
        task_id="report",
        python_callable=call,
        op_args=REPORT,
        execution_timeout=timedelta(minutes=20),
    )
    is_due = ShortCircuitOperator(task_id="is_due", python_callable=is_first_of_day)
    maintain = PythonOperator(
        task_id="maintain",
        python_callable=call,
        op_args=MAINTAIN,
        execution_timeout=timedelta(hours=1),
    )
    ingest >> report >> is_due >> maintain

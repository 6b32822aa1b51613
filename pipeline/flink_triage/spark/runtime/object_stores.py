"""Reads the object store options for the inputs from the session and the environment.

Spark and Delta use Hadoop's file systems, while the logs are read through Arrow's. The Hadoop
options of the session therefore also configure Arrow's file systems.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import SparkSession

from flink_triage.logs.inputs.storage import StorageOptions, is_uri

PREFIXES = ("fs.s3a.", "fs.azure.account.key")
# Options of S3A, and the environment variables of the AWS SDK for the same settings.
FROM_ENVIRONMENT = (
    ("fs.s3a.access.key", ("AWS_ACCESS_KEY_ID",)),
    ("fs.s3a.secret.key", ("AWS_SECRET_ACCESS_KEY",)),
    ("fs.s3a.session.token", ("AWS_SESSION_TOKEN",)),
    ("fs.s3a.endpoint", ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")),
    ("fs.s3a.endpoint.region", ("AWS_REGION", "AWS_DEFAULT_REGION")),
)


def options_for(spark: SparkSession, inputs: Sequence[str]) -> StorageOptions:
    """The S3A options and Azure account keys of the session; empty if no input is a URI.

    The endpoint and region for S3A are read from the driver's environment if the session does not
    set them, and the credentials if the session has no access key. A machine role or a workload
    identity requires no options, because each worker has its own.
    """
    if not any(map(is_uri, inputs)):
        return StorageOptions()
    values: dict[str, str] = {}
    for key, value in spark.conf.getAll.items():
        name = key.removeprefix("spark.hadoop.")
        if value and name.startswith(PREFIXES):
            values[name] = value
    # Do not combine an access key of the session with a secret of the environment.
    named = FROM_ENVIRONMENT[3:] if "fs.s3a.access.key" in values else FROM_ENVIRONMENT
    for name, variables in named:
        found = next((os.environ[v] for v in variables if os.environ.get(v)), None)
        if found and name not in values:
            values[name] = found
    return StorageOptions(values)

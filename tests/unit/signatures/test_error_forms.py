"""Structured errors match in every form, but not for another service, code, or state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from signature_builders import event

from flink_triage.signatures import Matcher, builtin_pack_directory, load_pack
from flink_triage.signatures.error_forms import Form, expand, families
from flink_triage.signatures.loader import parse_signature
from flink_triage.signatures.pack import SCHEMA_FILE
from flink_triage.signatures.schema_check import load_schema

# For each family, conditions that its examples meet and conditions that they do not meet.
SHOWN: Mapping[str, list[dict[str, object]]] = {
    "aws": [
        {"of": "aws", "service": "s3", "code": ["SlowDown", "Throttling"]},
        {"of": "aws", "service": "s3", "status": ["5xx", "403", "301"]},
        {"of": "aws", "service": "s3", "code": "NoSuchBucket"},
        {"of": "aws", "service": "kinesis", "code": "LimitExceededException"},
    ],
    "kafka": [{"of": "kafka", "code": "TOPIC_AUTHORIZATION_FAILED"}],
    "sql": [{"of": "sql", "state": "28xxx"}, {"of": "sql", "state": ["28000"]}],
    "oracle": [{"of": "oracle", "code": "ORA-01017"}],
    "azure": [
        {"of": "azure", "status": "5xx", "code": "ServerBusy"},
        {"of": "azure", "status": "503"},
    ],
    "gcs": [{"of": "gcs", "status": ["503"]}],
    "mysql": [{"of": "mysql", "code": ["1040", "1045"]}],
    "postgres": [{"of": "postgres", "code": ["28P01", "40P01", "42P01"]}],
    "sqlserver": [{"of": "sqlserver", "code": ["10928", "18456"]}],
    "hadoop": [{"of": "hadoop", "code": "SafeModeException"}],
    "iceberg": [{"of": "iceberg", "code": "NotFoundException"}],
    "hudi": [{"of": "hudi", "code": "HoodieRollbackException"}],
    "elasticsearch": [
        {"of": "elasticsearch", "status": "4xx"},
        {"of": "elasticsearch", "code": "mapper_parsing_exception"},
    ],
    "mongodb": [{"of": "mongodb", "code": ["ChangeStreamHistoryLost", "DuplicateKey"]}],
    "clickhouse": [
        {"of": "clickhouse", "code": ["TOO_MANY_PARTS", "KEEPER_EXCEPTION", "NOT_ENOUGH_SPACE"]}
    ],
    "kubernetes": [{"of": "kubernetes", "status": "403", "code": "Forbidden"}],
    "http": [{"of": "http", "code": ["401", "403", "404", "429", "503"]}],
    "grpc": [{"of": "grpc", "code": "PERMISSION_DENIED"}],
}
OTHERS: Mapping[str, list[dict[str, object]]] = {
    "aws": [
        {"of": "aws", "service": "kinesis", "status": ["5xx", "403"]},
        {"of": "aws", "service": "s3", "code": "NoSuchKey"},
        {"of": "aws", "service": "s3", "status": "404"},
    ],
    "kafka": [{"of": "kafka", "code": ["GROUP_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_ID"]}],
    "sql": [{"of": "sql", "state": ["08xxx", "28P01"]}],
    "oracle": [{"of": "oracle", "code": "ORA-28000"}],
    "azure": [
        {"of": "azure", "status": "403"},
        {"of": "azure", "status": "503", "code": "AuthorizationFailure"},
    ],
    "gcs": [{"of": "gcs", "status": ["403", "4xx"]}],
    "mysql": [{"of": "mysql", "code": ["1044", "1205"]}],
    "postgres": [{"of": "postgres", "code": ["28000", "40001", "42703"]}],
    "sqlserver": [{"of": "sqlserver", "code": ["208", "1205"]}],
    "hadoop": [{"of": "hadoop", "code": ["LeaseExpiredException", "StandbyException"]}],
    "iceberg": [{"of": "iceberg", "code": ["CommitFailedException"]}],
    "hudi": [{"of": "hudi", "code": ["HoodieRemoteException"]}],
    "elasticsearch": [
        {"of": "elasticsearch", "status": ["5xx", "403"]},
        {"of": "elasticsearch", "code": "parsing_exception"},
    ],
    "mongodb": [{"of": "mongodb", "code": ["AuthenticationFailed", "InvalidResumeToken"]}],
    "clickhouse": [{"of": "clickhouse", "code": ["UNKNOWN_TABLE", "TYPE_MISMATCH"]}],
    "kubernetes": [
        {"of": "kubernetes", "status": "401"},
        {"of": "kubernetes", "status": "403", "code": "AlreadyExists"},
    ],
    "http": [{"of": "http", "code": ["400", "413", "500"]}],
    "grpc": [{"of": "grpc", "code": ["UNAVAILABLE", "UNAUTHENTICATED"]}],
}
FORMS = [
    pytest.param(name, form, id=f"{name}: {form.example[:60]}")
    for name, family in families().items()
    for form in family.forms
]


def shows(asked: Mapping[str, object], form: Form) -> bool:
    return any(
        all(literal in form.example for literal in conditions["literal"])
        and re.search(conditions.get("regex", ""), form.example) is not None
        for conditions in expand(asked)
    )


@pytest.mark.parametrize(("name", "form"), FORMS)
def test_each_form_is_found_by_what_it_shows(name: str, form: Form) -> None:
    assert any(shows(asked, form) for asked in SHOWN[name])
    assert not any(shows(asked, form) for asked in OTHERS[name])


def test_form_without_all_requested_fields_is_left_out() -> None:
    both = expand({"of": "aws", "service": "s3", "status": "503", "code": "SlowDown"})
    assert both
    assert all({"(?P<code>", "(?P<status>"} <= set(_groups(c["regex"])) for c in both)


def _groups(pattern: str) -> list[str]:
    return re.findall(r"\(\?P<\w+>", pattern)


def test_azure_error_document_is_not_an_s3_error() -> None:
    document = "<Error><Code>InternalError</Code><Message>Internal.{}</Message></Error>"
    of_s3 = expand({"of": "aws", "service": "s3", "code": "InternalError"})
    found = {
        text: any(re.search(form["regex"], document.format(text)) for form in of_s3)
        for text in ("", "\nRequestId:17b\nTime:2026-05-10")
    }
    assert list(found.values()) == [True, False]


def test_retriable_error_is_a_failure_only_as_an_exception() -> None:
    retried = expand({"of": "kafka", "code": "NOT_ENOUGH_REPLICAS"})
    assert [form["throwable"][0].rpartition(".")[2] for form in retried] == [
        "NotEnoughReplicasException"
    ]
    assert len(expand({"of": "kafka", "code": "INVALID_TXN_STATE"})) > 3


SIGNATURE = """\
title: A store refused the request
severity: major
role: trigger
match:
  any:
    - literal: lost it
    - error: {ERROR}
    - literal: lost again
cause: The store refused it because it was asked too often by everybody.
remediation: {summary: Ask less., risk: live}
"""
PROBLEMS = {
    "{of: awz, code: SlowDown}": ('"awz" is not one of aws, kafka, sql, ', "error.of"),
    "{of: aws}": ("has no field; expected one of service, status, code", "error"),
    "{of: sql, code: X1}": ("is not a field of sql; allowed: state", "error.code"),
    "{of: aws, status: teapot}": ('"teapot" is not a status', "error.status"),
    "{of: aws, service: s4}": ('"s4" is not known in error-forms/forms.yaml', "error.service"),
    "{of: kafka, code: LOST}": ('"LOST" is not known in error-forms/forms.yaml', "error.code"),
    "{of: sql, state: 28xxx}\n      literal: lost": ("cannot be combined with error", "literal"),
    "{code: X}": ("is missing", "error.of"),
    "{of: aws, region: x}": ("is not a known field", "error.region"),
}


@pytest.mark.parametrize(("error", "problem"), PROBLEMS.items(), ids=PROBLEMS)
def test_invalid_error_definition_is_refused(error: str, problem: tuple[str, str]) -> None:
    schema = load_schema(builtin_pack_directory() / SCHEMA_FILE)
    signature, (found, *_) = parse_signature(SIGNATURE.replace("{ERROR}", error), "a/b", schema)
    assert signature is None
    assert found.reason.startswith(problem[0])
    assert found.field == f"match.any[1].{problem[1]}"


def test_each_form_is_an_alternative_with_the_line_of_its_error() -> None:
    schema = load_schema(builtin_pack_directory() / SCHEMA_FILE)
    text = SIGNATURE.replace("{ERROR}", "{of: sql, state: 28xxx}")
    signature, problems = parse_signature(text, "a/b", schema)
    assert signature is not None
    assert not problems
    errors = [alternative.error for alternative in signature.alternatives]
    assert errors == [None, *["sql: state 28xxx"] * (len(errors) - 2), None]
    assert len(errors) > 4
    lines = [signature.lines[f"match.any[{index}]"] for index in range(len(errors))]
    assert lines == [6, *[7] * (len(errors) - 2), 8]


# Forms that no example of the signature contains.
NAMED = {
    "Access Denied: Status Code: 403, AWS Service: Amazon S3, AWS Request ID: 8F, AWS Error Code:"
    " AccessDenied, AWS Error Message: Access Denied": "s3/access-denied",
    "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject"
    " operation: Slow down": "s3/throttled-or-denied",
    "Got error produce response with correlation id 9 on topic-partition orders-3, retrying"
    " (2 attempts left). Error: TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "kafka/auth-failed",
    "Error while fetching metadata with correlation id 3 : {orders=TOPIC_AUTHORIZATION_FAILED}": (
        "kafka/auth-failed"
    ),
    "SQL Error: 0, SQLState: 53300": "jdbc/too-many-connections",
    'pymysql.err.OperationalError: (1040, "zu viele Verbindungen")': "jdbc/too-many-connections",
    "FATAL: remaining connection slots are reserved for roles with SUPERUSER": (
        "jdbc/too-many-connections"
    ),
    "Failed with AbfsRestOperationException: Status code: 503 error code: ServerBusy error"
    " message: Egress is high": "cloud/storage-throttled",
    'GET https://storage.googleapis.com/storage/v1/b/x { "code" : 403,': "cloud/azure-gcs-access",
    "ORA-28000: Das Konto ist gesperrt": "jdbc/auth-failed",
    'ERROR: null value in column "id" of relation "t" violates not-null constraint': (
        "jdbc/statement-refused"
    ),
    "create connection SQLException, url: jdbc:mysql://h/d, errorCode 1045, state 28000": (
        "jdbc/auth-failed"
    ),
    "psycopg2.OperationalError: connection to server failed: FATAL:  no pg_hba.conf entry for"
    ' host "10.0.0.7"': "jdbc/auth-failed",
    "Failed: org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hdfs.protocol."
    "QuotaByStorageTypeExceededException): Quota by storage type : SSD on path : /ckp is exceeded."
    " quota = 1 GB": "hdfs/write-refused",
    "org.apache.iceberg.exceptions.ServiceFailureException: Server error: NotFoundException:"
    " Location does not exist: s3://b/orders/metadata/00001.metadata.json": (
        "iceberg/metadata-missing"
    ),
    "The BulkRequest of 5 operation(s) has failed due to: [es/bulk] failed:"
    " [circuit_breaking_exception] [parent] Data too large": "sink/elasticsearch-jdbc-failed",
    "com.mongodb.MongoBulkWriteException: Bulk write operation error on server m:27017. Write"
    " errors: [BulkWriteError{index=0, code=11000, message='E11000 duplicate key', details={}}].": (
        "mongodb/write-failed"
    ),
    "com.clickhouse.client.ClickHouseException: Code: 252. DB::Exception: Zu viele Teile."
    " (version 20.3.1)": "sink/clickhouse-too-many-parts",
    "io.fabric8.kubernetes.client.KubernetesClientException: Failure executing: POST at:"
    ' https://k8s/apis/apps/v1/namespaces/flink/deployments. Message: User "ann" cannot create'
    " resource. Received status: Status(apiVersion=v1, code=403, details=null, kind=Status,"
    " message=x, reason=Forbidden, status=Failure, additionalProperties={}).": (
        "kubernetes/forbidden"
    ),
}


@pytest.mark.parametrize(("text", "signature"), NAMED.items(), ids=NAMED.values())
def test_a_form_that_no_example_shows_is_named(text: str, signature: str) -> None:
    pack = load_pack((Path(builtin_pack_directory()),))
    matches = Matcher(pack).match(event(text), text, None, None)
    assert [match.signature for match in matches][:1] == [signature]


@pytest.mark.parametrize(
    "text",
    [
        "Error while fetching metadata with correlation id 3 : {a=LEADER_NOT_AVAILABLE}",
        "Error while fetching metadata with correlation id 3 : {a=UNKNOWN_TOPIC_OR_PARTITION}",
        "Got error produce response with correlation id 9, retrying. Error: NOT_ENOUGH_REPLICAS",
        "Retrying after SQLSTATE 00000",
        "Call to nn1 failed: org.apache.hadoop.ipc.StandbyException, failing over",
    ],
)
def test_retried_error_matches_no_signature(text: str) -> None:
    assert not Matcher(load_pack((builtin_pack_directory(),))).match(event(text), text, None, None)

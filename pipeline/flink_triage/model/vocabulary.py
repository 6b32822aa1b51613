"""The allowed values of model fields."""

from __future__ import annotations

from typing import Literal, get_args

Severity = Literal["critical", "major", "minor", "info"]
Role = Literal["trigger", "contributing", "symptom", "wrapper", "loop-sustainer", "benign"]
Process = Literal["jobmanager", "taskmanager", "client", "operator"]
Product = Literal["flink", "other"]
Origin = Literal["user", "flink", "connector", "library", "jdk", "native"]
Relation = Literal["thrown", "cause", "suppressed"]
Verdict = Literal[
    "diagnosed", "undetermined", "text-only", "no-logs", "empty-window", "not-flink", "healthy"
]
Status = Literal["new", "ongoing", "worse", "resolved"]
Outcome = Literal["recovered", "failed", "ongoing", "unknown"]
ChangeKind = Literal[
    "flink-version", "java-version", "configuration", "jar", "parallelism", "jvm-option"
]
Action = Literal["set", "raise", "lower", "remove", "already-set"]
Scope = Literal["cluster", "job", "connector", "code", "platform"]
Risk = Literal["live", "restart", "state-migration", "data-loss"]

SEVERITIES: tuple[Severity, ...] = ("critical", "major", "minor", "info")
# The verdicts in the order of the literal, most urgent first.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
ROLES: tuple[Role, ...] = (
    "trigger",
    "contributing",
    "symptom",
    "wrapper",
    "loop-sustainer",
    "benign",
)

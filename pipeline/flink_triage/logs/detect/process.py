"""Detects the process, Flink version, and host of a log from its text and its file name."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

from flink_triage.logs.layouts.headers import HeaderKind
from flink_triage.model import Process

_BANNER_CHARS = 16 * 1024
_STATED_VERSION = re.compile(
    r"(?:Starting|Shutting)[^\n(]{0,200}\(Version: ?(?P<version>\d{1,3}\.\d{1,3}(?:\.\d{1,3})?"
    r"(?:[-.][\w.]{1,40})?)[,)]|\bFlink (?:version|Version)[:= ]{1,3}"
    r"(?P<other>\d\.\d{1,2}(?:\.\d{1,2})?)"
)
# Without a banner, the version is derived from JAR names in stack traces. These are JARs released
# with Flink itself, and connector JARs, whose names end in the Flink minor version that they are
# built for.
_JAR_VERSION = re.compile(
    # The literal precedes the lookbehind so that the regex engine can search for it as a prefix.
    r"flink-(?<![\w-]flink-)(?:(?:dist|runtime|core|clients|java|scala|streaming-(?:java|scala)"
    r"|connector-(?:base|files)|table-(?:api|common|planner|runtime)[a-z-]{0,40}"
    r"|rpc-akka_[\w-]{36})(?:_2\.1[0-3])?(?:-|\.jar:)(?P<version>[12]\.\d{1,2}\.\d{1,2})(?!\.?\d)"
    r"|(?:sql-)?connector-[a-z0-9-]{1,40}-\d{1,2}\.\d{1,2}\.\d{1,2}-(?P<line>[12]\.\d{1,2})\.jar)"
)
# Each process, with strings and a regex. Every match of the regex contains at least one of the
# strings. Searching for the strings first is much faster.
_PROCESSES: tuple[tuple[Process, tuple[str, ...], re.Pattern[str]], ...] = (
    (
        "operator",
        ("FlinkOperator", "o.a.f.k.o.", "flink.kubernetes.operator."),
        re.compile(r"Starting FlinkOperator|o\.a\.f\.k\.o\.|flink\.kubernetes\.operator\."),
    ),
    (
        "taskmanager",
        ("Starting ", "TaskManagerRunner"),
        re.compile(
            r"Starting (?:Yarn|Kubernetes|Mesos)?Task(?:Manager|Executor)\w*[ (]"
            r"|taskexecutor\.TaskManagerRunner|\.TaskManagerRunner "
        ),
    ),
    (
        "jobmanager",
        ("Starting ", "ClusterEntrypoint"),
        re.compile(
            r"Starting \w*(?:ClusterEntrypoint|ClusterEntryPoint|JobClusterEntrypoint)"
            r"|ClusterEntrypoint |entrypoint\.ClusterEntrypoint|StandaloneSessionClusterEntrypoint"
        ),
    ),
    (
        "client",
        ("Starting Command Line Client", "client.cli.CliFrontend"),
        re.compile(r"Starting Command Line Client|client\.cli\.CliFrontend"),
    ),
)
# Loggers that exist in only one type of process.
_LOGGERS: tuple[tuple[Process, re.Pattern[str]], ...] = (
    (
        "jobmanager",
        re.compile(
            r"(?:^|\.)(?:ExecutionGraph|DefaultExecutionGraph|CheckpointCoordinator|JobMaster|"
            r"Dispatcher|StandaloneDispatcher|MiniDispatcher|ActiveResourceManager|"
            r"StandaloneResourceManager|SlotManager|DeclarativeSlotManager|"
            r"FineGrainedSlotManager|CheckpointFailureManager)$"
        ),
    ),
    (
        "taskmanager",
        re.compile(
            r"(?:^|\.)(?:TaskExecutor|StreamTask|AsyncCheckpointRunnable|TaskManagerRunner|"
            r"taskmanager\.Task|SubtaskCheckpointCoordinatorImpl|TaskSlotTableImpl|"
            r"BackendRestorerProcedure|RocksDBKeyedStateBackendBuilder)$"
        ),
    ),
)
_NAMES: tuple[tuple[Process, re.Pattern[str]], ...] = (
    ("operator", re.compile(r"flink-kubernetes-operator|flink-operator", re.IGNORECASE)),
    (
        "taskmanager",
        re.compile(
            r"taskexecutor|taskmanager|task-manager|(?:^|[-_.])tm(?:[-_.\d]|$)", re.IGNORECASE
        ),
    ),
    (
        "jobmanager",
        re.compile(
            r"standalonesession|standalonejob|jobmanager|job-manager|kubernetes-"
            r"(?:application|session)|(?:^|[-_.])jm(?:[-_.\d]|$)",
            re.IGNORECASE,
        ),
    ),
    ("client", re.compile(r"client|yarn-session|sql-gateway", re.IGNORECASE)),
)
_STANDALONE_NAME = re.compile(
    r"^flink-[^-]{1,64}-(?:standalonesession|standalonejob|taskexecutor|client|historyserver|"
    r"kubernetes-\w{1,20}|sql-gateway)-(?:\d{1,6}-)?"
    # Garbage collection logs have user-defined names, such as "….gc.log".
    r"(?P<host>.{1,253}?)(?:[-_.]gc)?\.(?:log|out|gc)(?:\.|$)"
)


def process_of(text: str, kinds: Iterable[HeaderKind | None], path: str) -> Process | None:
    """The process that wrote a log, based on its banner, or else its file name, or its loggers."""
    possible = [
        (process, pattern)
        for process, words, pattern in _PROCESSES
        if any(word in text for word in words)
    ]
    # The first banner is used. Most logs start with one, so their start is searched first.
    for end in sorted({min(_BANNER_CHARS, len(text)), len(text)}):
        banners = [
            (match.start(), process)
            for process, pattern in possible
            if (match := pattern.search(text, 0, end))
        ]
        if banners:
            return min(banners)[1]
    name = os.path.basename(path)
    for process, pattern in _NAMES:
        if pattern.search(name):
            return process
    votes: Counter[Process] = Counter()
    loggers = Counter(kind.logger for kind in kinds if kind is not None)
    for logger, count in loggers.items():
        for process, pattern in _LOGGERS:
            votes[process] += count * bool(logger and pattern.search(logger))
    best = votes.most_common(1)
    return best[0][0] if best and best[0][1] else None


def version_of(text: str) -> str | None:
    stated = _STATED_VERSION.search(text) if "ersion" in text else None
    if stated is not None:
        return stated["version"] or stated["other"]
    jar = _JAR_VERSION.search(text) if "flink-" in text else None
    return (jar["version"] or jar["line"]) if jar is not None else None


def host_of(path: str) -> str | None:
    match = _STANDALONE_NAME.match(os.path.basename(path))
    return match["host"] if match else None

"""Tests exported packs with the code of Flink and of its Kubernetes operator.

Maven builds the enricher and the test programs. A JobManager and a TaskManager run jobs that
fail, and the classes of the operator label exceptions. The results must match those of
flink-triage. The tests are skipped if Maven, a JDK, or a download is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import regex

from flink_triage.model import Event, StackTrace, Throwable
from flink_triage.signatures import (
    Alternative,
    Matcher,
    SignaturePack,
    build_pack,
    builtin_pack_directory,
    load_pack,
)
from flink_triage.signatures.export import (
    RULES_FILE,
    export,
    failure_enricher,
    label_mapper,
    render_label_mapper,
)
from flink_triage.signatures.samples import event_from_text
from flink_triage.traces import extract, origin_of

PROJECT = Path(__file__).resolve().parents[2]
ENRICHER = "flinktriage.enricher.FlinkTriageEnricher"
LABEL = "flink-triage."
PACK = load_pack([builtin_pack_directory()])
NO_EVENT = Event("trace", 0, 0, 1, None, None, None, None, "")

# Flink's serialization requires access to these packages on Java 17.
OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.net", "java.io")
CLUSTER = f"""\
jobmanager.failure-enrichers: {ENRICHER}
jobmanager.rpc.address: localhost
jobmanager.rpc.port: 0
jobmanager.bind-host: localhost
rest.address: localhost
rest.bind-address: localhost
rest.bind-port: "0"
taskmanager.host: localhost
taskmanager.bind-host: localhost
taskmanager.rpc.port: "0"
taskmanager.numberOfTaskSlots: 1
"""
# Maven prints one of these if artifacts are neither cached nor downloadable.
UNREACHABLE = ("No plugin found for prefix", "Could not transfer", "Could not resolve")
# Expected results, so that the test does not pass if both matchers find nothing.
EXPECTED = {
    "rocksdb-bad-table-magic": "rocksdb/bad-table-magic",
    "rocksdb-relocated": "rocksdb/bad-table-magic",
    "rocksdb-suppressed": "rocksdb/sst-block-checksum-mismatch",
    "disk-full": "disk/full",
    "serialized-by-flink": "disk/full",
    "thrown-by-a-hadoop-server": "checkpoint/storage-permission-denied",
    "checkpoint-disk-full": "disk/full",
    "network-buffers": "network/buffers-insufficient",
    "partition-not-found": "network/partition-not-found",
    "checkpoint-expired": "checkpoint/expired",
    "checkpoint-file-missing": "checkpoint/file-missing-on-restore",
    "kafka-metadata": "kafka/metadata-timeout",
    "kafka-fenced": "kafka/transaction-fenced",
    "kafka-not-authorized": "kafka/auth-failed",
    "java-version": "serialization/java-version-mismatch",
    "kryo": "serialization/kryo-failure",
    "class-missing": "classloading/user-class-missing",
    "null-in-user-code": "operator/user-code-exception",
    "plain-user-code": "operator/user-code-exception",
    "nobody-knows-it": None,
    "user-frames-shared": None,
}


# --- building and running ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Build:
    """A Maven project that was built in a temporary folder."""

    folder: Path
    libraries: str

    def java(self, main: str, *arguments: Path, classes: Sequence[str], **environ: str) -> str:
        """Returns the output of the program. The test fails if the program fails."""
        path = os.pathsep.join([*(str(self.folder / c) for c in classes), self.libraries])
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        command = [_java("java"), "-Xmx512m", "-XX:+UseSerialGC", *opened, "-cp", path, main]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            env={**os.environ, **environ},
            capture_output=True,
            encoding="utf-8",
            timeout=900,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout


def _java(tool: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", tool)) if home else tool


def _build(source: Path, folder: Path, rules: Path | None = None) -> Build:
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("Maven (mvn) is missing: nothing can be built")
    if shutil.which(_java("javac")) is None:
        pytest.skip("a JDK (javac) is missing: nothing can be built")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("target"))
    if rules is not None:
        shutil.copy(rules, folder / "src" / "main" / "resources" / RULES_FILE)
    goals = ["package", "-DskipTests", "dependency:build-classpath"]
    command = [maven, "-q", "-B", *goals, "-Dmdep.outputFile=target/libraries"]
    for mode in (["-o"], []):
        # Maven tries its local cache first, so that a machine without network access does not wait.
        done = subprocess.run(
            [*command, *mode], cwd=folder, capture_output=True, encoding="utf-8", check=False
        )
        if done.returncode == 0:
            libraries = (folder / "target" / "libraries").read_text(encoding="utf-8").strip()
            return Build(folder, libraries)
    said = done.stdout + done.stderr
    if any(words in said for words in UNREACHABLE):
        why = next(line for line in said.split("\n") if any(w in line for w in UNREACHABLE))
        pytest.skip(f"Maven cannot download what the build needs: {why[:300]}")
    raise AssertionError(said[-4000:])


@pytest.fixture(scope="module")
def enricher(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("enricher")
    summary = export(PACK, "failure-enricher", folder)
    return _build(PROJECT / "exports" / "failure-enricher", folder / "build", summary.path)


@pytest.fixture(scope="module")
def cluster_results(enricher: Build) -> Path:
    """Returns the folder with Flink's record of each failure, and the operator's parsed labels."""
    folder = enricher.folder.parent
    plugin = folder / "plugins" / "flink-triage"
    plugin.mkdir(parents=True)
    (jar,) = (enricher.folder / "target").glob("flink-triage-failure-enricher-*.jar")
    shutil.copy(jar, plugin)
    configuration = folder / "conf"
    configuration.mkdir()
    text = CLUSTER + render_label_mapper(label_mapper(PACK).labels, "config.yaml")
    (configuration / "config.yaml").write_text(text, encoding="utf-8")
    results = folder / "results"
    enricher.java(
        "flinktriage.proof.ClusterProof",
        configuration,
        results,
        # The enricher is loaded from the plugin folder only.
        classes=["target/test-classes"],
        FLINK_PLUGINS_DIR=str(plugin.parent),
    )
    return results


# --- the failure enricher ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as reported by Flink's REST API."""

    stack_trace: str
    labels: Mapping[str, str]


def _first_failure(results: Path, name: str) -> Failure:
    answer: Any = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    # Newest first. A later failure is wrapped in the JobException that ends the job.
    entry = answer["exceptionHistory"]["entries"][-1]
    return Failure(entry["stacktrace"], entry["failureLabels"])


def _labels(pack: SignaturePack, stack_trace: str) -> dict[str, str]:
    """Returns the labels that flink-triage assigns to a printed stack trace."""
    message, trace = extract(*_first_line(stack_trace))
    matches = Matcher(pack).match(NO_EVENT, message, trace, None)
    if not matches:
        return {}
    best = pack.signatures[matches[0].signature]
    values = {"signature": best.id, "severity": best.severity, "role": best.role}
    return {f"{LABEL}{key}": value for key, value in values.items()}


def _first_line(text: str) -> tuple[str, str | None]:
    first, _, rest = text.partition("\n")
    return first, rest or None


def test_flink_labels_a_failed_job_as_flink_triage_reads_its_stack_trace(
    cluster_results: Path,
) -> None:
    failures = {name: _first_failure(cluster_results, name) for name in EXPECTED}
    labelled = {name: dict(failure.labels) for name, failure in failures.items()}
    assert labelled == {n: _labels(PACK, failure.stack_trace) for n, failure in failures.items()}
    assert {name: labels.get(f"{LABEL}signature") for name, labels in labelled.items()} == EXPECTED


def test_java_and_python_find_the_same_in_every_example_of_the_pack(
    enricher: Build, tmp_path: Path
) -> None:
    pack = failure_enricher(PACK).pack
    matcher = Matcher(pack)
    examples = {name: trace for name, trace in _traces(PACK) if _is_java(trace)}
    traces = tmp_path / "traces.tsv"
    with traces.open("w", encoding="utf-8", newline="\n") as file:
        for name, trace in examples.items():
            file.writelines(_trace_lines(name, trace))
    printed = enricher.java(
        "flinktriage.enricher.ParityProof",
        enricher.folder / "src" / "main" / "resources" / RULES_FILE,
        traces,
        classes=["target/test-classes", "target/classes"],
    )
    rows = (line.split("\t") for line in printed.removesuffix("\n").split("\n"))
    found = {name: tuple(ids) for name, *ids in rows}
    expected = {
        name: tuple(match.signature for match in matcher.match(NO_EVENT, "", trace, None))
        for name, trace in examples.items()
    }
    assert len(examples) > 500
    assert found == expected


def test_the_enricher_outlives_every_throwable(enricher: Build, tmp_path: Path) -> None:
    real = PACK.signatures["disk/full"]
    slow = Alternative(literals=("aaaa",), regex="a*a*a*a*b")
    lost = Alternative(literals=("lost it",))
    pack = build_pack(
        replace(real, id=name, alternatives=(alternative,), vetoes=())
        for name, alternative in (("a/slow", slow), ("a/lost", lost))
    )
    printed = enricher.java(
        "flinktriage.enricher.HostileProof",
        export(pack, "failure-enricher", tmp_path).path,
        classes=["target/test-classes", "target/classes"],
    )
    rows = [line.split("\t") for line in printed.removesuffix("\n").split("\n")]
    found = {name: signature for name, signature, _ in rows}
    assert found == {
        "none at all": "",
        "its own cause": "",
        "a message that throws": "",
        "a long chain": "",
        "deeply suppressed": "",
        "16 MB of text": "",
        "a regex that never ends": "",
        "found behind all that": "a/lost",
        "no such rules": "",
    }
    # A regex times out after 0.25 s. Four threads share the available cores.
    assert max(int(milliseconds) for _, _, milliseconds in rows) < 5000


def _traces(pack: SignaturePack) -> Iterator[tuple[str, StackTrace]]:
    for signature in pack.signatures.values():
        for index, text in enumerate((*signature.examples.match, *signature.examples.no_match)):
            event = event_from_text(text)
            _, trace = extract(event.message, event.continuation)
            if trace is not None:
                yield f"{signature.id} {index}", trace


def _is_java(trace: StackTrace) -> bool:
    """Whether all frames are Java frames. The JobManager treats Python traceback frames as text."""
    frames = (frame for throwable in trace.throwables for frame in throwable.frames)
    return all(frame.origin == origin_of(frame.class_name, frame.file) for frame in frames)


def _trace_lines(name: str, trace: StackTrace) -> Iterator[str]:
    yield _record("trace", name)
    yield from _chain_lines(trace.throwables)


def _chain_lines(chain: Sequence[Throwable]) -> Iterator[str]:
    for throwable in chain:
        yield _record("throwable", throwable.type, throwable.message)
        for frame in throwable.frames:
            yield _record("frame", frame.class_name, frame.method, frame.file or "")
        for suppressed in throwable.suppressed:
            yield _record("suppressed")
            yield from _chain_lines(suppressed)
    yield _record("end")


def _record(*fields: str) -> str:
    escapes = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return "\t".join(field.translate(escapes) for field in fields) + "\n"


# --- the operator's label mapper ---------------------------------------------------------------


def _entries(file: Path) -> dict[str, str]:
    lines = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return dict(line.rsplit("\t", 1) for line in lines)


def test_flink_reads_the_operators_option_from_config_yaml(cluster_results: Path) -> None:
    assert _entries(cluster_results / "labels.tsv") == label_mapper(PACK).labels


def test_operator_reads_its_option_and_applies_matching_labels(tmp_path: Path) -> None:
    build = _build(Path(__file__).parent / "label_mapper", tmp_path / "build")
    labels = label_mapper(PACK).labels
    (tmp_path / "flink-conf.yaml").write_text(
        render_label_mapper(labels, "flink-conf.yaml"), encoding="utf-8"
    )
    messages = list(dict.fromkeys(_messages(PACK)))
    texts = tmp_path / "messages"
    texts.write_text("".join(m.replace("\n", "\\n") + "\n" for m in messages), encoding="utf-8")
    entries, statuses = tmp_path / "entries.tsv", tmp_path / "statuses"
    build.java(
        "flinktriage.proof.LabelMapperProof",
        *(tmp_path, texts, entries, statuses),
        classes=["target/classes"],
    )
    assert _entries(entries) == labels

    compiled = [(regex.compile(_in_python(java)), label) for java, label in labels.items()]
    lines = statuses.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    applied = [sorted(json.loads(s)["additionalMetadata"].get("labels", ())) for s in lines]
    assert applied == [sorted(n for r, n in compiled if r.search(text)) for text in messages]
    assert sum(map(bool, applied)) > 200


def _messages(pack: SignaturePack) -> Iterator[str]:
    for _, trace in _traces(pack):
        for throwable in trace.throwables:
            # The message file supports no escape sequence other than the one for a line break.
            if throwable.message and not {"\r", "\\"} & set(throwable.message):
                yield throwable.message


def _in_python(java: str) -> str:
    """Removes flags that are Python's default and translates group references."""
    return java.removeprefix("(?dU)").replace("\\k<", "\\g<")

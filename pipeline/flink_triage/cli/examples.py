"""The examples in ``--help`` of each command; a test parses all of them."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("flink-triage diagnose /var/log/flink", "find root causes within seconds"),
        ("flink-triage diagnose logs/ --report out.html", "the same, as a page to share"),
        ("flink-triage run --input logs/ --warehouse wh", "on Spark, with results in Delta tables"),
        ("flink-triage signatures show rocksdb/bad-table-magic", "show one signature"),
    ),
    "diagnose": (
        ("flink-triage diagnose /var/log/flink", "a folder and its subfolders"),
        ("flink-triage diagnose -v jobmanager.log", "with the reasons for the ranking"),
        ("flink-triage diagnose logs/ --report incident.html", "a page to share"),
        ("flink-triage diagnose logs/ --format json --output all.json", "the complete result"),
        ("flink-triage diagnose logs/ --fail-on major --strict", "as a gate in CI"),
        ("flink-triage diagnose logs/ --format github", "annotations on a run of GitHub Actions"),
        ("flink-triage diagnose logs/ --since 2026-11-21T05:00:00Z", "only later events"),
    ),
    "run": (
        ("flink-triage run --input /mnt/logs --warehouse /mnt/triage", "read new logs"),
        ("flink-triage run --input /mnt/logs --catalog ops --schema flink", "tables in a catalog"),
        ("flink-triage run --input logs --warehouse wh --master local[2]", "on two cores"),
        ("flink-triage run --rematch --warehouse wh --signatures mine", "match stored events"),
    ),
    "report": (
        ("flink-triage report --warehouse /mnt/triage", "show the last published run again"),
        ("flink-triage report --warehouse wh --report fleet.html", "as a page to share"),
    ),
    "demo": (
        ("flink-triage demo --engine local", "without Java"),
        ("flink-triage demo --warehouse wh --report demo.html", "keep the tables and the page"),
    ),
    "compare": (
        (
            "flink-triage compare ..2026-11-14 2026-11-14.. --warehouse wh",
            "changes since a release on that day",
        ),
    ),
    "history": (
        ("flink-triage history --warehouse wh", "all causes, with times, places and counts"),
    ),
    "maintain": (
        ("flink-triage maintain --warehouse wh", "once a week: fewer and larger files"),
        ("flink-triage maintain --warehouse wh --keep-days 90", "also delete older events"),
    ),
    "signatures": (
        ("flink-triage signatures list", "all signatures"),
        ("flink-triage signatures new logs/ --id acme/session-expired", "draft a signature"),
        ("flink-triage signatures lint mine", "check your own signatures"),
    ),
    "doctor": (
        ("flink-triage doctor", "before the first run on Spark"),
        ("flink-triage doctor --worker /Volumes/ops/flink/logs", "check a worker"),
    ),
}


def epilog(command: str) -> str:
    """The examples of a command, or of the program for the empty name; empty without examples."""
    lines = [f"  {line}\n      {meaning}" for line, meaning in EXAMPLES.get(command, ())]
    return "\n".join(["examples:", *lines]) if lines else ""

"""What ``--help`` of each command shows as examples; a test parses every one of them."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("flink-triage diagnose /var/log/flink", "what failed, in a second"),
        ("flink-triage diagnose logs/ --report out.html", "the same, as a page to share"),
        ("flink-triage run --input logs/ --warehouse wh", "on Spark into Delta tables"),
        ("flink-triage signatures show rocksdb/bad-table-magic", "what it knows of one failure"),
    ),
    "diagnose": (
        ("flink-triage diagnose /var/log/flink", "a folder, with everything below it"),
        ("flink-triage diagnose -v jobmanager.log", "why this cause and not another"),
        ("flink-triage diagnose logs/ --report incident.html", "a page to share"),
        ("flink-triage diagnose logs/ --format json --output all.json", "everything there is"),
        ("flink-triage diagnose logs/ --fail-on major --strict", "as a gate in CI"),
        ("flink-triage diagnose logs/ --format github", "annotations on a run of GitHub Actions"),
        ("flink-triage diagnose logs/ --since 2026-11-21T05:00:00Z", "only from then on"),
    ),
    "run": (
        ("flink-triage run --input /mnt/logs --warehouse /mnt/triage", "reads what is new"),
        ("flink-triage run --input /mnt/logs --catalog ops --schema flink", "tables in a catalog"),
        ("flink-triage run --input logs --warehouse wh --master local[2]", "on two cores"),
        ("flink-triage run --rematch --warehouse wh --signatures mine", "new signatures, no logs"),
    ),
    "report": (
        ("flink-triage report --warehouse /mnt/triage", "the last published run again"),
        ("flink-triage report --warehouse wh --report fleet.html", "as a page to share"),
    ),
    "demo": (
        ("flink-triage demo --engine local", "without Java"),
        ("flink-triage demo --warehouse wh --report demo.html", "keep the tables and the page"),
    ),
    "compare": (
        (
            "flink-triage compare ..2026-11-14 2026-11-14.. --warehouse wh",
            "what a release on that day changed",
        ),
    ),
    "history": (
        ("flink-triage history --warehouse wh", "every cause, since when, where, how often"),
    ),
    "maintain": (
        ("flink-triage maintain --warehouse wh", "once a week: fewer and larger files"),
        ("flink-triage maintain --warehouse wh --keep-days 90", "forgets older events, too"),
    ),
    "signatures": (
        ("flink-triage signatures list", "every signature"),
        ("flink-triage signatures new logs/ --id acme/session-expired", "draft one of your own"),
        ("flink-triage signatures lint mine", "check yours and the built-in ones together"),
    ),
    "doctor": (
        ("flink-triage doctor", "before Spark is started for the first time"),
        ("flink-triage doctor --worker /Volumes/ops/flink/logs", "what a worker may do there"),
    ),
}


def epilog(command: str) -> str:
    """The examples of one command, of the whole program for the empty name; empty without any."""
    lines = [f"  {line}\n      {meaning}" for line, meaning in EXAMPLES.get(command, ())]
    return "\n".join(["examples:", *lines]) if lines else ""

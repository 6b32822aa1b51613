"""Generates a corpus of logs for benchmarks: a fleet in steady state, from real events.

    python -m benchmarks.corpus --output corpus/ --megabytes 1024 --trace-share 0.01

Each deployment is a folder with one JobManager and three TaskManager files. A file begins with the
startup lines of a real file. Then, the JobManager logs a checkpoint about every ten seconds,
sometimes followed by a random real line, and a TaskManager logs a random real line about every 0.6
seconds. A fraction of ``--trace-share`` of these events is replaced by real events with stack
traces. Outside of stack frames, ids, object addresses, and numbers of three or more digits are new
in each occurrence. Each deployment has one job id, and checkpoints are numbered.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.floods import FLOODS, write_flood

LOGS = Path(__file__).resolve().parents[1] / "tests" / "logs"
RENDERED = "layouts"
TASK_MANAGERS = 3
CHECKPOINT_SECONDS = 10.0
LINE_SECONDS = 0.5
# A deployment of this size spans about ten hours.
DEPLOYMENT_BYTES = 40 << 20
WRITE_BYTES = 1 << 20

HEADER = re.compile(
    r"(?m)^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:INFO |WARN |ERROR) [a-z][^ ]* +\[\] - )"
)
TIME_CHARS = len("2026-01-01 00:00:00,000")
CHECKPOINT_LINES = ("Triggering checkpoint ", "Completed checkpoint ", "Marking checkpoint ")
# The text of the first event after the startup, for each role.
STARTED = {"jobmanager": "Triggering checkpoint ", "taskmanager": "Received task "}
# Words of lines that failing, starting, or stopping processes log; all other lines may recur.
NOT_STEADY = re.compile(
    r"FAILED|CANCEL|cancel|fail|Fail|RESTARTING|Shutting|shut down|Stopp|stopp|Clos|Start|start|"
    r"GlobalConfiguration|ClusterEntrypoint|TaskManagerRunner|BootstrapTools|Environment|"
    r"switched from state|Recover|recover|Discarding|disconnected"
)
# Digits and ids that are part of a name are kept.
VARIABLE = re.compile(
    r"(?P<job>(?<=job )[0-9a-f]{32})"
    r"|(?P<hex>(?<![0-9A-Za-z])[0-9a-f]{32}(?![0-9A-Za-z]))"
    r"|(?P<short>(?:(?<=@)|(?<=0x))[0-9a-f]{6,16}\b)"
    r"|(?P<checkpoint>(?<=[Cc]heckpoint )\d+)"
    r"|(?P<number>(?<![\w.:])\d{3,}(?![\w.]))"
)
TINY_BYTES = 4 << 10
SIGNATURE = """\
title: {word} {number} failed
severity: major
role: trigger
match:
  any:
    - throwable: com.example.{word}Exception
      literal: "{word} could not reach shard"
      regex: '{word} could not reach shard (?P<shard>\\d+)'
cause: |
  {word} was not there.
remediation:
  summary: Start {word} again.
  steps:
    - Start {word} again.
  risk: live
limits: Made for timing.
references:
  - https://nightlies.apache.org/flink/flink-docs-stable/
examples:
  match:
    - |
      2026-11-21 05:52:20,001 WARN  org.example.Sink [] - Failed.
      com.example.{word}Exception: {word} could not reach shard {number}
      \tat com.example.Sink.write(Sink.java:1)
  no_match:
    - |
      2026-11-21 05:52:20,001 WARN  org.example.Sink [] - {word} reached shard {number}.
"""
FRAME = re.compile(r"\s+at |\s+\.\.\. ")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A corpus: deployments in folders (plain or gzipped), one big file, or files of about 4 KiB.

    It may also be one of ``FLOODS``, which defines its own share of traces.
    """

    form: str
    megabytes: int
    trace_share: float

    def scaled_to(self, megabytes: int) -> Recipe:
        return replace(self, megabytes=min(self.megabytes, megabytes))

    @property
    def name(self) -> str:
        return f"{self.form}-{self.megabytes}-{self.trace_share:g}"


Part = str | Callable[["_Deployment"], str]


@dataclass(slots=True)
class _Deployment:
    """State that the lines of one file share during generation; the job id is the deployment's."""

    chance: random.Random
    job_id: str
    checkpoint: int = 0

    def hex(self, digits: int) -> str:
        return f"{self.chance.getrandbits(4 * digits):0{digits}x}"


@dataclass(frozen=True, slots=True)
class Template:
    """A real event without its timestamp, split at the parts that vary between occurrences."""

    parts: tuple[Part, ...]

    def render(self, deployment: _Deployment) -> str:
        return "".join(p if isinstance(p, str) else p(deployment) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Material:
    """Events of one role: starts of files, steady lines, checkpoint cycles, traces."""

    start_ups: tuple[tuple[Template, ...], ...]
    steady: tuple[Template, ...]
    checkpoints: tuple[Template, ...]
    traced: tuple[Template, ...]


def template_of(event: str) -> Template:
    """Split an event into a template; frames keep their line numbers, which belong to the code."""
    parts: list[Part] = []
    for line in event[TIME_CHARS:].split("\n")[:-1]:
        if FRAME.match(line):
            parts.append(line + "\n")
            continue
        end = 0
        for found in VARIABLE.finditer(line):
            parts += [line[end : found.start()], _variable(found)]
            end = found.end()
        parts.append(line[end:] + "\n")
    merged: list[Part] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return Template(tuple(merged))


def _variable(found: re.Match[str]) -> Part:
    size = len(found.group())
    if found.lastgroup == "job":
        return lambda d: d.job_id
    if found.lastgroup == "checkpoint":
        return lambda d: str(d.checkpoint)
    if found.lastgroup == "number":
        low, high = 10 ** (size - 1), 10**size - 1
        return lambda d: str(d.chance.randint(low, high))
    return lambda d: d.hex(size)


def read_material(folder: Path) -> dict[str, Material]:
    """The events of all logs below ``folder`` in Flink's default layout, by role.

    The logs in ``layouts``, which contain the same traces in many layouts, are skipped.
    """
    start_ups: dict[str, list[tuple[Template, ...]]] = {role: [] for role in STARTED}
    steady: dict[str, list[Template]] = {role: [] for role in STARTED}
    checkpoints: dict[str, Template] = {}
    traced: dict[str, list[Template]] = {role: [] for role in STARTED}
    for path in sorted(folder.rglob("*.log")):
        if RENDERED in path.parts:
            continue
        role = "taskmanager" if "taskexecutor" in path.name else "jobmanager"
        events = HEADER.split(path.read_bytes().decode("utf-8", "replace"))
        events = [e for e in events if HEADER.match(e) and e.endswith("\n")]
        begun = next((i for i, e in enumerate(events) if STARTED[role] in e), len(events))
        if "healthy" in path.parts:
            start_ups[role].append(tuple(template_of(e) for e in events[:begun]))
        for event in events[begun:]:
            if "Loading configuration property" in event:
                continue
            if "\tat " in event:
                # One layout in ``tests/logs`` prints traces on one line.
                if "\n\tat " in event:
                    traced[role].append(template_of(event))
            elif event.count("\n") > 1 or " INFO " not in event[:30]:
                continue
            elif mark := next((m for m in CHECKPOINT_LINES if m in event), None):
                checkpoints.setdefault(mark, template_of(event))
            elif not NOT_STEADY.search(event):
                steady[role].append(template_of(event))
    cycle = tuple(checkpoints[mark] for mark in CHECKPOINT_LINES if mark in checkpoints)
    return {
        role: Material(
            tuple(start_ups[role]),
            tuple(steady[role]),
            cycle if role == "jobmanager" else (),
            tuple(traced[role]),
        )
        for role in STARTED
    }


def events_of(
    material: Material, deployment: _Deployment, start: datetime, trace_share: float
) -> Iterator[str]:
    """An endless sequence of events of one file, in time order."""
    chance, at = deployment.chance, start
    for template in chance.choice(material.start_ups):
        at += timedelta(milliseconds=5)
        yield _time(at) + template.render(deployment)
    while True:
        pause = CHECKPOINT_SECONDS if material.checkpoints else LINE_SECONDS
        at += timedelta(seconds=pause * chance.uniform(0.5, 1.5))
        deployment.checkpoint += 1
        lines = material.checkpoints or (chance.choice(material.steady),)
        if material.checkpoints and chance.random() < 0.3:
            lines = (*lines, chance.choice(material.steady))
        for line in lines:
            at += timedelta(milliseconds=chance.randint(1, 200))
            is_traced = material.traced and chance.random() < trace_share
            template = chance.choice(material.traced) if is_traced else line
            yield _time(at) + template.render(deployment)


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}"


def write_corpus(source: Path, output: Path, size_bytes: int, trace_share: float) -> None:
    """Write deployments with a total of about ``size_bytes`` to ``output``."""
    material = read_material(source)
    for role, texts in material.items():
        if not (texts.start_ups and texts.steady and texts.traced):
            raise SystemExit(f"{source}: contains too few logs of a {role}")
    count = max(8, size_bytes // DEPLOYMENT_BYTES)
    for number in range(count):
        folder = output / f"orders-{number:03}"
        folder.mkdir(parents=True, exist_ok=True)
        # The JobManager prints about one twentieth of the volume of its TaskManagers.
        share = size_bytes / count / (TASK_MANAGERS + TASK_MANAGERS / 20)
        _write(
            folder / "flink-jobmanager-0.log",
            material["jobmanager"],
            share * 0.15,
            number,
            0,
            trace_share,
        )
        for task_manager in range(TASK_MANAGERS):
            path = folder / f"flink-taskexecutor-{task_manager}.log"
            _write(path, material["taskmanager"], share, number, task_manager + 1, trace_share)


def _write(
    path: Path, material: Material, size: float, number: int, member: int, trace_share: float
) -> None:
    shared = random.Random(number)
    job_id = f"{shared.getrandbits(128):032x}"
    deployment = _Deployment(random.Random(1000 * number + member), job_id)
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    events = events_of(material, deployment, start, trace_share)
    left = int(size)
    with path.open("wb") as log:
        while left > 0:
            block: list[str] = []
            held = 0
            while held < min(left, WRITE_BYTES):
                block.append(next(events))
                held += len(block[-1])
            left -= log.write("".join(block).encode())


def write_recipe(recipe: Recipe, folder: Path) -> Path:
    """The corpus folder below ``folder``; it is created if it does not exist."""
    corpus = folder / recipe.name
    if corpus.exists():
        return corpus
    unfinished = folder / f"{recipe.name}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    if recipe.form == "folders":
        write_corpus(LOGS, unfinished, recipe.megabytes << 20, recipe.trace_share)
    elif recipe.form in FLOODS:
        write_flood(recipe.form, unfinished, recipe.megabytes << 20)
    else:
        plain = write_recipe(replace(recipe, form="folders"), folder)
        _reshape(recipe.form, sorted(plain.rglob("*.log")), plain, unfinished)
    unfinished.rename(corpus)
    return corpus


def _reshape(form: str, logs: Sequence[Path], root: Path, output: Path) -> None:
    for number, log in enumerate(logs):
        target = output / log.relative_to(root)
        if form == "one":
            output.mkdir(parents=True, exist_ok=True)
            # Combine many deployments in one file: only its size matters.
            with log.open("rb") as lines, (output / "flink-jobmanager-0.log").open("ab") as one:
                shutil.copyfileobj(lines, one)
        elif form == "gzip":
            target.parent.mkdir(parents=True, exist_ok=True)
            with log.open("rb") as lines, gzip.open(f"{target}.gz", "wb", 6) as packed:
                shutil.copyfileobj(lines, packed)
        elif form == "tiny":
            _split(log, output / f"pod-{number:05}")
        else:
            allowed = ", ".join(("folders", "gzip", "one", "tiny", *FLOODS))
            raise ValueError(f"form: got {form!r}, allowed: {allowed}")


def _split(log: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with log.open("rb") as lines:
        number = 0
        while block := lines.readlines(TINY_BYTES):
            (folder / f"{log.stem}-{number:06}.log").write_bytes(b"".join(block))
            number += 1


def write_signatures(count: int, folder: Path) -> Path:
    """Write ``count`` signatures that match no event of a corpus.

    Returns their directory, which is below ``folder``.
    """
    pack = folder / f"signatures-{count}"
    chance = random.Random(count)
    (pack / "made").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        word = "".join(chance.choices("bcdfghklmnprstvw", k=9)).capitalize()
        (pack / "made" / f"failure-{number:04}.yaml").write_text(
            SIGNATURE.format(word=word, number=number), encoding="utf-8"
        )
    return pack


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=LOGS, help="logs to take events from")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--trace-share", type=float, default=0.01, help="share of traces, 0 to 1")
    given = parser.parse_args(argv)
    write_corpus(given.source, given.output, given.megabytes << 20, given.trace_share)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

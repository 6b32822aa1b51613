"""Hostile YAML in log lines or user files is rejected, with little memory and CPU time."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest
import yaml

from flink_triage.plain_yaml import load_plain_yaml

# Nine levels of nine elements: aliases would expand to 387 million words.
LAUGHS = "[&a0 [x,x,x,x,x,x,x,x,x], " + ", ".join(
    f"&a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)
)
HOSTILE = {
    "aliases": f"{LAUGHS}]",
    "brackets": "[" * 20_000,
    "a date that does not exist": "2026-99-99",
    "a number of a million digits": f"[0x{'f' * 300_000}]",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_yaml_is_refused(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_plain_yaml(text)


def test_plain_values_are_loaded_unchanged() -> None:
    assert load_plain_yaml("{a: [1, 'two'], b: true}") == {"a": [1, "two"], "b": True}


def test_an_option_that_a_log_prints_costs_no_more_than_its_length() -> None:
    code = (
        "import sys\n"
        "from flink_triage.remediation.units import ValueProblem\n"
        "from flink_triage.remediation.values import parse_value\n"
        "try: parse_value('List<String>', sys.argv[1])\n"
        "except ValueProblem: pass"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code, HOSTILE["aliases"]], preexec_fn=limit, check=False
    )
    assert done.returncode == 0

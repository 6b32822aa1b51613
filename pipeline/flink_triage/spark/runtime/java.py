"""Finds the Java that Spark starts, with its path and version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flink_triage.errors import EnvironmentProblem

# Spark 4 is compiled for Java 17 and fails with UnsupportedClassVersionError on older versions.
OLDEST_JAVA = 17
INSTALL_HINT = "install Java 17 or newer (Debian, Ubuntu: openjdk-17-jre-headless)"
VERSION_LINE = re.compile(r'version "(?P<major>\d+)(?:\.(?P<minor>\d+))?')


@dataclass(frozen=True, slots=True)
class Java:
    path: Path
    major: int


def find_java() -> Java:
    """The ``java`` of ``JAVA_HOME`` or, if that is not set, of ``PATH``, as in Spark's launcher.

    Raises ``EnvironmentProblem`` if it is missing, does not start, does not print its version, or
    is too old.
    """
    home = os.environ.get("JAVA_HOME")
    named = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(named)
    if found is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise EnvironmentProblem(f"Java: not found in {where}; {INSTALL_HINT}")
    try:
        done = subprocess.run(
            [found, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"{found}: does not start: {error}; {INSTALL_HINT}") from None
    stated = VERSION_LINE.search(done.stderr + done.stdout)
    if done.returncode != 0 or stated is None:
        raise EnvironmentProblem(f"{found}: -version did not print a version; {INSTALL_HINT}")
    major = int(stated["major"])
    if major == 1:
        # Java 8 reports its version as 1.8.
        major = int(stated["minor"] or 0)
    if major < OLDEST_JAVA:
        raise EnvironmentProblem(f"{found}: is Java {major}; {INSTALL_HINT}")
    return Java(Path(found), major)

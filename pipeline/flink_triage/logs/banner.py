"""Parses one line of a startup banner into the Java version, a JVM option, or the classpath.

Flink 1.0 to 2.3 prints these lines in EnvironmentInformation.logEnvironmentInfo. Program arguments
are not parsed, except for those that look like JVM options, such as ``-Dkey=value`` on one line.
"""

from __future__ import annotations

from string import ascii_lowercase

import regex as re

from flink_triage.model import Lifecycle

KINDS = ("java-version", "jvm-option", "classpath")
_JVM, _CLASSPATH = "JVM: ", "Classpath: "
# JVM options and program arguments are both indented by four spaces. These literals do not match a
# program argument "-D" whose key and value are on the next line.
LITERALS = (
    _JVM,
    _CLASSPATH,
    "    -X",
    "    --add-",
    "    -javaagent:",
    "    -agent",
    *(f"    -D{letter}" for letter in ascii_lowercase),
)
# JVM name, vendor, specification version, and release version.
_VERSION = re.compile(r"JVM: (?P<value>\S.{0,200}? - \d[^\s/]{0,40}/[\w.+~:-]{1,100})")
_OPTION = re.compile(r"-(?:X|D[a-z]|-add-|javaagent:|agent)")
_MAX_OPTION_CHARS = 8192
# "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxMetaspaceSize=256m", "-Duser.timezone=UTC"
_PARTS = re.compile(
    r"(?P<size>-X(?:mx|ms|mn|ss))(?P<bytes>\d\S*)"
    r"|-XX:(?P<switch>[+-])(?P<flag>\w+)"
    r"|(?P<name>--add-[^=]+=[^=]+|-[^=]+)=(?P<value>.*)",
    re.DOTALL,
)


def parse_banner(message: str) -> Lifecycle | None:
    """The Java version, a JVM option, or the JARs on the classpath; ``None`` for other lines.

    The value for the classpath is the file names of its JARs, joined by ``:``, in classpath order
    and without duplicates.
    """
    line = message.strip(" ")
    if line.startswith(_CLASSPATH):
        return Lifecycle("classpath", value=_jars_of(line[len(_CLASSPATH) :]))
    if line.startswith(_JVM):
        found = _VERSION.match(line)
        return Lifecycle("java-version", value=found["value"]) if found is not None else None
    if _OPTION.match(line):
        return Lifecycle("jvm-option", value=line[:_MAX_OPTION_CHARS])
    return None


def name_and_value(option: str) -> tuple[str, str]:
    """The name and value of a JVM option; the value of a switch is ``on`` or ``off``."""
    found = _PARTS.fullmatch(option)
    if found is None:
        return option, "on"
    if found["size"]:
        return found["size"], found["bytes"]
    if found["flag"]:
        return f"-XX:{found['flag']}", "on" if found["switch"] == "+" else "off"
    return found["name"], found["value"]


def _jars_of(classpath: str) -> str:
    # On Windows: "C:\flink\lib\a.jar;C:\flink\lib\b.jar".
    separator = ";" if ";" in classpath else ":"
    names = (path.replace("\\", "/").rpartition("/")[2] for path in classpath.split(separator))
    return ":".join(dict.fromkeys(name for name in names if name.endswith(".jar")))

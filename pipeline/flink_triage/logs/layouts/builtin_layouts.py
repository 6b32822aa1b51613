"""The built-in layouts: header formats of Flink, of user configurations, and of other systems.

Each layout is one verbose regex that matches a whole line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from flink_triage.logs.layouts.timestamps import TIMESTAMP

LEVELS = "TRACE|DEBUG|INFO|WARNING|WARN|ERROR|FATAL|SEVERE|CRITICAL|NOTICE"
_LEVEL = rf"(?P<level>{LEVELS})"
_LOGGER = r"(?P<logger>[\w$][\w$.\-/]{0,400})(?:[:@]\d{1,6})?"
# Thread names may contain brackets: "[Writer[1] (1/2)#0]".
_BRACKET = r"\[(?:[^\[\]]|\[[^\[\]]{0,400}\]){0,2000}\]"
# A bare %X prints the MDC as a map: "{flink-job-id=…, tenant=acme}".
GROUPED = rf"(?:{_BRACKET}|\{{[^{{}}]{{0,2000}}\}})"
_BRACKETS = rf"{GROUPED}(?:[ ]*{GROUPED}){{0,3}}"
_NDC = rf"(?P<ndc>{_BRACKET})"
_MESSAGE = r"(?P<message>.*)"
_BARRED_THREAD = r"[ ]*\[?(?P<thread>[^|\n]{1,400}?)\]?[ ]*\|"
_BARRED_NAME = r"(?:[A-Z]\w{0,200}|[\w$]{1,200}(?:\.[\w$]{1,200})+)"
_BARRED_END = r"(?:[:@]\d{1,6})?[ ]*\|"
_BARRED_LOGGER = rf"[ ]*(?P<logger>{_BARRED_NAME}){_BARRED_END}"


JUL = "java-util-logging"


@dataclass(frozen=True, slots=True)
class Layout:
    """One header layout: its name, an example, and a regex that matches a whole line.

    ``after_time`` is the part of the regex after the timestamp, for callers that have already
    parsed the timestamp; ``None`` if the layout has no timestamp.
    """

    name: str
    example: str
    pattern: re.Pattern[str]
    after_time: re.Pattern[str] | None


def _layout(name: str, example: str, pattern: str) -> Layout:
    flags = re.VERBOSE | re.DOTALL
    _, time, after = pattern.partition(TIMESTAMP)
    return Layout(
        name, example, re.compile(pattern, flags), re.compile(after, flags) if time else None
    )


LAYOUTS: tuple[Layout, ...] = (
    # flink-dist/conf/log4j.properties since 1.11: %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c %x - %m%n
    # (before 1.11, log4j 1 printed nothing for an empty %x; log4j 2 prints []).
    _layout(
        "log4j2",
        "2026-11-21 06:47:23,468 INFO  org.apache.flink.runtime.Foo [] - message",
        rf"{TIMESTAMP}[ ]+{_LEVEL}[ ]+{_LOGGER}[ ]+(?:{_NDC}[ ]+)?-(?:[ ]|$){_MESSAGE}",
    ),
    # The MDC with the job ID (FLINK-34417), and other bracketed context in custom patterns.
    _layout(
        "log4j2-mdc",
        "2026-11-21 06:47:23,468 INFO  [{flink-job-id=caf5}] [main] org.apache.Foo - message",
        rf"{TIMESTAMP}[ ]+{_LEVEL}[ ]+(?P<groups>{_BRACKETS})[ ]*"
        rf"{_LOGGER}(?:[ ]+{_NDC})?[ ]*(?:-|:|\|)(?:[ ]|$){_MESSAGE}",
    ),
    # logback: %d{HH:mm:ss.SSS} [%thread] %-5level %logger{36} - %msg%n, and variants with ISO 8601
    # dates.
    _layout(
        "logback",
        "06:47:23.468 [main] INFO  o.a.f.runtime.Foo - message",
        rf"\[?{TIMESTAMP}\]?[ ]+(?P<groups>{_BRACKETS})[ ]+\[?{_LEVEL}[ ]*\]?[ ]+"
        rf"{_LOGGER}(?:[ ]+{_NDC})?[ ]*(?:-|:|\|)(?:[ ]|$){_MESSAGE}",
    ),
    # log4j 1 in Hadoop and Spark distributions: %d{yy/MM/dd HH:mm:ss} %p %c{2}: %m%n
    _layout(
        "log4j1",
        "26/11/21 06:40:14 INFO taskexecutor.TaskManagerRunner: message",
        rf"{TIMESTAMP}[ ]+{_LEVEL}[ ]+(?:{_NDC}[ ]+)?{_LOGGER}[ ]?:(?:[ ]|$){_MESSAGE}",
    ),
    # Spring Boot: 2026-11-21T06:47:23.468Z  INFO 1 --- [app] [main] o.a.Foo : message
    _layout(
        "spring-boot",
        "2026-11-21 06:47:23.468  INFO 4711 --- [main] o.a.f.runtime.Foo : message",
        rf"{TIMESTAMP}[ ]+{_LEVEL}[ ]+\d{{1,10}}[ ]---[ ](?P<groups>{_BRACKETS})"
        rf"[ ]+{_LOGGER}[ ]*:(?:[ ]|$){_MESSAGE}",
    ),
    # ZooKeeper: %d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n
    _layout(
        "zookeeper",
        "2026-11-21 06:47:23,468 [myid:1] - INFO  [main:QuorumPeer@774] - message",
        rf"{TIMESTAMP}[ ]+(?:{_BRACKET}[ ]+)?-[ ]{_LEVEL}[ ]+\["
        rf"(?P<thread>(?:[^\[\]]|\[[^\[\]]{{0,400}}\])"
        rf"{{0,1000}}?):(?P<logger>[\w$.]{{1,200}})@\d{{1,6}}\][ ]-(?:[ ]|$){_MESSAGE}",
    ),
    # Without a date: %-5p %c %x - %m%n (log4j-console in some images) and %-5p [%t] %c - %m%n
    _layout(
        "level-first",
        "ERROR org.apache.flink.runtime.Foo [] - message",
        rf"\[?(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)[ ]*\]?[ ]+"
        rf"(?:(?P<groups>{_BRACKET})[ ]*)?{_LOGGER}(?:[ ]+{_NDC})?[ ]+-(?:[ ]|$){_MESSAGE}",
    ),
    # Python's logging.BASIC_FORMAT.
    _layout(
        "python-basic",
        "INFO:pyflink.table:message",
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?P<logger>[\w.]{1,200}):(?P<message>.*)",
    ),
    # Columns separated by bars: %d | %-5p | %t | %c{1} | %m. A thread name may contain spaces. A
    # column that looks like a logger is parsed as one, so that bars in messages do not shift the
    # columns.
    _layout(
        "barred",
        "2026-11-21 06:47:23.468 | INFO  | Map (1/2)#0 | TaskManagerRunner | message",
        rf"{TIMESTAMP}[ ]*\|[ ]*{_LEVEL}[ ]*\|"
        rf"(?:(?![ ]*{_BARRED_NAME}{_BARRED_END}){_BARRED_THREAD})?{_BARRED_LOGGER}[ ]?{_MESSAGE}",
    ),
    _layout(
        "barred-thread-first",
        "2026-11-21 06:47:23.468 | Map (1/2)#0 | INFO  | TaskManagerRunner | message",
        rf"{TIMESTAMP}[ ]*\|{_BARRED_THREAD}[ ]*{_LEVEL}[ ]*\|{_BARRED_LOGGER}[ ]?{_MESSAGE}",
    ),
    # Log4j's StatusLogger, on stderr: the user's pattern does not apply, there is no logger, and
    # the thread name, such as "Source: a -> b (1/2)#0", is not in brackets. The messages are those
    # of Log4j's appenders.
    _layout(
        "log4j-status",
        "2026-11-21 06:47:23,468 Map (1/2)#0 ERROR An exception occurred processing Appender Main",
        rf"{TIMESTAMP}[ ]+(?P<thread>[^ ].{{0,1000}}?)[ ](?P<level>WARN|ERROR|FATAL)[ ]+"
        r"(?P<logger>(?!))?(?P<message>(?:An[ ]exception[ ]occurred[ ]processing[ ]Appender[ ]"
        r"|Attempted[ ]to[ ]append[ ]|Recursive[ ]call[ ]to[ ]appender[ ]|Unable[ ]to[ ]).*)",
    ),
    # The StatusLogger before Log4j has read a configuration, or if it finds none.
    _layout(
        "log4j-status-simple",
        "ERROR StatusLogger No Log4j 2 configuration file found.",
        r"(?P<level>WARN|ERROR|FATAL)[ ](?P<logger>(?!))?(?P<message>StatusLogger[ ].*)",
    ),
    # java.util.logging's SimpleFormatter; level and message are on the next line.
    _layout(
        JUL,
        "Nov 21, 2026 6:47:23 AM org.apache.flink.runtime.Foo bar",
        rf"{TIMESTAMP}[ ](?P<logger>[\w$]+(?:\.[\w$]+)+)(?P<level>(?!))?(?P<message>)"
        r"(?P<method>[ ][\w$<>]{1,200})?$",
    ),
)

"""Classifies text that is not a log: whether it reports a failure, or a failed log retrieval."""

from __future__ import annotations

import re
from itertools import dropwhile

_MAX_CHARS = 16 * 1024
# "no", "without", and similar words negate a failure that is one of the next four words.
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|zero|0|nothing|none|any|fewer|if)(?:\s+\w+){0,3}\s*$", re.IGNORECASE
)
FAILURE = re.compile(
    r"\b(?:[A-Z]\w{1,60}(?:Exception|Error)|[Ee]xceptions?|[Ee]rrors?|ERROR|FATAL|OOMKilled|OOM"
    r"|(?:[Ff]ail|FAIL)(?:s|ed|ing|ures?|ED|URE)?|[Cc]rash(?:es|ed|ing|loop\w*)?|CrashLoopBackOff"
    # In "heartbeat.timeout", the word is a part of the name of an option.
    r"|(?:was|is|got|gets) killed|Killed|(?<![.-])[Tt]imed? ?out"
    r"|(?:[Cc]onnection|[Aa]ccess) (?:refused|denied)"
    r"|[Cc]annot|[Cc]ould not|[Uu]nable to|keeps? (?:restarting|failing)"
    r"|(?:falls?|fell|goes|went|is) (?:over|down)|stops? (?:every|each)|stuck|corrupt(?:ed|ion)?"
    r"|mismatch|exceed(?:s|ed) the (?:maximum|limit)"
    # A misspelled exception class with its package, such as "java.io.IOExeption".
    r"|(?:[a-z]\w{0,40}\.){2,12}[A-Z]\w{0,80}?Ex[cepti]{3,6}[ontim]{1,4})\b"
)
# A stack frame within a line. With three of them, the text is a part of a stack trace.
_FRAME = re.compile(
    r"\b(?:[a-z]\w{0,60}\.){2,12}[A-Z][\w$]{0,200}\.[\w$<>]{1,200}\(\w{1,200}\.(?:java|scala|kt):\d"
)
_MIN_FRAMES = 3
# A field value that means "none", as in `error: ""` or `"failed": 0`.
_IS_EMPTY = re.compile(
    r"""(?i)["']?\s*[:=]\s*(?:""|''|null|none|~|0|false|\[\]|\{\})(?=\s*(?:[,;}\])]|\n|$))"""
)
# Messages of programs that failed to retrieve a log, such as kubectl, docker, yarn, aws,
# journalctl, and Unix tools ("tail: cannot open ...: No such file or directory").
_NO_LOG = re.compile(
    r"\s*(?:Error from server(?: \(\w+\))?: |Error response from daemon: "
    r"|Error: No such (?:container|object)"
    r"|The connection to the server \S+ was refused|Unable to connect to the server: "
    r"|No resources found|-- No entries --|unable to retrieve container logs for "
    r"|error: (?:unable to|a container name|timed out|no |the server|You must|context|cannot"
    r"|container)"
    r"|Can(?: ?not|'t) find (?:the logs for the application|any log file matching the pattern)"
    r"|Log aggregation has not completed"
    r"|An error occurred \(\w+\) when calling the \w+ operation"
    r"|ERROR: \(gcloud\.|curl: \(\d+\) "
    r"|(?:\w*sh: )?(?:line \d+: )?[a-z][\w.-]{0,30}: [^\n]{0,300}"
    r"(?:No such file or directory|[Pp]ermission denied|command not found|not found"
    r"|Is a directory|No such host|Name or service not known|[Cc]onnection refused)\s*$)"
)
# A shell prompt with a command, such as "$ kubectl logs ..." or "etl@edge-1:~$ yarn logs ...".
_COMMAND = re.compile(r"\s*(?:[\w.@:~/-]{0,80}[$#%>]|PS [^>\n]{0,200}>)\s+[a-z]")


def mentions_failure(text: str) -> bool:
    """Whether the first 16,384 characters of ``text`` mention a failure without negating it.

    Frames of a stack trace count as a failure, too.
    """
    text = text[:_MAX_CHARS]
    if len(_FRAME.findall(text)) >= _MIN_FRAMES:
        return True
    return any(
        _NEGATION.search(text, max(0, found.start() - 60), found.start()) is None
        and _IS_EMPTY.match(text, found.end()) is None
        for found in FAILURE.finditer(text)
    )


def is_of_collector(text: str) -> bool:
    """Whether ``text`` starts with the output of a program that failed to retrieve a log.

    The command lines before it are skipped.
    """
    lines = text[:_MAX_CHARS].split("\n")
    output = dropwhile(lambda line: not line.strip() or _COMMAND.match(line), lines)
    return _NO_LOG.match("\n".join(output)) is not None

"""Masks personal data in text: email and IP addresses, host names, and user names.

Personal data is masked only on request, because a diagnosis without host names is less useful. A
host is recognized by its context (such as a URL, ``host:port``, or ``@ host (dataPort=``), or by
its ending (such as ``.internal``). Class names, option keys, and source positions such as
``Foo.java:12`` are usually kept, and so is ``localhost``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

# Endings of host names that names of classes, options, and files usually do not have.
_ENDINGS = (
    r"(?:internal|local|localdomain|lan|corp|intra(?:net)?|com|net|org|io|cloud|cn|de|eu|svc)"
)
# Many Java packages start with a label that is also the ending of host names.
_PACKAGE = r"(?:org|com|net|io|java|javax|jakarta|jdk|sun|scala|kotlin|de|cn|eu|akka|pekko)\."
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_NAME = rf"{_LABEL}(?:\.{_LABEL}){{0,10}}"
_SOURCES = r"(?:java|scala|kt|py|groovy|clj|cc|cpp|go|js|log|out|xml|yaml|yml|properties|jar|sst)"

_PERSONAL = re.compile(
    rf"""
    (?P<email>(?<![\w.+/-])(?!flink@)[\w.+-]{{1,64}}@{_LABEL}(?:\.{_LABEL}){{0,8}}\.[A-Za-z]{{2,24}}
        \b(?![\w.-]*:\d))
  | (?P<ip>(?<![\w.])(?!127\.|0\.0\.0\.0(?!\d))(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){{3}}
        (?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]?\d)
     | (?<![\w:.])(?!::1(?![\w:]))(?=[0-9A-Fa-f:]{{0,39}}::|(?:[0-9A-Fa-f]{{1,4}}:){{7}})
        [0-9A-Fa-f]{{1,4}}(?::{{1,2}}[0-9A-Fa-f]{{1,4}}){{2,7}}(?![\w:.])
     | (?<![\w.-])ip-\d{{1,3}}-\d{{1,3}}-\d{{1,3}}-\d{{1,3}}(?:\.[\w.-]{{1,200}})?)
  | (?P<user>(?<=/home/)[^\[/\s:"']{{1,64}} | (?<=/Users/)[^\[/\s:"']{{1,64}}
     | (?<=\\Users\\)[^\[\\\s:"']{{1,64}}
     | (?<=[Uu]ser:[ ])(?!\[)[\w.@-]{{1,64}} | (?<=[Uu]ser=)(?!\[)[\w.@-]{{1,64}}
     | (?<=[Uu]ser[ ]name[ ])(?!\[)[\w.@-]{{1,64}} | (?<=USER_NAME=)[\w.@-]{{1,64}})
  | (?P<host>(?<=://)(?<!s3://)(?<!s3a://)(?<!gs://)(?<!oss://)(?<!file://)(?!localhost\b)
        (?!\[)(?:(?=[\w.-]{{1,64}}@)[\w.-]{{1,64}}@)?(?:{_NAME})(?=[:/\s,;)\]"'<]|$)
     | (?<=@[ ])(?!localhost)[\w.-]{{1,253}}(?=[ ]\(dataPort)
     | (?<=[ ]on[ ])[\w.-]{{1,253}}(?=_\d{{2,5}}(?:\s|_\d|$))
     | (?<=host=)(?!localhost|\[)[\w.-]{{1,253}} | (?<=host:[ ])(?!localhost|\[)[\w.-]{{1,253}}
     | (?<![\w.$/@-])(?!{_PACKAGE})(?!localhost)[A-Za-z][\w-]{{0,62}}(?:\.{_LABEL}){{0,10}}
        (?<!\.java)(?<!\.scala)(?<!\.kt)(?<!\.py)(?=:\d{{4,5}}(?![\d.]))
     | (?<![\w.$/@-])(?!{_PACKAGE}){_LABEL}(?:\.{_LABEL}){{1,10}}\.{_ENDINGS}(?![\w.-]*[\w(-]))
    """,
    re.VERBOSE,
)
_SOURCE_POSITION = re.compile(rf"\.{_SOURCES}\Z|[A-Z]\w*\Z")
_USER_AT_HOST = re.compile(r"^[\w.-]{1,64}@")


def redact_personal(text: str) -> tuple[str, Mapping[str, int]]:
    """Mask personal data as ``[REDACTED:KIND]``, and count the masks by kind; idempotent.

    The kinds are ``email``, ``ip``, ``user``, and ``host``.
    """
    count: Counter[str] = Counter()

    def replace(match: re.Match[str]) -> str:
        kind, found = str(match.lastgroup), match[0]
        if kind == "host" and _SOURCE_POSITION.search(found):
            return found
        count[kind] += 1
        # Keep the name of an actor system ("flink@") in its address, so that it can be parsed.
        actor = _USER_AT_HOST.match(found) if kind == "host" else None
        return f"{actor[0] if actor else ''}[REDACTED:{kind}]"

    return _PERSONAL.sub(replace, text), count

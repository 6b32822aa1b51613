"""Detects whether a file with few or no log headers is a document that discusses failures.

Runbooks, changelogs, commented configuration files, diffs, source code, and alert rules quote error
messages. Unlike a user's description of an incident, they do not report a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from flink_triage.logs.detect.prose import FAILURE
from flink_triage.logs.formats.pasted_lines import whole_frame
from flink_triage.logs.text.trace_line_kinds import LineKind, kind_of

# The layout name of a document.
DOCUMENT = "document"
_MAX_LINES = 400
# A line of one of these kinds is part of a pasted stack trace. Most documents do not contain any.
_OF_A_TRACE = {LineKind.FRAME, LineKind.CAUSE, LineKind.THROWABLE}

_DIFF = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|diff --git a/|\+\+\+ (?:b/|\S+\s+\d{4}-)")
# A comment marker; the comment may contain a pasted stack trace.
_MARK = re.compile(r"\s*(?:\*|//|#) (?=\s)")
_COMMENT = re.compile(r"\s*(?:#(?!#)|//|--\s|;|\*\s|/\*)")
_OPTION = re.compile(r"\s*[+-]?[a-z][\w-]{0,60}(?:\.[a-z0-9*][\w*-]{0,60}){1,12}\s*[:=]")
_RULE = re.compile(r"\s*(?:- )?(?:alert|expr|for|annotations|summary|description|runbook_url): ")
_CODE = re.compile(
    r"\s*(?:(?:public|private|protected|static|final|package|import|class|interface|enum|return"
    r"|throw new|try|catch|def|async def|from \S+ import|val|var|fun|func|@Override|@Test|assert"
    r"|raise|except)\b|(?:LOG|log|logger|LOGGER)\.\w+\(|assert\w*\(|//|/\*|\*(?:[ /]|$))"
    # Calls and arguments that continue on the next line, enum constants, and shell commands.
    r"|\s+\.\w+\(|\s{4,}[\w.]+(?:\(|,)\s*$|\s{4,}\([\w, ]*\) ->"
    r"|\s*[A-Z][A-Z0-9_]{2,80}\(.*\)[,;]\s*$"
    r"|\s*(?:fi|done|then|else|esac|echo .*|local \w+=.*|if \[.*|\|? ?grep .*)\s*\\?\s*$"
    r"|.*[;{}]\s*$"
)
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-{3,}:?\s*\|")
_EXPLAINS = re.compile(
    r"\b(?:meaning|means|what to do|action|cause|reason|solution|fix|remedy|cure|explanation"
    r"|resolution|severity|runbook|answer|advice|response)\b"
    r"|原因|解决|处理|含义|说明|建议|対処|対策|意味|원인|해결|조치",
    re.IGNORECASE,
)
_ANSWER = re.compile(r"\s*(?:A|Answer|\*\*A)\s*[:.]\s", re.IGNORECASE)
# A sentence ends at a punctuation mark followed by whitespace, or at the end of the line. A dot
# alone does not end a sentence, because class names contain dots.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|in case|should|unless|where|every time|as soon as)\b", re.IGNORECASE
)
_EXPLAINED = re.compile(
    r"\b(?:means? (?:that|the|a)|indicates?|stands for|is (?:thrown|raised|reported|printed|logged"
    r"|caused|shown)|points? (?:to|at)|(?:can|may|might|could) (?:be|also|occur|happen|appear)"
    r"|usually|typically|occurs? (?:because|if|when)|(?:can|could|may|might) lead to"
    r"|you (?:can|could|may|might|will) (?:also )?(?:see|get|encounter)|in the style)\b(?!\.)",
    re.IGNORECASE,
)
_RESOLVED = re.compile(
    r"\b(?:no longer|any ?more|fixe[sd]|solve[sd]|resolve[sd]|avoid(?:s|ed|ing)?|cured|instead of"
    r"|prevent(?:s|ed|ing)?|protects?|keeps? (?:\w+ )?(?:clear|away|safe))\b",
    re.IGNORECASE,
)
# Wording of a user who reports a failure, even if the sentence also contains a condition.
_REPORT_WORDING = re.compile(
    r"\b(?:I|we) (?:\w+ )?(?:get|got|see|saw|have|had|face|faced|hit|found|find|observe|receive)\b"
    r"|\b(?:my|our) (?:\w+ ){0,3}(?:fails?|failed|crash\w*|stop\w*|dies|died|falls|restarts)\b"
    r"|\b(?:fails|failed|crashed|crashes|died|dies|ends|ended|stopped) (?:with|because)\b"
    r"|\bCaused by\b|\bhow (?:can|do|to) (?:I|we)\b|\bplease help\b|\bany ideas?\b"
    r"|请问|求助|怎么(?:解决|处理|办)|如何解决|我们?(?:遇到|发现|的)",
    re.IGNORECASE,
)
_THROWABLE = re.compile(r"\w(?:Exception|Error)\b")
# A heading, or a list item in bold, that names a failure, and the sentence below it.
_TOPIC = re.compile(r"\s*(?:#{1,6} .+|(?:[-*+] )?\*\*.+\*\*:?)\s*")
_EXPLAINS_TOPIC = re.compile(
    r"\s*(?:This|The|These)(?: (?:errors?|exceptions?|failures?|issues?|messages?|problems?))?"
    r" (?:(?:can |may |usually |typically |often )?(?:happens?|occurs?|appears?)|indicates?|means?"
    r"|(?:is|are) (?:usually |typically |often )?(?:caused|thrown|raised|reported|due))\b"
)
_BULLETS = "\t *-"
_HEADING = re.compile(r"\s*#{1,6} |\s*={2,} ")
_THROWABLE_HEADING = re.compile(
    r"\s*#{1,6} (?:Caused by: )?(?:[a-z]\w{0,60}\.){1,12}[A-Z]\w{0,80}(?:Exception|Error)\b"
)
_UNDERLINE = re.compile(r"[=\-~^]{4,}\s*")
# A heading that asks about a message, such as "What does `Connection refused` mean?".
_QUESTION_ABOUT = re.compile(
    r"\s*#{1,6} (?=.*\?\s*$).*(?:`[^`]+`|\"[^\"]+\"|\w(?:Exception|Error)\b)"
)
_QUESTION = re.compile(r"\s*#{1,6} (?:Q\d{0,3}\s?[:.]|.*\?\s*$)")
# Section labels of a troubleshooting guide: symptoms and solutions, also in Chinese, Japanese,
# Korean, German, French, Spanish, Portuguese, and Russian.
_LABEL_END = r"(?<=\w)(?:[\s:\uff1a*_]*$|[:\uff1a]?\*\*|\*\*[:\uff1a])"
_SYMPTOM = re.compile(
    r"[\s>#*_-]*(?:symptoms?|scenario|problems?|(?:root )?causes?(?: analysis)?|reasons?"
    r"|症状|现象|問題|问题|原因|증상|문제|원인|symptome?|ursachen?|symptômes?|problèmes?"
    r"|síntomas?|sintomas?|problemas?|causas?|симптом\w?|проблем\w|причин\w)"
    rf"(?: \(\w{{1,20}}\))?{_LABEL_END}",
    re.IGNORECASE,
)
_SOLUTION = re.compile(
    r"[\s>#*_-]*(?:solutions?|resolutions?|fix(?:es)?|workarounds?|remed(?:y|ies)|mitigations?"
    r"|remediations?|what to do|actions?|recommendations?|解法|解决(?:方案|方法|办法)?"
    r"|处理(?:方法)?|解決(?:策|方法)?|対処(?:法|方法)?|対策|해결(?:책|방법| 방법)?|조치"
    r"|lösung(?:en)?|abhilfe|résolution|solución|soluciones|solução|soluções|решени[ея])"
    rf"(?: (?:steps?|plan))?{_LABEL_END}",
    re.IGNORECASE,
)
_MIN_SOLUTIONS = _MIN_THROWABLE_HEADINGS = _MIN_QUESTIONS_ABOUT = 2
# The first line of a runbook, a test plan, a changelog, or a similar document.
_GUIDE_TITLE = re.compile(
    r"\b(?:runbook|playbook|test (?:plan|cases?)|troubleshooting|faq|cheat ?sheet"
    r"|known (?:errors|issues|problems)|error (?:catalog(?:ue)?|codes|reference)"
    r"|acceptance (?:tests?|criteria)|change ?log|release notes)\b|排障|排错|故障(?:排查|处理)|手册"
    r"|\b(?:notas (?:da|de la|de) (?:versão|versión|lançamento)|versionshinweise|änderungsprotokoll"
    r"|notes de version|journal des modifications|note di rilascio"
    r"|registro de (?:cambios|alterações))\b|(?:примечания|заметки) к (?:выпуску|релизу|версии)"
    r"|(?:更新|变更)日志|发布说明|手順書|ランブック|リリースノート|変更履歴|런북|릴리스 노트",
    re.IGNORECASE,
)
# A release note entry: a list item that starts with an issue key.
_RELEASE_NOTE = re.compile(r"\s*(?:<li>|[-*+])\s*\[?(?:<a [^>]{1,200}>|\[)?[A-Z]{3,12}-\d{1,6}\b")
_MANUAL_HEADINGS = 3
_MIN_QUESTIONS = _MIN_REFERENCES = 3
_MIN_NOTES = 5


def is_document(lines: Sequence[str]) -> bool:
    """Whether ``lines``, the head of a file, explain failures but do not report one.

    The caller must first check that the head contains few or no log headers.
    """
    filled = [line for line in lines[:_MAX_LINES] if line.strip()]
    kinds = {kind_of(_MARK.sub("", line)) for line in filled}
    if LineKind.FRAME not in kinds and (_is_reference(filled) or _is_labelled(filled)):
        return True
    if not filled or kinds & _OF_A_TRACE or any(map(_is_listed_frame, filled)):
        return False
    return (
        any(_DIFF.match(line) for line in filled)
        or _is_configuration(filled)
        or _is_code(filled)
        or _is_table(filled)
        or any(_ANSWER.match(line) for line in filled)
        or _is_titled(filled)
        or _is_guide(filled)
    )


def _is_listed_frame(line: str) -> bool:
    """Whether the line is a list item with a stack frame, which lacks the word "at"."""
    return whole_frame(line.lstrip(_BULLETS)) is not None


def _is_configuration(lines: Sequence[str]) -> bool:
    """Whether the lines are alert rules, or config options, possibly with comments.

    If the lines contain options, at most half of them may be other text than options and comments,
    and this text must not mention a failure.
    """
    options, rules = _count(_OPTION, lines), _count(_RULE, lines)
    others = [line for line in lines if not (_OPTION.match(line) or _COMMENT.match(line))]
    if options:
        return 2 * len(others) <= len(lines) and not any(FAILURE.search(line) for line in others)
    return rules >= 3 and any("expr:" in line for line in lines)


def _is_code(lines: Sequence[str]) -> bool:
    of_code = sum(
        _CODE.match(line) is not None and not line.lstrip().startswith(('"', "{", "}"))
        for line in lines
    )
    return of_code >= 2 and 2 * of_code >= len(lines)


def _is_table(lines: Sequence[str]) -> bool:
    """Whether the lines are table rows below a header that marks them as explanations.

    Text outside of the table must not mention a failure.
    """
    rule = next((i for i, line in enumerate(lines) if _TABLE_RULE.match(line)), 0)
    if rule == 0 or _EXPLAINS.search(lines[rule - 1]) is None:
        return False
    others = [*lines[: rule - 1], *(one for one in lines[rule:] if "|" not in one)]
    return not any(FAILURE.search(line) for line in others)


def _is_reference(lines: Sequence[str]) -> bool:
    """Whether the lines are questions and answers, release notes, or sections about throwables."""
    return (
        _count(_QUESTION, lines) >= _MIN_QUESTIONS
        or _count(_QUESTION_ABOUT, lines) >= _MIN_QUESTIONS_ABOUT
        or _count(_RELEASE_NOTE, lines) >= _MIN_NOTES
        or _count(_THROWABLE_HEADING, lines) >= _MIN_THROWABLE_HEADINGS
        or _count(_HEADING, list(filter(_THROWABLE.search, lines))) >= _MIN_REFERENCES
    )


def _is_labelled(lines: Sequence[str]) -> bool:
    """Whether the lines are a guide with labeled symptoms and solutions, and no user's report."""
    solutions = _count(_SOLUTION, lines)
    is_guide = solutions >= _MIN_SOLUTIONS or (solutions and _count(_SYMPTOM, lines))
    # A title may be the question that the guide answers.
    body = (
        line
        for line, following in pairwise((*lines, ""))
        if not (_HEADING.match(line) or _UNDERLINE.fullmatch(following))
    )
    return bool(is_guide) and not any(map(_REPORT_WORDING.search, body))


def _is_titled(lines: Sequence[str]) -> bool:
    """Whether the first line is the title of a guide, and no line is a user's report."""
    title = lines[0]
    if _GUIDE_TITLE.search(title) is None or FAILURE.search(title) is not None:
        return False
    return not any(map(_REPORT_WORDING.search, lines))


def _count(pattern: re.Pattern[str], lines: Sequence[str]) -> int:
    return sum(pattern.match(line) is not None for line in lines)


def _is_guide(lines: Sequence[str]) -> bool:
    """Whether every failure mentioned in the prose is hypothetical, explained, or resolved."""
    # In headings, and in a text with several headings, words such as "failed job" are only the
    # topic. A throwable still counts as a failure.
    is_manual = _count(_HEADING, lines) >= _MANUAL_HEADINGS
    prose = [line for line, below in pairwise((*lines, "")) if not _is_topic(line, below)]
    cases = len(lines) - len(prose)
    for sentence in _SENTENCE_END.split("\n".join(prose)):
        found = FAILURE.search(sentence)
        is_subject = is_manual or _HEADING.match(sentence) is not None
        if found is None or (is_subject and not _THROWABLE.search(sentence)):
            cases += is_manual and _EXPLAINED.search(sentence) is not None
            continue
        if _REPORT_WORDING.search(sentence) is not None or not _is_case(sentence, found.start()):
            return False
        cases += 1
    return cases > 0


def _is_topic(line: str, below: str) -> bool:
    """Whether the line names a failure that the line below it explains."""
    return _TOPIC.fullmatch(line) is not None and _EXPLAINS_TOPIC.match(below) is not None


def _is_case(sentence: str, at: int) -> bool:
    # Error messages also contain words such as "if", so conditions count only before the failure.
    before = sentence[:at]
    return any(pattern.search(before) for pattern in (_CONDITION, _RESOLVED)) or bool(
        _EXPLAINED.search(sentence)
    )

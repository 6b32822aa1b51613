"""Strings that attack a page, and a result in which every free text field holds one of them."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Union, get_args, get_origin, get_type_hints

from flink_triage.model import Result

HARMLESS = "harmless words"

STRINGS = {
    "HTML script": "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>",
    "HTML attribute break": 'x" onmouseover="alert(1)" y=\'z\' `q`',
    "HTML comment and CDATA": "<!-- <![CDATA[ ]]> --> </title></style></script><svg/onload=x>",
    "jinja": "{{ 7 * 7 }}{% raw %}{# x #}{{ page.__class__.__mro__ }}",
    "javascript link": "javascript:alert(document.domain)//https://a.example/",
    "ANSI colours, title and clipboard": "\x1b[2J\x1b[31mred\x1b]0;t\x07\x1b]52;c;ZWNobw==\x1b\\ x",
    "eight-bit escape codes": "a\x9b31mb\x9d0;title\x9cc\x85d",
    "bidi override": "user\u202e gnp.exe\u202c \u2066x\u2069 \u200f",
    "line and paragraph separators": "one\u2028two\u2029three\u0085four\x0bfive\x0csix",
    "NUL and other controls": "a\x00b\x01c\x7fd\x08e\re",
    "Markdown": "# h ``` ~~~ [a](javascript:x) ![i](http://e) **b** <b> | - 1. x `` ` &lt; \\",
    "Markdown fence": "````````` text `````",
    "mentions and links": "@everyone #1 GH-2 o/r#3 https://github.com/o/r/issues/4 www.x.example",
    "lone surrogates and noncharacters": "a\ud800b\udfffc\uffffd\ufeffe\U000e0041f",
    "zero width and fillers": "a\u200bb\u2060c\u00add\u3164e\u034ff",
    "wide characters without a blank": "磁盘空间不足" * 60,
    "a very long word": "x" * 500,
    "text of options": "key: value # comment\tand: {a: [b, *c]} !!python/object",
}


def filled(result: Result, text: str) -> Result:
    """The result with every string that is not one of a fixed set replaced by ``text``."""
    replaced = _filled(Result, result, text)
    assert isinstance(replaced, Result)
    return replaced


def _filled(kind: Any, value: Any, text: str) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin in (Union, types.UnionType):
        (kind,) = [argument for argument in arguments if argument is not type(None)]
        return _filled(kind, value, text)
    if kind is str:
        return text
    if origin is tuple:
        return tuple(_filled(arguments[0], item, text) for item in value)
    if origin is not None and isinstance(value, Mapping) and value:
        return dict.fromkeys([text], _filled(arguments[1], next(iter(value.values())), text))
    if is_dataclass(value) and not isinstance(value, type):
        hints = get_type_hints(type(value))
        return replace(
            value,
            **{
                field.name: _filled(hints[field.name], getattr(value, field.name), text)
                for field in fields(value)
            },
        )
    return value

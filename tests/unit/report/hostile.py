"""Strings that attack a page, and results that contain them in every free-text field."""

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
    "script in capitals": "<SCRIPT>alert(1)</SCRIPT><ScRiPt SRC=//x.example></sCrIpT>",
    "script cut by a slash": "<script/x>alert(1)</script ><script\t>alert(1)</script\n>",
    "script without an end": "<script>alert(1)//<script>alert(1)<!--",
    "script split in two": "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "image": "<img src=x onerror=alert(1)><img src=//x.example/a.png srcset=//x.example/b>",
    "image in quotes": "\"><img src=x onerror=\"alert(1)\"> '><img src=x onerror='alert(1)'>",
    "svg": "<svg onload=alert(1)><animate onbegin=alert(1) attributeName=x dur=1s></svg>",
    "svg that ends ours": "</text></g></svg></figure><svg><script>alert(1)</script></svg>",
    "svg title": "</title><script>alert(1)</script><title>",
    "svg use and image": "<svg><use href=//x.example/a.svg#b /><image href=//x.example/c /></svg>",
    "foreign object": "<svg><foreignObject><iframe srcdoc='<script>alert(1)</script>'>",
    "math": "<math><mtext><mglyph><style><!--</style><img src=x onerror=alert(1)>",
    "frames": "<iframe src=javascript:a()></iframe><frame><object data=//x.example>",
    "embed and applet": "<embed src=//x.example><applet code=x><portal src=//x.example>",
    "body and focus": "<body onload=a()><input autofocus onfocus=a()><marquee onstart=a()>",
    "details that open": "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "end of details": "</summary></details></section></article></main></body></html>",
    "end of a table": "</code></td></th></tr></tbody></table></div></dl></ol></ul>",
    "end of a choice": "</option></select></label></fieldset><option value=x selected>",
    "end of text": "</pre></textarea></noscript></template></xmp></plaintext>",
    "plain text for ever": "<plaintext><xmp><listing><noframes><noembed><textarea>",
    "base and link": "<base href=//x.example/><link rel=stylesheet href=//x.example/a.css>",
    "refresh": "<meta http-equiv=refresh content='0;url=//x.example'><meta http-equiv=x>",
    "style": "<style>@import '//x.example';*{background:url(//x.example/p)}</style>",
    "style attribute": '" style="background:url(//x.example/p);position:fixed;inset:0',
    "form": "<form action=//x.example><button formaction=javascript:alert(1)>go</button></form>",
    "data link": "data:text/html,<script>alert(1)</script>",
    "link with tabs": "java\tscript:alert(1) jav&#x09;ascript:alert(1) \x01javascript:alert(1)",
    "link with a user": "https://flink.apache.org@x.example/ https://x.example\\@flink.apache.org",
    "character references": "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x&#62; &amp;amp;",
    "references without an end": "&lt &#x3c &#60 &copy &notit; &NotEqualTilde;",
    "attribute without quotes": "x onmouseover=alert(1) autofocus tabindex=1",
    "attribute in backticks": "` onmouseover=alert(1) `` ${alert(1)} `",
    "event names": "onerror onload onclick=\"alert(1)\" onfocus='alert(1)' onbegin=`a`",
    "ids of the page": "verdicts filter-place filter-words tools coverage __proto__ constructor",
    "names that shadow the document": "<a id=tools><form name=getElementById><img name=body>",
    "prototype": "__proto__[x]=1&constructor.prototype.y=2",
    "custom element": "<x-a onclick=alert(1) is=y slot=z part=w></x-a>",
    "processing instruction": "<?xml version='1.0'?><?php a() ?><!DOCTYPE x [<!ENTITY y 'z'>]>",
    "UTF-7": "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "overlong and wide angle brackets": "\uff1cscript\uff1ea()\uff1c/script\uff1e \u2039b\u203a",
    "template of a browser": "${a()} #{a()} <%= a() %> {{constructor.constructor('a')()}}",
    "twig and mustache": "{{{x}}} {{&x}} {%- include '/etc/passwd' -%} {{ self._x }}",
    "format strings": "%s %n %(x)s {0} {x.__class__} $x ${x} $(x) !x",
    "a spreadsheet": '=HYPERLINK("//x.example") +1+1 -1 @SUM(1) \t=1',
    "a shell": "; rm -rf / # $(reboot) `reboot` && || > /dev/sda",
    "a workflow command": "::error file=x,line=1::y%0A::set-output name=a::b ::stop-commands::z",
    "JSON that breaks out": '"}]};alert(1);//\\u003c/script\\u003e',
}


def filled(result: Result, text: str) -> Result:
    """Replaces every string in the result with ``text``, except for strings from a fixed set."""
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

"""Regexes that ``redact`` uses to find secrets in text, and patterns for a quick test.

In most regexes, the group ``head`` is the text to keep, and ``value`` the text to replace. Most
repetitions are bounded, and no repetition is nested in another one that matches the same text.
Tokens that are recognized without a key are defined in ``secret_tokens``.
"""

from __future__ import annotations

import re

from flink_triage.logs.text.secret_encodings import ENCODED_LITERALS
from flink_triage.logs.text.secret_tokens import quick_patterns

# The start of a whole word, or of a word after "-D", the JVM option that sets a system property.
_ALONE = r"(?:(?<![A-Za-z])|(?<=-D))"
# Key words: the value of a key that ends in one of these words, or in one with a suffix, is secret.
# The words come from Flink (GlobalConfiguration.SENSITIVE_KEYS), connectors, cloud providers, and
# languages other than English.
_PASSWORDS = (
    rf"pass(?:word|wd|wort|phrase|code)|(?:store|key)pass|{_ALONE}pwd|secret"
    rf"|kennwort|contrase(?:ñ|n)a|mot[ _-]?de[ _-]?passe|{_ALONE}(?:mdp|senha|parola|has[łl]o)"
    r"|wachtwoord|lösenord|şifre|парол[ья]|密码|密碼|口令|密钥|密鑰|秘钥|令牌|パスワード|비밀번호"
)
# Words before "key". No letter may precede them, because longer words also end in them.
_OWNERS = "auth|db|database|priv|client|ibm|iam|cloud(?:ant)?|softlayer|cl|sl"
_KEYS = (
    r"secret[-_. ]?(?:access[-_. ]?)?key|secret[-_.]?id|api[-_. ]?(?:key|token|secret)"
    r"|(?:shared[-_. ]?)?access[-_. ]?key(?:[-_. ]?id)?|client[ ]secret"
    r"|account[-_. ]?key[\w.-]{0,128}|private[-_.]?key|service[-_.]?key|shared[-_.]?key"
    r"|(?:encryption|signing|master|routing|license|webhook|hmac)[-_.]?key"
    rf"|(?<![A-Za-z])(?:{_OWNERS})[-_.]?key|azure[-_.]sas[-_.][\w.-]{{1,128}}"
    r"|auth[-_.]?params|basic[-_.]?auth(?:[-_.]user[-_.]?info|[-_.]credentials)?"
    r"|http[-_.]headers|session[-_.]?cookie|(?<![A-Za-z])x-(?:[a-z]{1,16}-){1,3}token"
    r"|(?:access|auth|refresh|session|security|client|bearer|sas|oauth|private|bot|cloudant"
    r"|softlayer|(?<![A-Za-z])id)[-_.]?token"
)
_WORDS = rf"{_KEYS}|{_PASSWORDS}"
# Words that also occur in ordinary text; `redact` checks the separator and the value.
_SHY_WORDS = rf"{_ALONE}(?<!fencing\ )token|{_ALONE}(?:sas|sig|pass|pw)|signature|credential"
# Suffixes of a key word: a plural, a number, a word such as "Value" or "_new", or the key of a map
# of options, such as ".orders". A suffix that denotes a property of the secret, as in
# "password.file", is excluded.
_ABOUT = (
    r"file|path|location|ur[il]|endpoint|class|provider|type|name|enabled|expir\w*|refresh|renew\w*"
    r"|manager|length|m(?:in|ax)|algorithm|encoder|validator|callback|policy|timeout|interval|retry"
    r"|services?|store|ref|version|format|encoding|field|column|header|dir|cache|ttl|size|count"
)
_SUFFIX = (
    r"(?:s|[-_. ]?\d{1,3})?"
    r"(?:[-_.]?(?:value|val|text|string|str|data|base64|b64|plain|clear|raw|enc|hash|old|new|current"
    r"|previous|default|primary|secondary|prod|dev|test)(?![a-z])){0,2}"
    rf"(?:\.(?!(?:{_ABOUT})\b)(?-i:[a-z0-9_-]{{1,32}})){{0,3}}"
    r"(?:\[[\w.-]{0,32}\]|\(\w{1,16}\))?"
)
_QUOTE = r"(?:\\{0,7}[\"']|%22|&quot;)"
_SIGN = r"(?:[=-]>|:=|={1,3}(?![=>])|:(?![=:])|::(?=[\s\"'])|%3D|%3A)"
_SEPARATOR = (
    rf"(?:[ \t]{{0,64}}{_SIGN}[ \t]{{0,64}}"
    # The value may be on the next line; the newline may be escaped as the two characters "\n".
    r"(?:(?<==)(?:\\?\r?\n|\\{1,2}n)[ \t]{0,64}(?!at[ ]|Caused[ ]|\\t))?)"
)
# An unquoted value ends at whitespace. It ends at a delimiter only if the next pair or the end of
# the text follows, because passwords may also contain delimiters.
_BARE = (
    # The value may continue on the next line, if both the backslash and the newline are escaped.
    r"(?:\\{2}n[ \t]{1,64}(?!at[ ])|[^\s,;&\"')}\]<\\]"
    r"|\\(?!n[\w.-]{1,64}=)"
    r"|[,;&](?!\s|\Z|[\w.%-]{1,64}[=:])"
    r"|[)}\]](?![\s,;)}\]]|\Z)){1,4096}"
)
# Everything in brackets: a list, a map, or a structured value.
_GROUP = (
    r"(?:\[(?:[^\[\]\n]|\[[^\[\]\n]{0,64}\]){1,1024}\]"
    r"|\{[^{}\n]{1,1024}\}[^\s,;&\"')}\]<]{0,1024}|\([^()\n]{1,1024}\)|<[^<>\n]{1,1024}>)"
)
# A complete placeholder for a hidden or missing value. It must be complete, because a password may
# start like a placeholder.
_HIDDEN = (
    r"(?!(?:\*{2,}|\$\{[^}\s]{1,128}\}|\{\{[^}\n]{1,128}\}\}|[\[<]?(?:hidden|redacted|masked)[\]>]?"
    r"|x{4,}|null|none|true|false|yes|no|undefined|missing|(?:un|not[ ])set|<[a-z][a-z _-]{0,40}>)"
    r"(?=[\s,;&\"'\\)}\]<]|\Z)|\[REDACTED:)"
)
# A word that does not occur in sentences: at least four characters with a digit, and not a date.
_LIKELY = r"(?!\d{4}-\d\d)(?=[^\s,\"')\]]{0,256}\d)(?=[^\s,\"')\]]{4})"

KEYED = re.compile(
    rf"""
    (?P<word>{_WORDS}|(?P<shy>{_SHY_WORDS}))
    (?P<between>{_SUFFIX}(?P<close>{_QUOTE}\]?)?{_SEPARATOR})
    (?:
        (?P<open>{_QUOTE}){_HIDDEN}
        # At each position, only one alternative can match, because a backslash is always matched
        # with the character that it escapes.
        (?P<quoted>(?:(?!(?P=open))(?:[^\\\n]|\\[^\n]|\\(?=\n|\Z))){{1,4096}})
        (?P<end>(?P=open)|(?=\n|\Z)|)
      | (?!{_QUOTE}|\\?\r?\n|\\\Z){_HIDDEN}(?P<bare>{_GROUP}|{_BARE})
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS_IN_COLON = rf"{_QUOTE}?[ \t]{{0,4}}:[ \t]{{0,4}}(?:[|>][-+]?)?"
_ANY_WORD = rf"(?:{_WORDS}|{_ALONE}(?:token|sas|pass))"
_REST = r"[\w.-]{0,32}"
_ARGUMENTS = r"[^\n]{0,400}?[ ]"
_VALUE = r"(?P<value>[^\s\"']{1,1024})"

# Separators between word and value other than "=" and ":", each with the value and the text after
# it.
_JOINED = (
    # <password>X</password>, <entry key="password">X</entry>, <name>…</name><value>X</value>
    (
        rf"[\w.-]{{0,64}}(?:</name>(?:\s|\\n){{0,64}}<value>|{_QUOTE}?[^<>\n]{{0,64}}>)"
        r"[ \t]{0,16}(?:<!\[CDATA\[[ \t]{0,16})?",
        r"[^<\s][^<\]]{0,4096}",
        r"(?=\]\]>|</)",
    ),
    # In YAML and JSON, a long value may be on the line after its key.
    (
        rf"{_ENDS_IN_COLON}(?:\n|\\n)[ \t]{{1,64}}{_QUOTE}?"
        r"(?!at[ ]|Caused[ ]by|Suppressed|\.\.\.|[\w.-]{1,64}:)",
        r"[^\s\"']{1,4096}",
        "",
    ),
    # The separator is on the next line.
    (
        rf"{_QUOTE}?[ \t]{{0,16}}(?:\n|\\n)[ \t]{{0,64}}[=:][ \t]{{0,8}}{_QUOTE}?",
        r"[^\s\"']{1,4096}",
        "",
    ),
    # Columns separated by spaces or bars.
    (
        rf"{_REST}{_QUOTE}?(?:[ ]{{3,64}}|[ ]?\t{{1,8}}|[ ]?\|[ ]?){_LIKELY}",
        r"[^\s|\"']{1,1024}",
        "",
    ),
    # Password(X), setPassword("X"), but not a stack frame
    (
        rf"[(\[{{]{_QUOTE}?(?![\w$.]{{1,256}}:\d{{1,6}}\)){_LIKELY}",
        r"[^\s\"'),\]}\\]{1,1024}",
        rf"(?={_QUOTE}?[)\]}}])",
    ),
    # `password is X`, `using password X`
    (
        r"s?(?:[ ](?:is|was|are|to|set[ ]to|changed[ ]to|equals?)|(?<=(?:with|sing)[ ]password))"
        rf":?[ ]{_QUOTE}?{_LIKELY}",
        r"[^\s\"',]{1,1024}",
        "",
    ),
)
# One regex for all key words, because the search for the words dominates the running time.
JOINED = re.compile(
    rf"(?P<word>{_ANY_WORD})(?:"
    + "|".join(
        rf"{between}{_HIDDEN}(?P<value{number}>{value}){behind}"
        for number, (between, value, behind) in enumerate(_JOINED)
    )
    + ")",
    re.IGNORECASE,
)

# Other forms of key-value pairs; `word` is the key word of the secret.
PAIRS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # Flink prints its configuration as `Loading configuration property: s3.secret-key, X`.
        rf"(?P<head>propert(?:y|ies):[ ][\w.-]{{0,128}}?(?P<word>{_ANY_WORD})[\w-]{{0,64}},[ ])"
        rf"{_HIDDEN}(?P<value>\S[^\n]{{0,4096}})",
        # Environment variables of a pod: `- name: DB_PASSWORD` followed by `value: X`, the same in
        # JSON, or EnvVar(name=, value=).
        rf"(?P<head>(?:name|key){_QUOTE}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}?[\w.-]{{0,128}}?"
        rf"(?P<word>{_ANY_WORD}){_REST}{_QUOTE}?,?(?:\s|\\n){{0,64}}{_QUOTE}?value{_QUOTE}?"
        rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}?)"
        rf"{_HIDDEN}(?P<value>[^\s\"',;)}}\\]{{1,4096}})",
        # `--password X`, `[--password, X]`, `["--password", "X"]`, one argument per line.
        rf"(?P<head>(?<![\w-])--?[\w.-]{{0,64}}?(?P<word>{_ANY_WORD})"
        rf"(?:[ \t]{{1,8}}{_QUOTE}?|{_QUOTE}?,[ ]?{_QUOTE}?|[ \t]{{0,8}}(?:\n|\\n)[ \t]{{0,64}}))"
        rf"{_HIDDEN}(?P<value>(?!-)[^\s,\"'\]]{{1,4096}})",
        # (password, X), ["password", "X"], put("password", "X")
        rf"(?P<head>[(\[]{_QUOTE}?[\w.-]{{0,128}}?(?P<word>{_ANY_WORD}){_REST}{_QUOTE}?,[ ]?"
        rf"{_QUOTE}?){_HIDDEN}{_LIKELY}(?P<value>[^\s\"'),\]\\]{{1,1024}})(?={_QUOTE}?[)\]])",
        rf"(?P<head>login[ ]\S{{1,128}}[ ](?P<word>password)[ ]){_HIDDEN}{_VALUE}",
        rf"(?P<head>(?P<word>password|identified[ ]by)[ ]{{1,4}}{_QUOTE})"
        rf"{_HIDDEN}(?P<value>[^\s\"'\\]{{1,4096}})",
        # Commands with the flags that specify a password.
        rf"(?P<head>(?<![\w-])(?:curl\b{_ARGUMENTS}-u|--(?:proxy-)?(?P<word>user))"
        rf"[ =]{{0,2}}{_QUOTE}?[^\s:\"'\\]{{1,128}}:){_HIDDEN}(?P<value>[^\s\"'\\]{{1,1024}})",
        rf"(?P<head>(?<![\w-])(?P<word>mysql(?:dump|admin)?\b{_ARGUMENTS}-p|sshpass[ ]+-p[ ]?))"
        rf"{_HIDDEN}(?P<value>[^\s\"'-][^\s\"']{{0,1024}})",
        rf"(?P<head>(?<![\w-])(?P<word>(?:redis-cli{_ARGUMENTS}-a|ldap\w{{1,16}}{_ARGUMENTS}-w"
        rf"|(?:(?:docker|podman|registry)[ ]login|beeline|mongo\w{{0,10}}){_ARGUMENTS}-p"
        rf"|(?:sqlcmd|bcp|tsql){_ARGUMENTS}(?-i:-P)|smbclient{_ARGUMENTS}-U[ ][^\s%]{{1,64}}%))"
        rf"[ ]{{0,4}}{_QUOTE}?){_HIDDEN}(?P<value>[^\s\"'-][^\s\"']{{0,1024}})",
        rf"(?P<head>(?<![\w-])-(?P<word>pass(?:in|out)?)[ ]{{1,4}}pass:){_HIDDEN}{_VALUE}",
        rf"(?P<head>--(?P<word>from-literal)[ =]{{1,4}}{_QUOTE}?[\w.-]{{1,128}}=){_HIDDEN}{_VALUE}",
        rf"(?P<head>(?<!\w)(?:set|setenv|put)[ ][\w.-]{{0,128}}?(?P<word>{_ANY_WORD}){_REST}[ ])"
        rf"{_HIDDEN}{_LIKELY}{_VALUE}",
        rf"(?P<head>(?<![\w-])(?P<word>sqlplus)[ ](?:-\w{{1,8}}[ ]){{0,4}}[^\s/@]{{1,64}}/)"
        rf"{_HIDDEN}(?P<value>[^\s@]{{1,256}})(?=@)",
        # A curl header whose name marks it as a credential.
        rf"(?P<head>[ ](?:-H|--header)[ =]{{0,2}}{_QUOTE}?[\w-]{{0,64}}?"
        rf"(?P<word>auth|token|key|secret)[\w-]{{0,32}}:[ ]{{0,4}}){_HIDDEN}"
        r"(?P<value>[^\s\"'][^\n\"']{0,4096})",
        rf"(?P<head>jdbc:(?P<word>oracle):\w{{1,16}}:[^\s/:@]{{1,128}}/){_HIDDEN}"
        r"(?P<value>[^\s@]{1,256})(?=@)",
        # .dockerconfigjson contains user and password in base64.
        rf"(?P<head>{_QUOTE}(?P<word>auth){_QUOTE}[ ]?:[ ]?{_QUOTE})"
        r"(?P<value>(?=[A-Za-z+/]{0,256}[0-9=])[A-Za-z0-9+/]{8,4096}={0,2})(?=[\"'\\])",
        # The private members of a JSON Web Key.
        rf"(?P<head>(?P<word>kty){_QUOTE}?[^\n]{{0,512}}?{_QUOTE}(?:d|k|p|q|dp|dq|qi){_QUOTE}"
        rf"[ ]?:[ ]?{_QUOTE})(?P<value>[\w-]{{16,4096}})",
        rf"(?P<head>(?<![\w-])(?:set-)?(?P<word>cookie)2?{_QUOTE}?[ ]?[:=][ ]?(?:\[|{_QUOTE})?)"
        rf"{_HIDDEN}(?P<value>[\w.-]{{1,128}}=[^\n\"'\]]{{1,4096}})",
        # A query parameter whose name denotes a secret only in a URL.
        r"(?P<head>[?&](?P<word>key|code|auth)=)(?P<value>(?=[^\s&]{0,256}\d)[^\s&\"'<>]{12,1024})",
    )
)
AUTHORIZATION = re.compile(
    rf"(?P<head>authorization(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}"
    rf"(?:\[(?!REDACTED:))?(?:{_QUOTE})?)(?!\[\[REDACTED:)"
    rf"{_HIDDEN}(?P<value>(?:[A-Za-z][\w-]{{1,32}}[ ])?(?!\[REDACTED:)[^\s\"',;<\]]{{4,8192}})",
    re.IGNORECASE,
)
SCHEME = re.compile(
    r"(?P<head>\b(?:Bearer|Basic)[ ])(?P<value>(?=[A-Za-z_.~+/-]{0,256}[0-9=])"
    r"[A-Za-z0-9._~+/-]{8,8192}={0,2})",
    re.IGNORECASE,
)
# A password in a URL extends to the last "@" of the word, because passwords may contain "@" and
# "/". A port is not a password.
URL = re.compile(
    r"(?P<head>://[^\s/:@\"'<>\[]{0,256}:)(?!\d{1,5}[/?\#,;])"
    rf"{_HIDDEN}(?P<value>[^\s\"'<>]{{1,1024}})(?=@[\w\[.-])"
)
# A token in the user part of a URL. Schemes that have a bucket or container there are not listed.
URL_USER = re.compile(
    r"(?P<head>(?<![\w.])(?:https?|ftps?|git|ssh|nats|rediss?|amqps?|wss?|smtps?|mongodb(?:\+srv)?)"
    r"://)(?P<value>(?=[^\s/@]{0,256}\d)(?=[^\s/@]{0,256}[A-Za-z])[^\s/:@\"'<>\[]{16,512})(?=@)",
    re.IGNORECASE,
)

PEM = re.compile(
    r"(?P<head>-----BEGIN[A-Z ]{0,32}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----)(?!\[REDACTED:)"
    r"(?P<value>[^-]{1,65536}(?:-{1,4}[^-]+){0,256})(?=-----END|\Z)"
)
_LINE_END = r"(?:\r?\n|\\{1,2}r?\\{0,2}n)"
# The rest of a key whose first lines were cut off: lines of base64, possibly escaped, followed by
# the end of a key. A run of lines is scanned only once.
PEM_REST = re.compile(
    r"(?P<head>(?<![A-Za-z0-9+/=]))"
    rf"(?P<value>(?:[A-Za-z0-9+/=]{{1,80}}+{_LINE_END}[ \t]{{0,16}}+)++)"
    r"(?P<end>(?=-----END[A-Z ]{0,32}PRIVATE[ ]KEY))?"
)
# Full lines of base64 without BEGIN and END, and the private part of a PuTTY key. Hexadecimal
# digests are excluded, because they also have 64 characters.
_FULL_LINE = r"(?![0-9a-fA-F]{64})[A-Za-z0-9+/]{64}(?![A-Za-z0-9+/])"
PEM_LINES = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9+/=]))"
    rf"(?P<value>{_FULL_LINE}(?:{_LINE_END}[ \t]{{0,16}}{_FULL_LINE}){{2,256}}"
    rf"(?:{_LINE_END}[ \t]{{0,16}}[A-Za-z0-9+/]{{4,63}}={{0,2}}(?![^\s\\]))?)"
)
PUTTY = re.compile(
    r"(?P<head>Private-Lines:[ ]\d{1,3})"
    rf"(?P<value>(?:{_LINE_END}[A-Za-z0-9+/=]{{4,400}}){{1,256}})"
)

# The end of a line that contains the key of a secret whose value is on the next line.
GOES_ON = re.compile(
    rf"(?:=|{_ANY_WORD}{_REST}(?:</name>|{_QUOTE}?,?|{_ENDS_IN_COLON}))"
    r"[ \t\r\\]{0,16}\Z",
    re.IGNORECASE,
)
# The first line of a YAML block scalar; all lines of the block are the value.
BLOCK = re.compile(
    rf"(?P<indent>[ \t]{{0,64}})[^\n]{{0,256}}?(?P<word>{_ANY_WORD}){_REST}{_QUOTE}?:"
    r"[ ]{1,4}[|>][-+\d]{0,2}[ \t]{0,16}\Z",
    re.IGNORECASE,
)
# A word alone on its line that can only be the rest of a value.
REST = re.compile(
    r"(?P<head>[ \t]{0,64})(?P<value>(?=[^\s]{0,256}\d)(?=[^\s]{0,256}[A-Za-z])"
    r"[A-Za-z0-9+/_.~!@#$%^&*-]{6,4096}={0,2}\\?)(?P<tail>[\"']?[,;]?[ \t\r]{0,16})\Z"
)
# The name of a column that contains secrets.
COLUMN = re.compile(rf"(?:\A|[^A-Za-z]|[a-z](?=[A-Z]))(?P<word>{_ANY_WORD})s?\Z", re.IGNORECASE)

_KEY = re.compile(rf"(?:{_WORDS}|(?<![A-Za-z])(?:token|credential)|jaas\.config)", re.IGNORECASE)


def is_secret_key(key: str) -> bool:
    """Whether an option may contain a secret, because a key word occurs anywhere in its name."""
    return _KEY.search(key) is not None


# --- the quick pass ----------------------------------------------------------------------------

# Case-insensitive patterns that, together with MAYBE_CASED, detect text that may contain secrets.
# Only such text is searched with the regexes above.
MAYBE = (
    rb"pass(word|wd|wort|phrase|code)|kennwort|wachtwoord|(^|[^a-z]|-d)(mdp|senha|parola)|mot.?de.?passe",
    rb"(store|key)pass\s",
    rb"secret",
    rb"credentials?[\w.\])\[(-]{0,32}[\x22'\\]{0,8}\]?\s{0,64}[:=,]",
    rb"(api|access|account|private|service|shared)[-_. ]?key",
    # Does not match RocksDBKeyedStateBackend.
    rf"(^|[^a-z])({_OWNERS})[-_.]?key".encode(),
    rb"(encryption|signing|master|routing|license|webhook|hmac)[-_.]?key",
    rb"azure[-_.]sas[-_.]",
    rb"auth[-_.]?params|basic[-_.]?auth|http[-_.]headers|session[-_.]?cookie",
    rb"api[-_. ]?token",
    rb"(token|sas|sig|signature|pwd)[\w.\])\[(-]{0,32}(\\{0,7}[\x22']|%22|&quot;)?\]?"
    rb"(\s{0,64}([=:,;|<>(-]|%3d|%3a|is |was |set )|\s\s|\t|\n|$)",
    rb"(^|[^a-z]|-d)(pass|pw)[\w.-]{0,16}(\\{0,7}[\x22']|%22|&quot;)?\s{0,64}([=:,;|(-]|%3d|%3a)",
    rb"--?[\w.-]{0,64}(token|sas|pwd|pass)[\x22'\\]{0,4}[\s,]",
    rb"name[\x22'\\]{0,4}\s?[:=]\s?[\x22'\\]{0,4}[\w.-]{0,128}(token|sas|pwd|pass)",
    rb"identified by",
    rb"curl.* -[uh]|--(header|(proxy-)?user)[ =]|-pass(in|out)? ",
    rb"(mysql|beeline|mongo\w*|ldap\w+) .*-[pw]|(docker|podman|registry) login",
    rb"sshpass|redis-cli|sqlplus|smbclient|sqlcmd|bcp |tsql ",
    rb"--from-literal",
    rb"jdbc:oracle:",
    rb"[\x22']auth(\\{0,3}[\x22'])\s?:",
    rb"[\x22']kty[\x22'\\]",
    rb"cookie2?[\x22'\\]{0,4}\s?[:=]",
    rb"authorization(\\{0,3}[\x22']|%22|&quot;)?\s{0,4}([:=]|%3d|%3a)",
    rb"(bearer|basic) [a-z0-9._~+/-]{8}",
    rb"://[^\s/@:]*:[^\s]*@",
    rb"(https?|ftps?|git|ssh|nats|rediss?|amqps?|wss?|smtps?|mongodb(\+srv)?)://[^\s/:@]{16,}@",
    rb"[?&](key|code|auth)=[^\s&]{12}",
    rb"PRIVATE KEY( BLOCK)?-----|Private-Lines:",
    rb"[a-z0-9+/]{64}[\r\n\\]",
    # Names in non-Latin scripts, and disguised characters.
    *(
        word.encode()
        for word in (
            "contraseña|CONTRASEÑA|contrasena|hasło|haslo|lösenord|LÖSENORD|şifre|Şifre",
            "парол[ья]|Парол[ья]|ПАРОЛ[ЬЯ]|密码|密碼|口令|密钥|密鑰|秘钥|令牌|パスワード|비밀번호",
        )
    ),
    # In UTF-8: invisible characters, full-width letters, and a full-width sign or space after a
    # word.
    rb"\xc2\xad|\xe2\x80[\x8b-\x8f]|\xe2\x81\xa0|\xef\xbb\xbf|(\xef\xbc[\xa1-\xba]|\xef\xbd[\x81-\x9a]){3}",
    rb"(key|token|pass|pw|sas|sig)[\w.-]{0,16}(\xef\xbc[\x9a\x9d]|\xc2\xa0|\xe3\x80\x80|\xe2\x80[\x80-\x8a])",
    rb"\\u00(3d|3a|[4-7][0-9a-f])|\\x3[ad]|&#(x3[ad]|61|58|34|x22);|%25(3[ad]|22)",
)
MAYBE_CASED = (*quick_patterns(), *(literal.encode() for literal in ENCODED_LITERALS))

"""How secrets are written: the regexes by which ``redact`` knows them, and a quick test for them.

Each names what it replaces ``value`` (or is replaced as a whole) and what stays before it ``head``.
No repetition is without a bound, none stands inside another that could take the same text.
"""

from __future__ import annotations

import re

# Key words that name a secret wherever they end a key.  Flink's own list is in
# GlobalConfiguration.SENSITIVE_KEYS; the rest are those of connectors and clouds.
_WORDS = (
    r"pass(?:word|wd|phrase|code)|(?:store|key)pass|(?<![A-Za-z])pwd|secret"
    r"|credentials?(?=[\"'\\]{0,4}[ \t]?=)"
    r"|secret[-_. ]?(?:access[-_. ]?)?key|secret[-_.]?id|api[-_. ]?(?:key|token|secret)"
    r"|(?:shared[-_. ]?)?access[-_. ]?key(?:[-_. ]?id)?|client[ ]secret"
    r"|account[-_. ]?key[\w.-]{0,128}|private[-_.]?key|service[-_.]?key|shared[-_.]?key"
    r"|(?:encryption|signing)[-_.]?key|azure[-_.]sas[-_.][\w.-]{1,128}"
    r"|auth[-_.]?params|basic[-_.]?auth(?:[-_.]user[-_.]?info|[-_.]credentials)?"
    r"|http[-_.]headers|session[-_.]?cookie|(?<![A-Za-z])x-(?:[a-z]{1,16}-){1,3}token"
    r"|(?:access|auth|refresh|session|security|client|bearer|sas|oauth|(?<![A-Za-z])id)[-_.]?token"
)
# Words that also stand in ordinary text count only before "=" or inside quotes.
_SHY_WORDS = r"(?<![A-Za-z])(?<!fencing\ )token|(?<![A-Za-z])(?:sas|sig|pass|pw)|signature"
_QUOTE = r"(?:\\{0,3}[\"']|%22|&quot;)"
_SEPARATOR = (
    r"(?:[ \t]{0,8}(?:[=-]>|=|:|%3D|%3A)[ \t]{0,8}"
    # Wrapped, or wrapped and flattened to the two characters "\n".
    r"(?:(?<==)(?:\\?\r?\n|\\{1,2}n)[ \t]{0,64}(?!at[ ]|Caused[ ]|\\t))?)"
)
# Unquoted values end at blanks, and at delimiters when these are followed by what looks like the
# next pair or the end: passwords hold delimiters, too.
_BARE = (
    r"(?:[^\s,;&\"')}\]<\\]"
    r"|\\(?!n[\w.-]{1,64}=)"
    r"|[,;&](?!\s|\Z|[\w.%-]{1,64}[=:])"
    r"|[)}\]](?![\s,;)}\]]|\Z)){1,4096}"
)
# What says that it hides something, and nothing more: a password may begin with these words.
_HIDDEN = (
    r"(?!(?:\*{2,}|\$\{[^}\s]{1,128}\}|[\[<]?(?:hidden|redacted|masked)[\]>]?|x{4,}"
    r"|null|none|true|false)(?=[\s,;&\"'\\)}\]<]|\Z)|\[REDACTED:)"
)

KEYED = re.compile(
    rf"""
    (?P<word>{_WORDS}|(?P<shy>{_SHY_WORDS}))
    (?P<between>(?:[-_.]?\d{{1,3}})?(?P<close>{_QUOTE})?{_SEPARATOR})
    (?:
        (?P<open>{_QUOTE}){_HIDDEN}
        # The closing quote first; then each backslash takes what it escapes, so nothing overlaps.
        (?P<quoted>(?:(?!(?P=open))(?:[^\\\n]|\\[^\n]|\\(?=\n|\Z))){{1,4096}})
        (?P<end>(?P=open)|(?=\n|\Z)|)
      | (?!{_QUOTE}|\\?\r?\n|\\\Z){_HIDDEN}(?P<bare>{_BARE})
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS_IN_COLON = rf"{_QUOTE}?[ \t]{{0,4}}:[ \t]{{0,4}}(?:[|>][-+]?)?"
_ANY_WORD = rf"(?:{_WORDS}|(?<![A-Za-z])(?:token|sas|pass))"

# Pairs of a key and a value that are not joined by "=" or ":"; each says which word named it.
PAIRS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # `Loading configuration property: s3.secret-key, X` is how Flink prints its configuration.
        rf"(?P<head>propert(?:y|ies):[ ][\w.-]{{0,128}}?(?P<word>{_ANY_WORD})[\w-]{{0,64}},[ ])"
        rf"{_HIDDEN}(?P<value>\S[^\n]{{0,4096}})",
        rf"(?P<head>(?P<word>{_ANY_WORD})[\w.-]{{0,64}}(?:</name>(?:\s|\\n){{0,64}}<value>|>))"
        rf"{_HIDDEN}(?P<value>[^<\s][^<]{{0,4096}})(?=</)",
        # A pod's environment: `- name: DB_PASSWORD`, then `value: X`; JSON; EnvVar(name=, value=).
        rf"(?P<head>name{_QUOTE}?[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}?[\w.-]{{0,128}}?"
        rf"(?P<word>{_ANY_WORD})[\w.-]{{0,32}}{_QUOTE}?,?(?:\s|\\n){{0,64}}{_QUOTE}?value{_QUOTE}?"
        rf"[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}?)"
        rf"{_HIDDEN}(?P<value>[^\s\"',;)}}\\]{{1,4096}})",
        # YAML and JSON put a long value below its key.
        rf"(?P<head>(?P<word>{_ANY_WORD}){_ENDS_IN_COLON}(?:\n|\\n)[ \t]{{1,64}}{_QUOTE}?)"
        rf"(?!at[ ]|Caused[ ]by|Suppressed|\.\.\.|[\w.-]{{1,64}}:){_HIDDEN}"
        r"(?P<value>[^\s\"']{1,4096})",
        # `--password X`, `[--password, X]`, `["--password", "X"]`, one argument a line.
        rf"(?P<head>(?<![\w-])--?[\w.-]{{0,64}}?(?P<word>{_ANY_WORD})"
        rf"(?:[ \t]{{1,8}}{_QUOTE}?|{_QUOTE}?,[ ]?{_QUOTE}?|[ \t]{{0,8}}\n[ \t]{{0,64}}))"
        rf"{_HIDDEN}(?P<value>(?!-)[^\s,\"'\]]{{1,4096}})",
        rf"(?P<head>(?P<word>password|identified[ ]by)[ ]{{1,4}}{_QUOTE})"
        rf"{_HIDDEN}(?P<value>[^\s\"'\\]{{1,4096}})",
        r"(?P<head>(?<![\w-])(?:curl\b[^\n]{0,400}?[ ]-u|--(?:proxy-)?(?P<word>user))"
        rf"[ =]{{0,2}}{_QUOTE}?[^\s:\"'\\]{{1,128}}:){_HIDDEN}(?P<value>[^\s\"'\\]{{1,1024}})",
        r"(?P<head>(?<![\w-])(?P<word>mysql(?:dump|admin)?\b[^\n]{0,400}?[ ]-p|sshpass[ ]+-p[ ]?))"
        rf"{_HIDDEN}(?P<value>[^\s\"'-][^\s\"']{{0,1024}})",
        rf"(?P<head>jdbc:(?P<word>oracle):\w{{1,16}}:[^\s/:@]{{1,128}}/){_HIDDEN}"
        r"(?P<value>[^\s@]{1,256})(?=@)",
        # .dockerconfigjson: user and password in base64.
        rf"(?P<head>{_QUOTE}(?P<word>auth){_QUOTE}[ ]?:[ ]?{_QUOTE})"
        r"(?P<value>(?=[A-Za-z+/]{0,256}[0-9=])[A-Za-z0-9+/]{8,4096}={0,2})(?=[\"'\\])",
        rf"(?P<head>(?<![\w-])(?:set-)?(?P<word>cookie)2?{_QUOTE}?[ ]?[:=][ ]?(?:\[|{_QUOTE})?)"
        rf"{_HIDDEN}(?P<value>[\w.-]{{1,128}}=[^\n\"'\]]{{1,4096}})",
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
# The password of a URL reaches to the last "@" of the word: passwords hold "@" and "/".  A port is
# no password.
URL = re.compile(
    r"(?P<head>://[^\s/:@\"'<>]{0,256}:)(?!\d{1,5}[/?\#,;])"
    rf"{_HIDDEN}(?P<value>[^\s\"'<>]{{1,1024}})(?=@[\w\[.-])"
)
PEM_BEGIN = "-----BEGIN"
PEM = re.compile(
    r"(?P<head>-----BEGIN[A-Z ]{0,32}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----)(?!\[REDACTED:)"
    r"(?P<value>[^-]{1,65536}(?:-{1,4}[^-]+){0,256})(?=-----END|\Z)"
)
# The rest of a key whose first lines were cut off.
PEM_REST = re.compile(
    r"(?P<head>\A|\n)(?P<value>(?:[ \t]{0,16}[A-Za-z0-9+/=]{16,80}\r?\n){1,256})"
    r"(?=[ \t]{0,16}-----END[A-Z ]{0,32}PRIVATE[ ]KEY)"
)
SHAPES = re.compile(
    r"""
    (?P<jwt>(?<![\w-])eyJ[\w-]{8,8192}\.[\w-]{8,8192}\.[\w-]{0,8192})
  | (?P<awskey>(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
        (?:[ :,/]{1,3}[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/]))?)
  | (?P<github>(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{20,255}))
  | (?P<gitlab>(?<![\w-])gl(?:pat|dt|rt|cbt|ptt|ft)-[\w-]{20,255})
  | (?P<databricks>(?<![A-Za-z0-9])dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9]))
  | (?P<slack>(?<![A-Za-z0-9])xox[abeoprs]-[\w-]{10,255}
        |(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{8,255})
  | (?P<google>(?<![\w-])(?:AIza[\w-]{35}(?![\w-])|ya29\.[\w-]{20,2048}|GOCSPX-[\w-]{20,64}))
  | (?P<stripe>(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,255})
  | (?P<sendgrid>(?<![\w-])SG\.[\w-]{16,64}\.[\w-]{16,128})
  | (?P<vault>(?<![\w-])hv[sbr]\.[\w-]{20,512})
  | (?P<npm>(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36})
  | (?P<model>(?<![\w-])sk-[A-Za-z0-9][\w-]{30,255})
  | (?P<keytab>(?<![A-Za-z0-9+/])BQIA[A-Za-z0-9+/]{40,65536}={0,2})
  | (?P<hadooptoken>(?<=Ident:\ )(?:[0-9a-f]{2}\ ){8,2048}[0-9a-f]{0,2})
    """,
    re.VERBOSE,
)
# A line that ends so names a secret that stands on the next one.
GOES_ON = re.compile(
    rf"(?:=|{_ANY_WORD}[\w.-]{{0,32}}(?:</name>|{_QUOTE}?,?|{_ENDS_IN_COLON}))"
    r"[ \t\r\\]{0,16}\Z",
    re.IGNORECASE,
)

# The prefilter says "maybe" for whole texts; nearly all clean text ends here.
MAYBE = (
    rb"pass(word|wd|phrase|code)",
    rb"(store|key)pass\s",
    rb"secret",
    rb"credentials?[\x22'\\]{0,4}\s?=",
    rb"(api|access|account|private|service|shared)[-_. ]?key",
    rb"(encryption|signing)[-_.]?key",
    rb"azure[-_.]sas[-_.]",
    rb"auth[-_.]?params|basic[-_.]?auth|http[-_.]headers|session[-_.]?cookie",
    rb"api[-_. ]?token",
    rb"(token|sas|sig|signature|pwd)[\w-]{0,8}(\\{0,3}[\x22']|%22|&quot;)?\s{0,8}([=:,<>-]|%3d|%3a)",
    rb"[^a-z](pass|pw)(\\{0,3}[\x22']|%22|&quot;)?\s{0,8}([=:-]|%3d|%3a)",
    rb"^(pass|pw)\s{0,8}=",
    rb"--?[\w.-]{0,64}(token|sas|pwd|pass)[\x22'\\]{0,4}[\s,]",
    rb"name[\x22'\\]{0,4}\s?[:=]\s?[\x22'\\]{0,4}[\w.-]{0,128}(token|sas|pwd|pass)",
    rb"identified by",
    rb"curl.{1,400} -u|--(proxy-)?user[ =]",
    rb"mysql.{1,400} -p|sshpass",
    rb"jdbc:oracle:",
    rb"[\x22']auth(\\{0,3}[\x22'])\s?:",
    rb"cookie2?[\x22'\\]{0,4}\s?[:=]",
    rb"authorization(\\{0,3}[\x22']|%22|&quot;)?\s{0,4}([:=]|%3d|%3a)",
    rb"(bearer|basic) [a-z0-9._~+/-]{8}",
    rb"://[^\s/@:]*:[^\s]*@",
    rb"PRIVATE KEY( BLOCK)?-----",
    rb"eyJ[\w-]{8}",
    rb"A[KS]IA[A-Z0-9]{16}",
    rb"gh[pousr]_[a-z0-9]{30}|github_pat_|gl(pat|dt|rt|cbt|ptt|ft)-[\w-]{20}",
    rb"dapi[0-9a-f]{32}",
    rb"xox[abeoprs]-|hooks\.slack\.com/",
    rb"AIza[\w-]{35}|ya29\.[\w-]{20}|GOCSPX-",
    rb"[sr]k_(live|test)_|SG\.[\w-]{16}|hv[sbr]\.[\w-]{20}|npm_[a-z0-9]{36}|sk-[a-z0-9][\w-]{30}",
    rb"BQIA[A-Za-z0-9+/]{40}",
    rb"Ident: [0-9a-f]{2} ",
)

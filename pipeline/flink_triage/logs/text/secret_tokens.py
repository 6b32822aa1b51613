"""Secrets that are recognized by their shape alone, such as tokens with the prefix of their issuer.

The quick Hyperscan pass of ``redact`` uses the same patterns, or parts of them. They contain no
lookaround and no backreferences, because Hyperscan does not support these.
"""

from __future__ import annotations

import re

_HEX = "[0-9a-f]"
_ID = "[A-Za-z0-9]"
_URL_SAFE = "[A-Za-z0-9_-]"
_NUMBER = "[MNO][DTjz][AEIMQUYcgk]"

# Kind and pattern of each token; a letter, digit, "_", or "-" must not directly precede a token,
# and a letter or digit must not directly follow it.
TOKENS: tuple[tuple[str, str], ...] = (
    # The three parts of a signed token (header, claims, signature), or five of an encrypted one.
    ("jwt", rf"eyJ{_URL_SAFE}{{8,8192}}(?:\.{_URL_SAFE}{{0,8192}}){{2,4}}"),
    # The secret key often follows its ID.
    ("awskey", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?:[ :,/]{1,3}[A-Za-z0-9+/]{40})?"),
    ("awskey", r"ABSK[A-Za-z0-9+/]{80,300}={0,2}"),
    ("alibaba", rf"LTAI{_ID}{{16,26}}"),
    ("tencent", rf"AKID{_ID}{{32}}"),
    ("google", rf"AIza{_URL_SAFE}{{35}}|GOCSPX-{_URL_SAFE}{{20,64}}"),
    ("google", rf"ya29\.[A-Za-z0-9_.-]{{20,2048}}|1//0{_URL_SAFE}{{40,512}}"),
    ("azure", r"[A-Za-z0-9+/]{86}=="),
    ("azure", r"[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.-]{31,40}"),
    ("github", r"gh[pousr]_\w{30,255}|github_pat_\w{20,255}"),
    ("gitlab", rf"gl(?:pat|dt|rt|cbt|ptt|ft|oas|imt|agent|soat)-{_URL_SAFE}{{20,255}}"),
    ("gitlab", rf"GR1348941{_URL_SAFE}{{20,50}}"),
    ("atlassian", r"AT[AC]TT3[A-Za-z0-9_=-]{40,255}|ATBB[A-Za-z0-9]{24,64}"),
    ("databricks", rf"(?:dapi|dose|dkea){_HEX}{{32}}(?:-\d)?"),
    ("slack", rf"xox[abeoprs](?:\.xox[bp])?-{_URL_SAFE}{{10,255}}|xapp-\d-{_URL_SAFE}{{10,255}}"),
    # A Discord token starts with a base64-encoded number.
    ("discord", rf"{_NUMBER}{_URL_SAFE}{{20,25}}\.{_URL_SAFE}{{6}}\.{_URL_SAFE}{{27,45}}"),
    ("telegram", rf"\d{{8,10}}:AA{_URL_SAFE}{{32,36}}"),
    ("stripe", rf"[sr]k_(?:live|test)_{_ID}{{16,255}}|whsec_[A-Za-z0-9+/=]{{24,128}}"),
    ("square", rf"sq0[a-z]{{3}}-{_URL_SAFE}{{22,60}}"),
    ("sendgrid", rf"SG\.{_URL_SAFE}{{16,64}}\.{_URL_SAFE}{{16,128}}"),
    ("mailgun", rf"key-{_HEX}{{32}}"),
    ("mailchimp", rf"{_HEX}{{32}}-us\d{{1,2}}"),
    ("twilio", rf"(?:AC|SK){_HEX}{{32}}"),
    ("vault", rf"hv[sbr]\.{_URL_SAFE}{{20,512}}"),
    ("docker", rf"dckr_(?:pat|oat)_{_URL_SAFE}{{20,64}}"),
    ("npm", rf"npm_{_ID}{{36}}"),
    ("pypi", rf"pypi-AgE{_URL_SAFE}{{50,1024}}"),
    ("rubygems", rf"rubygems_{_HEX}{{48}}"),
    ("artifactory", rf"AKCp[0-9]{_ID}{{64,80}}"),
    ("huggingface", r"hf_[A-Za-z0-9]{30,64}"),
    ("model", rf"sk-{_ID}{_URL_SAFE}{{30,255}}|gsk_{_ID}{{40,64}}|xai-{_ID}{{60,100}}"),
    ("digitalocean", rf"do[opr]_v1_{_HEX}{{64}}"),
    ("shopify", rf"shp(?:at|ca|pa|ss)_{_HEX}{{32}}"),
    ("grafana", rf"glsa_{_ID}{{32}}_{_HEX}{{8}}|glc_eyJ[A-Za-z0-9+/=]{{40,512}}"),
    ("newrelic", r"NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}"),
    ("sentry", r"sntry[su]_[A-Za-z0-9+/=_-]{40,512}"),
    ("postman", rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}"),
    ("linear", rf"lin_(?:api|oauth)_{_ID}{{40,64}}"),
    ("doppler", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,64}"),
    ("pulumi", rf"pul-{_HEX}{{40}}"),
    ("planetscale", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9._-]{32,64}"),
    ("onepassword", r"ops_eyJ[A-Za-z0-9_=-]{80,4096}"),
    ("age", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    # A Kerberos keytab starts with the bytes 05 02.
    ("keytab", r"BQIA[A-Za-z0-9+/]{40,65536}={0,2}"),
    ("hash", r"\$2[abxy]\$\d\d\$[./A-Za-z0-9]{53}"),
    ("hash", r"\$(?:1|5|6|y|apr1)\$[./=$,A-Za-z0-9]{1,64}\$[./A-Za-z0-9]{22,128}"),
)

# URLs that contain a secret. Most are webhooks, to which anyone with the URL can post. The text
# before the secret part is kept.
WEBHOOKS: tuple[tuple[str, str], ...] = (
    (r"hooks\.slack\.com/", r"(?:services|workflows|triggers)/[\w/-]{8,255}"),
    (r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/", r"[\w-]{8,255}"),
    (r"webhook\.office\.com/webhookb2/", r"[\w@/-]{8,512}"),
    (r"outlook\.office(?:365)?\.com/webhook/", r"[\w@/-]{8,512}"),
    (r"api\.telegram\.org/(?:file/)?bot", r"\d{5,12}:[\w-]{20,64}"),
    (r"open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/(?:v2/)?hook/", r"[\w-]{8,64}"),
    (r"api\.softlayer\.com/soap/v3(?:\.1)?/", r"[a-z0-9]{64}"),
    (r"events\.pagerduty\.com/integration/", r"\w{16,64}"),
    (r"maker\.ifttt\.com/trigger/\w{1,64}/(?:json/)?with/key/", r"[\w-]{16,64}"),
    # Mattermost, Rocket.Chat, Zapier, and others: /hooks/<id>, /hooks/catch/<number>/<id>
    (r"/hooks/(?:catch/\d{1,12}/)?", r"[A-Za-z0-9]{16,64}(?:/\w{16,64})?"),
)

TOKEN = re.compile(
    r"(?<![\w-])(?:"
    + "|".join(rf"(?P<{kind}{n}>{pattern})" for n, (kind, pattern) in enumerate(TOKENS))
    + ")(?![A-Za-z0-9])"
    # The bytes of a Hadoop delegation token.
    r"|(?P<hadooptoken>(?<=Ident:\ )(?:[0-9a-f]{2}\ ){8,2048}[0-9a-f]{0,2})",
    re.ASCII,
)
# Two groups for each URL: the part to keep, and the secret.
WEBHOOK = re.compile("|".join(f"({head})({tail})" for head, tail in WEBHOOKS), re.ASCII)

# A pattern whose start is not distinctive would slow down the quick pass, which therefore searches
# for a part of the pattern.
_QUICK = {
    "azure": (r"[A-Za-z0-9+/]{16}==", r"[78]Q~"),
    "discord": (rf"{_NUMBER}{_URL_SAFE}{{20}}",),
    "telegram": (r"\d:AA[A-Za-z0-9_-]{32}",),
    "mailchimp": (r"[0-9a-f]-us\d",),
}
_BOUNDS = re.compile(r"\{(\d+),\d+\}")


def quick_patterns() -> list[bytes]:
    """Case-sensitive Hyperscan patterns that match all text with a ``TOKEN`` or ``WEBHOOK``."""
    exact = [pattern for kind, pattern in TOKENS if kind not in _QUICK]
    parts = [pattern for patterns in _QUICK.values() for pattern in patterns]
    heads = [head + r"\w" for head, _ in WEBHOOKS]
    found = [*exact, *parts, *heads, r"Ident: [0-9a-f]{2} "]
    # Upper bounds require additional states, and are not required here.
    return [_BOUNDS.sub(r"{\1,}", pattern).encode() for pattern in found]

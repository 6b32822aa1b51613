"""Tokens that Yelp's detect-secrets finds in a line are masked.

Random texts are generated from its regexes. If a regex is broader than the tokens of the issuer,
and masking all matches would hide IDs, class names, or paths, ``ISSUED`` contains the exact form.
"""

from __future__ import annotations

import random
import re

import pytest
import rstr
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector

from flink_triage.logs.text.redact import redact

ISSUED = {
    "Artifactory Credentials": r"AKCp[0-9][A-Za-z0-9]{68}",
    "Basic Auth Credentials": r"[a-z]{3,8}://[a-z]{3,8}:[A-Za-z0-9]{8,20}@[a-z]{3,8}:[0-9]{4}",
    # Limited to separators that programs print.
    "Cloudant Credentials": r"(cloudant|cl)[_-](api)?(key|token)(=|: | := | => )[a-f0-9]{64}",
    "IBM Cloud IAM Key": r"(ibm_|)(cloud_|)(iam_)(api_|)key(=|: | := | => | :: )[A-Za-z0-9_-]{44}",
    "IBM COS HMAC Credentials": r"(ibm_|)cos_hmac_secret_(access_)?key(=|: | => | :: )[a-f0-9]{48}",
    "SoftLayer Credentials": r"(softlayer|sl)[_-](api[_-])?key(=|: | := | => | :: )[a-z0-9]{64}",
    "AWS Access Key": r"(A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}",
    # The first part is a Base64-encoded number.
    "Discord Bot Token": r"M[DTjz][AEIMQUYcgk][A-Za-z0-9]{21}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    "Mailchimp Access Key": r"[0-9a-f]{32}-us[0-9]{1,2}",
    "NPM tokens": r"//registry\.npmjs\.org/:_authToken=npm_[A-Za-z0-9]{36}",
    "OpenAI Token": r"sk-(proj-)?[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    "Slack Token": r"xox[abposr]-[0-9]{10,12}-[0-9]{10,12}-[a-z0-9]{24}",
    "Square OAuth Secret": r"sq0csp-[0-9A-Za-z_-]{43}",
    "Telegram Bot Token": r"[0-9]{8,10}:AA[0-9A-Za-z_-]{33}",
    "Twilio API Key": r"(AC|SK)[0-9a-f]{32}",
}
# Detectors that are not tested. The first line of a key and IP addresses are not secrets, and the
# detector for JSON Web Tokens decodes them, so random text does not match.
OTHERS = ("Private Key", "Public IP (ipv4)", "JSON Web Token")
DETECTORS = {
    name: detector
    for name, detector in get_mapping_from_secret_type_to_class().items()
    if issubclass(detector, RegexBasedDetector) and name not in OTHERS
}


def test_each_form_belongs_to_a_detector() -> None:
    assert ISSUED.keys() <= DETECTORS.keys()
    assert len(DETECTORS) > 20


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_secrets_found_by_the_detector_are_masked(name: str) -> None:
    detector = DETECTORS[name]()
    draw = rstr.Rstr(random.Random(name))
    forms = [re.compile(ISSUED[name])] if name in ISSUED else detector.denylist
    for form in forms:
        pattern = re.sub(r"\(\?[=!<][^)]*\)", "", form.pattern)
        lines = [f"INFO  com.acme.Client - using {draw.xeger(pattern)} now" for _ in range(20)]
        pairs = [
            (line, found) for line in lines for found in detector.analyze_string(line) if found
        ]
        assert pairs, form.pattern
        assert [line for line, found in pairs if found in redact(line)[0]] == []

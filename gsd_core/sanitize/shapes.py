"""The shapes of secrets: the formats of services, and the places where text contains a password.

Sources: the documentation of each service on the format of its tokens, GitHub's list of secret scanning
patterns, the rules of detect-secrets 1.5, RFC 7468 (PEM), RFC 4880 (PGP), RFC 7519 (JWT), RFC 7617 and 6750
(Authorization headers).
No pattern may take more than linear time: each begins with a literal or a short alternative, and has no
unbounded repetition before another one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

from attrs import field, frozen

Check: TypeAlias = Callable[[re.Match[str]], bool]


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(pattern)


@frozen
class Shape:
    """One way to recognize a secret; the fields are positional: each shape is a row of a table.

    *pattern* matches it; if it has a group ``secret``, only that is the secret. *hints* are lower-case
    texts: one of them has to occur, which is checked first because that is fast. *check* decides about a
    match in text for people, *strict* in text that programs read back and in files to be committed, where
    mistakes do harm; without them, every match counts.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str] = field(converter=_compiled)
    check: Check | None = None
    strict: Check | None = None


# Variables, templates and markers in the place of a value are not secrets.
_REFERENCE = re.compile(
    r"\$[({]|\$\w+(?:[\"'/:}]|$)|%[({]|%[A-Z_]+%|\{|<|\[redacted\]|\*{3}|\.{3}$|…$|@@|!(?:vault|secret|Ref|Sub)\b"
)
_PLACEHOLDER = re.compile(
    r"""
    (?<![a-z0-9])(?:examples?|sample|dummy|testing|placeholder|change[-_]?(?:me|it|this)|redacted|x{3,}|password|
    development|local|localhost|default|changeit)(?![a-z])
    | (?<![a-z0-9])(?:fake|tests?|mock|your?s?|todo|foo|bar|baz|secret|pass|passwd|pw|dev|insert|here|abc|123|
    hunter2?|token|key|user|admin|root|postgres|none|null|string|value|my|not|an?|the)(?![a-z0-9])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TYPES = frozenset(
    [
        *("str", "string", "strings", "bytes", "int", "integer", "bool", "boolean", "number"),
        *("float", "any", "object", "none", "null", "undefined", "true", "false", "optional"),
        *("required", "secretstr", "text", "type", "password", "token", "secret", "key", "value"),
        *("yes", "no", "void", "never", "unknown", "unset", "array", "list", "dict", "bearer"),
        *("basic", "literal", "varchar"),
    ]
)
_CALL_OR_ITEM = re.compile(r"(?:await |new |&|\*)?[A-Za-z_][\w.:?!]*(?:[(\[{]|->)")
_ATTRIBUTE = re.compile(
    r"(?:self|this|cls|os|env|process|config|settings|args|options|request|req|ctx)[.?\[]"
)
_SENTENCE = re.compile(r"[A-Z][a-z']+(?: [A-Za-z,'()-]+){2,}[.!?:]?$")
_WORDS = re.compile(r"[A-Za-z_.]+$")
_KEBAB = re.compile(r"[a-z]+(?:[-_.][a-z]+)+$")


def entropy(text: str) -> float:
    """Return Shannon's entropy of *text*, in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) if text else 0.0


def is_random(text: str, length: int = 16) -> bool:
    """Whether *text* looks generated: long, with letters and digits, and hardly any repetition."""
    has_both = any(char.isdigit() for char in text) and any(char.isalpha() for char in text)
    return has_both and len(text) >= length and entropy(text) >= 3.0


def is_placeholder(text: str) -> bool:
    """Whether *text* stands for a secret: ``changeme``, ``<token>``, ``test-secret``, ``xxxxxxxx``."""
    return bool(_REFERENCE.match(text) or "${" in text or _PLACEHOLDER.search(text)) or len(set(text)) < 4


_EXAMPLE = re.compile(r"example|x{4}|placeholder|dummy|change[-_]?me|your[-_]|0{6}|\.{3}", re.IGNORECASE)


def is_example(token: str) -> bool:
    """Whether *token* has the format of a service, and is one for its documentation: ``AKIA…EXAMPLE``."""
    return bool(_EXAMPLE.search(token)) or len(set(token[-16:])) < 6


def secret_of(found: re.Match[str]) -> str:
    """Return the part of a match that is the secret."""
    return found["secret"] if "secret" in found.re.groupindex else found[0]


def _token(name: str, literal: str, rest: str, *, alone: bool = False, check: Check | None = None) -> Shape:
    """Return the shape of a token that begins with *literal*.

    With *alone*, no letter or digit may come before it. A lookbehind after the literal does that, because
    one before it would make the search several times slower.
    """
    # The literal may follow an escape of JSON or of a URL: `\nghp_…`, `%20ghp_…`.
    start = rf"(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrt]{literal})|(?<=%[0-9A-Fa-f]{{2}}{literal}))"
    pattern = f"{literal}{start if alone else ''}{rest}"
    return Shape(name, (literal.replace("\\", "").lower(),), pattern, check)


def _looks_random(found: re.Match[str]) -> bool:
    return is_random(secret_of(found), 12)


def _cut(characters: str, length: int, least: int = 4) -> str:
    """Return a pattern for *length* or more of *characters*, or fewer if the text was cut off there."""
    return rf"[{characters}]{{{length},}}|[{characters}]{{{least},}}(?=…|\.\.\.|\Z)"


_START = r"(?:\b|(?<=\\[nrt]))"
"""The start of a word, also behind an escape of JSON."""
_WORD, _URL = "A-Za-z0-9", "A-Za-z0-9_-"
_TOKENS = (
    _token("Anthropic key", "sk-ant-", f"(?:{_cut(_URL, 12)})"),
    _token("OpenAI key", "sk-proj-", f"(?:{_cut(_URL, 12)})"),
    _token("OpenAI key", "sk-svcacct-", f"(?:{_cut(_URL, 12)})"),
    _token("OpenRouter key", "sk-or-v1-", f"(?:{_cut(_URL, 12)})"),
    _token("API key", "sk-", f"[{_URL}]{{16,}}", alone=True, check=_looks_random),
    _token("API key", "rk-", f"[{_URL}]{{16,}}", alone=True, check=_looks_random),
    *(
        _token("Stripe key", f"{kind}k_{use}_", f"(?:{_cut(_WORD, 10)})")
        for kind in "sr"
        for use in ("live", "test")
    ),
    _token("Stripe webhook secret", "whsec_", "(?:[A-Za-z0-9+/=]{16,})"),
    *(_token("GitHub token", f"gh{kind}_", f"(?:{_cut(_WORD, 16)})", alone=True) for kind in "pousr"),
    _token("GitHub token", "github_pat_", f"(?:{_cut('A-Za-z0-9_', 16)})"),
    *(
        _token("GitLab token", f"gl{kind}-", "[A-Za-z0-9_.-]{16,}")
        for kind in ("pat", "dt", "ft", "soat", "rt", "cbt", "imt", "ptt", "agent", "oas", "ffct")
    ),
    *(_token("AWS key id", kind, "[A-Z0-9]{16}", alone=True) for kind in ("AKIA", "ASIA", "ABIA", "ACCA")),
    _token("AWS key id", "A3T", "[A-Z0-9]{17}", alone=True),
    _token("GitLab token", "GR1348941", f"[{_URL}]{{20,}}", alone=True),
    _token("Google API key", "AIza", f"(?:{_cut(_URL, 30, 12)})"),
    _token("Google OAuth token", r"ya29\.", f"[{_URL}]{{20,}}"),
    _token("Google client secret", "GOCSPX-", f"[{_URL}]{{16,}}"),
    _token("Google refresh token", "1//0", f"[{_URL}]{{30,}}", alone=True),
    _token("Slack token", "xox", f"[a-z](?:[.-])(?:{_cut('A-Za-z0-9.-', 10)})"),
    _token("Slack token", "xapp-", f"[0-9]-[{_URL}]{{10,}}"),
    _token("npm token", "npm_", f"(?:{_cut(_WORD, 30, 10)})", alone=True, check=_looks_random),
    _token("PyPI token", "pypi-A", f"(?:{_cut(_URL, 30, 10)})"),
    # Its own tokens are 34 letters without a digit.
    _token("Hugging Face token", "hf_", "[A-Za-z]{34}", alone=True),
    _token("Hugging Face token", "hf_", f"[{_WORD}]{{24,}}", alone=True, check=_looks_random),
    _token("SendGrid key", r"SG\.", rf"[{_URL}]{{16,}}\.[{_URL}]{{16,}}", alone=True),
    _token("Mailgun key", "key-", "[0-9a-f]{32}", alone=True),
    _token("Twilio key", "SK", "[0-9a-f]{32}", alone=True),
    _token("DigitalOcean token", "dop_v1_", "[0-9a-f]{32,}"),
    *(_token("Shopify token", f"shp{kind}_", "[0-9a-fA-F]{32}") for kind in ("at", "ca", "pa", "ss")),
    _token("Square token", "sq0", f"[a-z]{{3}}-[{_URL}]{{20,}}", alone=True),
    _token("Linear key", "lin_api_", f"[{_WORD}]{{30,}}"),
    _token("Grafana token", "glsa_", "[A-Za-z0-9_]{32,}"),
    _token("Vault token", r"hvs\.", f"[{_URL}]{{20,}}", alone=True),
    _token("Doppler token", r"dp\.pt\.", f"[{_WORD}]{{40,}}", alone=True),
    _token("Tailscale key", "tskey-", f"[a-z]{{2,12}}-[{_URL}]{{16,}}"),
    _token("RubyGems key", "rubygems_", "[0-9a-f]{40,}"),
    _token("Docker token", "dckr_pat_", f"[{_URL}]{{20,}}"),
    _token("Atlassian token", "ATATT3", "[A-Za-z0-9_=-]{20,}"),
    _token("Postman key", "PMAK-", f"[{_URL}]{{24,}}"),
    _token("Groq key", "gsk_", f"[{_WORD}]{{32,}}", alone=True),
    _token("xAI key", "xai-", f"[{_WORD}]{{32,}}", alone=True),
    _token("NVIDIA key", "nvapi-", f"[{_URL}]{{32,}}"),
    _token("Perplexity key", "pplx-", f"[{_WORD}]{{32,}}"),
    _token("Replicate token", "r8_", f"[{_WORD}]{{30,}}", alone=True),
    _token("Supabase token", "sbp_", "[0-9a-f]{40}", alone=True),
    _token("Notion token", "ntn_", f"[{_WORD}]{{32,}}", alone=True),
    _token("Figma token", "figd_", f"[{_URL}]{{32,}}"),
    _token("New Relic key", "NRAK-", "[A-Z0-9]{27}"),
    _token("crates.io token", "cio", f"[{_WORD}]{{32,64}}(?![{_WORD}])", alone=True, check=_looks_random),
    _token("Databricks token", "dapi", "[0-9a-f]{32}(?:-[0-9])?", alone=True),
    _token("Databricks token", "dkea", "[0-9a-f]{32}", alone=True),
    *(
        _token("Fly token", f"f{kind}_", "[A-Za-z0-9+/=_-]{24,}", alone=True)
        for kind in ("m1r", "m1a", "m2", "o1")
    ),
    *(_token("Vercel token", f"vc{kind}_", f"[{_WORD}]{{24,}}", alone=True) for kind in "pcairk"),
    _token("PlanetScale token", "pscale_", r"(?:tkn|pw|oauth|app_secret)_[\w=.-]{24,}"),
    _token("Sentry token", "sntry", "[su]_[A-Za-z0-9+/=_-]{24,}"),
    _token("Pulumi token", "pul-", "[0-9a-f]{40}", alone=True),
    _token("LangSmith key", "lsv2_", f"(?:pt|sk)_[{_URL}]{{24,}}"),
    _token("Netlify token", "nf", f"[pcuob]_[{_WORD}]{{36}}", alone=True),
    _token("Heroku key", "HRKU-", f"[{_URL}]{{30,}}"),
    _token("Airtable token", "pat", rf"[{_WORD}]{{14}}\.[0-9a-f]{{64}}", alone=True),
    _token("1Password token", "ops_eyJ", "[A-Za-z0-9+/=_-]{24,}"),
    _token("Docker token", "dckr_oat_", f"[{_URL}]{{20,}}"),
    _token("Sonar token", "sq", "[upa]_[0-9a-f]{40}", alone=True),
    _token("CircleCI token", "CCIPAT_", "[A-Za-z0-9_]{24,}"),
    _token("Buildkite token", "bkua_", "[0-9a-f]{40}", alone=True),
    _token("Render key", "rnd_", f"[{_WORD}]{{28,}}", alone=True, check=_looks_random),
    _token("Resend key", "re_", f"[{_WORD}]{{8}}_[{_WORD}]{{24}}", alone=True, check=_looks_random),
    _token("age key", "AGE-SECRET-KEY-1", f"(?:{_cut('0-9A-Z', 20)})"),
    # The third part is missing if the token was cut off.
    _token("JWT", "eyJ", rf"[{_URL}]{{8,}}\.[{_URL}]{{8,}}(?:\.[{_URL}]*)?", alone=True),
)

_KEYS = (
    Shape(
        # One that was cut off has no end; what mentions the first line in a sentence is not a key.
        "private key",
        ("private key",),
        r"-----BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----"
        r"(?=[\"']?\s*(?:\Z|\n|\r|\\+[nr]|[+>|]|[A-Za-z0-9+/=]{16}))"
        r"(?s:.*?)(?:-----END[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----|\Z)",
    ),
    Shape(
        "PuTTY private key",
        ("putty-user-key-file",),
        r"PuTTY-User-Key-File-\d:(?s:.*?)(?:Private-MAC: ?[0-9a-f]+|\Z)",
    ),
    Shape(
        # RFC 5208 and 8017, and PROTOCOL.key of OpenSSH: a key in binary form, or what its base64 encodes.
        "private key",
        ("\x02\x01\x00", "openssh-key-v1\x00"),
        r"\x30(?s:.{1,3})\x02\x01\x00(?:\x30(?s:.)\x06(?:(?s:.)\x2a\x86\x48|\x03\x2b\x65)|\x02\x82)(?s:.{0,4000})"
        r"|openssh-key-v1\x00(?s:.{0,4000})",
    ),
    Shape("Terraform token", (".atlasv1.",), rf"{_START}[{_WORD}]{{14}}\.atlasv1\.[A-Za-z0-9=_-]{{20,}}"),
    Shape(
        "one-time password key",
        ("otpauth://",),
        r"otpauth://[^\s\"'<>]{1,200}?[?&]secret=(?P<secret>[A-Za-z2-7=]{8,})",
    ),
    Shape("Telegram bot token", (":",), rf"(?<!\d)\d{{8,10}}:A[{_URL}]{{34}}", check=_looks_random),
    Shape(
        "Discord bot token",
        (".",),
        rf"{_START}[MNO][{_URL}]{{23,27}}\.[{_URL}]{{6}}\.[{_URL}]{{27,40}}",
        check=_looks_random,
    ),
    Shape("Mailchimp key", ("-us",), r"[0-9a-z]{32}-us\d{1,2}"),
    Shape(
        "AWS secret key",
        ("aws",),
        r"(?i:aws.{0,20}?(?:key|pwd|pw|pass|token).{0,20}?)[\"'](?P<secret>[0-9A-Za-z/+]{40})[\"']",
        check=_looks_random,
    ),
    Shape(
        "webhook URL",
        ("/webhooks/", "hooks.slack.com"),
        r"(?:discord(?:app)?\.com/api/webhooks/\d{5,25}/|hooks\.slack\.com/(?:services|workflows|triggers)/)"
        r"(?P<secret>[A-Za-z0-9_/-]{16,})",
    ),
    Shape(
        "signature in a URL",
        ("sig",),
        r"(?:X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)=|[?&;](?:sig|Signature)=)"
        r"(?P<secret>[A-Za-z0-9%+/=_.~-]{16,})",
    ),
)


def _is_reference(value: str) -> bool:
    return bool(_REFERENCE.match(value))


def _header(found: re.Match[str]) -> bool:
    value = found["secret"]
    return not _is_reference(value) and (bool(found["header"]) or bool(re.search(r"\d|=|[a-z][A-Z]", value)))


def _header_strict(found: re.Match[str]) -> bool:
    value = found["secret"]
    # What follows a token without a space may be the next word.
    return _header(found) and is_random(value) and not is_placeholder(value[:16])


def _in_url(found: re.Match[str]) -> bool:
    return not _is_reference(found["secret"])


def _in_url_strict(found: re.Match[str]) -> bool:
    return _in_url(found) and not is_placeholder(found["secret"]) and len(found["secret"]) >= 6


def _is_password(found: re.Match[str]) -> bool:
    # `docker run -u 1000:1000` has numbers of a user and a group.
    return _in_url(found) and not re.fullmatch(r"\d{1,7}", found["secret"])


_OPTION = re.compile(r"--[a-z-]{0,30}\Z")


def _is_option(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 32) : found.start()]
    return _in_url(found) and _OPTION.search(before) is not None


def _encodes_login(found: re.Match[str]) -> bool:
    import base64

    try:
        return b":" in base64.b64decode(found["secret"] + "==")
    except ValueError:
        return False


_QUOTED = r"""(?:
    \\{1,3}(?P<quote>["'])(?P<q1>(?:(?!(?P=quote))[^\n]){1,2000}?)\\{1,3}(?P=quote)
    | "(?P<q2>(?:\\.|[^"\\\n]){1,2000}) | '(?P<q3>(?:\\.|[^'\\\n]){1,2000})
)"""
_ASSIGNMENT = re.compile(
    rf"""
    (?P<key>token|secret|password|passwd|passphrase|pwd|credentials?|api[_-]?key|_key|-key|[a-z]key|key-data|auth)
    (?P<close>\\{{0,3}}["']?\]?) (?P<before>[ \t]{{0,4}}) (?P<sign>=>|:=|[:=](?!=)) (?P<after>[ \t]{{0,4}})
    (?: {_QUOTED} | (?P<bare>[^\s"'`,;&<>()\[\]{{}}|\\][^\s"'`,;&<>|\\]{{0,2000}}) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SECRET_KEYS = re.compile(
    r"(?:api|secret|private|access|encryption|signing|auth|master|account|shared|client|service|deploy|storage|"
    r"session|jwt|crypt|webhook|subscription|consumer|admin|ssh|gpg|pgp|aes|hmac|license|shared_?access)[_-]?key$",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")


def assigned(found: re.Match[str]) -> str:
    """Return the value of an assignment."""
    return found["q1"] or found["q2"] or found["q3"] or found["bare"] or ""


def _assignment(found: re.Match[str]) -> bool:
    value, text = assigned(found), found.string
    before = _NAME_BEFORE.search(text[max(0, found.start() - 64) : found.start()])
    name = (before[0] if before else "") + found["key"]
    if _is_reference(value) or value.lower() in _TYPES or re.fullmatch(r"\d{1,6}", value):
        return False
    if found["sign"] == ":" and text[: found.end("key") - len(name)].endswith("$"):
        return False  # `-v $PWD:/app`
    if name.lower().endswith("auth"):
        return False  # `auth: …` is often a word; the shapes for logins and headers decide
    if name.lower().endswith(("key", "key-data")) and not _SECRET_KEYS.search(name):
        return is_random(value, 20) and not _CALL_OR_ITEM.match(value)
    if found["bare"] is None:
        return not _SENTENCE.match(value) and not (
            _KEBAB.match(value) and value.endswith(("-key", "_key", "-token", "_token"))
        )
    if _CALL_OR_ITEM.match(value) or _ATTRIBUTE.match(value):
        return False
    after = text[found.end() : found.end() + 1]
    is_shell = found["sign"] == "=" and not found["before"] and not found["after"]
    if is_shell and (
        name.isupper()
        or name.startswith("-")
        or text[max(0, found.start() - len(name) + len(found["key"]) - 1)] in "?&"
    ):
        return not (after in "([" and after)
    if not _WORDS.match(value.rstrip(".!?")):
        return after not in ("(", "[") and bool(re.search(r"\d|[^\w.]", value.rstrip(".!?:)")))
    # Letters only: a password, or the name of a variable or type.
    if is_shell:
        return len(value) >= 8 and value.islower() and after in ("", " ", "\n", ";", "&")
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip(" \t-")
    is_line = not _NAME_BEFORE.sub("", line) and after in ("", "\n", "\r") and found["sign"] == ":"
    return is_line and len(value) >= 8 and value.islower() and "." not in value


def _assignment_strict(found: re.Match[str]) -> bool:
    value = assigned(found)
    has_both = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    is_one = has_both and len(value) >= 8 and " " not in value
    return is_one and _assignment(found) and not is_placeholder(value)


_PLACES = (
    Shape(
        "authorization header",
        ("bearer", "basic", "token", "apikey"),
        re.compile(
            r"(?P<header>authorization[\"']?\s{0,2}[:=]\s{0,2}\\{0,3}[\"']?)?"
            r"(?:\b|(?<=\\[nrt]))(?:bearer|basic|token|apikey)\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{12,})",
            re.IGNORECASE,
        ),
        check=_header,
        strict=_header_strict,
    ),
    Shape(
        "password in a URL",
        ("://",),
        r"://[^\s/:@\"'<>]{0,200}:(?P<secret>[^\s/\"'<>]{1,500})@",
        check=_in_url,
        strict=_in_url_strict,
    ),
    Shape(
        "cookie",
        ("cookie",),
        re.compile(
            _START + r"(?:set-)?cookie[\"']?:[ ]{0,4}[\"']?"
            r"[^\s=;:\"']{1,80}=(?P<secret>[^\n\"']{8,4000})",
            re.IGNORECASE,
        ),
        check=_in_url,
        strict=lambda found: _in_url(found) and is_random(found["secret"].split(";")[0], 12),
    ),
    Shape(
        "login of a registry",
        ("auth",),
        r"_?auth[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
        check=_encodes_login,
    ),
    Shape(
        "password of .netrc",
        ("login",),
        _START + r"login\s{1,4}[^\s]{1,200}\s{1,8}password\s{1,4}(?P<secret>\S{1,500})",
        check=_in_url,
        strict=_in_url_strict,
    ),
    Shape(
        "option of a command",
        ("--",),
        r"(?:password|passwd|token|secret|api-key|passphrase)[ ]{1,2}"
        r"[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,500})",
        check=lambda found: _is_option(found) and not _WORDS.match(found["secret"]),
        strict=lambda found: _is_option(found) and is_random(found["secret"], 8),
    ),
    Shape(
        "login of a command",
        ("-u", "--user", "--proxy-user", "curl"),
        r"\s(?:(?:-u|-U|--user|--proxy-user)[ ]{1,2}|--(?:proxy-)?user=|"
        r"(?<=curl )-[a-zA-Z]{0,6}[uU][ ]{0,2}|(?<=-[a-zA-Z] )-[uU])"
        r"[\"']?[^\s:\"']{0,64}:(?P<secret>[^\s\"']{3,500})",
        check=_is_password,
        strict=lambda found: _in_url_strict(found) and is_random(found["secret"], 8),
    ),
    Shape(
        # Programs whose -p (or -a, -P) is a password; -p of most others is a port, a path or a project.
        "password option",
        ("mysql", "mariadb", "sshpass", "login", "mongo", "redis-cli", "7z", "zip"),
        _START + r"(?:(?:mysql|mariadb)[\w-]{0,20}[ ](?:[^\n;|&]{0,200}?[ ])?-p|sshpass[ ]{1,2}-p[ ]{0,2}"
        r"|(?:login|mongosh|mongodump|mongorestore)[ ](?:[^\n;|&]{0,200}?[ ])?-p[ ]{1,2}"
        r"|redis-cli[ ](?:[^\n;|&]{0,200}?[ ])?-a[ ]{1,2}|7z[ar]?[ ](?:[^\n;|&]{0,200}?[ ])?-p"
        r"|zip[ ](?:[^\n;|&]{0,200}?[ ])?-P[ ]{0,2})[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,200})",
        check=_is_password,
        strict=lambda found: _in_url_strict(found) and is_random(found["secret"], 8),
    ),
    Shape(
        # The documentation of libpq: hostname:port:database:username:password.
        "line of .pgpass",
        (":",),
        r"(?:(?<![\w./@:-])|(?<=\\n))(?:\*|[A-Za-z0-9][A-Za-z0-9.-]{0,100}|/[\w./-]{1,100}):(?:\*|\d{4,5})"
        r":(?:\*|[A-Za-z_][\w-]{0,62}):[A-Za-z_][\w.-]{0,62}:(?P<secret>(?:\\.|[^\s:\\\"'|)]){4,200})"
        r"(?=[\s\"'|)]|\\n|\Z)",
        check=lambda found: _is_password(found) and bool(re.search(r"\d|[^\w.]", found["secret"])),
        strict=lambda found: _in_url_strict(found) and is_random(found["secret"], 8),
    ),
    Shape(
        "assignment",
        ("token", "secret", "passw", "passphrase", "pwd", "credential", "key", "auth"),
        _ASSIGNMENT,
        check=_assignment,
        strict=_assignment_strict,
    ),
)


def formats() -> Iterator[Shape]:
    """Yield the shapes that are recognized by themselves, and not by what is around them."""
    yield from _KEYS
    yield from _TOKENS


def shapes() -> Iterator[Shape]:
    """Yield all shapes; those of tokens come first, because others would take only a part of some."""
    yield from formats()
    yield from _PLACES

"""The patterns of detect-secrets (Apache-2.0), a maintained set of rules for the tokens of services.

Only the regular expressions of its plugins are used. Its scanner is never called: it can verify a secret by
sending it to the service. The library is imported at first use, because that takes about 0.2 seconds.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

_LEFT_OUT = {
    # Not secrets, or too often something else: one of our shapes does it better.
    *("ip_public", "high_entropy_strings", "keyword", "base", "artifactory", "twilio", "private_key"),
    # Quadratic in the length of hostile text, or too slow; `shapes` has a pattern for each.
    *("jwt", "npm", "openai", "basic_auth", "ibm_cloud_iam", "ibm_cos_hmac", "cloudant", "softlayer"),
}


@cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the rule set; each matches a secret, in its first group if it has any."""
    import detect_secrets.plugins as plugins

    found: list[re.Pattern[str]] = []
    for module in pkgutil.iter_modules(plugins.__path__):
        if module.name in _LEFT_OUT:
            continue
        contents: dict[str, Any] = vars(importlib.import_module(f"{plugins.__name__}.{module.name}"))
        for value in contents.values():
            rules: Any = getattr(value, "denylist", ())
            if isinstance(value, type) and isinstance(rules, list | tuple):
                found += [rule for rule in cast("Sequence[Any]", rules) if isinstance(rule, re.Pattern)]
    return tuple(dict.fromkeys(found))


MAY_CONTAIN = re.compile(r"[A-Za-z0-9_+/=-]{24}")
"""What every match of the rule set contains; text without it needs no import."""

"""What comments, documentation and messages say about code: unfinished, invented, or as it is on purpose."""

from __future__ import annotations

import re

_INVENTED_NOUNS = r"(?:data|response|results?|values?|implementation|numbers?|output)"

TODO = re.compile(
    r"\b(?:TODO|FIXME|XXX|HACK|TBD)\b"
    r"|(?i:\bplaceholder\b|\bnot\s+(?:yet\s+)?implemented\b|\bstub(?:bed)?\b|\bhard-?coded\b"
    r"|\bfor now\b|\breal\s+(?:implementation|logic|code)\b"
    r"|\bimplement(?:ation)?\s+(?:this|me|later|here|goes)\b"
    r"|\b(?:go(?:es)?|belongs?) here\b|\bcoming soon\b"
    r"|\bwill (?:go here|be (?:implemented|added|done|here|wired|filled|connected|replaced))\b"
    r"|\bwill be (?:displayed|shown|listed)\b"
    r"|\b(?:comes?|added|done|implemented|follows?|wired(?: up)?|to be done) (?:later|soon|next)\b"
    r"|\b(?:in|with) (?:the|a|an) (?:next|later|future|following|follow-?up|upcoming|subsequent|separate)"
    r" (?:step|phase|pr|version|commit|task|iteration|release|plan|change|milestone|sprint)\b"
    rf"|\b(?:mock(?:ed)?|dummy|sample|fake) {_INVENTED_NOUNS}\b"
    r"|\byet\b|\bso far\b|\bat the moment\b|\btemporar\w+|\bduring development\b|\(next task\)"
    r"|\bfor simplicity\b|\bsimulat\w+\b|\bsimplified\b|\bskeleton\b|\bin a real\b|\bin production\b)"
)
"""A remark that explains a body without code: the code is missing."""

FOR_NOW = re.compile(
    r"(?i)\b(?:for now|in a real|in production|real (?:implementation|logic|code)|for simplicity|simulat\w+"
    rf"|(?:mock(?:ed)?|dummy|sample|fake) {_INVENTED_NOUNS}"
    r"|(?:next|later|future|following|follow-?up) (?:step|phase|version|task|iteration|plan)"
    r"|later|soon|so far"
    r"|not \w+ yet|during development)\b"
)
"""A remark that a constant is not the real answer."""

INVENTED = re.compile(
    rf"(?i)\b(?:mock(?:ed)?|dummy|sample|fake|stub(?:bed)?|placeholder|hard-?coded) {_INVENTED_NOUNS}\b"
    r"|\bin a real\b|\bsimulat(?:e|es|ed|ing) (?:the|a|an|it|success|response|api|network)\b"
)
"""A remark that says even of a short body with code that its result is invented."""

MISSING_EFFECT = re.compile(
    r"\b(?:TODO|FIXME)\b(?:\([^)\n]*\))?\W*(?i:(?:actually|really) \w+"
    r"|(?:persist|save|send|charge|publish|insert|notify|e?mail|enqueue|dispatch|upload|call|invoke)\b"
    r"|implement\b(?! (?:cach|retr|pagin|batch|rate|back|optimi|log|metric|parallel|stream|support))"
    r"|(?:delete|remove|store|update) (?:the|it|them)\b"
    r"(?! (?:hack|workaround|shim|legacy|old|this|fallback|deprecat))"
    r"(?![^\n]*\b(?:once|when|after|in v?\d)\b))"
    r"(?![^\n]*\b(?:instead|faster|better|more|first|again|only|too|in parallel|asynchronously)\b)"
)
"""A remark that an effect is missing, rather than an improvement (caching, retries) of what is there."""

CLAIMS = re.compile(
    r"(?i)\b(?:complete[d]?|success(?:ful(?:ly)?)?|done|finished|imported|created|deleted|removed|saved|sent"
    r"|uploaded|exported|processed|updated|stored|published|synced|migrated|generated)\b"
)
"""A message that work was done."""

BY_DESIGN = re.compile(
    r"(?i)\bno-?op(?:eration)?\b|\bdo(?:es)? nothing\b|\bnothing (?:to|is|needs?|special|happens)\b"
    r"|\bintentional|\bon purpose\b|\bby design\b|\bdeliberate"
    r"|\bnot needed\b|\bnot required\b|\bunused\b|\bignored?\b|\bignores\b|\bhooks?\b|\boverrid|\bsub-?class"
    r"|\bdefault\b|\bnull object\b|\bforgets\b|\bdiscards?\b|\bdrops?\b|\bnever\b|\balways\b|\bdisabled\b"
    r"|\bconstant\b|\bfixed\b|\bflat\b|\bno effect\b|\bleft empty\b|\bempty body\b"
    r"|\bcompatib|\brequired (?:by|for)\b|\bfake\b|\bdummy\b"
    r"|^\W*don'?t\b|\bmust not\b|\bno need\b|\bhandled (?:by|in|elsewhere)\b|\bleft to\b"
    r"|\b(?:needs?|takes?|expects?) no(?:thing)?\b|\bno (?:further )?(?:action|answer|work|reply|response)\b"
    r"|\bregardless\b|\bnoqa: ARG|\bno-unused|\bread-only\b"
)
"""A remark that a body is empty, or its value constant, on purpose."""

ALL_ALIKE = re.compile(r"(?i)\b(?:all|any|each|every\w*|no|nobody|none|only)\b")
"""Documentation that says why an answer is the same for everything."""

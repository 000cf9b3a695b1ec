"""Make untrusted text safe to show and to store: remove control characters, redact secrets, shorten it.

Every place where text leaves the run calls this package: the journal, planning files, commit messages, the
terminal, notifications, JSON output. The order matters: sanitize, then redact, then clip. An invisible
character inside a secret would hide it, and a secret that is cut in two may no longer be recognized.
"""

from __future__ import annotations

from .known import register_secrets as register_secrets
from .redaction import REDACTED as REDACTED
from .redaction import find_secrets as find_secrets
from .redaction import first_line as first_line
from .redaction import one_line as one_line
from .redaction import redact as redact
from .redaction import redact_data as redact_data
from .redaction import safe_data as safe_data
from .redaction import safe_file as safe_file
from .redaction import safe_text as safe_text
from .text import clip as clip
from .text import sanitize as sanitize

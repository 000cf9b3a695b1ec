"""Paths that agents may not write, and names of files that usually contain secrets.

This is the only such list. It decides which paths a plan may name, which tools an agent may use on them,
which files a step may return, and which files a task may commit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePath, PurePosixPath

_STARTUP = "shells and tools run or obey it outside the project too"

PROTECTED_NAMES: Mapping[str, str] = {
    ".git": "only the run makes commits and changes history",
    "git~1": "it is another name of .git on some file systems",
    ".planning": "only the run changes the plan",
    ".gsd": "it contains plugins that the run loads",
    "gsd.toml": "it contains the settings of the run",
    # With these files, an agent could give itself permissions or start programs.
    ".claude": "it contains the agent's own settings",
    ".claude.json": "it contains the agent's own settings",
    ".mcp.json": "it contains the agent's own settings",
    **dict.fromkeys((".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"), _STARTUP),
    **dict.fromkeys((".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"), _STARTUP),
    **dict.fromkeys((".profile", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".envrc"), _STARTUP),
    **dict.fromkeys((".gitconfig", ".ssh", ".netrc"), _STARTUP),
}
"""Names of files and folders that agents may not write, at any depth, each with the reason.

They are compared after :func:`fold_name`. A step of the run may return files in the project's
``.planning``; all other names apply to it too.
"""

SECRET_NAMES = (
    *(".env", ".env.*", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk"),
    *("*.keystore", "*.jks", "*.p12", "*.pfx", "*.kdbx", "*.ppk", "*.gpg", ".vault-token", ".s3cfg", ".boto"),
)
"""Patterns of names of files that usually contain secrets, regardless of their content."""

SUSPECT_NAMES = (
    *(".npmrc", ".yarnrc", ".yarnrc.yml", "pip.conf", ".condarc", "settings.xml", "gradle.properties"),
    *("*.pem", "*.key", "*.asc", "credentials", "credentials.*", "secrets.*", "*.tfvars", "*.tfstate"),
    *("service-account*.json", "service_account*.json", "*kubeconfig*", "client_secret*.json", ".dockercfg"),
    *("*.ovpn", "auth.json", "config.json", "config", "database.yml", "wp-config.php", "local.settings.json"),
)
"""Patterns of names of files that contain secrets or not: a look at their content decides."""

# Variants of `.env` that exist to be shared.
_SHARED = frozenset({"example", "sample", "template", "dist", "test", "defaults"})


def protected_part(path: str | PurePath) -> str:
    """Return the part of *path* that agents may not write, as it is written; empty if there is none.

    *path* is relative to the project: the project itself may be in a folder with such a name.
    """
    parts = PurePosixPath(str(path).replace("\\", "/")).parts
    return next((part for part in parts if fold_name(part) in PROTECTED_NAMES), "")


def is_secret_name(name: str) -> bool:
    """Whether a file of this name usually contains secrets; ``.env.example`` and the like do not."""
    plain = fold_name(name)
    if plain.startswith(".env.") and plain.rpartition(".")[2] in _SHARED:
        return False
    return any(fnmatchcase(plain, pattern) for pattern in SECRET_NAMES)


def is_suspect_name(name: str) -> bool:
    """Whether a file of this name contains secrets often enough to look for passwords of any form in it."""
    plain = fold_name(name)
    return any(fnmatchcase(plain, pattern) for pattern in SUSPECT_NAMES)


@lru_cache(4096)
def fold_name(name: str) -> str:
    """Return a name as it appears to file systems that ignore case and invisible characters."""
    plain = unicodedata.normalize("NFKC", name)
    visible = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return visible.casefold().rstrip(" .") or visible

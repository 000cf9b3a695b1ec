"""The private home folder of a project's confined processes, with toolchains and package caches.

``HOME`` points to it, and each project has a separate one, so that nothing in it reaches the user's own
programs or another project's. It is in the user's cache folder; only this user may read it.

Toolchains are not copied: the process sees the real folders, read-only, and the home has links to them.

Package caches are copies. A cache that a confined process and the user's own tools both wrote to would be a
way out of the sandbox: what an agent puts into ``~/.cargo/registry/src`` would be compiled, and run, by the
user's next build. So the first run copies the caches (without using disk space, where the file system can
share blocks), and later runs of the project find what earlier ones downloaded, also offline.

A check and a commit hook get a new home each time: a tool, a configuration file or a Python package that an
agent left in its home would decide how the check of its own work ends. So would a wheel, a crate or a test
result in a cache, which the tools that find it there do not verify. But with an empty cache Maven, Cargo and
pre-commit download everything each time, so only a user who wants that gets it. A read-only cache does not
help: npm fails if it cannot write.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import platformdirs

from gsd_core.model.sandbox import Place

from .temporary import remove_folder

TOOLCHAINS = (
    *(".cargo/bin", ".rustup", "go/bin", ".go", ".local/go", ".sdkman", ".jabba", ".jdks", ".jenv"),
    *(".nvm", ".volta", ".fnm", ".local/share/fnm", ".n", ".nodenv", ".bun/bin", ".deno/bin", ".npm-global"),
    *(".pyenv", ".local/share/uv/python", ".local/share/uv/tools", ".local/pipx", ".local/share/pipx"),
    *(".rye", ".pixi/bin", ".pixi/envs", "miniconda3", "miniforge3", "mambaforge", "anaconda3"),
    *(".rbenv", ".rvm", ".asdf", ".local/share/mise", ".local/share/rtx", ".dotnet", ".ghcup", ".opam"),
    *(".elan", ".juliaup", ".nix-profile", ".nix-defexpr", ".local/bin", ".local/lib", "bin"),
    *(".local/share/claude", ".claude/local"),
)
"""Installed programs, below the user's home folder. None of these folders is meant for credentials."""

CACHES = (
    *(".cache/pip", ".cache/uv", ".npm/_cacache", ".cache/yarn", ".yarn/berry/cache"),
    *(".local/share/pnpm/store", ".cache/pnpm", ".bun/install/cache", ".cache/deno"),
    *(".cargo/registry/cache", ".cargo/registry/index", ".cargo/git/db"),
    *("go/pkg/mod", ".m2/repository", ".m2/wrapper", ".gradle/wrapper", ".gradle/caches/modules-2"),
    *(".cache/ms-playwright", ".cache/Cypress", ".cache/node/corepack", ".nuget/packages"),
)
"""Package caches, below the user's home folder; the same paths are used in the private one."""

KEPT = (*CACHES, ".cache", ".claude", ".claude.json", "go/pkg", ".cargo/registry", ".cargo/git", ".gradle")
"""What stays from one run to the next: caches, and the conversations of agents, which may be resumed.

Everything else is removed when a run starts, so that a configuration file which an agent left
(``.npmrc``, ``.gitconfig``, ``.bashrc``) does not decide how the next run's checks end."""

SHARED = (*CACHES, ".cache/go-build", ".cache/node-gyp", ".cache/pre-commit")
"""What checks share with agents if the user wants it: caches without which each check downloads and builds
everything again."""

INSTALLED = (".cache/ms-playwright", ".cache/Cypress", ".yarn/berry/cache")
"""What the tools do not download again if it is missing, like a ``node_modules`` in the home: browsers, and
the packages of Yarn's projects without ``node_modules``. Checks see the agents', read-only."""

GO_DOWNLOADS = "go/pkg/mod/cache/download"
"""The zip files of Go's modules, in the layout of a module proxy: https://go.dev/ref/mod#module-cache."""

MAX_BYTES, MAX_FILES = 100 << 20, 20_000
"""How large a cache may be to be copied, on a file system that cannot share blocks between files."""

CONFIGURATION = (
    *(".npmrc", ".yarnrc", ".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml"),
    ".cargo/config.toml",
)
"""The user's files that name package registries and mirrors, copied without what may be a secret."""

SECRET = re.compile(r"auth|token|passw|secret|credential|://[^/\s]*@", re.IGNORECASE)
"""A line of these files that is not copied."""

UNUSED = timedelta(days=30)
"""How long a home is kept after its last run."""

# Copies files that share their blocks with the originals, or fails.
_CLONE = ("cp", *(("-cRp",) if sys.platform == "darwin" else ("-a", "--reflink=always")), "--")

TOOLCHAIN_VARIABLES = (
    *("RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "FNM_DIR", "VOLTA_HOME", "PYENV_ROOT", "JAVA_HOME", "GOROOT"),
    *("SDKMAN_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "BUN_INSTALL"),
    *("DENO_INSTALL", "RBENV_ROOT"),
    *("UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "VIRTUAL_ENV", "CONDA_PREFIX", "DOTNET_ROOT", "MAVEN_HOME"),
    *("M2_HOME", "GRADLE_HOME", "NODENV_ROOT", "ANDROID_HOME", "ANDROID_SDK_ROOT"),
)
"""Variables that name a folder with installed programs; it is visible, and they stay as they are."""

MOVED_VARIABLES = (
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
    *("CARGO_HOME", "GOPATH", "GOMODCACHE", "GOCACHE", "GOBIN", "GOENV", "PIP_CACHE_DIR", "PIP_CONFIG_FILE"),
    *("UV_CACHE_DIR", "UV_CONFIG_FILE", "npm_config_cache", "NPM_CONFIG_CACHE", "NPM_CONFIG_USERCONFIG"),
    *("npm_config_userconfig", "PNPM_HOME", "YARN_CACHE_FOLDER", "GRADLE_USER_HOME", "MAVEN_USER_HOME"),
    *("NUGET_PACKAGES", "PIPX_HOME", "POETRY_CACHE_DIR", "POETRY_CONFIG_DIR", "DENO_DIR", "COREPACK_HOME"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GNUPGHOME", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"),
    *("XAUTHORITY", "TMPDIR", "TMP", "TEMP", "BASH_ENV", "ENV", "ZDOTDIR", "HISTFILE"),
)
"""Variables that name a cache, a configuration or a socket of the user. They are dropped: the default is
below ``HOME``, or in the private ``/tmp``."""


def private_home(root: Path, *, caches: bool = True) -> Path:
    """Return the home folder for the confined processes of the project at *root*; make it if needed.

    *caches*: whether a new one gets copies of the user's package caches.

    Call it once, when a run starts and holds the project's lock: it removes what earlier runs left, except
    for caches and conversations. It copies caches, which may take a while; call it in a thread. Homes of
    other projects that were not used for :data:`UNUSED` are removed. Raises ``OSError``.
    """
    homes = _homes()
    for other in homes.iterdir():
        with suppress(OSError):
            if time.time() - (other / "used").stat().st_mtime > UNUSED.total_seconds():
                remove_folder(other)
    digest = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]
    folder = homes / digest
    home = folder / "home"
    for path in (folder, home):
        path.mkdir(mode=0o700, exist_ok=True)
    # Commands without the project's lock may prepare the same one at the same time.
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clean(home, home)
        (folder / "used").touch()
        real = real_home()
        if real and caches and not (folder / "seeded").exists():
            for name in CACHES:
                _copy_cache(real / name, home / name)
            (folder / "seeded").touch()
        parts = {part for name in SHARED for part in (home / name, *(home / name).parents)}
        for part in sorted(part for part in parts if home in part.parents):
            with suppress(OSError):
                # A link that an agent has left in the way is removed, not followed.
                if part.is_symlink() or part.is_file():
                    part.unlink()
                part.mkdir(mode=0o700)
        _furnish(home)
    return home


def check_home(
    home: Path, folder: Path, *, shares_caches: bool = False
) -> tuple[Path, tuple[Place, ...], dict[str, str]]:
    """Make a new home for one check in *folder*.

    *shares_caches*: it uses the caches of the private *home*, and can change them. Else the check sees that
    home read-only, and uses only what is :data:`INSTALLED` there, and Go's modules, whose checksums Go
    compares with the project's ``go.sum``. Raises ``OSError``.
    """
    made = folder.resolve() / "home"
    made.mkdir(mode=0o700)
    for name in SHARED if shares_caches else INSTALLED:
        if _is_real_folder(home, name):
            (made / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (made / name).symlink_to(home / name)
    _furnish(made)
    variables: dict[str, str] = {}
    if not shares_caches and _is_real_folder(home, GO_DOWNLOADS):
        variables["GOPROXY"] = f"{(home / GO_DOWNLOADS).as_uri()},direct"
    # The whole home and not single folders of it: an agent that is at work could replace one by a link to
    # anywhere before it is mounted. Links in the home are followed inside the sandbox only.
    return made, (Place(path=home, source=home, writable=shares_caches),), variables


def _is_real_folder(home: Path, name: str) -> bool:
    """Whether an agent left a folder at that place, neither nothing nor a link to something else."""
    # A program cannot make a folder where a link leads nowhere, as after `go clean -modcache`.
    return os.path.realpath(home / name) == str(home / name) and (home / name).is_dir()


def _furnish(home: Path) -> None:
    """Give *home* links to the user's toolchains, their settings for registries, and a list of users."""
    if real := real_home():
        for name in TOOLCHAINS:
            link, target = home / name, real / name
            with suppress(OSError):
                if target.is_dir() and not link.exists():
                    link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    link.symlink_to(target.resolve())
        for name in CONFIGURATION:
            copy = home / name
            with suppress(OSError, UnicodeDecodeError):
                lines = (real / name).read_text("utf-8").splitlines(keepends=True)
                copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                copy.write_text("".join(line for line in lines if not SECRET.search(line)), "utf-8")
                copy.chmod(0o600)
    _write_users(home)


def empty_home(folder: Path) -> Path:
    """Make a home folder without toolchains and caches in *folder*, and return it.

    It is for finding out whether a sandbox works, without the project's lock and without copying anything.
    """
    folder = folder.resolve()
    home = folder / "home"
    home.mkdir(mode=0o700)
    _write_users(home)
    return home


def home_places(home: Path) -> tuple[Place, ...]:
    """Return what a confined process sees of the home that :func:`private_home` made, and of the real one."""
    users = home.parent / "passwd"
    places = [Place(path=path, source=path) for path in installed_programs()]
    if sys.platform == "linux":
        # Some programs, such as Java, ask the list of users for the home folder.
        places.append(Place(path=Path("/etc/passwd"), source=users))
    return (*places, Place(path=home, source=home, writable=True))


def home_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return *environment* with ``HOME`` in *home*, and without variables that lead out of it.

    Toolchains that are not in their usual place are still found, by their variables and ``PATH``.
    """
    moved = {name: value for name, value in environment.items() if name not in MOVED_VARIABLES}
    return {**moved, "HOME": str(home)}


def installed_programs() -> tuple[Path, ...]:
    """Return the folders with programs that the user installed: toolchains, and what variables and PATH name.

    They are absolute, without symlinks, and none contains another. The user's home folder, or a folder that
    contains it, is never among them.
    """
    real = real_home()
    named = [os.environ[name] for name in TOOLCHAIN_VARIABLES if os.environ.get(name)]
    wanted = [Path(sys.prefix), Path(sys.base_prefix), *map(Path, named)]
    if real:
        wanted += [real / name for name in TOOLCHAINS]
    entries = map(Path, os.environ.get("PATH", "").split(os.pathsep))
    wanted += [_prefix(entry) for entry in entries if entry.is_absolute()]
    found: set[Path] = set()
    for path in wanted:
        with suppress(OSError, RuntimeError):
            resolved = path.resolve(strict=True)
            if resolved.is_dir() and not (real and real.is_relative_to(resolved)) and resolved != Path("/"):
                found.add(resolved)
    return tuple(sorted(path for path in found if found.isdisjoint(path.parents)))


def real_home() -> Path | None:
    """Return the user's home folder; ``None`` if there is none, as for an unknown user in a container."""
    try:
        home = Path.home().resolve()
    except (RuntimeError, OSError):
        return None
    return home if home.is_absolute() and home.is_dir() and home != Path("/") else None


def _prefix(folder: Path) -> Path:
    """Return the installation that the folder *folder* of programs is a part of, if it looks like one."""
    parent = folder.parent
    signs = ("pyvenv.cfg", "lib", "libexec", "share", "include")
    # The version managers that have shims are often clones of their repositories.
    is_project = (parent / ".git").exists() and folder.name != "shims"
    if folder.name not in ("bin", "shims") or is_project or parent.name == ".local":
        return folder
    return parent if any((parent / sign).exists() for sign in signs) else folder


def homes_folders() -> tuple[Path, ...]:
    """Return where the private homes are: in the first of these folders that can be written."""
    candidates: list[Path] = []
    # A home folder that does not exist is not made here.
    if real_home() or Path(os.environ.get("XDG_CACHE_HOME", "")).is_absolute():
        candidates.append(platformdirs.user_cache_path("gsd") / "homes")
    # Without a home folder, or with one that cannot be written to.
    return (*candidates, Path(tempfile.gettempdir()) / f"gsd-homes-{os.getuid()}")


def _homes() -> Path:
    """Return the folder of all private homes, which only this user can read."""
    problem: OSError | None = None
    for folder in homes_folders():
        if not folder.is_absolute():
            continue
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # In a temporary folder, another user may have made it first, or a link to something else.
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise PermissionError(f"{folder} belongs to somebody else")
            folder.chmod(0o700)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            problem = error
            continue
        return folder.resolve()
    raise problem or OSError("there is no folder for private homes")


def _clean(folder: Path, home: Path) -> None:
    """Remove everything below *folder* that is not :data:`KEPT`. Symlinks are removed, never followed."""
    kept = [home / name for name in KEPT]
    folder.chmod(stat.S_IRWXU)
    for path in list(folder.iterdir()):
        if path.is_symlink() or not path.is_dir():
            if path not in kept or path.is_symlink():
                path.unlink()
        elif path in kept:
            continue
        elif any(path in one.parents for one in kept):
            _clean(path, home)
        else:
            remove_folder(path)


def _copy_cache(source: Path, target: Path) -> None:
    """Copy a cache, unless it is missing or too large. A cache is never needed, so errors do not matter."""
    if not source.is_dir() or target.exists():
        return
    with suppress(OSError):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _clones(source, target):
            # Copies that share their blocks cost no space. Hard links would be the user's own files.
            done = _succeeds(*_CLONE, str(source.resolve()), str(target))
        else:
            done = _is_affordable(source) and _succeeds("cp", "-Rp", "--", str(source.resolve()), str(target))
        if not done:
            remove_folder(target)


def _clones(source: Path, target: Path) -> bool:
    """Return whether files below *source* can share their blocks with copies beside *target*.

    One file tells: without it, ``cp`` would try each of a large cache in vain, which takes seconds.
    """
    first = next(_files(source), None)
    if first is None:
        return False
    probe = target.with_name(f"{target.name}.probe")
    try:
        return _succeeds(*_CLONE, first.path, str(probe))
    finally:
        probe.unlink(missing_ok=True)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _is_affordable(folder: Path) -> bool:
    total = count = 0
    for path in _files(folder):
        total, count = total + path.stat(follow_symlinks=False).st_size, count + 1
        if total > MAX_BYTES or count > MAX_FILES:
            return False
    return total < shutil.disk_usage(folder).free / 4


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield entry


def _write_users(home: Path) -> None:
    """Write an ``/etc/passwd`` with *home* as this user's home folder, beside that."""
    uid, gid = os.getuid(), os.getgid()
    try:
        entry = pwd.getpwuid(uid)
        lines = [f"{entry.pw_name}:x:{uid}:{entry.pw_gid}:{entry.pw_gecos}:{home}:{entry.pw_shell}"]
    except KeyError:
        lines = [f"user:x:{uid}:{gid}::{home}:/bin/sh"]
    with suppress(OSError):
        text = Path("/etc/passwd").read_text(encoding="utf-8", errors="surrogateescape")
        lines += [line for line in text.splitlines() if line.split(":")[2:3] != [str(uid)]]
    text = "".join(f"{line}\n" for line in lines)
    (home.parent / "passwd").write_text(text, encoding="utf-8", errors="surrogateescape")

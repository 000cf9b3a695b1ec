"""Find the plugins that exist, and decide which of them the user wants. None is imported here."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import attrs

from gsd_core.errors import ConfigError

from .importing import Candidate
from .validation import nearest

ENTRY_POINT_GROUP = "gsd"
DEFAULT_PLUGINS: tuple[str, ...] = (
    *("gsd_plugins.claude", "gsd_plugins.rehearsal", "gsd_plugins.native"),
    *("gsd_plugins.commands", "gsd_plugins.terminal", "gsd_plugins.must_haves"),
    *("gsd_plugins.history", "gsd_plugins.uat", "gsd_plugins.answers", "gsd_plugins.retry"),
    *("gsd_plugins.apprise", "gsd_plugins.permissions", "gsd_plugins.budget", "gsd_plugins.governor"),
    *(
        "gsd_plugins.inplace",
        "gsd_plugins.worktree",
        "gsd_plugins.processes",
        "gsd_plugins.sessions",
        "gsd_plugins.mcp",
    ),
    "gsd_plugins.web",
    *("gsd_plugins.bubblewrap", "gsd_plugins.seatbelt", "gsd_plugins.yolo"),
)


@attrs.frozen(kw_only=True)
class Choice:
    """Which plugins the user wants.

    *named*: the values of ``-p``, in order: ``NAME`` or ``no:NAME``; the last one for a name counts.
    *directories*: those of ``--plugins-dir``. *project*: the project's root, if its own plugins may be
    loaded at all. *allowed*: the names in ``GSD_PLUGINS``; ``None`` allows all. *off*: the names that the
    setting ``plugins.off`` leaves out, with where it does.
    *strict*: a broken plugin is a ``ConfigError``. *defaults*: the modules of the built-in plugins.
    """

    named: tuple[str, ...] = ()
    directories: tuple[Path, ...] = ()
    project: Path | None = None
    allowed: frozenset[str] | None = None
    strict: bool = False
    off: Mapping[str, str] = attrs.field(factory=dict[str, str])
    defaults: tuple[str, ...] = DEFAULT_PLUGINS

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Choice:
        """Return what ``GSD_PLUGINS`` and ``GSD_STRICT_PLUGINS`` ask for."""
        listed = environ.get("GSD_PLUGINS")
        allowed = None if listed is None else frozenset(listed.replace(",", " ").split())
        return cls(allowed=allowed, strict=environ.get("GSD_STRICT_PLUGINS", "") == "1")

    @property
    def wanted(self) -> dict[str, bool]:
        """Each name given with ``-p``, and whether the plugin is wanted."""
        return {name.removeprefix("no:"): not name.startswith("no:") for name in self.named}

    def reason_to_block(self, candidate: Candidate, *, replaces: bool) -> str:
        """Return why *candidate* must not be loaded, or an empty string.

        *replaces*: it has the name of a blocked built-in plugin, so ``-p no:NAME`` meant that one.
        """
        wanted = self.wanted.get(candidate.name)
        if wanted is False and not replaces:
            return f"-p no:{candidate.name}"
        if not wanted and not replaces and candidate.name in self.off:
            return f"plugins.off ({self.off[candidate.name]})"
        if self.allowed is None or candidate.name in self.allowed:
            return ""
        return "" if wanted or replaces or candidate.asked_for else "not in GSD_PLUGINS"


def discover(choice: Choice, installed: Iterable[EntryPoint] = ()) -> list[Candidate]:
    """Return every plugin that exists, in the order of loading.

    The plugins that only ``-p`` names come after the built-in ones, before those that are installed.
    """
    found = [Candidate(name=one.rpartition(".")[2], source="default", target=one) for one in choice.defaults]
    by_name = sorted(installed, key=lambda one: (one.name, one.value))
    found += [Candidate(name=one.name, source="entry point", target=one) for one in by_name]
    for directory in choice.directories:
        if not directory.is_dir():
            raise ConfigError(f"--plugins-dir {str(directory)!r} is not a folder")
        found += _files(directory, trusted=True)
    if choice.project:
        found += _files(choice.project / ".gsd" / "plugins", trusted=False)
    known = {candidate.name for candidate in found}
    extra = [_named(name, known) for name, wanted in choice.wanted.items() if wanted and name not in known]
    known |= {candidate.name for candidate in extra}
    for name in (name for name, wanted in choice.wanted.items() if not wanted and name not in known):
        hint = "'gsd plugins' lists the plugins"
        raise ConfigError(f"-p no:{name}: unknown plugin {name!r}{nearest(name, tuple(known))}", hint=hint)
    built_in = len(choice.defaults)
    return [*found[:built_in], *extra, *found[built_in:]]


def _files(directory: Path, *, trusted: bool) -> Iterator[Candidate]:
    for path in sorted(directory.glob("[!_.]*.py")):
        yield Candidate(name=path.stem, source="directory", target=path, trusted=trusted)


def _named(name: str, known: Collection[str]) -> Candidate:
    """Return the file or the module that ``-p NAME`` means if no known plugin has that name."""
    path = Path(name)
    if path.suffix == ".py" and path.is_file():
        return Candidate(name=path.stem, source="file", target=path)
    try:
        is_module = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        is_module = False
    except (Exception, SystemExit):  # its package is imported, and may raise anything
        is_module = True  # so that loading reports it as broken
    if is_module:
        return Candidate(name=name.rpartition(".")[2], source="module", target=name)
    hint = "give a plugin's name, a module, or a file that ends in .py"
    raise ConfigError(f"unknown plugin {name!r}{nearest(name, tuple(known))}", hint=hint)

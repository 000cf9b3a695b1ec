"""What a project wants that needs its user's trust, and how the user is asked for it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs
import click

from gsd_core.errors import ConfigError, GsdError, JournalError, Untrusted
from gsd_core.git import data_directory
from gsd_core.git.command import Command
from gsd_core.git.untrusted import LocalProgram, filters_to_trust
from gsd_core.journal.schema import MOVE_AWAY
from gsd_core.journal.store import damage_reported
from gsd_core.machine.facts import PlanEdited, RunOpened, StepCompleted, StepReturned
from gsd_core.planning.config import read_config
from gsd_core.planning.survey import read_planning
from gsd_core.plugins.loading import collect_settings
from gsd_core.run.last_run import read_last_run
from gsd_core.run.places import remove_empty
from gsd_core.run.sandbox import can_confine
from gsd_core.sanitize import redact, safe_file, sanitize
from gsd_core.settings import (
    CORE_SECTIONS,
    Layer,
    ProjectSetting,
    RunSettings,
    Settings,
    environment_layer,
    journals_folder,
    planning_layer,
    resolve,
    restricted,
    toml_layer,
    trust_folder,
    user_layer,
    without,
)
from gsd_core.trust import KnownJournals, TrustStore, Want

from .commands import base_command
from .global_options import GlobalOptions
from .output import counted, show_all, warn
from .plugin_loading import Loaded, names_off, with_project_as_it_is, with_trusted, without_plugins
from .project import ProjectState, holder_of, is_own_journal, journal_path, load, now, open_journal

PROJECT_SETTINGS = "gsd.toml"
AGENT_FOLDER = ".claude"
MAX_FILES = 500
WITHOUT_JOURNAL = f"; to do without the journal, {MOVE_AWAY}"
HINT = "read it, then trust it with `gsd trust` at a terminal, or pass --trust"
_URL = re.compile(r"\b([a-z][a-z0-9+.-]*)://(?:[^\s/@]*@)?([^\s/:?#]*)(:\d+)?(\S*)", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class ProjectTrust:
    """What the project at *root* wants, and the digests that its user has *trusted*.

    *consent* are the settings by which the project tries to speak for its user; no trust covers them.
    *relies_on_sandbox*: it has commands of plans that count as harmless because a sandbox confines them.
    *programs* are the filters in git's settings that are among the wants.
    """

    root: Path
    wants: tuple[Want, ...] = ()
    trusted: frozenset[str] = frozenset()
    consent: tuple[ProjectSetting, ...] = ()
    relies_on_sandbox: bool = False
    programs: frozenset[LocalProgram] = frozenset()

    @property
    def new(self) -> tuple[Want, ...]:
        """What is not trusted yet."""
        return tuple(want for want in self.wants if want.digest not in self.trusted)

    def accepted(self) -> ProjectTrust:
        """Return this with everything trusted."""
        return attrs.evolve(self, trusted=frozenset(want.digest for want in self.wants))

    @property
    def trusted_programs(self) -> frozenset[LocalProgram]:
        """The filters that git may run."""
        return frozenset() if self.new else self.programs

    @property
    def plugin_hashes(self) -> frozenset[str]:
        """The SHA-256, in hex, of the plugin files, if they may be loaded: nothing or all of a project is."""
        return frozenset() if self.new else frozenset(w.shown for w in self.wants if w.kind == "plugin")


def examine(loaded: Loaded, root: Path, run: RunSettings | None = None) -> ProjectTrust:
    """Return what the project at *root* wants; *loaded* decides which of its plugins count.

    Nothing of the project is imported. The plans' commands count unless a sandbox confines them: *run* are
    the settings for that, by default those of the user. The same content has the same digests in another
    clone. Raises ``ConfigError`` if the project's settings cannot be read.
    """
    if not root.is_dir():
        return ProjectTrust(root=root)
    own = [info for info in loaded.infos if info.from_project]
    set_by_project = _settings(loaded, root)
    wants = [
        *(
            Want.of("plugin", Path(info.path).relative_to(root).as_posix(), info.sha256, shown=info.sha256)
            for info in own
            if info.sha256
        ),
        *(_files(root, {Path(info.path) for info in own}) if any(info.sha256 for info in own) else ()),
        *(_setting(each) for each in set_by_project if not each.consent),
    ]
    is_sandboxed, commands = False, list(_commands(root))
    if commands and (settings := run or _sandbox_settings(root, set_by_project)).sandbox != "off":
        try:
            # The same code decides it as for a run.
            is_sandboxed = asyncio.run(can_confine(loaded.hooks, settings, root))
        finally:
            # The sandbox of a run that is active relies on these folders.
            if holder_of(root) is None:
                remove_empty(root)
    if not is_sandboxed:
        wants += commands
    if run is not None and run.workflow == "commands":
        wants += _agent_folder(root)
    wants += _foreign_journal(root)
    programs = filters_to_trust(Command(root=root))
    for one in programs:
        shown = f"{redact(sanitize(one.value, multiline=False))} ({one.origin})"
        wants.append(Want.of("program", one.key, one.value, shown=shown))
    trusted = TrustStore(trust_folder()).trusted(root, wants) if wants else frozenset[str]()
    return ProjectTrust(
        root=root,
        wants=tuple(wants),
        trusted=trusted,
        consent=tuple(each for each in set_by_project if each.consent),
        relies_on_sandbox=is_sandboxed,
        programs=frozenset(programs),
    )


def as_left_by_people(loaded: Loaded, options: GlobalOptions, before: ProjectState | None = None) -> Loaded:
    """Return *loaded* after what a killed run's agents may not change is undone, if the project wants trust.

    So nobody is asked to trust what an agent wrote and what the run would remove anyway. *before* is the
    project's state, if the caller has read it.
    """
    root = options.directory.resolve()
    if not root.is_dir() or not journal_path(root).exists():
        return loaded
    before = before or load(options)
    running = any(step.status == "running" for step in before.state.steps.values())
    if not running or not before.is_own or before.holder:
        return loaded
    with suppress(ConfigError):  # an agent may also have written settings that cannot be read
        if not examine(loaded, root).new:
            return loaded
    from gsd_core.run.start import undo_interrupted

    if not asyncio.run(undo_interrupted(root, now, base_command(options))):
        return loaded
    warn(["the last run was killed while an agent worked; what only the run may change is undone: gsd log"])
    return with_project_as_it_is(loaded)


def admit(loaded: Loaded, trust: ProjectTrust) -> Loaded:
    """Return *loaded* with the project's plugins and settings if all of what it wants is trusted."""
    if trust.new:
        return loaded
    admitted = attrs.evolve(with_trusted(loaded, trust.plugin_hashes), admitted=True)
    return without_plugins(admitted, names_off(project_layers(admitted, trust.root)[0]))


def project_layers(loaded: Loaded, root: Path) -> tuple[Layer, Layer]:
    """Return the settings in the project's files, as far as the project may set them."""
    layers = _layers(root)
    forbidden = {each.name for each in _settings(loaded, root) if each.consent or not loaded.admitted}
    return without(layers[0], forbidden), without(layers[1], forbidden)


def refuse_consent(trust: ProjectTrust) -> None:
    """Raise ``ConfigError`` if the project's files consent to something for the user."""
    if trust.consent:
        names = ", ".join(each.name for each in trust.consent)
        raise ConfigError(
            f"{trust.consent[0].origin} sets {names}: consent cannot come from the project's files",
            hint="pass the flag, or set it in your own config.toml; and remove it there",
        )


def refuse_untrusted(trust: ProjectTrust) -> None:
    """Raise ``Untrusted`` with the list of what is not trusted."""
    if trust.new:
        listed = "\n".join(f"  {line}" for line in lines_of(trust.new))
        hint = HINT + (WITHOUT_JOURNAL if any(want.kind == "journal" for want in trust.new) else "")
        raise Untrusted(f"this project is not trusted, and wants\n{listed}", hint=hint)


def remember(trust: ProjectTrust) -> ProjectTrust:
    """Store that the user trusts all that the project wants, and return it so."""
    TrustStore(trust_folder()).add(trust.root, trust.wants, now())
    if any(want.kind == "journal" for want in trust.wants):
        # From now on, its content changes with each fact and each answer.
        with open_journal(trust.root, writable=True) as journal:
            KnownJournals(journals_folder()).add(journal, trust.root, now())
    return trust.accepted()


def ask(trust: ProjectTrust) -> bool:
    """Show all that is not trusted at the terminal, to its end; return whether the user trusts it."""
    known = len(trust.wants) - len(trust.new)
    also = f" (in addition to the {known} that you trusted before)" if known else ""
    lines = [f"this project wants the following{also}:", *(f"  {line}" for line in lines_of(trust.new))]
    if not show_all(lines):
        return False
    # A plugin from a cloned repository is code that runs with all the user's rights.
    return click.confirm("It can do everything that you can do. Trust it?", default=False, err=True)


def lines_of(wants: Sequence[Want]) -> Iterator[str]:
    """Yield a line for each want, sanitized and never cut: the rest would be trusted unseen."""
    for want in wants:
        match want.kind:
            case "plugin" | "file":
                line = f"{want.kind} {want.name} (sha256 {want.shown[:12]})"
            case "setting":
                line = f"setting {want.name} = {want.shown}"
            case "program":
                line = f"program that git runs for files it commits: {want.name} = {want.shown}"
            case "command":
                line = f"command of {want.name}: {want.shown}"
            case "journal":
                line = f"the journal {want.name}, which no run of yours wrote here: {want.shown}"
        yield sanitize(line, multiline=False)


def changed_since_start(trust: ProjectTrust, root: Path, run: str) -> tuple[Want, ...]:
    """Return what is not trusted and was not trusted when *run* began or a person continued it.

    An agent may have written it since.
    """
    with open_journal(root) as journal:
        trusted = [fact.data.trusted for fact in journal.facts(RunOpened, run=run)]
    openings = [one for one in trusted if one is not None]
    if not openings:
        return ()
    recorded = {digest for trusted in openings for digest in trusted}
    return tuple(want for want in trust.new if want.digest not in recorded)


# What a project can want.


def _files(root: Path, plugins: Collection[Path]) -> Iterator[Want]:
    """Yield the other files in the plugins' folder, which the plugins may import or read."""
    inside = sorted((root / ".gsd" / "plugins").rglob("*"))
    others = [path for path in inside if path not in plugins and "__pycache__" not in path.parts]
    found = [path for path in others if path.is_file() or path.is_symlink()]
    if len(found) > MAX_FILES:
        message = f".gsd/plugins has {counted(len(found), 'file')}"
        raise ConfigError(message, hint=f"at most {MAX_FILES} are supported")
    for path in found:
        if path.is_symlink():
            sha256 = hashlib.sha256(f"link to {path.readlink()}".encode()).hexdigest()
        else:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        yield Want.of("file", path.relative_to(root).as_posix(), sha256, shown=sha256)


def _agent_folder(root: Path) -> Iterator[Want]:
    """Yield the project's own settings, hooks and commands of the agent as one want, if there are any.

    They count only for an agent with its user's settings: its hooks start programs without being asked about,
    and its commands may change the plan.
    """
    folder = root / AGENT_FOLDER
    found = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    digest = hashlib.sha256()
    for path in found:
        if path.is_symlink():
            content = f"link to {path.readlink()}".encode(errors="surrogateescape")
        else:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        name = os.fsencode(path.relative_to(folder))
        digest.update(b"%d %b %d %b" % (len(name), name, len(content), content))
    if found:
        shown = f"settings, hooks and commands of the agent, {len(found)} in all"
        yield Want.of("file", f"{AGENT_FOLDER}/", digest.hexdigest(), shown=shown)


def _layers(root: Path) -> tuple[Layer, Layer]:
    own = toml_layer(root / PROJECT_SETTINGS, PROJECT_SETTINGS, inside=root)
    return own, planning_layer(read_config(root))


def _settings(loaded: Loaded, root: Path) -> tuple[ProjectSetting, ...]:
    foreign = {info.name for info in loaded.infos if info.from_project}
    # A project's own plugin could declare all of its fields harmless.
    classes = [*CORE_SECTIONS, *(c for c in collect_settings(loaded.hooks) if c[0] not in foreign)]
    return restricted(classes, (*_layers(root), user_layer()), foreign=foreign)


def _setting(each: ProjectSetting) -> Want:
    content = json.dumps(each.value, sort_keys=True, default=str)
    about = f"{each.origin}; {each.help}" if each.help else each.origin
    return Want.of("setting", each.name, content, shown=f"{_shown(each.value)} ({about})")


def _shown(value: Any) -> str:
    """Return a setting's value without secrets: of a URL only the scheme and the host."""

    def hide(match: re.Match[str]) -> str:
        scheme, host, port, rest = match[1], match[2], match[3] or "", match[4]
        # Some services have a token in the place of the host: tgram://123456:ABC/…
        if "." not in host and host != "localhost":
            return f"{scheme}://…"
        return f"{scheme}://{host}{port}{'/…' if rest not in ('', '/') else ''}"

    def each(part: Any) -> Any:
        if isinstance(part, str):
            return redact(_URL.sub(hide, sanitize(part, multiline=False)))
        if isinstance(part, list):  # TOML and JSON have no other collections
            return [each(one) for one in cast("list[object]", part)]
        if isinstance(part, dict):
            return {str(key): each(one) for key, one in cast("dict[object, object]", part).items()}
        return part

    return json.dumps(each(value), ensure_ascii=False, default=str)


def _foreign_journal(root: Path) -> Iterator[Want]:
    """Yield the journal if it came with the folder: its options would count, and its answers as given."""
    if data_directory(root) is None:
        return
    try:
        with open_journal(root) as journal:
            if is_own_journal(journal, root):
                return
            digest, last = journal.digest(), read_last_run(journal)
            with damage_reported(journal.path):
                answers = [item for item in journal.take_inbox() if item.kind == "answer"]
    except JournalError:
        return  # what reads it for its content reports it
    given = len(answers) + sum(len(asked.answers) for asked in last.state.inquiries.values())
    options = _shown({"agent": list(last.history.agents), **last.history.typed})
    shown = f"{counted(last.unkept, 'fact')}, {counted(given, 'answer')}, options {options}"
    yield Want.of("journal", ".git/gsd/journal.db", digest, shown=shown)


def _commands(root: Path) -> Iterator[Want]:
    """Yield the commands of the plans that no run of this project wrote."""
    try:
        plans = [plan for phase in read_planning(root).phases for plan in phase.plans]
    except (GsdError, OSError):
        return  # the run reports it, before it runs any command
    written = _written_plans(root) if plans else frozenset[str]()
    for plan in plans:
        if hashlib.sha256(plan.text.encode("utf-8", "replace")).hexdigest() in written:
            continue
        for task in plan.tasks:
            if task.check:
                shown = redact(sanitize(task.check, multiline=False))
                yield Want.of("command", f"{plan.path}, task {task.number}", task.check, shown=shown)


def _written_plans(root: Path) -> frozenset[str]:
    """Return the SHA-256 of each PLAN that a run of this project wrote, or that a person changed since."""
    if data_directory(root) is None:
        return frozenset()
    found: set[str] = set()
    with open_journal(root) as journal:
        if not is_own_journal(journal, root):
            return frozenset()
        found |= {fact.data.sha256 for fact in journal.facts(PlanEdited)}
        completed = [fact.data.plans or {} for fact in journal.facts(StepCompleted)]
        found |= {digest for plans in completed for digest in plans.values()}
        for fact in journal.facts(StepReturned):
            found |= {*(fact.data.plans or {}).values()}
            # A run that is killed has its plan on disk before the step is recorded as completed.
            found |= {
                hashlib.sha256(safe_file(file["text"]).encode("utf-8", "replace")).hexdigest()
                for file in fact.data.result.get("files", ())
                if file["path"].endswith("-PLAN.md")
            }
    return frozenset(found)


# Whether what runs is confined.


def _sandbox_settings(root: Path, set_by_project: Sequence[ProjectSetting]) -> RunSettings:
    """Return the sandbox that counts if the project is not trusted."""
    names = {each.name for each in set_by_project}
    classes = (("run", RunSettings),)
    layers = [
        environment_layer(classes, os.environ),
        *(without(layer, names) for layer in _layers(root)),
        user_layer(),
    ]

    def of_sandbox(layer: Layer) -> Layer:
        run = layer.sections.get("run", {})
        only = {key: run[key] for key in ("sandbox", "sandboxes") if key in run}
        return attrs.evolve(layer, sections={"run": only})

    found: RunSettings = resolve(classes, [*map(of_sandbox, layers)]).of(RunSettings)
    return found


def require_sandbox(settings: Settings, trust: ProjectTrust) -> Settings:
    """Return *settings* that require a sandbox if commands which nobody trusts rely on one."""
    if not trust.relies_on_sandbox:
        return settings
    run = attrs.evolve(settings.of(RunSettings), sandbox="required")
    return attrs.evolve(settings, values={**settings.values, RunSettings: run})

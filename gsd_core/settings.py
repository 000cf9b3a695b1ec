"""Settings: the classes that declare them, the sources of their values, and their conversion.

The first source that sets a value wins: flag, ``GSD_*`` variable, the options of the run that is
resumed, the project's ``gsd.toml``, ``.planning/config.json``, the user's own ``config.toml``, default.

Each plugin contributes attrs classes (``gsd_settings``). Their section in the files is the plugin's
name; their variables are ``GSD_SECTION_FIELD``, or ``GSD_FIELD`` for the core's own section ``run``.
All errors are reported together.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
import types
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import attrs

from .errors import ConfigError
from .files import read_below
from .model.notice import NOTICE_TYPES, NoticeType
from .model.step import Depth, Profile

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

# Two runs may share a process, so the values cannot be in a module-level variable.
_bound: ContextVar[Mapping[type, object] | None] = ContextVar("gsd_settings", default=None)


Harmless: TypeAlias = Callable[[Any, Any], bool]
"""Whether a project may set a value: the arguments are the value, and the one that counts without it."""


def setting(
    default: Any,
    *,
    flag: str = "",
    short: str = "",
    help: str = "",  # noqa: A002 - click's own word
    harmless: bool | Harmless = False,
    consent: bool = False,
    secret: bool = False,
) -> Any:
    """Declare a field of a settings class: its *default*, and its *flag* on ``gsd run``, if any, which may
    have a *short* form such as ``-y``.

    *default* may be a callable; it is called for each instance. A flag takes a value of the field's
    type; the flag of a tuple may be repeated. *harmless*: a project's own ``gsd.toml`` may set it although
    its user has not trusted the project; a function decides by value (see :func:`at_most`). *consent*: it
    speaks for the user, so the project's files may never set it, except to a *harmless* value. A *secret*
    value is redacted wherever text leaves a run, and is not stored: a process that resumes the run has to be
    given it again.
    """
    metadata: dict[str, Any] = {"flag": flag, "short": short, "help": help, "harmless": harmless}
    metadata |= {"consent": consent, "secret": secret}
    if callable(default):
        return attrs.field(factory=default, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


def at_most(bound: Any) -> Harmless:
    """Return a function for *harmless* of :func:`setting`: at most *bound*, or what counts without it.

    ``None`` means that there is no limit.
    """

    def is_harmless(value: Any, otherwise: Any) -> bool:
        return value is not None and any(limit is not None and value <= limit for limit in (bound, otherwise))

    return is_harmless


def lower_only(value: Any, otherwise: Any) -> bool:
    """Whether *value* limits at least as much as *otherwise*, for *harmless*; ``None`` means no limit."""
    return otherwise is None or (value is not None and value <= otherwise)


def is_off(value: Any, otherwise: Any) -> bool:
    """Whether *value* turns off what might weaken a protection, for *harmless*."""
    return value is False


def is_required(value: Any, otherwise: Any) -> bool:
    """Whether *value* requires a protection, for *harmless*; anything else might weaken it."""
    return bool(value == "required")


def settings_of(kind: type[T]) -> T:
    """Return the run's values of the settings class *kind*; outside a run, its defaults."""
    values = _bound.get() or {}
    return cast("T", values[kind]) if kind in values else kind()


def convert_value(value: Any, kind: Any, where: str) -> Any:
    """Return a value from TOML as the type *kind*, converted like the value of a setting.

    For a plugin that reads a file of its own: durations may be written like ``10m``, and a list becomes a
    tuple. Raises ``ConfigError`` with each part that is wrong; *where* says what the value is.
    """
    try:
        return _converter().structure(value, kind)
    except Exception as exc:
        raise ConfigError("\n  ".join(_conversion_errors(exc, where))) from exc


@contextmanager
def bind_settings(values: Mapping[type, object]) -> Generator[None]:
    """Make :func:`settings_of` return *values*, by class, in this context and the tasks it starts."""
    token = _bound.set(values)
    try:
        yield
    finally:
        _bound.reset(token)


@attrs.frozen(kw_only=True)
class RunSettings:
    """The core's settings for a run, section ``run``.

    *agent*, *execute*, *workspace*, *sandboxes*: the plugins to use; a later one is called if those before
    it decline. *workflow*: who does the steps of a phase: ``native``, or ``commands`` for the user's own
    GSD commands, which is the same as ``commands`` in front of *execute*. *workspace_setup*: a command that
    prepares a new work tree, for example ``npm ci``; ``GSD_SLOT`` in its environment is a number that no
    other plan in progress has. *sandbox*: whether to confine
    what a model or a repository wrote: ``auto`` if a sandbox works on this machine, ``required`` not to run
    without one, ``off`` never. *sandbox_caches*: whether a project's private home in the sandbox begins
    with copies of the user's package caches. *checks_share_caches*: whether checks and commit hooks use the
    package caches of the agents; with ``false`` theirs are empty, which is slower, but no agent can change
    them. *phases*: a range such as ``1-3,5,7.1``. *max_parallel*: how many plans are executed side by side,
    each in a work tree of its own; in the project's own folder it is always one. *parallel_phases*: whether
    they may be of several phases that do not depend on each other. *dispatch*: plugins that execute plans
    elsewhere, such as ``processes``; none means in work trees, by the run's own process. *remote*: the git
    repository through which their commits travel, by default the project's own. *gap_rounds*: how often a
    phase may be planned again for the gaps that its verification found. *audit*: whether a milestone is
    audited when its phases are complete, which costs no tokens. *close_milestone*: whether it is then
    closed: archived and tagged. *wait_for_answers*: how long an unattended run waits for an answer before
    it exits. *co_authored_by*: the value of a trailer ``Co-Authored-By`` in every commit of the run, such
    as ``Claude <noreply@anthropic.com>``; none if it is empty.
    """

    agent: tuple[str, ...] = setting(("claude",), flag="--agent", help="agent plugin to use")
    execute: tuple[str, ...] = setting(("native",))
    workflow: Literal["native", "commands"] = setting(
        "native", flag="--workflow", help="who does the steps: native, or commands (your own GSD commands)"
    )
    workspace: tuple[str, ...] = setting(
        ("worktree",), flag="--workspace", help="where plans are executed: inplace, or worktree"
    )
    workspace_setup: str = setting("")
    session_host: tuple[str, ...] = setting(("sessions",), harmless=True)
    dispatch: tuple[str, ...] = setting(
        (), flag="--dispatch", help="who executes plans elsewhere: processes, or a plugin's fleet"
    )
    remote: str = setting("", flag="--remote", help="git repository through which their commits travel")
    sandbox: Literal["auto", "required", "off"] = setting(
        "auto",
        flag="--sandbox",
        help="confine agents and commands: auto, required or off",
        harmless=is_required,
        consent=True,
    )
    sandboxes: tuple[str, ...] = setting(("bubblewrap", "seatbelt"), consent=True)
    sandbox_caches: bool = setting(True, harmless=True)
    checks_share_caches: bool = setting(True, harmless=is_off, consent=True)
    phases: str = setting("", flag="--phases", help="phases to run, such as 1-3,5,7.1", harmless=True)
    only: str = setting("", flag="--only", help="run this phase only", harmless=True)
    skip_verify: bool = setting(
        False, flag="--skip-verify", help="skip verification (noted in the summary)", harmless=True
    )
    skip_discuss: bool = setting(
        False,
        flag="--skip-discuss",
        help="decide what is open about a phase without asking (noted in its CONTEXT.md)",
        harmless=True,
    )
    audit: bool = setting(True, harmless=True)
    close_milestone: bool = setting(False, harmless=True)
    depth: Depth = setting(
        "standard", flag="--depth", help="how finely to divide the work into phases", harmless=True
    )
    max_parallel: int = setting(
        0, flag="--max-parallel", help="how many plans may be executed at the same time", harmless=at_most(8)
    )
    parallel_phases: bool = setting(
        False,
        flag="--parallel-phases",
        help="work on phases that do not depend on each other at the same time",
        harmless=True,
    )
    fail_fast: bool = setting(
        False, flag="--fail-fast", help="start nothing more when a plan has failed", harmless=True
    )
    profile: Profile = setting("balanced", harmless=True)
    model: str = setting("", flag="--model", help="model to use for every step", harmless=True)
    gap_rounds: int = setting(3, harmless=at_most(10))
    commit_docs: bool = setting(True, harmless=True)
    allow_dirty: bool = setting(
        False, flag="--allow-dirty", help="start even with uncommitted changes to tracked files", consent=True
    )
    accept_branch: bool = setting(
        False,
        flag="--accept-branch",
        help="continue on this branch, although the run began on another one",
        consent=True,
    )
    co_authored_by: str = setting("")
    wait_for_answers: timedelta = setting(timedelta(0), harmless=at_most(timedelta(days=1)))

    @property
    def executors(self) -> tuple[str, ...]:
        """The plugins that execute steps, in the order in which they are asked."""
        if self.workflow == "native":
            return self.execute
        return tuple(dict.fromkeys((self.workflow, *self.execute)))


@attrs.frozen(kw_only=True)
class LimitSettings:
    """Limits of what agents and checks start, section ``limits``; times in seconds or written like ``10m``.

    *idle*: an agent call that reports no activity. *hard*: an agent call as a whole. *check*: a command
    of a plan. *ablation*: all checks of a phase when they run again without the work of their plans; 0 leaves
    that out. *detector*: a gap detector. *max_wait*: the longest wait for a usage limit to reset.
    *park_after*: how long an agent's process is kept while it waits for a human; after that it is ended,
    and its conversation is resumed with the answer. *max_processes* and *max_memory*: how many processes an
    agent or a command may have at once, and how many megabytes of memory they may need together; 0 is no
    limit for processes, and four fifths of the machine's memory. What exceeds them is ended. On Linux only.
    """

    idle: timedelta = setting(timedelta(minutes=10), harmless=at_most(timedelta(hours=1)))
    hard: timedelta = setting(timedelta(hours=1), harmless=at_most(timedelta(hours=6)))
    max_wait: timedelta = setting(timedelta(hours=6), harmless=at_most(timedelta(days=1)))
    park_after: timedelta = setting(timedelta(minutes=5), harmless=at_most(timedelta(hours=1)))
    check: timedelta = setting(timedelta(minutes=10), harmless=at_most(timedelta(hours=1)))
    ablation: timedelta = setting(timedelta(minutes=10), harmless=at_most(timedelta(hours=1)))
    detector: timedelta = setting(timedelta(minutes=10), harmless=at_most(timedelta(hours=1)))
    max_processes: int = setting(4096)
    max_memory: int = setting(0)


@attrs.frozen(kw_only=True)
class NotifySettings:
    """Which notifications are sent, section ``notify``; the plugins' own settings say where to.

    *events*: the types of notifications to send: ``question``, ``progress``, ``error``, ``crash`` and
    ``complete``. *remind_after*: how long a question has to stay open until people are reminded of it; each
    further reminder comes after twice the time, up to a day. 0 means no reminder.
    """

    events: tuple[NoticeType, ...] = setting(NOTICE_TYPES)
    remind_after: timedelta = setting(timedelta(hours=1))


def _decides_nothing(value: Any, otherwise: Any) -> bool:
    """Whether questions that nobody answers stay unanswered, for *harmless*."""
    return value in ("wait", "stop")


@attrs.frozen(kw_only=True)
class QuestionSettings:
    """What becomes of a question that nobody answers, section ``questions``.

    *unanswered*: what to do with a question that is open for longer than *timeout*. ``wait`` leaves it open:
    a run that nobody can answer now ends with exit code 3. ``recommended`` waits until then, and takes the
    recommended option; a question without one, one for a human only, and the choice between retry, skip and
    abort stay open. ``stop`` ends the run with exit code 3 even if somebody could still answer.
    """

    unanswered: Literal["wait", "recommended", "stop"] = setting(
        "wait", harmless=_decides_nothing, consent=True
    )
    timeout: timedelta = setting(timedelta(hours=1), consent=True)


@attrs.frozen(kw_only=True)
class PluginSettings:
    """Which plugins are left out, section ``plugins``.

    *off*: the names of plugins that are not loaded, as with ``-p no:NAME``; ``-p NAME`` loads one anyway. The
    lists of the environment, the project and the user count together.
    """

    off: tuple[str, ...] = setting((), help="plugins to leave out")


REHEARSAL_AGENTS = ("rehearsal",)
"""The agents whose calls cost nothing."""


def is_rehearsal(agents: Collection[str]) -> bool:
    """Whether a run with these *agents* costs nothing."""
    return bool(agents) and set(agents) <= {*REHEARSAL_AGENTS}


CORE_SECTIONS: tuple[tuple[str, type], ...] = (
    ("run", RunSettings),
    ("limits", LimitSettings),
    ("notify", NotifySettings),
    ("questions", QuestionSettings),
    ("plugins", PluginSettings),
)


COMMAND_LINE = "command line"
ENVIRONMENT = "environment"
MAX_COMMANDS = 3
"""How many commands a hint names."""

Section: TypeAlias = Mapping[str, Any]


@attrs.frozen(kw_only=True)
class Layer:
    """The values of one source, by section and key; if *strict*, an unknown key is an error.

    *origin* is empty for a value that is only checked. *project*: they come from the project's files, which
    its user need not have written. *names* are what the source calls settings (``run.profile``), if it has
    names of its own. *unset* is the command that removes a value, without the name; empty if there is none.
    """

    origin: str
    sections: Mapping[str, Section]
    strict: bool = True
    project: bool = False
    names: Mapping[str, str] = attrs.field(factory=dict[str, str])
    unset: str = ""


@attrs.frozen(kw_only=True)
class Settings:
    """The values by class, and the origin of each value that is not a default (``run.model``).

    *unused* are the sections of plugins that are not loaded, each with where it is.
    """

    values: Mapping[type, object]
    origins: Mapping[str, str] = attrs.field(factory=dict[str, str])
    unused: Mapping[str, str] = attrs.field(factory=dict[str, str])

    def of(self, kind: type[T]) -> T:
        """Return the value of a settings class."""
        return cast("T", self.values[kind]) if kind in self.values else kind()

    def secrets(self) -> Iterator[str]:
        """Yield the values of the settings that are secret."""
        for kind, settings in self.values.items():
            for attribute in attrs.fields(kind):
                if attribute.metadata.get("secret"):
                    value: Any = getattr(settings, attribute.name)
                    yield from (value,) if isinstance(value, str) else map(str, value)


def environment_layer(classes: Sequence[tuple[str, type]], environ: Mapping[str, str]) -> Layer:
    """Return the values of the ``GSD_*`` variables."""
    sections: dict[str, dict[str, Any]] = {}
    for section, kind in classes:
        for attribute in attrs.fields(kind):
            if (name := variable_of(section, attribute.name)) in environ:
                sections.setdefault(section, {})[attribute.name] = environ[name]
    return Layer(origin=ENVIRONMENT, sections=sections)


def variables_of(classes: Sequence[tuple[str, type]]) -> frozenset[str]:
    """Return the names of the ``GSD_*`` variables of these settings classes."""
    return frozenset(
        variable_of(section, one.name) for section, kind in classes for one in attrs.fields(kind)
    )


def variable_of(section: str, key: str) -> str:
    """Return the name of a setting's variable."""
    return f"GSD_{key.upper()}" if section == "run" else f"GSD_{section.upper()}_{key.upper()}"


def toml_layer(path: Path, origin: str, *, inside: Path | None = None) -> Layer:
    """Return the values of a TOML file, of the user or of the project in *inside*; none if it does not exist.

    A link that leads out of *inside* is not followed.
    """
    # The user's own settings may be a link to anywhere.
    folder = inside or Path(os.path.realpath(path)).parent
    name = path.name if inside else os.path.basename(os.path.realpath(path))  # noqa: PTH119
    try:
        data = tomllib.loads(read_below(folder, name).decode("utf-8"))
    except FileNotFoundError:
        return Layer(origin=origin, sections={}, project=inside is not None)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"cannot read {origin}: {exc}", hint="fix the file, or move it away") from exc
    if outside := [key for key, value in data.items() if not isinstance(value, dict)]:
        raise ConfigError(f"{origin}: {outside[0]!r} is not in a section", hint="put it under [run]")
    unset = "gsd settings unset" if inside else "gsd settings unset --user"
    return Layer(origin=origin, sections=data, project=inside is not None, unset=unset)


def planning_layer(config: Mapping[str, Any]) -> Layer:
    """Return the values of our settings that GSD's own ``config.json`` contains."""
    depths = {"coarse": "quick", "fine": "comprehensive"}
    # Each with the names that GSD has given it. The first that is set wins, as in gsd-core.
    sources: dict[str, Sequence[str]] = {
        "depth": ("granularity", "planning.granularity", "depth"),
        "profile": ("model_profile",),
        "skip_verify": ("workflow.verifier", "verifier"),
        "skip_discuss": ("workflow.skip_discuss",),
        "commit_docs": ("commit_docs", "planning.commit_docs"),
    }
    run: dict[str, Any] = {}
    names: dict[str, str] = {}
    for setting_name, places in sources.items():
        for name in places:
            section, _, key = name.rpartition(".")
            value = (_table(config, section) if section else config).get(key)
            if value is not None:
                run[setting_name], names[f"run.{setting_name}"] = value, name
                break
    if "depth" in run:
        run["depth"] = depths.get(str(run["depth"]), run["depth"])
    if run.pop("skip_verify", None) is False:
        run["skip_verify"] = True
    return Layer(origin=".planning/config.json", sections={"run": run}, project=True, names=names)


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def user_config() -> Path:
    """Return the path of the user's own settings file."""
    if override := os.environ.get("GSD_CONFIG"):
        return Path(override)
    return _own_folder("config") / "config.toml"


def user_layer() -> Layer:
    """Return the user's own settings; raise ``ConfigError`` if they cannot be read."""
    return toml_layer(user_config(), str(user_config()))


def trust_folder() -> Path:
    """Return the user's own folder with the list of what they trust in projects."""
    return state_folder() / "trust"


def journals_folder() -> Path:
    """Return the user's own folder with the list of the journals that their runs have written here."""
    return state_folder() / "journals"


def state_folder() -> Path:
    """Return the user's folder for what gsd remembers across projects; ``GSD_STATE_DIR`` moves it."""
    if override := os.environ.get("GSD_STATE_DIR"):
        return Path(override)
    return _own_folder("state")


def _own_folder(kind: Literal["config", "state"]) -> Path:
    import platformdirs

    try:
        own = platformdirs.user_config_path if kind == "config" else platformdirs.user_state_path
        return own("gsd")
    except RuntimeError as error:
        # A container may run as a user that has no entry in its list of users.
        why = f"the home folder is unknown: HOME is not set, and there is no user with the id {os.getuid()}"
        raise ConfigError(why, hint="set HOME to a folder, such as an empty one") from error


def resolve(
    classes: Sequence[tuple[str, type]], layers: Sequence[Layer], *, tolerated: Sequence[str] = ()
) -> Settings:
    """Merge *layers*, the strongest first, into instances of the settings *classes* (section, class).

    *tolerated* are sections of plugins that are not loaded, installed or not. Raises ``ConfigError`` with
    every unknown key, every value of a wrong type, and every class that rejects its values.
    """
    known, problems = _fields(classes)
    unresolved = {section for section, _ in classes} - set(known)
    invalid = set(unresolved)
    found: dict[str, dict[str, Any]] = {}
    origins: dict[str, str] = {}
    written: dict[str, str] = {}
    fixes: dict[str, str] = {}
    ways_out: list[str] = []
    for layer in layers:
        if layer.strict:
            for name, problem in _unknown(layer, known, {*tolerated, *unresolved}):
                problems.append(problem)
                # Removing the keys of a section would leave the section.
                ways_out += [_fix(layer, name, name)] if "." in name else []
        for section, values in layer.sections.items():
            for key in [key for key in values if key in known.get(section, {})]:
                attribute, name = known[section][key], f"{section}.{key}"
                where = _where(layer, section, attribute)
                fix = _fix(layer, name, where)
                # A value that a stronger layer overrides is checked too: without that layer it would count.
                try:
                    value = _converter().structure(values[key], attribute.type or Any)
                except Exception as exc:
                    problems += _conversion_errors(exc, where)
                    ways_out.append(fix)
                    invalid.add(section)
                    continue
                if name not in origins:
                    found.setdefault(section, {})[key] = value
                    origins[name], written[name], fixes[name] = layer.origin, where, fix
    instances: dict[type, object] = {}
    hint = ""
    for section, kind in classes:
        if section not in invalid:
            try:
                instances[kind] = _instance(kind, found.get(section, {}))
            except _InstanceError as error:
                name = f"{section}.{error.key}"
                where = written.get(name, f"section {section!r}")
                # Without the plugin, its flag would be unknown.
                owner = "" if origins.get(name) == COMMAND_LINE else _owner(section)
                problems.append(f"{where}: {error}{owner}")
                ways_out.append(fixes.get(name, ""))
                hint = hint or error.hint
    if problems:
        lines = problems if len(problems) == 1 else [f"{len(problems)} settings are invalid", *problems]
        commands = list(dict.fromkeys(filter(None, ways_out)))[:MAX_COMMANDS]
        if not hint and commands:
            hint = f"correct the value, or remove it with: {' && '.join(commands)}"
        elif not hint and "unknown section" in problems[0]:
            hint = "install the plugin that it is for, or remove it; installed plugins: gsd plugins"
        elif not hint:
            hint = "see how values are written with: gsd settings show"
        raise ConfigError("\n  ".join(lines), hint=hint)
    listed = [(section, layer.origin) for layer in reversed(layers) for section in layer.sections]
    unused = {name: origin for name, origin in listed if name in tolerated and name not in known}
    return Settings(values=instances, origins=origins, unused=unused)


def _fields(
    classes: Sequence[tuple[str, type]],
) -> tuple[dict[str, dict[str, attrs.Attribute[Any]]], list[str]]:
    """Return the fields of each section, and the problems with classes whose annotations are invalid."""
    known: dict[str, dict[str, attrs.Attribute[Any]]] = {}
    problems: list[str] = []
    for section, kind in classes:
        try:
            fields = attrs.fields(attrs.resolve_types(kind))
        except Exception as exc:
            problems.append(f"section {section!r}: {_message(exc)}{_owner(section)}")
        else:
            known.setdefault(section, {}).update({field.name: field for field in fields if field.init})
    return known, problems


def _unknown(
    layer: Layer, known: Mapping[str, Mapping[str, Any]], tolerated: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each unknown section or key (``section.key``), and what to say about it."""
    for section, values in layer.sections.items():
        if section in tolerated:
            continue
        if section not in known:
            about = f"unknown section {section!r}{_suggest(section, [*known, *tolerated])}"
            yield section, f"{layer.origin}: {about}"
            continue
        for key in values:
            if key not in known[section]:
                about = f"unknown key {section}.{key}{_suggest(key, known[section])}"
                yield f"{section}.{key}", f"{layer.origin}: {about}"


def _fix(layer: Layer, name: str, where: str) -> str:
    """Return the command that removes the value of the setting *name* from *layer*; empty if none does."""
    if layer.origin == ENVIRONMENT:
        return f"unset {where}"
    return f"{layer.unset} {shlex.quote(name)}" if layer.unset else ""


def _suggest(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known)) or 'none'}"


def _where(layer: Layer, section: str, attribute: attrs.Attribute[Any]) -> str:
    """Return what the user typed to set a value: a flag, a variable, or a key of a file."""
    if layer.origin == COMMAND_LINE and (flag := attribute.metadata.get("flag")):
        return str(flag)
    if layer.origin == ENVIRONMENT:
        return variable_of(section, attribute.name)
    name = f"{section}.{attribute.name}"
    name = layer.names.get(name, name)
    return f"{layer.origin}: {name}" if layer.origin else name


def _owner(section: str) -> str:
    is_core = section in (name for name, _ in CORE_SECTIONS)
    return "" if is_core else f" (plugin {section!r}; -p no:{section} runs without it)"


class _InstanceError(Exception):
    """A settings class raised an exception when it was built; *key* is the field to blame, if known.

    *hint* is that of the exception.
    """

    def __init__(self, message: str, key: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.key, self.hint = key, hint


def _instance(kind: type, values: Mapping[str, Any]) -> object:
    """Return an instance of a settings class; raise ``_InstanceError`` if its own code raises anything."""

    def build(names: Collection[str]) -> object:
        fields = [field for field in attrs.fields(kind) if field.name in names]
        try:
            return kind(**{field.alias: values[field.name] for field in fields})
        except KeyboardInterrupt:
            raise
        except BaseException as exc:  # It may even call sys.exit().
            hint = exc.hint if isinstance(exc, ConfigError) else ""
            raise _InstanceError(_message(exc), hint=hint) from exc

    def fails_the_same(names: Collection[str], error: _InstanceError) -> bool:
        try:
            build(names)
        except _InstanceError as other:
            return str(other) == str(error)
        return False

    try:
        return build(values)
    except _InstanceError as error:
        # An exception rarely names its field. It is the one that causes the same failure on its own.
        alone = [key for key in values if fails_the_same([key], error)]
        if len(alone) == 1 and not fails_the_same([], error):
            raise _InstanceError(str(error), alone[0], error.hint) from error
        raise


def _message(exc: BaseException) -> str:
    """Return an exception's message; attrs's validators put the field and the value into ``args`` too."""
    try:
        text = exc.args[0] if exc.args and isinstance(exc.args[0], str) else str(exc)
    except Exception:  # It is a plugin's exception: its __str__ may raise.
        text = ""
    is_clear = bool(text) and isinstance(exc, (ValueError, ConfigError))
    return text if is_clear else f"{type(exc).__name__}: {text}".rstrip(": ")


# Conversion of what a file, a variable or a flag contains.


def _conversion_errors(exc: Exception, where: str) -> list[str]:
    """Return every error in one value, each with *where* it is: ``gsd.toml: run.agent[1]: expected …``."""
    from cattrs import transform_error
    from cattrs.v import format_exception

    def describe(error: BaseException, kind: type | None) -> str:
        return _message(error) if isinstance(error, ValueError) else format_exception(error, kind)

    # cattrs appends the path of the part that is wrong: `expected … @ [1]`.
    lines = transform_error(exc, "", describe)
    return [f"{where}{path}: {message}" for message, _, path in (line.rpartition(" @ ") for line in lines)]


@cache
def _converter() -> Converter:
    # Importing cattrs takes longer than `gsd --help` should.
    from cattrs import Converter
    from cattrs.cols import list_structure_factory

    converter = Converter(forbid_extra_keys=True)
    for kind, function in _SCALARS.items():
        converter.register_structure_hook(kind, function)
    converter.register_structure_hook_func(_is_literal, _one_of)

    def collection(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        origin: Any = get_origin(kind)
        list_type: Any = types.GenericAlias(list, get_args(kind)[:1])
        to_list = list_structure_factory(list_type, converter)
        return lambda value, _: origin(to_list(_items(value), list_type))

    def optional(kind: Any, converter: Converter) -> Callable[[Any, Any], Any]:
        [inner] = [part for part in get_args(kind) if part is not type(None)]
        return lambda value, _: None if value in (None, "") else converter.structure(value, inner)

    converter.register_structure_hook_factory(_is_collection, collection)
    converter.register_structure_hook_factory(_is_optional, optional)
    return converter


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _is_collection(kind: Any) -> bool:
    """Whether *kind* is a list, a set, or a tuple of any length."""
    origin: Any = get_origin(kind)
    return origin in (list, set, frozenset) or (origin is tuple and get_args(kind)[1:] == (...,))


def _is_optional(kind: Any) -> bool:
    parts = get_args(kind)
    return get_origin(kind) in (Union, types.UnionType) and len(parts) == 2 and type(None) in parts


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, str):  # from a variable
        return [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list, got {value!r}")
    return cast("Sequence[Any]", value)


def _one_of(value: Any, kind: Any) -> Any:
    allowed = get_args(kind)
    if value not in allowed:
        raise ValueError(f"expected one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def _string(value: Any, _: object) -> str:
    # `phases = 3` is understood, although it is not a string in TOML.
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"expected a string, got {value!r}")
    return str(value)


def _path(value: Any, _: object) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError(f"expected a path, got {value!r}")
    return Path(value)


def _boolean(value: Any, _: object) -> bool:
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"expected true or false, got {value!r}")


def _integer(value: Any, _: object) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"-?\d+", str(value)):
        raise ValueError(f"expected an integer, got {value!r}")
    return int(value)


def _float(value: Any, _: object) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number, got {value!r}") from None


def _decimal(value: Any, _: object) -> Decimal:
    """Return an amount of dollars."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"expected a number, got {value!r}") from None
    if not number.is_finite() or number < 0:
        raise ValueError(f"expected a number of at least 0, got {value!r}")
    return number


def _duration(value: Any, _: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip())
    if not match:
        raise ValueError(f"expected seconds or a duration such as '10m', got {value!r}")
    return timedelta(seconds=float(match[1]) * units[match[2]])


_SCALARS: Mapping[type, Callable[[Any, object], Any]] = {
    str: _string,
    bool: _boolean,
    int: _integer,
    float: _float,
    Decimal: _decimal,
    timedelta: _duration,
    Path: _path,
}


# What a project may set.


@attrs.frozen(kw_only=True)
class ProjectSetting:
    """A value in a project's files that is not harmless, or that is *consent*."""

    name: str
    value: Any
    origin: str
    help: str = ""
    consent: bool = False


def restricted(
    classes: Sequence[tuple[str, type]], layers: Sequence[Layer], *, foreign: Collection[str] = ()
) -> tuple[ProjectSetting, ...]:
    """Return what the project's files set and an untrusted project may not set.

    *classes* are those of the core and of plugins that are not the project's own; *foreign* are the sections
    of the project's own plugins, where nothing is harmless. Unknown keys are left to :func:`resolve`.
    """
    known, _ = _fields(classes)
    # What counts without the project: a budget in the user's own settings must not be raised.
    own = [layer for layer in layers if not layer.project and layer.origin not in (COMMAND_LINE, ENVIRONMENT)]
    found: list[ProjectSetting] = []
    for layer in (layer for layer in layers if layer.project):
        for section, values in layer.sections.items():
            for key, value in values.items():
                field = known.get(section, {}).get(key)
                if not _is_harmless(field, section, value, own) if field else section in foreign:
                    metadata: Mapping[str, Any] = field.metadata if field else {}
                    found.append(
                        ProjectSetting(
                            name=f"{section}.{key}",
                            value=value,
                            origin=layer.origin,
                            help=str(metadata.get("help", "")),
                            consent=bool(metadata.get("consent")),
                        )
                    )
    return tuple(found)


def _is_harmless(field: attrs.Attribute[Any], section: str, value: Any, own: Sequence[Layer]) -> bool:
    harmless = field.metadata.get("harmless", False)
    if not callable(harmless):
        return bool(harmless)
    default: Any = field.default
    otherwise = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
    values = (layer.sections.get(section, {}).get(field.name) for layer in own)
    raw = next((value for value in values if value is not None), None)
    converter, kind = _converter(), field.type or Any
    try:
        converted = converter.structure(value, kind)
        otherwise = converter.structure(raw, kind) if raw is not None else otherwise
    except Exception:
        return True  # it never counts: resolve() reports it
    try:
        return bool(harmless(converted, otherwise))
    except Exception:  # a plugin's function may raise anything
        return False


def without(layer: Layer, names: Collection[str]) -> Layer:
    """Return *layer* without the settings *names* (``section.key``)."""
    sections = {
        section: {key: value for key, value in values.items() if f"{section}.{key}" not in names}
        for section, values in layer.sections.items()
    }
    return attrs.evolve(layer, sections={section: values for section, values in sections.items() if values})

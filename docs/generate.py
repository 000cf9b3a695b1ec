"""Write ``docs/reference/`` from the code: ``python -m docs.generate``; with ``--check`` only compare.

A test runs the check, so a reference page cannot fall behind what it describes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import attrs
import click

import gsd_core
from docs.tables import ACTIVITY, EVENTS, EXIT_CODES, FACTS
from gsd_core import errors, hookspecs
from gsd_core.cli.app import COMMANDS, gsd
from gsd_core.cli.options import LOADED, classes_of
from gsd_core.cli.plugin_loading import Loaded, load_plugins
from gsd_core.journal.schema import SCHEMA, TABLES
from gsd_core.plugins.discovery import Choice

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Made by `python -m docs.generate` from the code. Change the code, not this page. -->"


def pages() -> Mapping[str, str]:
    """Return every page of the reference by its name."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "hooks.md": _hooks,
        "values.md": _values,
        "commands.md": _commands,
        "settings.md": _settings,
        "events.md": _events,
        "errors.md": _errors,
        "journal.md": _journal,
    }
    return {name: "\n".join([*maker()]).rstrip() + "\n" for name, maker in makers.items()}


def built_in() -> Loaded:
    """Return our own plugins, whatever else is installed here."""
    return load_plugins(Choice(allowed=frozenset()), frozenset())


# Hooks and values: what a plugin's author needs.

_PART = re.compile(r"^(When|Return|Calling|Failure|Since): ", re.M)


def _hooks() -> Iterator[str]:
    yield from _head(
        "Hooks",
        "Every place where the core asks plugins.",
        "Mark a function with `@implements(gsd_…)`; a type checker then compares the signatures.",
        "A deciding hook gets at most a frozen request (what is asked) and a host (what one may do).",
        "The values are described in [values](values.md), the ways of calling in the",
        "[architecture](../explanation/architecture.md#the-ways-to-call).",
    )
    loaded = built_in()
    for name in hook_names():
        spec = getattr(hookspecs, name)
        users = [f"`{plugin}`" for plugin in loaded.hooks.plugins_of(spec)]
        yield f"## {name}{_parameters(spec)}"
        yield ""
        yield f"```python\n{signature(name)}\n```"
        yield ""
        yield from _documented(spec)
        yield f"Built-in plugins that implement it: {', '.join(users) or 'none'}."
        yield ""


def hook_names() -> tuple[str, ...]:
    """Return the hooks in the order in which they are written down."""
    return tuple(name for name in vars(hookspecs) if name.startswith("gsd_"))


def signature(name: str) -> str:
    """Return a hook's definition as its author has to write it."""
    spec = getattr(hookspecs, name)
    kind = "async def" if inspect.iscoroutinefunction(spec) else "def"
    parameters = ", ".join(f"{p.name}: {p.annotation}" for p in inspect.signature(spec).parameters.values())
    return f"{kind} {name}({parameters}) -> {inspect.signature(spec).return_annotation}"


def _parameters(spec: Any) -> str:
    return f"({', '.join(inspect.signature(spec).parameters)})"


def _documented(spec: Any) -> Iterator[str]:
    text, _, example = (inspect.getdoc(spec) or "").partition("Example::")
    for paragraph in text.strip().split("\n\n"):
        yield _PART.sub(r"- **\1**: ", _marked(paragraph)).replace("\n- ", "\n- ")
        yield ""
    yield f"```python\n{inspect.cleandoc(example)}\n```"
    yield ""


def _values() -> Iterator[str]:
    yield from _head(
        "Values",
        "What plugins are given and what they return; all of it is imported from `gsd_core`.",
        "Every value is frozen and takes keywords; change one by `attrs.evolve`.",
    )
    for name in sorted(gsd_core.__all__):
        found = getattr(gsd_core, name)
        if inspect.isclass(found) and not issubclass(found, Exception):
            yield f"## {name}"
            yield ""
            yield _marked(inspect.getdoc(found) or "")
            yield ""
            yield from _fields(found) if attrs.has(found) else _methods(found)


def _fields(kind: type[Any]) -> Iterator[str]:
    fields = [field for field in attrs.fields(kind) if not field.name.startswith("_")]
    if fields:
        yield "| field | type | default |"
        yield "|---|---|---|"
        for field in fields:
            yield f"| `{field.name}` | `{_cell(field.type)}` | {_default(field)} |"
        yield ""


def _methods(kind: type[Any]) -> Iterator[str]:
    for name, method in vars(kind).items():
        function = method.fget if isinstance(method, property) else method
        if (name.startswith("_") and name != "__call__") or not inspect.isfunction(function):
            continue
        kind_of = "async " if inspect.iscoroutinefunction(function) else ""
        call = "" if isinstance(method, property) else str(inspect.signature(function)).replace("'", "")
        yield f"- `{kind_of}{name}{call}`: {_marked(inspect.getdoc(function) or '')}".replace("\n\n", "\n  ")
    yield ""


# The command line.


def _commands() -> Iterator[str]:
    yield from _head(
        "Commands",
        "`-C DIR`, `-p NAME` and `--plugins-dir DIR` may stand before or after the verb.",
        "Only data goes to standard output; what is meant for people goes to standard error.",
        "The flags of `gsd run` and `gsd resume` that come from plugins are those of the built-in ones;",
        "`gsd run --help` shows yours.",
    )
    root = click.Context(gsd, info_name="gsd", **gsd.context_settings)
    yield from _command(gsd, root)
    for name in COMMANDS:
        yield from _subcommand(gsd, root, name)


def _subcommand(group: click.Group, parent: click.Context, name: str) -> Iterator[str]:
    command = group.get_command(parent, name)
    assert command is not None
    ctx = click.Context(command, info_name=name, parent=parent)
    yield from _command(command, ctx)
    if isinstance(command, click.Group):
        for inner in command.list_commands(ctx):
            yield from _subcommand(command, ctx, inner)


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    ctx.meta[LOADED] = built_in()
    yield f"## {ctx.command_path}"
    yield ""
    yield f"```text\n{ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}\n```"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    options = [option for option in command.get_params(ctx) if isinstance(option, click.Option)]
    yield "| option | what it does |"
    yield "|---|---|"
    for option in options:
        yield f"| `{_cell(_names(option, ctx))}` | {_cell(option.help or '')} |"
    yield ""


def _names(option: click.Option, ctx: click.Context) -> str:
    value = "" if option.is_flag or option.count else f" {option.make_metavar(ctx)}"
    return ", ".join(option.opts) + value


def _settings() -> Iterator[str]:
    yield from _head(
        "Settings",
        "A value is taken from the first of these that says something:",
        "the flag, the variable, what the unfinished run was started with, `gsd.toml` in the project,",
        "the user's `.planning/config.json`,",
        "`config.toml` in the user's configuration folder (or what `GSD_CONFIG` names), the default.",
        "An unknown key is an error with a suggestion; all mistakes are told at once.",
        "Times are seconds, or a number with `s`, `m`, `h` or `d`.",
        "In variables, the parts of a list are separated by commas.",
    )
    for section, kind in classes_of(built_in()):
        fields = [field for field in attrs.fields(attrs.resolve_types(kind)) if field.init]
        if fields:
            yield f"## [{section}]"
            yield ""
            yield _marked(inspect.getdoc(kind) or "")
            yield ""
            yield "| key | type | default | flag | variable |"
            yield "|---|---|---|---|---|"
            yield from (_setting(section, field) for field in fields)
            yield ""
    yield _PLANNING_CONFIG
    yield _VARIABLES


def _setting(section: str, field: attrs.Attribute[Any]) -> str:
    prefix = "GSD_" if section == "run" else f"GSD_{section.upper()}_"
    flag = f"`{field.metadata['flag']}`" if field.metadata.get("flag") else ""
    about = f"`{field.name}` | {_type(field.type)} | {_default(field)} | {flag}"
    return f"| {about} | `{prefix}{field.name.upper()}` |"


_TYPES: Mapping[Any, str] = {
    str: "text", bool: "true or false", int: "number", timedelta: "time", Decimal: "dollars",
    tuple: "list", Path: "path",
}  # fmt: skip


def _type(kind: Any) -> str:
    """Return what a user has to write for a field of that type."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    inner = [part for part in get_args(kind) if part is not type(None)]
    return _TYPES.get(get_origin(kind)) or _TYPES.get(kind) or _type(inner[0])


_PLANNING_CONFIG = """\
## From `.planning/config.json`

GSD's own file speaks too, where it has a word for one of our settings.

| its key | our setting |
|---|---|
| `depth` (`granularity`: coarse, standard, fine) | `run.depth` |
| `model_profile` | `run.profile` |
| `workflow.verifier: false` | `run.skip_verify` |
| `workflow.skip_discuss` | `run.skip_discuss` |
| `planning.commit_docs` | `run.commit_docs` |
"""

_VARIABLES = """\
## Other variables

| variable | what it does |
|---|---|
| `GSD_CONFIG` | the user's own settings file, in place of the one in the configuration folder |
| `GSD_PLUGINS` | the names of the installed plugins that may be loaded; empty: the built-in ones only |
| `GSD_STRICT_PLUGINS` | `1`: a plugin that is broken ends the start instead of being left out |
| `NO_COLOR`, `FORCE_COLOR` | no colours, colours; the former wins |
"""


# What is told and what is kept.


def _events() -> Iterator[str]:
    yield from _head(
        "Events",
        "The public part of what a run tells of itself:",
        "to plugins by `gsd_on_event`, and line by line with `--output-format stream-json`.",
        "An event has `seq`, `name`, `at`, `run`, `step` and `data`.",
        "`seq` orders events and is the cursor of `gsd log --after`.",
        "Fields are only added; an event with another meaning gets another name.",
    )
    yield from _table(("event", "when", "fields of `data`"), EVENTS)


def _journal() -> Iterator[str]:
    yield from _head(
        "Journal",
        "What was done, fact by fact, in `<git common dir>/gsd/journal.db`: one SQLite file in WAL mode with",
        "`synchronous=FULL`, which survives `git clean -fdx` and is shared by worktrees.",
        "A fact is on disk before anything is done that depends on it.",
        f"The schema's version is {SCHEMA}; a newer one is read, and never written.",
    )
    yield "## Facts"
    yield ""
    yield from _table(("fact", "what it says", "fields"), FACTS)
    yield "## Activity"
    yield ""
    yield "Shares the sequence of the facts, is committed in groups (at most 200 ms later) and before each"
    yield "fact, gives no promise and is never folded."
    yield ""
    yield from _table(("kind", "what it says", "fields"), ACTIVITY)
    yield _IDS
    yield "## Tables"
    yield ""
    yield f"```sql\n{TABLES.strip()}\n```"


_IDS = """\
## Ids and trailers

| what | looks like |
|---|---|
| run | `r-20260103T040506-1a2b3c`, ordered by time |
| step | `init`, `2.1/discuss`, `2.1/plan`, `2.1/plan/r1`, `2.1/execute/02.1-03`, `2.1/verify/r2` |
| truth | `01-02:T1`, the first truth of plan 01-02 |
| question | `q-c88f2c1429`, a digest of run, step, occasion, text and options |

Phase numbers are text and are ordered part by part: 2.1 < 2.2 < 2.10.

Every commit of a run ends with trailers.
Run, step and task together are unique: a task is committed once, and a step's own documents once.

```text
GSD-Run: r-20260103T040506-1a2b3c
GSD-Step: 1/execute/01-01
GSD-Task: 01-01/2
```
"""


def _errors() -> Iterator[str]:
    yield from _head(
        "Errors and exit codes",
        "Errors are named by what the caller should do about them.",
        "Each carries a `hint`, the way out; only the command line turns them into text and exit codes.",
    )
    tree = (inspect.getdoc(errors) or "").partition("::")[2]
    yield f"```text\n{inspect.cleandoc(tree)}\n```"
    yield ""
    yield "## Exit codes"
    yield ""
    yield "| code | meaning |"
    yield "|---|---|"
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield ""
    yield "A run that ends with another code than 0 says in its last lines what it waits for."
    yield "Whatever was begun, `gsd resume` goes on with it."


# How it is written.


def _head(title: str, *lines: str) -> Iterator[str]:
    yield MADE
    yield ""
    yield f"# {title}"
    yield ""
    yield from lines
    yield ""


def _table(columns: tuple[str, str, str], rows: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield "|---|---|---|"
    for name, (about, fields) in rows.items():
        named = ", ".join(f"`{field}`" for field in fields.split(", ") if field)
        yield f"| `{name}` | {about} | {named} |"
    yield ""


def _default(field: attrs.Attribute[Any]) -> str:
    value: Any = field.default
    if value is attrs.NOTHING:
        return "required"
    if isinstance(value, attrs.Factory):  # type: ignore[arg-type]
        return ""
    if isinstance(value, timedelta):
        return f"`{_duration(value)}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{part}`" for part in cast("tuple[object, ...]", value))
    return f"`{str(value).lower() if isinstance(value, bool) else value}`" if value not in ("", None) else ""


def _duration(value: timedelta) -> str:
    seconds = int(value.total_seconds())
    for size, unit in ((3600, "h"), (60, "m")):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _marked(text: str) -> str:
    """Return a docstring as Markdown: its roles and double backticks become single ones."""
    text = re.sub(r":(?:class|meth|func|mod|data):`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`")


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def main() -> int:
    """Write the pages, or say which are stale."""
    made = pages()
    stale = [name for name, text in made.items() if _read(FOLDER / name) != text]
    if "--check" in sys.argv[1:]:
        sys.stderr.writelines(f"stale: docs/reference/{name}\n" for name in stale)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(made[name], encoding="utf-8")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())

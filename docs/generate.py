"""Generate ``docs/reference/`` from the code: ``python -m docs.generate``; ``--check`` only compares.

A test does the same comparison, so a reference page cannot become outdated.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import attrs
import click

from docs import http
from docs.messages import error_names, messages
from docs.tables import ACTIVITY, EVENTS, FACTS, OWN_FILES, PLANNING_FILES
from gsd_core import api, errors, hookspecs
from gsd_core.cli.app import gsd
from gsd_core.cli.commands import COMMANDS, PLUGIN_COMMANDS
from gsd_core.cli.help import EXAMPLES
from gsd_core.cli.options import classes_of
from gsd_core.cli.plugin_loading import LOADED, Loaded, load_plugins
from gsd_core.errors import GsdError
from gsd_core.exit_codes import EXIT_CODE_MEANINGS, exit_code
from gsd_core.hook_markers import PROVISIONAL, Stability, mode_of, stability_of
from gsd_core.journal.schema import SCHEMA, TABLES
from gsd_core.machine.facts import KIND_OF
from gsd_core.planning.config_keys import KEYS, Status
from gsd_core.plugins.discovery import Choice
from gsd_core.run.last_run import KEEP_AFTER
from gsd_core.settings import is_required
from gsd_core.views.schemas import SCHEMAS, schema_of
from gsd_plugins.mcp import tools
from gsd_plugins.mcp.catalog import PROMPTS
from gsd_plugins.rehearsal.effects import EFFECTS, When
from gsd_plugins.rehearsal.scenario_file import ScenarioFile

FOLDER = Path(__file__).parent / "reference"
MADE = "<!-- Generated from the code by `python -m docs.generate`. Change the code instead of this page. -->"


def pages() -> Mapping[str, str]:
    """Return the text of each reference page by file name."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "hooks.md": _hooks,
        "values.md": _values,
        "commands.md": _commands,
        "settings.md": _settings,
        "config-json.md": _config_json,
        "scenario-files.md": _scenario_files,
        "events.md": _events,
        "errors.md": _errors,
        "exit-codes.md": _exit_codes,
        "messages.md": _messages,
        "json.md": _json,
        "http.md": _http,
        "journal.md": _journal,
        "files.md": _files,
        "mcp.md": _mcp,
    }
    made = {name: "\n".join([*maker()]).rstrip() + "\n" for name, maker in makers.items()}
    made["openapi.json"] = json.dumps(_openapi(), indent=2) + "\n"
    return made | {
        f"schemas/{_schema_file(name)}": json.dumps(schema_of(name), indent=2) + "\n" for name in SCHEMAS
    }


def _http() -> Iterator[str]:
    yield from _head("The HTTP interface of gsd serve")
    yield from http.page()


def _openapi() -> dict[str, Any]:
    """Return the document of the interface of ``gsd serve``; its version is that of the interface."""
    from gsd_plugins.web.openapi import document
    from gsd_plugins.web.table import routes

    return document(routes(), "1")


def built_in() -> Loaded:
    """Return the built-in plugins only, independent of what else is installed."""
    return load_plugins(Choice(allowed=frozenset()), frozenset())


# Hooks and values, for authors of plugins.

_PART = re.compile(r"^(Mode|Level|When|Return|Calling|Failure|Since): ", re.M)


def _hooks() -> Iterator[str]:
    yield from _head(
        "Hooks",
        "Every point at which the core calls plugins.",
        "Mark a function with `@implements(gsd_…)`, so that a type checker compares the signatures; "
        "pluggy's own marker is available as `gsd_core.hookimpl`.",
        "A hook that decides something gets at most two arguments: a frozen request, and a host that has "
        "the operations it may use.",
        "[Values](values.md) describes the arguments and results; the "
        "[architecture](../explanation/architecture.md#calling-modes) describes the calling modes.",
    )
    yield _LEVELS
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


def _level(stability: Stability) -> str:
    return f"{stability.level}, {stability.instead}" if stability.instead else stability.level


_LEVELS = """\
## Levels

Each hook and each [value](values.md) has a level, which says what a plugin may rely on.

| level | what it means |
|---|---|
| stable | only additions; whatever else is to change is deprecated first |
| provisional | it may change in any minor release, and the changelog says how |
| deprecated | it works for at least two more minor releases; each start warns of plugins that use it |

An addition is a new hook, a new value, or a new field with a default.
`gsd_core.planning` and `gsd_core.testing` are provisional as a whole.
All other modules may change without notice.
"""


def hook_names() -> tuple[str, ...]:
    """Return the names of the hooks in the order of their definition."""
    return tuple(name for name in vars(hookspecs) if name.startswith("gsd_"))


def signature(name: str) -> str:
    """Return the signature of a hook as a plugin has to write it."""
    spec = getattr(hookspecs, name)
    kind = "async def" if inspect.iscoroutinefunction(spec) else "def"
    parameters = ", ".join(f"{p.name}: {p.annotation}" for p in inspect.signature(spec).parameters.values())
    return f"{kind} {name}({parameters}) -> {inspect.signature(spec).return_annotation}"


def _parameters(spec: Any) -> str:
    return f"({', '.join(inspect.signature(spec).parameters)})"


def _documented(spec: Any) -> Iterator[str]:
    text, _, example = (inspect.getdoc(spec) or "").partition("Example::")
    mode = mode_of(spec).replace("_", " ")
    text = text.replace("When: ", f"Level: [{_level(stability_of(spec))}](#levels)\nWhen: ", 1)
    text = text.replace(
        "Level: ", f"Mode: [{mode}](../explanation/architecture.md#calling-modes)\nLevel: ", 1
    )
    for paragraph in text.strip().split("\n\n"):
        yield _PART.sub(r"- **\1**: ", _marked(paragraph))
        yield ""
    yield f"```python\n{inspect.cleandoc(example)}\n```"
    yield ""


def _schema_file(name: str) -> str:
    """Return the name of the file with the JSON Schema of a command."""
    return f"{name.replace(' ', '-')}.json"


def _values() -> Iterator[str]:
    yield from _head(
        "Values",
        "The arguments and results of hooks; all of them can be imported from `gsd_core`.",
        "Every value is frozen and takes keyword arguments only; use `attrs.evolve` to get a changed copy.",
        "[Types with a fixed set of values](#types-with-a-fixed-set-of-values) are at the end.",
    )
    for name in sorted(vars(api)):
        found = getattr(api, name)
        if inspect.isclass(found) and not issubclass(found, Exception):
            yield f"## {name}"
            yield ""
            yield f"Level: [{'provisional' if name in PROVISIONAL else 'stable'}](hooks.md#levels)."
            yield ""
            if found.__module__ == "builtins":
                # An alias has no docstring at run time: without this, the page would show that of `str`.
                yield f"A `{found.__name__}`: {_ALIASES[name]}"
                yield ""
                continue
            yield _marked(inspect.getdoc(found) or "")
            yield ""
            yield from _fields(found) if attrs.has(found) else _methods(found)
    yield "## Types with a fixed set of values"
    yield ""
    yield "| type | level | values |"
    yield "|---|---|---|"
    for name in sorted(vars(api)):
        found = getattr(api, name)
        if get_origin(found) is not None:
            level = "provisional" if name in PROVISIONAL else "stable"
            values = ", ".join(f"`{_alias_part(part)}`" for part in get_args(found))
            yield f"| `{name}` | {level} | {values} |"


_ALIASES = {"Role": "what an agent is asked to be, such as `planner` or `verifier`; plugins may use others."}


def _alias_part(part: Any) -> str:
    return str(part.__name__ if inspect.isclass(part) else part)


def _fields(kind: type[Any]) -> Iterator[str]:
    fields = [field for field in attrs.fields(kind) if not field.name.startswith("_")]
    # As they are written: the codec replaces the names of types in the fields by the types.
    types = {
        name: text for base in reversed(kind.__mro__) for name, text in inspect.get_annotations(base).items()
    }
    if fields:
        yield "| field | type | default |"
        yield "|---|---|---|"
        for field in fields:
            yield f"| `{field.name}` | `{_cell(types[field.name])}` | {_default(field)} |"
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
        "`-C DIR`, `-p NAME` and `--plugins-dir DIR` can be given before or after the command name.",
        "Data goes to standard output, messages for people go to standard error.",
        "`gsd run` and `gsd resume` are shown with the flags of the built-in plugins; `gsd run --help` "
        "also shows those of the plugins you have installed.",
    )
    root = click.Context(gsd, info_name="gsd", **gsd.context_settings)
    yield from _command(gsd, root)
    for name in (*COMMANDS, *PLUGIN_COMMANDS):
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
    yield "| option | description |"
    yield "|---|---|"
    for option in options:
        yield f"| `{_cell(_names(option, ctx))}` | {_cell(option.help or '')} |"
    yield ""
    _, _, examples = inspect.cleandoc(command.epilog or "").partition(EXAMPLES)
    if examples:
        yield f"```sh\n{inspect.cleandoc(examples)}\n```"
        yield ""


def _names(option: click.Option, ctx: click.Context) -> str:
    value = "" if option.is_flag or option.count else f" {option.make_metavar(ctx)}"
    return ", ".join(option.opts) + value


def _settings() -> Iterator[str]:
    yield from _head(
        "Settings",
        "The first of these sources that sets a value wins:",
        "",
        "1. the flag",
        "2. the environment variable",
        "3. the options with which the unfinished run was started",
        "4. `gsd.toml` in the project",
        "5. `.planning/config.json` in the project, GSD's own file",
        "6. `config.toml` in the user's configuration folder, or the file that `GSD_CONFIG` names",
        "7. the default",
        "",
        "An unknown key is an error with a suggestion, and all errors are reported together.",
        "The last column says whether the project's files may set the key: *yes*, *within bounds* (a limit "
        "may be lowered, or raised to a certain value), only *if trusted* (`gsd trust`), or *never*.",
        "A duration is a number of seconds, or a number followed by `s`, `m`, `h` or `d`.",
        "In environment variables, list items are separated by commas.",
    )
    for section, kind in classes_of(built_in()):
        fields = [field for field in attrs.fields(attrs.resolve_types(kind)) if field.init]
        if fields:
            yield f"## [{section}]"
            yield ""
            yield _marked(inspect.getdoc(kind) or "")
            yield ""
            yield "| key | type | default | flag | variable | in the project |"
            yield "|---|---|---|---|---|---|"
            yield from (_setting(section, field) for field in fields)
            yield ""
    yield _PLANNING_CONFIG
    yield _VARIABLES


def _setting(section: str, field: attrs.Attribute[Any]) -> str:
    prefix = "GSD_" if section == "run" else f"GSD_{section.upper()}_"
    flag = f"`{field.metadata['flag']}`" if field.metadata.get("flag") else ""
    about = f"`{field.name}` | {_type(field.type)} | {_default(field)} | {flag}"
    return f"| {about} | `{prefix}{field.name.upper()}` | {_in_project(field)} |"


def _in_project(field: attrs.Attribute[Any]) -> str:
    harmless = field.metadata.get("harmless")
    if harmless is is_required:
        return "only `required`"
    if field.metadata.get("consent"):
        return "never"
    return "within bounds" if callable(harmless) else "yes" if harmless else "if trusted"


_TYPES: Mapping[Any, str] = {
    dict: "table",
    str: "string",
    bool: "boolean",
    int: "integer",
    timedelta: "duration",
    Decimal: "dollars",
    tuple: "list",
    Path: "path",
}


def _type(kind: Any) -> str:
    """Describe what a user writes for a field of that type."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    inner = [part for part in get_args(kind) if part is not type(None)]
    return _TYPES.get(get_origin(kind)) or _TYPES.get(kind) or _type(inner[0])


_PLANNING_CONFIG = """\
## From `.planning/config.json`

Some keys of GSD's own configuration file set one of these settings.
[config.json](config-json.md) lists all keys and what they do here.
"""


def _config_json() -> Iterator[str]:
    yield from _head(
        "config.json",
        "`.planning/config.json` is GSD's own configuration file. These are all keys of GSD v1.20.5 and "
        "gsd-core 1.14, and what they do here.",
        "A value of a wrong type or form is an error before a run starts, if the key is honored.",
        "Unknown keys are kept and named in a warning.",
        "`null` counts as not set. If a key is set under several of its names, the first one wins.",
    )
    titles: tuple[tuple[Status, str, str], ...] = (
        ("honored", "Honored", "what it does"),
        ("not applicable", "Not applicable", "why"),
    )
    for status, title, column in titles:
        values = "values | " if status == "honored" else ""
        yield f"## {title}"
        yield ""
        yield f"| key | {values}{column} |"
        yield "|---|---|---|" if values else "|---|---|"
        for key in KEYS:
            if key.status == status:
                names = ", ".join(f"`{name}`" for name in (key.name, *key.legacy))
                yield f"| {names} | {key.values + ' | ' if values else ''}{_cell(key.effect)} |"
        yield ""


_VARIABLES = """\
## Other variables

| variable | effect |
|---|---|
| `GSD_CONFIG` | path of the user's settings file, instead of the one in the configuration folder |
| `GSD_STATE_DIR` | folder for the list of what you trust, instead of the one in the state folder |
| `GSD_PLUGINS` | names of the installed plugins that may be loaded; if empty, only the built-in ones |
| `GSD_STRICT_PLUGINS` | with `1`, a broken plugin is an error at startup instead of being left out |
| `NO_COLOR`, `FORCE_COLOR` | turn colors off or on; `NO_COLOR` wins |
"""


# Events, journal and errors.


def _scenario_files() -> Iterator[str]:
    yield from _head(
        "Scenario files",
        "What `gsd run IDEA --agent rehearsal --script FILE` rehearses.",
        "[Rehearse with a scenario](../how-to/rehearse-with-a-scenario.md) shows how to use them.",
        "A file is TOML, and unknown keys are errors.",
        "A duration is a number of seconds, or a string such as `10m`.",
    )
    yield "## [scenario]"
    yield ""
    yield from _scenario_keys(ScenarioFile, but="rules")
    yield "## [[rule]]"
    yield ""
    yield "Each rule has the key `do`, the keys of that effect, and optionally `when` and `times`."
    yield ""
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    yield "| `do` | string | required | what happens: one of the effects below |"
    yield "| `when` | table | everywhere | where it happens |"
    yield "| `times` | integer | by `do` | how often the rule applies in the run; 0 is every time |"
    yield ""
    yield "## when"
    yield ""
    yield _marked(inspect.getdoc(When) or "")
    yield ""
    yield from _scenario_keys(When)
    for name, kind in EFFECTS.items():
        yield f'## do = "{name}"'
        yield ""
        yield _marked(inspect.getdoc(kind) or "")
        yield f"By default, it happens {'once' if kind.times else 'every time'}."
        yield ""
        yield from _scenario_keys(kind)


def _scenario_keys(kind: type[Any], but: str = "") -> Iterator[str]:
    fields = [field for field in attrs.fields(attrs.resolve_types(kind)) if field.name != but]
    if not fields:
        return
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for field in fields:
        default = "required" if field.default is attrs.NOTHING else _default(field)
        yield f"| `{field.name}` | {_type(field.type)} | {default} | {field.metadata['help']} |"
    yield ""


def _events() -> Iterator[str]:
    yield from _head(
        "Events",
        "A run sends these events to plugins (`gsd_on_event`) and, with `--output-format stream-json`, "
        "prints each as one line of JSON.",
        "An event has `seq`, `name`, `at`, `run`, `step` and `data`.",
        "`seq` orders the events and is the cursor for `gsd log --after`.",
        "New fields may be added; an event whose meaning changes gets a new name.",
    )
    yield from _table(("event", "when", "fields of `data`"), EVENTS)


def _journal() -> Iterator[str]:
    yield from _head(
        "Journal",
        "The journal records what a run did as a sequence of facts, in `<git dir>/gsd/journal.db`.",
        "This is one SQLite file in WAL mode with `synchronous=FULL`; it survives `git clean -fdx`.",
        "Each worktree has its own journal: git's directory is `.git` in the main worktree, and "
        "`.git/worktrees/<name>` in a linked one.",
        "A project in a subfolder of its repository has its own journal below `<git dir>/gsd/projects/`.",
        "A fact is on disk before anything is done that depends on it.",
        f"After every {KEEP_AFTER} facts, the run keeps what they add up to in the table `kept`, so that "
        "commands read only later ones; another version of gsd, or another user, reads all facts.",
        f"The schema version is {SCHEMA}; a journal with a newer version is read, but never written.",
    )
    yield "## Facts"
    yield ""
    classes = {kind: found for found, kind in KIND_OF.items()}
    rows = {
        kind: (meaning, ", ".join(field.name.rstrip("_") for field in attrs.fields(classes[kind])))
        if kind in classes
        else (meaning, "")
        for kind, meaning in FACTS.items()
    }
    yield from _table(("fact", "meaning", "fields"), rows)
    yield "## Activity"
    yield ""
    yield "Activity has the same sequence numbers as facts, but no guarantee: it is committed in groups, at"
    yield "most 200 ms later or with the next fact, and the state of a run is never derived from it."
    yield ""
    yield from _table(("kind", "meaning", "fields"), ACTIVITY)
    yield _IDS
    yield "## Tables"
    yield ""
    yield f"```sql\n{TABLES.strip()}\n```"


_IDS = """\
## Ids and trailers

| id | form |
|---|---|
| run | `r-20260103T040506-1a2b3c`, ordered by time |
| step | `init`, `2.1/discuss`, `2.1/plan`, `2.1/plan/r1`, `2.1/execute/02.1-03`, `2.1/verify/r2` |
| truth | `01-02:T1`, the first truth of plan 01-02 |
| question | `q-c88f2c1429`, a digest of run, step, key, text and options |

Phase numbers are strings and are compared part by part: 2.1 < 2.2 < 2.10.

Every commit of a run ends with trailers.
The combination of run, step and task is unique: a task is committed once, and so are the documents of a step.

```text
GSD-Run: r-20260103T040506-1a2b3c
GSD-Step: 1/execute/01-01
GSD-Task: 01-01/2
```

A project in a subfolder of its repository adds its path, such as `GSD-Project: packages/api`.
A command that edits planning files has a trailer of its own, such as `GSD-Edit: 5b1c9c0e7d2f4a68`.
"""


JSON_ERRORS = """\
## Errors as JSON

With `--json`, `--output-format json` or `stream-json`, an error is also the last line of standard output.
The text stays on standard error.

```json
{"schema_version": 1, "error": {"kind": "IdeaError", "message": "…", "cause": "", "hint": "…"}, "exit": 2}
```

`kind` is a name of the tree above, `UsageError` for a wrong command line, or `Interrupted` for Ctrl+C.
A bug in gsd or in a plugin has the name of the exception.
`cause` and `hint` may be empty; `exit` is the exit code of the process.
A command that has done its work has no error, even if its exit code is not 0.
""".splitlines()


def _errors() -> Iterator[str]:
    yield from _head(
        "Errors",
        "Errors are named after what the caller should do about them.",
        "Each has a `hint` with a way to fix it; the command line turns errors into text and exit codes.",
    )
    tree = (inspect.getdoc(errors) or "").partition("::")[2]
    yield f"```text\n{inspect.cleandoc(tree)}\n```"
    yield ""
    yield from JSON_ERRORS
    yield "## Codes and messages"
    yield ""
    yield "[Exit codes](exit-codes.md) has the codes, [messages](messages.md) the texts, and"
    yield "[troubleshoot](../how-to/troubleshoot.md) what to do."


def _exit_codes() -> Iterator[str]:
    yield from _head(
        "Exit codes",
        "These are the exit codes of `gsd run`, `gsd resume` and the commands that do one step.",
        "Other commands end with 0 if they worked, with 1 if what they checked is not in order "
        "(`gsd doctor`, `gsd health`, `gsd plugins check`), and with the code of the error otherwise.",
    )
    yield "| code | meaning | errors |"
    yield "|---|---|---|"
    for code, meaning in EXIT_CODE_MEANINGS.items():
        kinds = [name for name in error_names() if _exit_code_of(name) == code]
        yield f"| {int(code)} | {meaning} | {', '.join(f'`{name}`' for name in kinds)} |"
    yield ""
    yield "[What exit code 0 means](../explanation/exit-code-0.md) has the details and the limits."
    yield "If the code is not 0, the last lines of the output say what the run is waiting for."
    yield "`gsd resume` continues any unfinished run."
    yield ""
    yield "[Errors](errors.md) has the classes, and [run unattended](../how-to/run-unattended.md) says what a"
    yield "supervisor does for each code."


def _exit_code_of(name: str) -> int:
    kind: type[GsdError] = getattr(errors, name)
    return exit_code(kind.__new__(kind))


def _messages() -> Iterator[str]:
    yield from _head(
        "Messages",
        "The messages with which `gsd` ends, by the class of the error, each with its hint.",
        "A `…` stands for a part that differs: a name, a path, the reason that a program gave.",
        "[Troubleshoot](../how-to/troubleshoot.md) says for each class why it happens and what to do.",
    )
    found = messages()
    for name in error_names():
        listed = [message for message in found if message.kind == name]
        if listed:
            yield f"## {name}"
            yield ""
            yield f"{_marked(inspect.getdoc(getattr(errors, name)) or '').splitlines()[0]}"
            yield f"Exit code {_exit_code_of(name)}; [what to do](../how-to/troubleshoot.md#{name.lower()})."
            yield ""
            yield "| message | hint |"
            yield "|---|---|"
            yield from (f"| {_code(message.text)} | {_code(message.hint)} |" for message in listed)
            yield ""


def _code(text: str) -> str:
    """Return *text* as a cell in the font of code; text of that kind may itself contain backticks."""
    text = _cell(" ".join(text.split()))
    return f"`` {text} ``" if "`" in text else f"`{text}`" if text else ""


def _json() -> Iterator[str]:
    yield from _head(
        "JSON output",
        "What commands print with `--json`, `--output-format json` and `--output-format stream-json`, as "
        "JSON Schema (draft 2020-12).",
        "`gsd schema COMMAND` prints the same.",
    )
    yield "- Standard output has one object; with `gsd log --json` and `stream-json`, one on each line."
    yield "- `schema_version` is increased when a field is removed or changes its meaning."
    yield "- New fields may be added at any time: ignore those that you do not know."
    yield "- Secrets are redacted, and everything but ASCII is escaped."
    yield "- An error is a message on standard error, an exit code, and an object with `error` on stdout."
    yield ""
    yield "| schema | of | fields |"
    yield "|---|---|---|"
    for name in SCHEMAS:
        schema = schema_of(name)
        names = [*schema["required"], *(f for one in schema.get("anyOf", ()) for f in one["required"])]
        fields = ", ".join(f"`{field}`" for field in dict.fromkeys(names))
        yield f"| [{name}](schemas/{_schema_file(name)}) | `{schema['title']}` | {fields} |"


def _files() -> Iterator[str]:
    yield from _head(
        "Files",
        "What a run writes into a project, apart from the code that it builds.",
        "`gsd paths` shows where the files of a project and of its user are.",
    )
    yield "## The plan"
    yield ""
    yield "These are GSD's own files: its commands read and write them too."
    yield "`NN` is the number of a phase, `MM` that of a plan, `NNN` that of a quick task, `X.Y` a version."
    yield "Each step commits what it wrote, unless `commit_docs` in [config.json](config-json.md) is false."
    yield ""
    yield from _written(PLANNING_FILES)
    yield "## Other files"
    yield ""
    yield from _written(OWN_FILES)
    yield "Plugins that add steps declare which files they write; see `StepType` in [values](values.md)."


def _written(files: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    yield "| file | content | written by |"
    yield "|---|---|---|"
    yield from (f"| `{name}` | {about} | {by} |" for name, (about, by) in files.items())
    yield ""


# Markdown.


def _mcp() -> Iterator[str]:
    yield from _head(
        "MCP tools",
        "What `gsd mcp` offers to MCP clients such as Claude Code.",
        "See also: [steer sessions from Claude Code](../how-to/steer-sessions-from-claude-code.md).",
        "A result is structured content, and the same JSON as text.",
        "An error is a result with `isError`: a message, and mostly a line that begins with `hint:`.",
        "`change` numbers count up in one server: pass one as `after` to `gsd_wait_for_change`.",
    )
    for tool in tools():
        yield f"## {tool.name}"
        yield ""
        yield tool.about
        yield ""
        yield "| argument | type | |"
        yield "|---|---|---|"
        for name, schema in tool.takes["properties"].items():
            required = "required; " if name in tool.takes.get("required", ()) else ""
            yield f"| `{name}` | {_schema_type(schema)} | {required}{_cell(schema.get('description', ''))} |"
        yield ""
        yield f"Result: {', '.join(f'`{name}`' for name in tool.returns['properties'])}."
        yield ""
    yield "## Prompts"
    yield ""
    for prompt in PROMPTS:
        takes = ", ".join(f"`{name}` ({about})" for name, about in prompt.takes.items())
        yield f"- `{prompt.name}`: {prompt.about}{f' Takes {takes}.' if takes else ''}"
    yield ""
    yield "## Resources"
    yield ""
    yield "`gsd://sessions/SESSION/roadmap` and `gsd://sessions/SESSION/state` are the ROADMAP.md and the"
    yield "STATE.md of the session's project. Clients can subscribe to them: current ones with"
    yield "`subscriptions/listen`, earlier ones on standard streams with `resources/subscribe`."


def _schema_type(schema: Mapping[str, Any]) -> str:
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" for value in values)
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    kinds = schema["type"]
    return ", ".join([kinds if isinstance(kinds, str) else " or ".join(kinds), *bounds])


_BOUNDS = {
    "minimum": "from",
    "exclusiveMinimum": "above",
    "maximum": "to",
    "maxLength": "length to",
    "default": "default",
}


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
    if callable(value):
        return f"`{value.__name__}`"
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
    """Return a docstring as Markdown: roles and double backticks become single backticks."""
    text = re.sub(r":(?:class|meth|func|mod|data):`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`")


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def main() -> int:
    """Write the pages, or with ``--check`` list the outdated ones."""
    made = pages()
    stale = [name for name, text in made.items() if _read(FOLDER / name) != text]
    if "--check" in sys.argv[1:]:
        sys.stderr.writelines(f"outdated: docs/reference/{name}\n" for name in stale)
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_text(made[name], encoding="utf-8")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())

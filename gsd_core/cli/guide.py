"""What ``gsd`` and ``gsd run`` do at a terminal without arguments: say what is here, and lead on.

Every choice ends in an ordinary command, which is printed before it runs, so that the next time it can be
typed. The first choice spends nothing and changes nothing, q leaves.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

import attrs
import click

from gsd_core.errors import Credentials, GsdError
from gsd_core.processes import refuse_agents
from gsd_core.sanitize import one_line, register_secrets, safe_text

from .commands import base_command
from .global_options import GlobalOptions, global_options_of
from .output import wrapped

QUIT = ("q", "quit", "exit")
IDEA_SUFFIXES = (".md", ".markdown", ".txt", ".rst")
NOT_IDEAS = re.compile(
    r"(readme|changelog|contributing|license|licence|security|code_of_conduct|claude|agents)\b", re.I
)
MAX_IDEAS = 6
MAX_LINE = 160


@attrs.frozen(kw_only=True)
class Choice:
    """Something that can be done next: its *text*, and the arguments of ``gsd`` that do it.

    With *asks* an idea and what a run of it needs are asked for, beginning with *idea* if it is known.
    """

    text: str
    arguments: tuple[str, ...] = ()
    asks: bool = False
    idea: str = ""


def has_project(options: GlobalOptions) -> bool:
    """Whether ``gsd run`` has something to continue with in the project's folder."""
    from .project import load

    root = options.directory.resolve()
    return root.is_dir() and ((root / ".planning" / "ROADMAP.md").exists() or bool(load(options).state.run))


def lead_on(ctx: click.Context) -> None:
    """Show what is in the project's folder and what can be done, do what is chosen, and exit."""
    refuse_agents("start a run")
    options = global_options_of(ctx)
    said, choices = _situation(ctx, options)
    for line in said:
        indent = " " * (len(line) - len(line.lstrip()))
        for part in wrapped(safe_text(line, multiline=False), sys.stdout, indent):
            click.echo(part)
    choice = _choose(choices)
    arguments = choice.arguments if choice else ()
    if choice and choice.asks:
        arguments = _asked_for(ctx, choice, options)
    if not arguments:
        click.echo("Nothing was started.")
        ctx.exit(0)
    _run(ctx, arguments, options)


def _run(ctx: click.Context, arguments: Sequence[str], options: GlobalOptions) -> None:
    """Print the command line, and run the command."""
    typed = shlex.join([*shlex.split(base_command(options)), *arguments])
    click.echo(f"$ {safe_text(typed, multiline=False)}")
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    command = root.command.get_command(root, arguments[0])
    assert command is not None
    with command.make_context(arguments[0], [*arguments[1:]], parent=root) as inner:
        command.invoke(inner)


# What is here.


def _situation(ctx: click.Context, options: GlobalOptions) -> tuple[list[str], list[Choice]]:
    """Return what to say about the folder, and what can be done there; the first choice is the default."""
    from .project import load

    root = options.directory.resolve()
    here = repr(one_line(str(root), MAX_LINE))
    project = load(options) if root.is_dir() else None
    if project and project.holder:
        text = f"A run is active in {here} (pid {project.holder.pid} on {project.holder.host})."
        return [text], [
            Choice(text="Show its phases, current step and open questions", arguments=("status",)),
            Choice(text="Watch it; q leaves, and the run continues", arguments=("watch",)),
            Choice(text="List its open questions", arguments=("questions",)),
            Choice(text="Ask it to stop", arguments=("stop",)),
        ]
    if project and project.state.run and project.state.closed != "done":
        name = one_line(project.state.idea_name, MAX_LINE)
        idea = f" of {name}" if name else ""
        return [f"There is an unfinished run{idea} in {here}."], [
            Choice(text="Show where it is, and what it is waiting for", arguments=("status",)),
            Choice(text="Resume it", arguments=("resume",)),
            Choice(text="Show what was done", arguments=("log",)),
        ]
    if root.is_dir() and (root / ".planning" / "ROADMAP.md").exists():
        return [f"There is a project in {here}."], [
            Choice(text="Show where it stands", arguments=("progress",)),
            Choice(text="Show which step is due, and why", arguments=("next",)),
            Choice(text="Continue with the step that is due", arguments=("run",)),
            Choice(text="Start the next milestone with an idea", asks=True),
        ]
    demo = Choice(text="Try gsd without an account: a demo in a new folder", arguments=("demo",))
    said = [f"There is no project in {one_line(str(root), MAX_LINE)!r} yet."]
    if problem := _why_no_agent(ctx, root):
        said += [*problem, "The demo works without one."]
        return said, [demo, Choice(text="Check everything that a run needs", arguments=("doctor",))]
    ideas = _ideas(root)
    needed = "An idea is a text" if ideas else "A run needs an idea: a text file"
    said.append(f"{needed} that says what to build, for whom, and when it is done.")
    found = [Choice(text=f"Build what {name} says", asks=True, idea=name) for name in ideas]
    return said, [demo, *found, Choice(text="Build what another file says", asks=True)]


def _ideas(root: Path) -> list[str]:
    """Return the names of the files in the folder that may be ideas."""
    if not root.is_dir():
        return []
    files = [path.name for path in root.iterdir() if path.suffix in IDEA_SUFFIXES and path.is_file()]
    names = sorted(name for name in files if not NOT_IDEAS.match(name) and not name.startswith("-"))
    # A name that cannot be shown as it is cannot be chosen from a list either.
    return [name for name in names if one_line(name, MAX_LINE) == name][:MAX_IDEAS]


def _why_no_agent(ctx: click.Context, root: Path) -> list[str]:
    """Return why the agent of the settings cannot work, and what to do about it; nothing if it can."""
    from gsd_core.settings import RunSettings

    from .launch import check_agents, check_plugins
    from .plugin_loading import loaded_plugins
    from .project_settings import settings_that_count

    loaded, settings, _ = settings_that_count(loaded_plugins(ctx), root)
    check_plugins(loaded, settings.of(RunSettings))
    try:
        check_agents(loaded.hooks, settings, root)
    except Credentials as error:
        return [f"A run cannot start yet: {error}", *([f"  {error.hint}"] if error.hint else [])]
    return []


# Asking.


def _choose(choices: Sequence[Choice]) -> Choice | None:
    """Let the person choose; ``None`` to leave."""
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}. {safe_text(choice.text, multiline=False)}")
    while True:
        typed = _ask("Type a number, or q to leave. Press Enter for 1: ")
        if typed is None:
            return None
        if not typed:
            return choices[0]
        if typed.isdecimal() and 1 <= int(typed) <= len(choices):
            return choices[int(typed) - 1]
        wanted = f"type a number from 1 to {len(choices)}, or q."
        click.echo(f"There is no choice {one_line(typed, 40)!r}: {wanted}")


def _ask(prompt: str) -> str | None:
    """Return the line that was typed, without the space around it; ``None`` for q and at the end of input."""
    try:
        typed: str = click.prompt(prompt, default="", show_default=False, prompt_suffix="").strip()
    except click.Abort:
        click.echo()
        return None
    return None if typed.lower() in QUIT else typed


def _asked_for(ctx: click.Context, choice: Choice, options: GlobalOptions) -> tuple[str, ...]:
    """Ask what a run of an idea needs, and return the command line; empty to leave."""
    idea = choice.idea and str(Path(os.path.curdir) / options.directory / choice.idea)
    while not idea:
        typed = _ask("Which file has the idea? ")
        if typed is None:
            return ()
        idea = typed if typed and _is_idea(Path(typed).expanduser()) else ""
    flags: list[str] = []
    saved: dict[str, str] = {}
    cost = "Most that the run may cost, in US dollars? Press Enter for no limit: "
    address = "Notify which address, such as ntfy://my-topic? Press Enter for none: "
    for name, flag, question, validate in (
        ("run.agent", "--agent", "Agent? Press Enter for the one of the settings: ", _is_agent),
        ("budget.max_usd", "--max-budget-usd", cost, _is_amount),
        ("apprise.urls", "--notify", address, _is_address),
    ):
        while True:
            typed = _ask(question)
            if typed is None:
                return ()
            if not typed or not (problem := validate(ctx, typed)):
                break
            click.echo(problem)
        if typed:
            flags += [flag, typed]
            saved[name] = typed
    if "apprise.urls" in saved:
        register_secrets([saved["apprise.urls"]])
    if saved and not _save(ctx, saved, options):
        return ()
    path = str(Path(idea).expanduser())
    run = ("run", f"./{path}" if path.startswith("-") else path, *flags)
    last = _choose(
        [
            Choice(text="Show what the run would do, and start nothing", arguments=(*run, "--dry-run")),
            Choice(text="Start the run", arguments=run),
        ]
    )
    return last.arguments if last else ()


def _is_idea(path: Path) -> bool:
    """Whether the file has an idea; if not, say why."""
    from gsd_core.run.preflight import load_idea

    if str(path) == "-":
        click.echo("The idea has to be a file here.")
        return False
    try:
        load_idea(path, sys.stdin.buffer)
    except GsdError as error:
        click.echo(f"{safe_text(str(error), multiline=False)}: {error.hint}")
        return False
    return True


def _is_agent(ctx: click.Context, typed: str) -> str:
    from gsd_core.hookspecs import gsd_run_agent

    from .plugin_loading import loaded_plugins

    known = sorted(loaded_plugins(ctx).hooks.plugins_of(gsd_run_agent))
    if typed in known:
        return ""
    return f"There is no agent {one_line(typed, 40)!r}. Installed: {', '.join(known)}."


def _is_amount(_: click.Context, typed: str) -> str:
    try:
        amount = Decimal(typed)
    except InvalidOperation:
        amount = Decimal(-1)
    return "" if amount.is_finite() and amount > 0 else "Type an amount such as 20 or 2.50."


def _is_address(_: click.Context, typed: str) -> str:
    if re.fullmatch(r"[a-z]\S*|desktop", typed):
        return ""
    return "Type an address such as ntfy://my-topic, or: desktop."


def _save(ctx: click.Context, saved: dict[str, str], options: GlobalOptions) -> bool:
    """Offer to save what was typed; false to leave."""
    typed = _ask("Save this for later runs? Type y to save it. Press Enter for no: ")
    if typed is None:
        return False
    if typed.lower() in ("y", "yes"):
        options.directory.mkdir(parents=True, exist_ok=True)
        for name, value in saved.items():
            # An address may contain a password, which does not belong into a project.
            user = ("--user",) if name == "apprise.urls" else ()
            _run(ctx, ("settings", "set", *user, name, value), options)
    return True

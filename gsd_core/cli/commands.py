"""The table of subcommands, and command lines as the user has to type them."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from .global_options import GlobalOptions

# The summaries repeat the first sentences of the commands' docstrings, so that `gsd --help` need not
# import the commands; a test compares them.
COMMAND_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Run": {
        "demo": "Try gsd in a new folder, without an account: a rehearsal with a scripted model.",
        "run": "Turn IDEA (a text file, or - for stdin) into verified, committed code.",
        "resume": "Resume the unfinished run.",
        "watch": "Watch the run that another process works on, or wait for one.",
        "pause": (
            "Pause the active run, if any, after its step, and write a handoff: where the work is, and TEXT."
        ),
        "stop": "Ask the active run to stop, or SESSION, wherever its project is.",
    },
    "Do one step alone": {
        "discuss": "Ask what is open about PHASE, and record the decisions.",
        "plan": "Plan PHASE, and do nothing else.",
        "execute": "Execute the plans of PHASE that have no summary, and do nothing else.",
        "verify": "Verify PHASE again, and do nothing else.",
        "quick": "Do a small task outside of the roadmap: plan it, execute it, commit it.",
        "debug": "Find the root cause of the problem that TEXT describes, and change nothing.",
        "map": "Describe the existing code in .planning/codebase, and do nothing else.",
        "exec": "Run PROMPT, any prompt or command of the agent, as one recorded step.",
    },
    "Answer questions": {
        "questions": "List the open questions, each with the command that answers it.",
        "answer": "Answer the question ID.",
    },
    "See what is done and due": {
        "status": "Show the run's phases, current step, open questions and cost.",
        "next": "Show which step is due, why, and the command for it.",
        "why": "Show what each step waits for that is neither running nor done, and each way out.",
        "progress": (
            "Show where the project stands: phases, recent work, decisions, blockers, todos, what is next."
        ),
        "log": "Show what was done, step by step.",
        "cost": (
            "Show the cost of the last run: dollars, tokens and agent calls, and what is left of the budget."
        ),
        "report": "Write a report about the last run: one HTML file without scripts that loads nothing.",
        "panels": "Show what plugins have to say about the project.",
        "phases": "List the phases of the current milestone.",
        "plans": "List the plans of PHASE.",
        "plan-graph": "Show what the plans of PHASE depend on, which may start, and what the rest waits for.",
        "gaps": "Show the gaps of PHASE.",
        "requirements": (
            "Trace the requirements: statements of the idea, phase, plans, commits, checks and evidence."
        ),
    },
    "Change what is planned": {
        "phase": "Add, insert or remove a phase of the roadmap.",
        "milestone": "Audit the milestone in progress, or complete it.",
        "todo": "Capture, list and complete todos.",
    },
    "Set up and check": {
        "trust": "Trust the plugins, settings and commands that the project brings.",
        "plugins": "List plugins, install them, create a new one, or check one.",
        "settings": "Show the settings and where they come from, or change one.",
        "doctor": (
            "Check the machine, the agent, the settings and the project, and say what to do about problems."
        ),
        "health": "Check .planning/ and the journal, and repair some of the files.",
        "merge-driver": "Merge the planning files of two branches by meaning, when git merges.",
        "paths": "Show where the journal, the logs, the settings, the caches and other files of gsd are.",
        "completion": "Print the script that completes commands and options in SHELL.",
        "help": "Show the help of a command, or of a topic: environment, exit-codes.",
        "schema": "Print the JSON Schema of what COMMAND prints with --json.",
        "version": "Show the versions of gsd, Python, git and the libraries.",
        "bug-report": (
            "Print a text for a bug report: versions, the results of gsd doctor, and the end of the log."
        ),
    },
}
"""The built-in subcommands under the headings of ``gsd --help``, in its order."""

PLUGIN_COMMANDS: Mapping[str, str] = {
    "ps": "List the sessions: runs in the background, of all projects.",
    "attach": (
        "Show what SESSION prints, as it prints it, and pass on what you type; Ctrl-] leaves it running."
    ),
    "logs": "Print what SESSION printed, byte for byte.",
    "rm": "Forget sessions that have ended, and what they printed; their projects are not touched.",
    "serve": "Serve the dashboard and the MCP server of all sessions.",
    "mcp": "Serve MCP on standard input and output, for Claude Code and other clients.",
}
"""The subcommands of built-in plugins, under "Sessions" in ``gsd --help``, which does not load plugins."""

OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("init", "new", "start"), "run IDEA"),
    **dict.fromkeys(("kill", "cancel", "abort"), "stop"),
    **dict.fromkeys(("login", "auth", "setup"), "doctor"),
    **dict.fromkeys(("dashboard", "web", "ui"), "serve"),
    **dict.fromkeys(("session", "sessions", "ls"), "ps"),
    **dict.fromkeys(("remove", "delete"), "rm"),
    "continue": "resume",
    "config": "settings",
}
"""Names that other tools have for a command, and what to type here."""

COMMANDS: Mapping[str, str] = {
    name: summary for group in COMMAND_GROUPS.values() for name, summary in group.items()
}
_PLACES: Mapping[str, str] = {
    **{name: f"steps:{name}" for name in ("discuss", "plan", "execute", "verify", "quick", "debug")},
    "resume": "run:resume_command",
    "map": "steps:map_",
    "exec": "steps:exec_",
    "help": "topics:command",
}


def place_of(command: str) -> tuple[str, str]:
    """Return the module of a built-in subcommand, and its name there."""
    module, _, name = _PLACES.get(command, f"{command.replace('-', '_')}:command").partition(":")
    return module, name


LOAD_PLUGINS = (
    *("run", "resume", "discuss", "plan", "execute", "verify", "debug", "quick", "map", "exec"),
    *("status", "next", "why", "progress", "questions", "pause", "stop", "watch", "cost", "panels"),
    *("gaps", "doctor", "settings", "bug-report", "trust", "plugins", "milestone"),
)
"""The subcommands for which ``-p`` and ``--plugins-dir`` make a difference."""

# Not in what is completed already, such as `.venv/bin/gsd resume`.
_MENTION = re.compile(rf"(?<![\w/.-])gsd ({'|'.join((*COMMANDS, *PLUGIN_COMMANDS))})\b")


def program() -> str:
    """Return how to start this program again: ``gsd``, or the path it was called by if that is another one.

    What gsd prints is pasted into the same shell, which may not have the environment of gsd on its PATH.
    """
    called = Path(sys.argv[0])
    if called.name == "__main__.py":
        called = Path(sys.executable).with_name("gsd")
    found = shutil.which("gsd")
    # Other names: a program that embeds gsd.
    if called.name != "gsd" or not called.exists() or (found and called.samefile(found)):
        return "gsd"
    return str(called)


def base_command(options: GlobalOptions, *, plugins: bool = True) -> str:
    """Return how to call gsd for the project of *options*, and with its *plugins*: ``gsd -C DIR -p NAME``."""
    folder = ("-C", str(options.directory)) if options.directory_given else ()
    return shlex.join([program(), *folder, *(options.plugin_options if plugins else ())])


def with_global_options(text: str, options: GlobalOptions) -> str:
    """Return *text* with the global options the user gave in every gsd command that it mentions.

    The core does not know how it was started, so its hints name bare commands such as ``gsd resume``.
    """

    def complete(match: re.Match[str]) -> str:
        # The demo has a folder of its own, and sessions are those of all projects.
        if match[1] == "demo" or match[1] in PLUGIN_COMMANDS:
            return shlex.join([program(), match[1]])
        return f"{base_command(options, plugins=match[1] in LOAD_PLUGINS)} {match[1]}"

    return _MENTION.sub(complete, text)

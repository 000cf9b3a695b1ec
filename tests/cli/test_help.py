"""``--help`` and the console script: light imports, and clear errors for unknown commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

import gsd_core
from gsd_core.cli import why_unsupported
from gsd_core.cli.app import gsd
from gsd_core.cli.commands import COMMAND_GROUPS, COMMANDS, PLUGIN_COMMANDS
from tests.cli.bench import Bench, call
from tests.cli.pasted import check

HEAVY = {
    "apprise",
    "apsw",
    "asyncssh",
    "cattrs",
    "claude_agent_sdk",
    "fastapi",
    "filelock",
    "httpx",
    "markdown_it",
    "mcp",
    "platformdirs",
    "ruamel",
    "starlette",
}
WITHOUT_EXAMPLES = {"completion", "version"}
"""The text of the first one has its examples; the second one has no arguments."""
LOADED = """
import sys
from gsd_core.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("LOADED", *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def _in_a_process(*args: str, code: str = LOADED) -> str:
    home = Path(gsd_core.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": f"{home}:{home / 'plugins'}", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("run", "--help"), ("status", "--help")])
def test_help_imports_no_heavy_library(args: tuple[str, ...]) -> None:
    loaded = set(_in_a_process(*args).rpartition("LOADED ")[2].split())

    assert "gsd_core" in loaded
    # The options of `gsd run` are those of the plugins that the user's own settings do not turn off.
    assert loaded & HEAVY == ({"platformdirs"} if args[0] == "run" else set())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command: str) -> None:
    result = call(command, "--help")

    assert result.exit_code == 0
    assert "Usage: gsd" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_summary_of_a_command_is_the_first_sentence_of_its_help(command: str) -> None:
    found = gsd.get_command(click.Context(gsd), command)

    assert found is not None
    assert (found.help or "").split("\n\n")[0].strip() == COMMANDS[command]


@pytest.mark.parametrize("command", PLUGIN_COMMANDS)
def test_the_summary_of_a_built_in_plugin_s_command_is_that_of_its_help(command: str) -> None:
    found = gsd.get_command(click.Context(gsd), command)

    assert found is not None
    assert " ".join((found.help or "").split("\n\n")[0].split()) == PLUGIN_COMMANDS[command]


def _shown_examples(name: str) -> list[str]:
    """Return the command lines under "Examples:" in the help of a command."""
    _, _, shown = call(*name.split(), "--help").stdout.partition("\nExamples:\n")
    lines = [line.strip() for line in shown.splitlines()]
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(
    "name", [name for name in (*COMMANDS, *PLUGIN_COMMANDS) if name not in WITHOUT_EXAMPLES]
)
def test_the_help_of_a_command_has_examples_that_can_be_pasted(name: str) -> None:
    found = _shown_examples(name)

    assert found
    for example in found:
        assert len(example) <= 78, "it does not fit into a terminal"
        assert check(example)[0] == name


@pytest.mark.parametrize("name", ["settings set", "settings unset", "plugins new", "plugins check"])
def test_the_help_of_a_subcommand_has_examples_of_that_subcommand(name: str) -> None:
    found = _shown_examples(name)

    assert found
    assert all(check(example)[:2] == name.split() for example in found)


def test_the_help_lists_every_command_once_under_the_heading_of_its_group() -> None:
    _, _, shown = call("--help").stdout.partition("\n\nOptions:")
    heading, listed = "", dict[str, list[str]]()
    for line in shown.splitlines()[1:]:
        if line.endswith(":") and not line.startswith(" "):
            heading = line.removesuffix(":")
        elif found := re.match(r"  ([a-z]\S*)  ", line):
            listed.setdefault(heading, []).append(found[1])

    groups = {group: list(entries) for group, entries in COMMAND_GROUPS.items()}
    assert listed == {**groups, "Sessions": list(PLUGIN_COMMANDS)}
    assert sum(map(len, listed.values())) == len(COMMANDS) + len(PLUGIN_COMMANDS)


def test_run_offers_the_flags_of_the_core_and_of_plugins() -> None:
    shown = call("run", "--help").stdout
    flags = (
        "--agent --phases --only --skip-verify --depth --model --max-budget-usd --notify --answers "
        "--no-input --yes --allow-dirty --dry-run --seed --output-format --verbose --quiet --plugins-dir"
    )

    assert [flag for flag in flags.split() if flag not in shown] == []


def test_without_a_plugin_its_flag_is_unknown() -> None:
    assert "  --notify URL" in call("run", "--help").stdout
    assert "  --notify URL" not in call("run", "-p", "no:apprise", "--help").stdout


def test_an_unknown_command_is_an_error_with_a_suggestion() -> None:
    result = call("statsu")

    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "error: no command 'statsu'; did you mean 'gsd status'?",
        "hint: gsd --help",
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("init", "run IDEA"),
        ("new", "run IDEA"),
        ("continue", "resume"),
        ("kill", "stop"),
        ("config", "settings"),
        ("login", "doctor"),
        ("dashboard", "serve"),
        ("sessions", "ps"),
        ("ls", "ps"),
        ("cancel", "stop"),
        ("setup", "doctor"),
        ("remove", "rm"),
    ],
)
def test_the_name_that_another_tool_has_for_a_command_leads_to_ours(name: str, meant: str) -> None:
    result = call(name)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: no command {name!r}; did you mean 'gsd {meant}'?\n")


def test_an_unknown_option_is_an_error_with_a_hint() -> None:
    result = call("status", "--jsno")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: No such option")
    assert result.stderr.splitlines()[-1] == "hint: gsd status --help"


def test_a_plugin_can_contribute_a_command(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(
        "import click\n"
        "from gsd_core import implements\n"
        "from gsd_core.hookspecs import gsd_cli_commands\n"
        "@implements(gsd_cli_commands)\n"
        "def commands():\n"
        "    yield click.Command('greet', callback=lambda: click.echo('hello'))\n"
    )

    assert call("--plugins-dir", tmp_path, "greet").stdout == "hello\n"


def test_a_command_of_a_plugin_reads_the_users_settings_but_not_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greet.py").write_text(
        "import attrs, click\n"
        "from gsd_core import implements, setting, settings_of\n"
        "from gsd_core.hookspecs import gsd_cli_commands, gsd_settings\n"
        "@attrs.frozen(kw_only=True)\n"
        "class Words:\n"
        "    word: str = setting('default')\n"
        "    name: str = setting('nobody')\n"
        "    end: str = setting('.')\n"
        "def say():\n"
        "    words = settings_of(Words)\n"
        "    click.echo(words.word + ' ' + words.name + words.end)\n"
        "@implements(gsd_settings)\n"
        "def settings():\n"
        "    yield Words\n"
        "@implements(gsd_cli_commands)\n"
        "def commands():\n"
        "    yield click.Command('greet', callback=say)\n"
    )
    project = tmp_path / "project"
    project.mkdir()
    (project / "gsd.toml").write_text("[greet]\nword = 'evil'\nend = '?'\n")
    own = tmp_path / "config.toml"
    own.write_text("[greet]\nword = 'hello'\nname = 'file'\n")
    monkeypatch.setenv("GSD_CONFIG", str(own))
    monkeypatch.setenv("GSD_GREET_NAME", "world")

    assert call("-C", project, "--plugins-dir", tmp_path, "greet").stdout == "hello world.\n"


@pytest.mark.parametrize("platform", ["win32", "cygwin"])
def test_native_windows_is_refused_with_a_hint_to_wsl(platform: str) -> None:
    assert "WSL" in why_unsupported(platform)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_linux_and_macos_are_supported(platform: str) -> None:
    assert why_unsupported(platform) == ""


def test_a_closed_pipe_is_not_an_error(bench: Bench) -> None:
    bench.start()
    bench.fact("novel.kind", words="x" * 1_000_000)
    script = f"{sys.executable} -m gsd_core log --json -C {bench.root} | head -c 1; echo ${{PIPESTATUS[0]}}"
    home = Path(gsd_core.__file__).parents[1]

    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": f"{home}:{home / 'plugins'}", "PATH": "/usr/bin:/bin"},
    )

    assert (done.stdout, done.stderr) == ("{0\n", "")


def test_gsd_alone_shows_the_help_and_no_error() -> None:
    done = subprocess.run([sys.executable, "-m", "gsd_core"], capture_output=True, text=True, timeout=60)

    assert done.stdout.startswith("Usage: gsd")
    assert done.stderr == ""


@pytest.mark.parametrize("args", [("status", "--json", "--help"), ("ps", "-h", "--json")], ids=" ".join)
def test_help_is_on_standard_output_with_json_too(args: tuple[str, ...]) -> None:
    shown = call(*args)

    assert (shown.exit_code, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"Usage: gsd {args[0]}")


@pytest.mark.parametrize("option", ["--no-color", "--plain"])
@pytest.mark.parametrize("before", [True, False])
def test_colors_can_be_switched_off_before_and_after_the_command(
    option: str, before: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    # The option sets the variable, and this restores it afterwards.
    monkeypatch.setenv("NO_COLOR", "")
    colored = call("plugins", "-C", tmp_path)

    plain = call(option, "plugins", "-C", tmp_path) if before else call("plugins", "-C", tmp_path, option)

    assert "\x1b[" in colored.stdout
    assert plain.exit_code == 0
    assert "\x1b[" not in plain.stdout


def test_yes_and_dry_run_have_short_forms() -> None:
    shown = call("run", "--help").stdout

    assert "-y, --yes" in shown
    assert "-n, --dry-run" in shown

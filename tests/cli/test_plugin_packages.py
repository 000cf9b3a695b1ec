"""Packages with plugins: the list of known ones, installing, what they require, and their settings."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gsd_core
from gsd_core import hookspecs
from gsd_core.cli.plugin_packages import find_installer
from gsd_core.errors import UserError
from gsd_core.hook_markers import hookspec, stability_of
from gsd_core.plugins.index import known_plugins
from gsd_core.plugins.validation import HOOKS
from gsd_core.testing import make_manager
from tests.cli.bench import EVIL, Bench, call, said
from tests.package.source import ROOT

PLUGIN = '''"""Greets people."""
from gsd_core import implements
from gsd_core.hookspecs import gsd_on_event
{requires}
@implements(gsd_on_event)
async def look(event):
    pass
'''
COMMANDS = """
import json
import click
from gsd_core import CommandOptions, implements, settings_of
from gsd_core.hookspecs import gsd_cli_commands

@click.group(help="Greet people.")
def greet():
    pass

@greet.command()
def hello():
    options = settings_of(CommandOptions)
    click.echo(json.dumps([options.project.name, options.as_json]))

@click.command(help="Has an own --json.")
@click.option("--json", "form")
def own(form):
    click.echo(form)

@implements(gsd_cli_commands)
def commands():
    return [greet, own]
"""


def plugins(folder: Path, **requires: str) -> Path:
    """Write a plugin for each keyword, with that list of requirements."""
    folder.mkdir(exist_ok=True)
    for name, listed in requires.items():
        (folder / f"{name}.py").write_text(PLUGIN.format(requires=f"requires = {listed}" if listed else ""))
    return folder


def listed(*args: str | Path) -> dict[str, dict[str, object]]:
    return {plugin["name"]: plugin for plugin in said("plugins", *args)["plugins"]}


def test_the_list_of_known_plugins_is_that_of_the_packages_in_contrib() -> None:
    known = {plugin.name: plugin for plugin in known_plugins()}
    declared: dict[str, str] = {}
    for path in ROOT.glob("contrib/*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        [name] = project["entry-points"]["gsd"]
        declared[name] = project["name"]
        readme = path.with_name("README.md").read_text("utf-8")
        # Whoever installs a name that nobody of ours has published gets a stranger's package.
        assert f"gsd plugins install ./contrib/{path.parent.name}  #" in readme
        assert "not published yet" in readme
        assert f"install {project['name']}" not in readme
        code = "".join(file.read_text() for file in path.parent.glob("src/**/*.py"))
        assert [hook for hook in known[name].hooks if f"gsd_{hook}" not in code] == []

    assert {name: plugin.package for name, plugin in known.items()} == declared
    assert {hook for plugin in known.values() for hook in plugin.hooks} <= {h[4:] for h in HOOKS}


def test_the_known_plugins_are_listed_with_their_packages() -> None:
    rows = {row["name"]: row for row in said("plugins", "list")["plugins"]}

    assert (rows["slack"]["package"], rows["slack"]["installed"]) == ("gsd-plugin-slack", None)
    assert not any(row["published"] for row in rows.values())
    assert "contrib/gsd-plugin-slack" in call("plugins", "list").stdout


def test_settings_of_a_known_plugin_that_is_not_installed_are_a_warning(bench: Bench, tmp_path: Path) -> None:
    idea = tmp_path / "idea.md"
    idea.write_text("# Greeter\n\nGreets.\n")
    (bench.root / "gsd.toml").write_text('[slack]\nchannel = "#dev"\n')
    dry = ("run", idea, "-C", bench.root, "--agent", "rehearsal", "--dry-run")

    result = call(*dry)
    assert result.exit_code == 0, result.stderr
    assert "[slack] has no effect" in result.stderr
    assert "gsd-plugin-slack" in result.stderr
    (bench.root / "gsd.toml").write_text("[slakc]\nx = 1\n")
    result = call(*dry)
    assert (result.exit_code, "did you mean 'slack'?" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("requires", "problem"),
    [
        ("('uat', 'gsd-core>=0.1')", ""),
        ("['first>=1']", "requires the plugin 'first' in version >=1, but it has no version"),
        ("['nobody']", "requires the plugin 'nobody', which is not installed"),
        ("['gsd_core>=99']", f"requires gsd-core in version >=99, but {gsd_core.__version__} is installed"),
        ("['uat>=99']", "requires the plugin 'uat' in version >=99"),
        ("['uat>>1']", "'uat>>1', which is not a requirement"),
        ("['uat[more]']", "only a plugin's name and versions"),
        ("'uat'", "not a tuple of strings"),
        ("[1]", "not a tuple of strings"),
        ("print", ""),
    ],
)
def test_what_a_plugin_requires_is_checked_when_it_is_loaded(
    requires: str, problem: str, tmp_path: Path
) -> None:
    found = listed("--plugins-dir", plugins(tmp_path / "p", first="", second=requires))

    assert found["first"]["status"] == "active"
    assert found["first"]["about"] == "Greets people."
    assert found["second"]["status"] == ("broken" if problem else "active")
    assert problem in str(found["second"]["reason"])


def test_a_plugin_is_missing_if_another_that_it_requires_is(tmp_path: Path) -> None:
    folder = plugins(tmp_path / "p", a="['b']", b="['c']", c="")

    assert {listed("--plugins-dir", folder)[name]["status"] for name in "abc"} == {"active"}
    found = listed("--plugins-dir", folder, "-p", "no:c")
    assert "'c', which is blocked: -p no:c" in str(found["b"]["reason"])
    assert "'b', which is broken: requires" in str(found["a"]["reason"])
    assert found["a"]["hooks"] == []


def test_what_failed_in_the_last_run_is_listed(bench: Bench) -> None:
    bench.fact("run.started")
    bench.fact("plugin.failed", plugin="uat", hook="gsd_find_gaps", error=f"broke {EVIL}")
    found = listed("-C", bench.root)
    assert (found["uat"]["last_failures"], found["yolo"]["last_failures"]) != ([], [])
    shown = call("plugins", "-C", bench.root).stdout

    assert "uat failed in the last run (gsd_find_gaps): broke" in shown
    assert "\x1b]52" not in shown + str(found["uat"]["last_failures"])


def test_the_commands_of_plugins_are_in_the_help_and_take_the_common_options(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(COMMANDS)
    (tmp_path / "broken.py").write_text("gsd_cli_commands = 1 / 0\n")
    (tmp_path / "other.py").write_text("import pathlib; pathlib.Path(__file__ + '.ran').touch()\n")
    shown = call("--plugins-dir", tmp_path, "--help").stdout

    assert "From plugins:" in shown
    assert "Greet people." in shown.partition("From plugins:")[2]
    assert not (tmp_path / "other.py.ran").exists()
    project = tmp_path / "project"
    project.mkdir()
    base = ("--plugins-dir", tmp_path)
    assert call(*base, "greet", "hello", "-C", project, "--json").stdout == '["project", true]\n'
    assert call(*base, "-C", project, "greet", "hello").stdout == '["project", false]\n'
    assert call(*base, "own", "--json", "yaml").stdout == "yaml\n"
    assert "From plugins" not in call("--help").stdout


def test_a_deprecated_hook_is_reported_with_its_replacement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @hookspec(mode="subscribe", level="deprecated", instead="use gsd_on_event; it works until 0.4")
    async def gsd_old(event: object) -> None:
        """Observe."""

    monkeypatch.setattr(hookspecs, "gsd_old", gsd_old, raising=False)
    assert stability_of(gsd_old).level == "deprecated"
    assert make_manager().hook.gsd_old is not None
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "mine.py").write_text(
        "from gsd_core import hookimpl\n@hookimpl\nasync def gsd_old(event): pass\n"
    )
    found = listed("--plugins-dir", tmp_path / "p")["mine"]

    note = "the hook gsd_old is deprecated: use gsd_on_event; it works until 0.4"
    assert (found["status"], found["notes"]) == ("active", [note])
    assert note in call("plugins", "--plugins-dir", tmp_path / "p").stdout
    with pytest.raises(ValueError, match="instead"):
        hookspec(mode="subscribe", level="deprecated")


def test_the_tool_that_made_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("uv", "pipx"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    kinds = {"pipx": "pipx_metadata.json", "uv": "pyvenv.cfg", "pip": "other"}
    for tool, file in kinds.items():
        (tmp_path / f"env-{tool}").mkdir()
        (tmp_path / f"env-{tool}" / file).write_text("uv = 0.5\n")
        assert find_installer(tmp_path / f"env-{tool}").tool == tool
    assert find_installer(tmp_path / "env-uv").install(["x"], ["--no-index"])[1:5] == (
        *("pip", "install", "--upgrade", "--no-index"),
    )
    (tmp_path / "env-pip" / "uv-receipt.toml").touch()
    with pytest.raises(UserError, match="tool of uv"):
        find_installer(tmp_path / "env-pip")


@pytest.mark.parametrize("name", ["--editable", "-e", "a b", "", "https://x.invalid/y.whl", "nobody/x"])
def test_a_name_that_is_no_package_is_an_error(name: str) -> None:
    result = call("plugins", "install", "--no-index", "--", name)

    assert (result.exit_code, "is not a package" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("slack", "is not published yet"),
        ("gsd-plugin-slack", "is not published yet"),
        ("GSD_Plugin.Slack>=0", "is not published yet"),
        ("gsd-plugin-slakc", "is not on the list"),
        ("requests", "is not on the list"),
        ("gsd-plugin-x @ https://x.invalid/y.whl", "is not on the list"),
    ],
)
def test_a_name_that_we_have_not_published_is_never_looked_for_in_the_index(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for sources in ((), ("--find-links", "/tmp")):
        result = call("plugins", "install", *sources, "--", name)

        assert (result.exit_code, why in " ".join(result.stderr.split())) == (2, True), result.stderr
        assert "install it from a path" in " ".join(result.stderr.split())


def test_only_a_package_with_a_plugin_can_be_uninstalled() -> None:
    for name in ("uat", "gsd-core", "attrs"):
        result = call("plugins", "uninstall", name)
        assert (result.exit_code, "no package with a plugin" in result.stderr) == (2, True)


def wheel(folder: Path, version: str) -> Path:
    """Write a wheel of the package gsd-plugin-mine."""
    info = f"gsd_plugin_mine-{version}.dist-info"
    files = {
        "gsd_plugin_mine.py": PLUGIN.format(requires=""),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: gsd-plugin-mine\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[gsd]\nmine = gsd_plugin_mine\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    path = folder / f"gsd_plugin_mine-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return path


@pytest.mark.slow
def test_a_package_is_installed_found_outdated_upgraded_and_removed(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    [site] = environment.glob("lib/python*/site-packages")
    (site / "gsd.pth").write_text("\n".join(path for path in sys.path if path))
    python = environment / "bin" / "python"

    def gsd(*args: str | Path) -> subprocess.CompletedProcess[str]:
        command = [str(python), "-m", "gsd_core", "plugins", *map(str, args)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    links = ("--no-index", "--find-links", tmp_path)
    installed = gsd("install", wheel(tmp_path, "1.0"), *links)
    assert (installed.returncode, "Installed: mine" in installed.stdout) == (0, True), installed.stderr
    assert "a folder or wheel on this machine" in " ".join(installed.stderr.split())
    assert '"name": "mine"' in gsd("--json").stdout
    wheel(tmp_path, "2.0")
    old = gsd("outdated", *links, "--json")
    assert '"latest": "2.0"' in old.stdout, old.stderr
    assert gsd("install", "gsd-plugin-mine>=2", *links).returncode == 0
    assert gsd("outdated", *links).stdout == "no newer version of a package with plugins was found\n"
    missing = gsd("install", "gsd-plugin-missing", *links)
    assert (missing.returncode, "exited with code" in missing.stderr) == (2, True)
    removed = gsd("uninstall", "mine")
    assert removed.returncode == 0, removed.stderr
    assert '"name": "mine"' not in gsd("--json").stdout

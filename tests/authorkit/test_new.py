"""``gsd plugins new``: a package for every hook that passes its own tests, and helpful errors."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import attrs
import pytest

from gsd_core.errors import UserError
from gsd_core.plugins.validation import HOOKS, SETTINGS_OF_HOOKS, hooks_of
from gsd_core.testing import make_manager
from gsd_core.testing.new import EXAMPLES, KINDS, NewPackage, examples, plugin_name, write_package
from tests.cli.bench import call

SCAFFOLDS = (*HOOKS, *EXAMPLES)
IDEA = "# Greeter\n\nA small program that greets people by name.\n"


def name_of(hook: str) -> str:
    return f"my-{hook.removeprefix('gsd_').replace('_', '-')}"


def module_of(package: NewPackage) -> ModuleType:
    """Return the module of *package*, without installing it."""
    module = ModuleType(package.module)
    exec(package.texts()[f"src/{package.module}/__init__.py"], vars(module))
    return module


@pytest.mark.parametrize("hook", SCAFFOLDS)
def test_the_package_implements_the_hook(hook: str) -> None:
    package = NewPackage.of(name_of(hook), hook)
    module = module_of(package)

    manager = make_manager(**{package.name: module})

    assert package.hook in hooks_of(manager, module)


@pytest.mark.parametrize("hook", SCAFFOLDS)
def test_the_names_of_the_example_are_replaced(hook: str) -> None:
    texts = NewPackage.of(name_of(hook), hook).texts()
    old_names = re.compile(r"my[-_ ]?plugin|from \. import", re.I)

    assert not [path for path, text in texts.items() if old_names.search(text)]


@pytest.mark.parametrize("hook", SCAFFOLDS)
def test_the_readme_shows_settings_that_exist(hook: str) -> None:
    package = NewPackage.of(name_of(hook), hook)
    classes = [value for name, value in vars(module_of(package)).items() if name.endswith("Settings")]
    fields = {field.name for cls in classes for field in attrs.fields(cls)}
    readme = package.texts()["README.md"]
    shown = tomllib.loads("".join(line for line in readme.splitlines(True) if line.startswith("    ")))

    assert set(shown) == ({package.name} if fields else set())
    assert fields.issuperset(shown.get(package.name, {}))


@pytest.mark.parametrize("hook", SCAFFOLDS)
def test_a_long_name_leaves_no_line_too_long(hook: str) -> None:
    package = NewPackage.of("a-name-that-is-rather-long", hook)
    code = "".join(text for path, text in package.texts().items() if path.endswith(".py"))

    assert [line for line in code.splitlines() if len(line) > 110] == []


def test_every_example_belongs_to_a_hook() -> None:
    names = {path.stem for path in Path(examples.__path__[0]).glob("*.py")} - {"__init__", "conftest"}
    hooks = {hook.removeprefix("gsd_") for hook in SCAFFOLDS}

    assert names == hooks | {f"test_{name}" for name in hooks}


def test_every_file_is_written_and_named(tmp_path: Path) -> None:
    result = call("plugins", "new", "license-check", "--hook", "find_gaps", "--directory", str(tmp_path))

    folder = tmp_path / "gsd-plugin-license-check"
    assert result.exit_code == 0, result.stderr
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "src/gsd_plugin_license_check/__init__.py",
        "src/gsd_plugin_license_check/py.typed",
        "tests/conftest.py",
        "tests/test_license_check.py",
    }
    assert 'license_check = "gsd_plugin_license_check"' in (folder / "pyproject.toml").read_text()
    assert "gsd plugins check ." in result.stdout


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = write_package(NewPackage.of("mine", "notify"), tmp_path)
    (folder / "README.md").write_text("edited")

    result = call("plugins", "new", "mine", "--hook", "notify", "--directory", str(tmp_path))

    assert result.exit_code == 2
    assert repr(str(folder)) in result.stderr
    assert "hint:" in result.stderr
    assert (folder / "README.md").read_text() == "edited"


@pytest.mark.parametrize("name", ["gsd-plugin-mine", "mine"])
def test_the_prefix_is_optional(name: str) -> None:
    assert plugin_name(name) == "mine"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "not a valid plugin name"),
        ("Mine", "not a valid plugin name"),
        ("1st", "not a valid plugin name"),
        ("a b", "not a valid plugin name"),
        ("../up", "not a valid plugin name"),
        ("a--b", "not a valid plugin name"),
        ("größe", "not a valid plugin name"),
        ("class", "keyword"),
        ("retry", "gsd itself"),
        ("run", "gsd itself"),
    ],
)
def test_an_invalid_name_is_explained(name: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        plugin_name(name)

    assert caught.value.hint


@pytest.mark.parametrize("kind", ["executor", "agent", "gsd_step-wrapper", *KINDS])
def test_the_name_of_a_kind_of_plugin_leads_to_its_hook(kind: str) -> None:
    with pytest.raises(UserError) as caught:
        NewPackage.of("mine", kind)

    hook = (caught.value.hint or "").removeprefix("use --hook ")
    assert NewPackage.of("mine", hook).hook in HOOKS


def test_the_readme_says_which_setting_lists_the_plugin() -> None:
    listed = {
        hook: setting
        for hook, setting in SETTINGS_OF_HOOKS.items()
        if f"`run.{setting}` lists `mine`" in NewPackage.of("mine", hook).texts()["README.md"]
    }

    assert listed == SETTINGS_OF_HOOKS
    assert "every run uses it" in NewPackage.of("mine", "notify").texts()["README.md"]
    assert not any("every run uses it" in NewPackage.of("mine", hook).texts()["README.md"] for hook in listed)


def test_a_channel_has_an_example_of_its_own_and_its_hook_is_named(tmp_path: Path) -> None:
    made = call("plugins", "new", "mail", "--hook", "channel", "--directory", str(tmp_path))
    listed = call("plugins", "--hook", "channel")

    assert made.exit_code == 0, made.stderr
    assert "'mail' for the hook gsd_answer" in made.stdout
    assert "ask_in_the_folder" in (tmp_path / "gsd-plugin-mail/src/gsd_plugin_mail/__init__.py").read_text()
    assert (listed.exit_code, "use --hook answer" in listed.stderr) == (2, True)


def test_an_unknown_hook_gets_a_suggestion(tmp_path: Path) -> None:
    result = call("plugins", "new", "mine", "--hook", "find_gap", "--directory", str(tmp_path))

    assert result.exit_code == 2
    assert "'find_gap'" in result.stderr
    assert "did you mean 'gsd_find_gaps'?" in result.stderr
    assert list(tmp_path.iterdir()) == []


def run(folder: Path, *command: str) -> str:
    """Run a command in *folder*; return its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    return f"{folder.name}: {done.stdout}{done.stderr}" if done.returncode else ""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One package for each hook and each other example, in one folder and one environment."""
    base = tmp_path_factory.mktemp("packages")
    return [write_package(NewPackage.of(name_of(hook), hook), base) for hook in SCAFFOLDS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("pytest", "-q"),
        ("mypy", "--no-error-summary"),
        ("ruff", "check"),
        ("gsd_core", "plugins", "check", "."),
    ],
    ids=lambda command: command[0],
)
def test_every_package_passes(command: tuple[str, ...], packages: list[Path]) -> None:
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run, folder, *command) for folder in packages]

    assert [output for one in running if (output := one.result())] == []


@pytest.mark.slow
def test_every_package_passes_pyright(packages: list[Path]) -> None:
    assert pyright(packages[0].parent) == ""


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_finds_a_hook_with_a_wrong_signature(checker: str, tmp_path: Path) -> None:
    folder = write_package(NewPackage.of("mine", "find_gaps"), tmp_path)
    module = folder / "src" / "gsd_plugin_mine" / "__init__.py"
    module.write_text(
        module.read_text().replace("(phase: PhaseView) -> Sequence", "(view: PhaseView) -> Sequence")
    )

    output = pyright(folder.parent) if checker == "pyright" else run(folder, "mypy")

    line = next(n for n, text in enumerate(module.read_text().splitlines(), 1) if "@implements" in text)
    assert f"__init__.py:{line}" in output


def pyright(folder: Path) -> str:
    """Run pyright in strict mode on all packages in *folder*; return its output if it fails."""
    names = [f'"{path.relative_to(folder).as_posix()}"' for path in sorted(folder.glob("*/*/"))]
    paths = [name for name in names if name.endswith('/src"')]
    listed = ", ".join(name for name in names if name.endswith(('/src"', '/tests"')))
    (folder / "pyrightconfig.json").write_text(
        f'{{"include": [{listed}], "extraPaths": [{", ".join(paths)}], "typeCheckingMode": "strict"}}'
    )
    return run(folder, "pyright", "--pythonpath", sys.executable, "-p", str(folder))


@pytest.mark.slow
def test_every_package_works_in_a_rehearsal(packages: list[Path], tmp_path: Path) -> None:
    (tmp_path / "idea.md").write_text(IDEA)
    project = tmp_path / "project"
    paths = [str(folder / "src") for folder in packages]
    modules = [path.name for folder in packages for path in (folder / "src").glob("gsd_plugin_*")]
    identity = {f"GIT_{role}_{key}": "t@x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    environment = {
        **os.environ,
        **identity,
        "PYTHONPATH": os.pathsep.join([*paths, *sys.path]),
        "GSD_STATE_DIR": str(tmp_path / "state"),
        "GSD_CONFIG": str(tmp_path / "none.toml"),
        "GSD_FAKE_PHASES": "1",
    }

    def gsd(*words: str) -> subprocess.CompletedProcess[str]:
        plugins = [word for name in modules for word in ("-p", name)]
        command = [sys.executable, "-m", "gsd_core", "-C", str(project), *plugins, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    ran = gsd("run", "idea.md", "-p", "gsd_plugins.rehearsal.fake", "--agent", "fake", "--yes")
    found = {plugin["name"]: plugin for plugin in json.loads(gsd("plugins", "--json").stdout)["plugins"]}

    assert ran.returncode == 0, ran.stderr
    assert {found[name]["status"] for name in modules} == {"active"}
    assert [(name, one["last_failures"]) for name, one in found.items() if one["last_failures"]] == []

"""``gsd plugins new``: a package for every hook that passes its own tests, and says no kindly."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from gsd_core.errors import UserError
from gsd_core.fit import HOOKS, hooks_of
from gsd_core.testing import make_manager
from gsd_core.testing.new import NewPackage, plugin_name, write_package
from tests.cli.bench import call


def name_of(hook: str) -> str:
    return f"my-{hook.removeprefix('gsd_').replace('_', '-')}"


@pytest.mark.parametrize("hook", HOOKS)
def test_the_package_implements_the_hook(hook: str) -> None:
    package = NewPackage.of(name_of(hook), hook)
    module = ModuleType(package.module)
    exec(package.texts()[f"src/{package.module}/__init__.py"], vars(module))

    manager = make_manager(**{package.name: module})

    assert hook in hooks_of(manager, module)


def test_every_file_is_written_and_named(tmp_path: Path) -> None:
    result = call("plugins", "new", "license-check", "--hook", "find_gaps", "--directory", str(tmp_path))

    folder = tmp_path / "gsd-plugin-license-check"
    assert result.exit_code == 0, result.stderr
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        ".gitignore", "README.md", "pyproject.toml", "src/gsd_plugin_license_check/__init__.py",
        "src/gsd_plugin_license_check/py.typed", "tests/conftest.py", "tests/test_license_check.py",
    }  # fmt: skip
    assert 'license_check = "gsd_plugin_license_check"' in (folder / "pyproject.toml").read_text()
    assert "gsd plugins check ." in result.stdout


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = write_package(NewPackage.of("mine", "notify"), tmp_path)
    (folder / "README.md").write_text("my own words")

    result = call("plugins", "new", "mine", "--hook", "notify", "--directory", str(tmp_path))

    assert result.exit_code == 2
    assert "is there already" in result.stderr
    assert (folder / "README.md").read_text() == "my own words"


@pytest.mark.parametrize("name", ["gsd-plugin-mine", "mine"])
def test_the_prefix_may_be_typed_or_not(name: str) -> None:
    assert plugin_name(name) == "mine"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "cannot be a plugin's name"),
        ("Mine", "cannot be a plugin's name"),
        ("1st", "cannot be a plugin's name"),
        ("a b", "cannot be a plugin's name"),
        ("../up", "cannot be a plugin's name"),
        ("a--b", "cannot be a plugin's name"),
        ("größe", "cannot be a plugin's name"),
        ("class", "is a word of Python"),
        ("retry", "is taken by gsd itself"),
        ("run", "is taken by gsd itself"),
    ],
)
def test_a_bad_name_is_explained(name: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        plugin_name(name)

    assert caught.value.hint


def test_an_unknown_hook_is_explained(tmp_path: Path) -> None:
    result = call("plugins", "new", "mine", "--hook", "find_gap", "--directory", str(tmp_path))

    assert result.exit_code == 2
    assert result.stderr.splitlines() == ["error: no hook 'find_gap'", "hint: did you mean 'gsd_find_gaps'?"]
    assert list(tmp_path.iterdir()) == []


def ran(folder: Path, *command: str) -> str:
    """Return what a command says in *folder* if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    return f"{folder.name}: {done.stdout}{done.stderr}" if done.returncode else ""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One package for each hook, in one folder and one environment."""
    base = tmp_path_factory.mktemp("packages")
    return [write_package(NewPackage.of(name_of(hook), hook), base) for hook in HOOKS]


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
        running = [pool.submit(ran, folder, *command) for folder in packages]

    assert [said for one in running if (said := one.result())] == []


@pytest.mark.slow
def test_every_package_passes_pyright(packages: list[Path]) -> None:
    assert pyright(packages[0].parent) == ""


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_wrong_hook_is_caught_at_the_authors_desk(checker: str, tmp_path: Path) -> None:
    folder = write_package(NewPackage.of("mine", "find_gaps"), tmp_path)
    module = folder / "src" / "gsd_plugin_mine" / "__init__.py"
    module.write_text(
        module.read_text().replace("(phase: PhaseView) -> Sequence", "(view: PhaseView) -> Sequence")
    )

    said = pyright(folder.parent) if checker == "pyright" else ran(folder, "mypy")

    line = next(n for n, text in enumerate(module.read_text().splitlines(), 1) if "@implements" in text)
    assert f"__init__.py:{line}" in said


def pyright(folder: Path) -> str:
    """Return what pyright, as strict as the packages' own settings, says of all packages in *folder*."""
    names = [f'"{path.relative_to(folder).as_posix()}"' for path in sorted(folder.glob("*/*/"))]
    paths = [name for name in names if name.endswith('/src"')]
    listed = ", ".join(name for name in names if name.endswith(('/src"', '/tests"')))
    (folder / "pyrightconfig.json").write_text(
        f'{{"include": [{listed}], "extraPaths": [{", ".join(paths)}], "typeCheckingMode": "strict"}}'
    )
    return ran(folder, "pyright", "--pythonpath", sys.executable, "-p", str(folder))

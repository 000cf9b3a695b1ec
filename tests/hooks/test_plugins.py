"""Finding, loading, blocking, trusting and listing plugins."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import attrs
import pytest

from gsd_core import ConfigError, Gap, PhaseView
from gsd_core.hookspecs import gsd_find_gaps
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.discovery import DEFAULT_PLUGINS, Choice
from gsd_core.plugins.loading import PluginInfo, Registry, build_manager, load
from gsd_core.testing import make_manager
from tests.hooks.behaviors import HOUR

HEAD = "from gsd_core.hookspecs import hookimpl\n@hookimpl\n"
GOOD = HEAD + "async def gsd_notify(notice): ...\n"
DETECTOR = """
from gsd_core import Gap, implements
from gsd_core.hookspecs import gsd_find_gaps


@implements(gsd_find_gaps)
async def license_is_there(phase):
    if not (phase.project / "LICENSE").exists():
        return [Gap(truth="The project has a license", reason="no LICENSE in the root")]
    return []
"""
TRAP = "raise RuntimeError('imported')"


@attrs.define(eq=False, init=False, slots=False)
class Installed(Registry):
    """A manager that finds these entry points and no others."""

    points: tuple[EntryPoint, ...]

    def __init__(self, **points: str) -> None:
        super().__init__()
        self.points = tuple(EntryPoint(name, value, "gsd") for name, value in points.items())

    def installed(self) -> Collection[EntryPoint]:
        return self.points


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of importable modules, which are unloaded afterwards."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def loaded(manager: Registry, choice: Choice, trusted: Collection[str] = ()) -> dict[str, PluginInfo]:
    infos = load(
        manager,
        attrs.evolve(choice, defaults=choice.defaults if choice.defaults != DEFAULT_PLUGINS else ()),
        trusted,
    )
    return {info.name: info for info in infos}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import does_not_exist", "ModuleNotFoundError"),
        ("raise SystemExit(7)", "SystemExit(7)"),
        ("raise __import__('asyncio').CancelledError", "CancelledError"),
        ("def (", "SyntaxError"),
        (HEAD + "async def gsd_notify(note): ...", "PluginValidationError"),
        (
            HEAD + "async def gsd_notfy(notice): ...",
            "there is no hook 'gsd_notfy'; did you mean 'gsd_notify'?",
        ),
        (HEAD + "def gsd_notify(notice): ...", "gsd_notify must be declared with 'async def'"),
        (HEAD + "async def gsd_settings(): ...", "gsd_settings must be declared with 'def'"),
        (HEAD + "async def gsd_settings():\n    yield", "gsd_settings must be declared with 'def'"),
        (
            "async def gsd_notify(notice): ...",
            "gsd_notify is not marked; put @implements(gsd_notify) above it",
        ),
        ("async def gsd_notfy(notice): ...", "there is no hook 'gsd_notfy'; did you mean 'gsd_notify'?"),
        (
            HEAD.replace("@hookimpl", "@hookimpl(wrapper=True)") + "def gsd_doctor():\n    yield",
            "wrappers are not supported",
        ),
        ("", "implements no hook"),
    ],
)
def test_an_invalid_plugin_is_broken_with_the_reason_and_is_never_called(
    tmp_path: Path, text: str, reason: str
) -> None:
    manager = Installed()
    [info] = loaded(manager, Choice(directories=(write(tmp_path, bad=text),))).values()

    assert (info.name, info.source, info.status) == ("bad", "directory", "broken")
    assert reason in info.reason
    assert manager.get_plugins() == set()


def test_a_strict_start_refuses_a_broken_plugin(tmp_path: Path) -> None:
    choice = attrs.evolve(Choice.of({"GSD_STRICT_PLUGINS": "1"}), directories=(write(tmp_path, bad=TRAP),))
    with pytest.raises(ConfigError, match="plugin 'bad' is broken: RuntimeError\\('imported'\\)"):
        loaded(Installed(), choice)


def test_a_file_in_a_folder_given_by_the_user_is_loaded_and_described(tmp_path: Path) -> None:
    [info] = loaded(Installed(), Choice(directories=(write(tmp_path, good=GOOD, _part="x"),))).values()
    assert info == PluginInfo(
        name="good",
        source="directory",
        sha256=sha(GOOD),
        hooks=("gsd_notify",),
        path=str(tmp_path / "good.py"),
    )


def test_the_projects_own_plugins_are_not_imported_before_they_are_trusted(tmp_path: Path) -> None:
    write(tmp_path / ".gsd" / "plugins", license=DETECTOR, trap=TRAP)

    infos = loaded(Installed(), Choice(project=tmp_path))

    assert {name: info.status for name, info in infos.items()} == {
        "license": "untrusted",
        "trap": "untrusted",
    }
    assert infos["trap"].sha256 == sha(TRAP)


def test_the_projects_own_plugins_are_not_found_if_no_project_is_given(tmp_path: Path) -> None:
    write(tmp_path / ".gsd" / "plugins", trap=TRAP)
    assert loaded(Installed(), Choice()) == {}


def test_the_license_detector_works_as_one_file_once_trusted(tmp_path: Path) -> None:
    write(tmp_path / ".gsd" / "plugins", license=DETECTOR)
    manager = Installed()

    assert loaded(manager, Choice(project=tmp_path), {sha(DETECTOR)})["license"].status == "active"

    phase = PhaseView(number="1", name="one", project=tmp_path)
    found = Hooks(manager=manager).fan_out(gsd_find_gaps, HOUR, phase)
    [outcome] = asyncio.run(found)
    assert outcome.value == [Gap(truth="The project has a license", reason="no LICENSE in the root")]


def test_a_trusted_file_that_was_changed_is_untrusted_again(tmp_path: Path) -> None:
    write(tmp_path / ".gsd" / "plugins", license=DETECTOR + "\n")
    assert loaded(Installed(), Choice(project=tmp_path), {sha(DETECTOR)})["license"].status == "untrusted"


def test_the_bytes_that_were_hashed_are_run_and_not_cached_ones(tmp_path: Path) -> None:
    folder = write(tmp_path / ".gsd" / "plugins", license=DETECTOR)
    cached = folder / "__pycache__"
    cached.mkdir()
    (cached / "license.cpython-311.pyc").write_bytes(b"poison")
    assert loaded(Installed(), Choice(project=tmp_path), {sha(DETECTOR)})["license"].status == "active"


def test_a_blocked_plugin_is_not_imported(tmp_path: Path) -> None:
    choice = Choice(directories=(write(tmp_path, trap=TRAP),), named=("trap", "no:trap"))
    [info] = loaded(Installed(), choice).values()
    assert (info.status, info.reason) == ("blocked", "-p no:trap")


def test_the_last_flag_for_a_plugin_counts(tmp_path: Path) -> None:
    choice = Choice(directories=(write(tmp_path, good=GOOD),), named=("no:good", "good"))
    assert loaded(Installed(), choice)["good"].status == "active"


def test_the_allow_list_limits_the_plugins_of_packages_and_projects(modules: Path) -> None:
    write(modules, one_mod=GOOD, two_mod=TRAP, three_mod=GOOD)
    manager = Installed(one="one_mod", two="two_mod", three="three_mod")

    infos = loaded(manager, attrs.evolve(Choice.of({"GSD_PLUGINS": "one"}), named=("three",)))

    assert {name: info.status for name, info in infos.items()} == {
        "one": "active",
        "two": "blocked",
        "three": "active",
    }
    assert infos["two"].reason == "not in GSD_PLUGINS"


def test_an_empty_allow_list_leaves_the_built_in_plugins(modules: Path) -> None:
    write(modules, ours=GOOD, theirs=TRAP)
    choice = attrs.evolve(Choice.of({"GSD_PLUGINS": ""}), defaults=("ours",))
    infos = loaded(Installed(x="theirs"), choice)
    assert {name: info.status for name, info in infos.items()} == {"ours": "active", "x": "blocked"}


def test_a_plugin_may_be_named_by_its_module_or_its_file(modules: Path) -> None:
    write(modules, some_module=GOOD)
    write(modules / "elsewhere", a_file=GOOD.replace("notify(notice)", "on_event(event)"))
    choice = Choice(named=("some_module", str(modules / "elsewhere" / "a_file.py")))

    infos = loaded(Installed(), choice)

    assert {n: (i.source, i.status) for n, i in infos.items()} == {
        "some_module": ("module", "active"),
        "a_file": ("file", "active"),
    }


def test_an_unknown_name_is_an_error_with_a_suggestion(modules: Path) -> None:
    write(modules, one_mod=GOOD)
    with pytest.raises(ConfigError, match="unknown plugin 'licence'; did you mean 'license'\\?"):
        loaded(Installed(license="one_mod"), Choice(named=("licence",)))


def test_a_built_in_plugin_keeps_its_name_unless_it_is_blocked(modules: Path) -> None:
    write(modules, ours=GOOD, theirs=GOOD + "# theirs")
    for named, statuses in [((), ["active", "broken"]), (("no:ours",), ["blocked", "active"])]:
        choice = Choice(named=named, defaults=("ours",))
        infos = load(Installed(ours="theirs"), choice)
        assert [info.status for info in infos] == statuses
    broken = load(Installed(ours="theirs"), Choice(defaults=("ours",)))[1]
    assert "built-in plugin 'ours'" in broken.reason
    assert "-p no:ours" in broken.reason


def test_of_two_plugins_with_the_same_name_the_second_is_broken(modules: Path) -> None:
    write(modules, one_mod=GOOD)
    folder = write(modules / "more", twin=TRAP)
    infos = load(Installed(twin="one_mod"), Choice(directories=(folder,), defaults=()))
    assert [(info.source, info.status) for info in infos] == [
        ("entry point", "active"),
        ("directory", "broken"),
    ]


def test_a_missing_built_in_plugin_is_broken_and_the_others_are_loaded(modules: Path) -> None:
    write(modules, ours=GOOD)
    infos = load(Installed(), Choice(defaults=("no_such_package.gone", "ours")))
    assert [(info.name, info.status) for info in infos] == [("gone", "broken"), ("ours", "active")]
    assert infos[1].distribution == "gsd-core"


def test_a_module_whose_package_cannot_be_imported_is_broken(modules: Path) -> None:
    (modules / "bad_package").mkdir()
    write(modules / "bad_package", __init__="raise SystemExit(3)", mod="")
    infos = loaded(Installed(), Choice(named=("bad_package.mod",), defaults=()))
    assert (infos["mod"].status, infos["mod"].reason) == ("broken", "SystemExit(3)")


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        loaded(Installed(), Choice(directories=(tmp_path / "none",)))


def test_the_manager_for_tests_refuses_to_look_for_installed_plugins() -> None:
    with pytest.raises(AssertionError, match="installed plugins"):
        load(make_manager())
    with pytest.raises(AssertionError, match="entry points of 'gsd'"):
        make_manager().load_setuptools_entrypoints("gsd")


def test_the_manager_finds_installed_plugins() -> None:
    assert {point.group for point in build_manager().installed()} <= {"gsd"}

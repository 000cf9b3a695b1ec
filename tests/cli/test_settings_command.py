"""``gsd settings``, ``gsd paths`` and ``gsd version``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gsd_core import __version__
from gsd_core.cli.settings_file import set_in_file, unset_in_file
from gsd_core.errors import ConfigError
from tests.cli.bench import Bench, call, said, trust_everything

WRITTEN = """# Ours.
[run]   # how
model = "opus" # the best
# agent = ["other"]

[limits]
check = '5m'
"""


def shown(root: Path) -> dict[str, tuple[Any, str]]:
    return {
        one["name"]: (one["value"], one["origin"]) for one in said("settings", "show", "-C", root)["settings"]
    }


def test_settings_are_shown_with_values_and_origins(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.root / "gsd.toml").write_text("[run]\nprofile = 'budget'\nagent = ['rehearsal']\n")
    (tmp_path / "no-config.toml").write_text("[apprise]\nurls = ['tgram://123:SECRET/1']\n")
    monkeypatch.setenv("GSD_LIMITS_IDLE", "20m")

    data = said("settings", "show", "-C", bench.root)
    listed = shown(bench.root)

    assert set(data) == {"schema_version", "settings", "not_trusted"}
    assert listed["run.profile"] == ("budget", "gsd.toml")
    assert listed["limits.idle"] == ("1200s", "environment")
    assert listed["run.depth"] == ("standard", "default")
    # It chooses a program, so it counts only once the project is trusted.
    assert listed["run.agent"] == (["claude"], "default")
    assert data["not_trusted"] == ["run.agent"]
    assert listed["apprise.urls"] == ("(hidden)", str(tmp_path / "no-config.toml"))
    assert "SECRET" not in call("settings", "show", "--origin", "-C", bench.root).output

    trust_everything(bench.root)
    assert shown(bench.root)["run.agent"] == (["rehearsal"], "gsd.toml")


def test_a_value_is_set_and_every_other_byte_stays(bench: Bench) -> None:
    path = bench.root / "gsd.toml"
    path.write_text(WRITTEN)

    data = said("settings", "set", "run.model", "sonnet", "-C", bench.root)
    call("settings", "set", "run.phases", "1.10", "-C", bench.root)
    call("settings", "set", "questions.timeout", "2h", "-C", bench.root)

    assert data == {"schema_version": 1, "name": "run.model", "value": "sonnet", "path": str(path)}
    changed = WRITTEN.replace('model = "opus" #', 'model = "sonnet" #').replace(
        "the best\n", 'the best\nphases = "1.10"\n'
    )
    assert path.read_text() == changed


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("run.modle", "opus", "did you mean 'run.model'?"),
        ("model", "opus", "no setting 'model'\nhint: did you mean 'run.model'?"),
        ("modle", "opus", "did you mean 'run.model'?"),
        ("runs.depth", "quick", "did you mean 'run.depth'?"),
        ("foo", "1", "no setting 'foo'\nhint: gsd"),
        ("run", "1", "no setting 'run'\nhint: it is a section: gsd"),
        ("run.depth", "deep", "error: run.depth: expected one of"),
        ("run.phases", "x", "not a range of phases: 'x'"),
        ("run.gap_rounds", "many", "expected an integer"),
        ("run.depth", "deep", "expected one of"),
        ("yolo.yes", "true", "consent cannot come from a project's files"),
        ("apprise.urls", "ntfy://x", "a secret does not belong into a project's files"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_written(
    bench: Bench, name: str, value: str, words: str
) -> None:
    result = call("settings", "set", name, value, "-C", bench.root)

    assert result.exit_code == 2
    assert words in result.stderr
    assert not (bench.root / "gsd.toml").exists()


def test_the_users_own_file_may_have_consent_and_agents_may_not_change_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "no-config.toml"
    assert call("settings", "set", "--user", "yolo.yes", "true", "-C", bench.root).exit_code == 0
    assert tomllib.loads(path.read_text()) == {"yolo": {"yes": True}}

    monkeypatch.setenv("GSD_RUN", "r-1")
    result = call("settings", "set", "--user", "yolo.yes", "false", "-C", bench.root)
    assert result.exit_code == 2
    assert "only a person may change the settings" in result.stderr
    assert tomllib.loads(path.read_text()) == {"yolo": {"yes": True}}


def test_a_link_out_of_the_project_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text("[run]\n")
    (bench.root / "gsd.toml").symlink_to(outside)

    call("settings", "set", "run.model", "opus", "-C", bench.root)

    assert outside.read_text() == "[run]\n"


def test_a_value_is_removed_and_every_other_byte_stays(bench: Bench, tmp_path: Path) -> None:
    path = bench.root / "gsd.toml"
    path.write_text(WRITTEN.replace("check =", "check2 = 3\ncheck ="))

    misspelled = call("settings", "unset", "limits.check2", "-C", bench.root)
    data = said("settings", "unset", "run.model", "-C", bench.root)
    twice = call("settings", "unset", "run.model", "-C", bench.root)
    unknown = call("settings", "unset", "modle", "-C", bench.root)
    in_comment = call("settings", "unset", "run.agent", "-C", bench.root)

    assert misspelled.exit_code == 0, misspelled.stderr
    assert data == {"schema_version": 1, "name": "run.model", "path": str(path)}
    assert path.read_text() == WRITTEN.replace('model = "opus" # the best\n', "")
    for result, name in ((twice, "run.model"), (in_comment, "run.agent")):
        assert (result.exit_code, result.stdout) == (0, f"{path}: {name} is not set\n"), result.stderr
        assert f"see where its value comes from: gsd settings show --origin {name}" in result.stderr
    assert unknown.exit_code == 2
    assert "no setting 'modle'\nhint: did you mean 'run.model'?" in unknown.stderr

    own = tmp_path / "no-config.toml"
    own.write_text("[yolo]\nyes = true")
    assert call("settings", "unset", "--user", "yolo.yes", "-C", bench.root).exit_code == 0
    assert own.read_text() == "[yolo]\n"


@pytest.mark.parametrize(
    "text",
    ["run.model = 'opus'\n", "run = { model = 'opus' }\n", "[run]\nmodel = '''opus\nfour'''\n", "[run\n"],
)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gsd.toml"
    path.write_text(text)

    with pytest.raises(ConfigError):
        set_in_file(path, "run", "model", "sonnet", inside=tmp_path)
    with pytest.raises(ConfigError):
        unset_in_file(path, "run", "model", inside=tmp_path)

    assert path.read_text() == text


@pytest.mark.parametrize("text", ["run = 3\n", "[[run]]\nmodel = 'opus'\n"])
def test_what_only_has_the_name_of_a_section_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gsd.toml"
    path.write_text(text)

    with pytest.raises(ConfigError, match="cannot be changed here"):
        set_in_file(path, "run", "model", "sonnet", inside=tmp_path)

    assert not unset_in_file(path, "run", "model", inside=tmp_path)
    assert path.read_text() == text


@pytest.mark.slow
@settings(max_examples=40)
@given(value=st.text(alphabet=st.characters(exclude_categories=["Cs"])) | st.lists(st.integers(0, 9)))
def test_any_value_is_read_as_it_was_set(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    folder = tmp_path_factory.mktemp("settings")
    (folder / "gsd.toml").write_text(WRITTEN)

    set_in_file(folder / "gsd.toml", "run", "model", value, inside=folder)

    text = (folder / "gsd.toml").read_bytes().decode()
    assert tomllib.loads(text) == {"run": {"model": value}, "limits": {"check": "5m"}}
    assert "# Ours." in text


def test_the_paths_are_listed(bench: Bench, tmp_path: Path) -> None:
    found = said("paths", "-C", bench.root)["paths"]
    paths = {one["name"]: one["path"] for one in found}

    assert all(set(one) == {"name", "path", "exists"} for one in found)
    assert paths["journal"] == str(bench.journal)
    assert paths["user settings"] == str(tmp_path / "no-config.toml")
    assert paths["trust"] == str(tmp_path / "state" / "trust")
    bench.fact("run.started")
    assert {one["name"]: one["exists"] for one in said("paths", "-C", bench.root)["paths"]}["journal"]


def test_the_versions_are_listed() -> None:
    data = said("version")

    assert set(data) == {"schema_version", "gsd", "python", "platform", "git", "libraries"}
    assert data["gsd"] == __version__
    assert data["git"][0].isdigit()


def test_a_prefix_without_settings_is_an_error_that_suggests_one(bench: Bench) -> None:
    result = call("settings", "show", "run.modle", "-C", bench.root)

    assert result.exit_code == 2
    assert "no setting 'run.modle'" in result.stderr
    assert "run.model" in result.stderr.splitlines()[1]
    assert call("settings", "show", "run.mod", "-C", bench.root).stdout.startswith("run.model = ")

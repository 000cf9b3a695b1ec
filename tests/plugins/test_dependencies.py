"""Dependencies that a phase declares and nothing uses, through the hook."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gsd_core import GapReport, History, PhaseView, Plan
from gsd_plugins import must_haves

PACKAGE = json.dumps({"name": "notes", "dependencies": {"left-pad": "1", "@types/node": "22"}})
PYTHON = '[project]\nname = "notes"\ndependencies = ["left_pad>=1"]\n'
GO = (
    "module notes\n\nrequire (\n\tgithub.com/x/left-pad/v2 v2.0.1\n\tgolang.org/x/sys v0.1.0 // indirect\n)\n"
)


def unused(project: Path, files: dict[str, str], **before: str) -> list[str]:
    """Return what the gaps are about; *before* are earlier texts, with ``_`` for the dot in a name."""
    for path, text in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text, encoding="utf-8")
    earlier = {name.replace("_", "."): text for name, text in before.items()}
    phase = PhaseView(
        number="1",
        name="Notes",
        project=project,
        plans=(Plan(id="01-01", phase="1", summary="S.md"),),
        history=History(files=frozenset(files), before=earlier),
        changed=tuple(files),
    )
    report = asyncio.run(must_haves.must_haves_hold(phase))
    assert isinstance(report, GapReport)
    return [gap.about for gap in report.gaps]


@pytest.mark.parametrize(
    ("manifest", "text", "name"),
    [
        ("package.json", PACKAGE, "left-pad"),
        ("web/package.json", PACKAGE, "left-pad"),
        ("pyproject.toml", PYTHON, "left_pad"),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.12"\nleft-pad = "1"\n', "left-pad"),
        ("requirements.txt", "-r base.txt\n# pads\nleft-pad==1.0 ; python_version > '3'\n", "left-pad"),
        ("go.mod", GO, "github.com/x/left-pad/v2"),
    ],
)
def test_a_new_dependency_that_nothing_names_is_a_gap(
    tmp_path: Path, manifest: str, text: str, name: str
) -> None:
    others = {
        "package-lock.json": PACKAGE,
        "go.sum": GO,
        ".planning/P.md": "left-pad",
        "main.py": "import sys\n",
    }

    assert unused(tmp_path, {manifest: text, **others}) == [f"{manifest}: {name}"]
    used = {"main.go": f'import "{name}"\n'} if manifest == "go.mod" else {"scripts/pad.sh": "Left-Pad x\n"}
    assert unused(tmp_path, {manifest: text, **others, **used}) == []


def test_a_dependency_of_before_the_phase_is_not_its_business(tmp_path: Path) -> None:
    assert unused(tmp_path, {"package.json": PACKAGE}, package_json=PACKAGE) == []


def test_a_script_in_the_manifest_itself_is_a_use(tmp_path: Path) -> None:
    text = json.dumps({**json.loads(PACKAGE), "scripts": {"pad": "left-pad x"}})

    assert unused(tmp_path, {"package.json": text}) == []


def test_a_distribution_may_have_modules_with_another_name(tmp_path: Path) -> None:
    # Installed here, so that its modules are known; the other one may be what provides `pads`.
    files = {"requirements.txt": "attrs\nleft-pad\n", "main.py": "import attr, pads.left\n"}

    assert unused(tmp_path, files) == []
    files["main.py"] = "import attr\n"
    assert unused(tmp_path, files) == ["requirements.txt: left-pad"]


def test_a_manifest_that_cannot_be_read_declares_nothing(tmp_path: Path) -> None:
    assert unused(tmp_path, {"package.json": "{", "pyproject.toml": "[project", "go.mod": ""}) == []

"""What the pages show works: Python runs, command lines and settings are known, links lead somewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import click
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from docs import generate, site_hooks
from docs.messages import VARIES, error_names, messages
from gsd_core import Gap, PhaseView
from gsd_core.cli.app import gsd
from gsd_core.cli.options import classes_of
from gsd_core.exit_codes import EXIT_CODE_MEANINGS
from gsd_core.hookspecs import gsd_find_gaps
from gsd_core.plugins.calling import Hooks
from gsd_core.plugins.discovery import Choice
from gsd_core.plugins.loading import build_manager, load
from gsd_core.plugins.validation import validate_plugin
from gsd_core.settings import Layer, resolve
from tests.docs.pages import Block, blocks, pages
from tests.package.source import ROOT


def executed(block: Block) -> ModuleType:
    module = ModuleType("page")
    exec(compile(block.text, str(block), "exec"), vars(module))
    return module


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_runs_and_fits_the_hooks(block: Block) -> None:
    module = executed(block)
    manager = build_manager()
    manager.register(module, name="page")
    problem = validate_plugin(manager, module)

    assert problem == "" or problem.startswith("implements no hook")


def test_the_reference_shows_examples_that_compile() -> None:
    text = generate.pages()["hooks.md"]
    examples = re.findall(r"```python\n(@implements.*?)```", text, re.S)

    assert len(examples) == len(generate.hook_names())
    for example in examples:
        compile(example, "hooks.md", "exec")


@pytest.mark.parametrize("page", ["docs/how-to/write-a-gap-detector.md"])
def test_the_license_detector_finds_its_gap_as_one_file_in_a_project(page: str, tmp_path: Path) -> None:
    shown = [block.text for block in blocks("python") if block.page == page]
    [text] = [text for text in shown if "def license_is_there(phase)" in text]
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "license.py").write_text(text, encoding="utf-8")
    manager = build_manager()
    infos = load(manager, Choice(directories=(folder,), allowed=frozenset(), defaults=()))
    found = asyncio.run(gaps_of(Hooks(manager=manager), tmp_path))
    (tmp_path / "LICENSE").write_text("MIT", encoding="utf-8")

    assert [(info.name, info.status) for info in infos] == [("license", "active")]
    assert found == [Gap(truth="The project has a license", reason="no LICENSE in the root")]
    assert asyncio.run(gaps_of(Hooks(manager=manager), tmp_path)) == []


async def gaps_of(hooks: Hooks, tree: Path) -> list[Gap]:
    phase = PhaseView(number="1", name="one", project=tree)
    [outcome] = await hooks.fan_out(gsd_find_gaps, timedelta(seconds=10), phase)
    assert outcome.error is None
    assert isinstance(outcome.value, list)
    return outcome.value


def command_lines() -> Iterator[tuple[str, str]]:
    for block in blocks("console", "sh", "text"):
        for line in block.text.splitlines():
            command = line.removeprefix("$ ")
            shell = block.language == "sh" or line.startswith("$ ")
            if shell and (found := re.match(r"\s*(?:.*&& )?(?:\.venv/bin/)?(gsd .*)", command)):
                yield str(block), found[1]


@pytest.mark.parametrize(("where", "line"), list(command_lines()))
def test_a_command_line_is_understood(where: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GSD_PLUGINS", "")
    args = shlex.split(line, comments=True)[1:]
    if args == ["--version"]:
        return
    ctx = click.Context(gsd, info_name="gsd", **gsd.context_settings)
    _, [verb, *rest], _ = gsd.make_parser(ctx).parse_args(args)
    command = gsd.get_command(ctx, verb)
    assert command is not None

    command.make_context(verb, rest, parent=ctx).close()


@pytest.mark.parametrize("block", [b for b in blocks("toml") if "[project." not in b.text], ids=str)
def test_settings_are_known(block: Block) -> None:
    said = tomllib.loads(block.text)
    if not all(isinstance(section, dict) for section in said.values()):
        return
    classes = classes_of(generate.built_in())

    assert resolve(classes, [Layer(origin=str(block), sections=said)]).origins


def links() -> Iterator[tuple[str, str]]:
    generated = [(f"docs/reference/{name}", text) for name, text in generate.pages().items()]
    for page, text in [*pages(), *generated]:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
            if not target.startswith("http"):
                yield page, target


@pytest.mark.parametrize(("page", "target"), sorted(set(links())))
def test_a_link_leads_somewhere(page: str, target: str) -> None:
    path, _, anchor = target.partition("#")
    found = (ROOT / page).parent / path if path else ROOT / page

    assert found.exists()
    if found.suffix == ".webp":
        # Not an anchor: in which theme the site and GitHub show the picture.
        assert anchor in {"gh-light-mode-only", "gh-dark-mode-only"}
    else:
        assert not anchor or anchor in anchors(found.read_text("utf-8"))


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_has_two_commands_on_its_first_screen() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    commands = [n for n, line in enumerate(lines) if line.startswith("python3 -m venv")]

    assert len(commands) == 2
    assert commands[-1] < 24
    assert "gsd run examples/greeter.md --agent rehearsal" in lines[commands[0]]
    assert "pytest" in lines[commands[1]]


def test_the_reference_has_every_exit_code() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \| .* \|$", generate.pages()["exit-codes.md"], re.M)

    assert {int(code): meaning for code, meaning in rows} == EXIT_CODE_MEANINGS


def test_every_class_of_errors_has_a_section_that_says_what_to_do() -> None:
    page = (ROOT / "docs" / "how-to" / "troubleshoot.md").read_text("utf-8")
    sections = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", page, re.M | re.S))

    assert set(sections) == set(error_names())
    assert all(text.strip() for text in sections.values())


def test_the_reference_has_the_message_of_an_error_that_the_command_line_shows(tmp_path: Path) -> None:
    shown = CliRunner().invoke(gsd, ["plans", "1", "-C", str(tmp_path / "absent")], prog_name="gsd")
    texts = [message.text for message in messages()]
    error = shown.stderr.splitlines()[0].removeprefix("error: ")

    assert any(re.fullmatch(re.escape(text).replace(VARIES, ".*"), error) for text in texts), error
    assert len(texts) > 100


def test_the_site_has_every_page_in_its_navigation_and_each_once() -> None:
    config = YAML(typ="rt").load((ROOT / "mkdocs.yml").read_text("utf-8"))  # pyright: ignore[reportUnknownMemberType]
    listed = [*pages_in(config["nav"])]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}

    assert [*config["nav"][0]] == ["Home"]
    assert [title for part in config["nav"][1:] for title in part] == PARTS
    assert sorted(listed) == sorted(written | set(site_hooks.OUTSIDE.values()))


PARTS = ["Tutorial", "How-to guides", "Reference", "Explanation"]


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        yield from (page for part in cast("dict[str, Any]", nav).values() for page in pages_in(part))
    else:
        yield from (page for part in nav for page in pages_in(part))


@pytest.mark.parametrize(
    ("page", "text"), list(pages()), ids=lambda value: value if value.endswith(".md") else ""
)
def test_prose_has_one_sentence_on_a_line(page: str, text: str) -> None:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    lines = [line for line in prose.splitlines() if line and line[0].isalpha()]

    assert [line for line in lines if re.search(r"[a-z)`][.?!] [A-Z]", line)] == []

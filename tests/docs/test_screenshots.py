"""Every page of the dashboard has a picture in both themes, and every picture is shown."""

from __future__ import annotations

import re

from docs.screenshots import FOLDER, MAX_BYTES, THEMES, names, shown_routes
from tests.package.source import ROOT

ROUTES = ROOT / "plugins" / "gsd_plugins" / "web" / "frontend" / "src" / "lib" / "route.ts"
PAGE = ROOT / "docs" / "how-to" / "see-the-dashboard-in-pictures.md"


def routes() -> frozenset[str]:
    """Return the pages that the front end knows, and the tabs of a run."""
    text = ROUTES.read_text("utf-8")
    kinds = re.search(r"export type Route =(.*?);\n\n", text, re.S)
    tabs = re.search(r"export const RUN_TABS = \[(.*?)\]", text)
    more = re.search(r"export type RunTab = .*?;", text)
    assert kinds is not None
    assert tabs is not None
    assert more is not None
    pages = {*re.findall(r'page: "(\w+)"', kinds[1])}
    assert "run" in pages
    named = {*re.findall(r'"(\w+)"', tabs[1]), *re.findall(r'"(\w+)"', more[0])}
    return frozenset(pages - {"run"} | {f"run/{tab}" for tab in named})


def test_every_page_of_the_dashboard_has_a_picture() -> None:
    assert routes() == shown_routes()


def test_every_picture_is_there_in_both_themes_and_all_are_small() -> None:
    files = {path.name: path for path in FOLDER.iterdir()}

    assert {*files} == {*names()}
    assert all(path.read_bytes()[8:12] == b"WEBP" for path in files.values())
    assert sum(path.stat().st_size for path in files.values()) <= MAX_BYTES


def test_the_page_with_the_pictures_shows_each_in_its_theme() -> None:
    shown = re.findall(r"pictures/([\w-]+)-(\w+)\.webp#gh-(\w+)-mode-only\)", PAGE.read_text("utf-8"))

    assert sorted(f"{name}-{theme}.webp" for name, theme, _ in shown) == sorted(names())
    assert {(theme, only) for _, theme, only in shown} == {(theme, theme) for theme in THEMES}

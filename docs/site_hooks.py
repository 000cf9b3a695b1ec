"""What mkdocs needs to build the pages as they are: they are written to be read in the repository too.

Pages of the repository outside of ``docs/`` become pages of the site, and links between the two are adapted.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-policy.md",
    "CHANGELOG.md": "project/changelog.md",
    **{
        path.relative_to(ROOT).as_posix(): f"project/{path.parent.name}.md"
        for path in sorted(ROOT.glob("contrib/*/README.md"))
    },
}
"""Pages outside of ``docs/``, by their path in the repository: the path in the site."""

NOT_PAGES = {"README.md": "index.md", "changelog.d": "project/changelog.md", "LICENSE": "index.md"}
"""What is linked and has no page of its own: the page that a link leads to instead."""

_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_LOADED = re.compile(
    r"<(?:script|img|iframe|link rel=.(?:stylesheet|preload|icon))[^>]*\"(?:https?:)?//[^>]*>"
)
_INSIDE = {site: repository for repository, site in OUTSIDE.items()}


class GitHubLists(Extension):  # type: ignore[misc]  # Markdown has no types
    """Nested lists need two spaces, as on GitHub, and not four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Set the number of spaces."""
        md.tab_length = 2


def on_config(config: MkDocsConfig) -> None:
    """Add the extension."""
    config.markdown_extensions.append(GitHubLists())


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages outside of ``docs/``."""
    for repository, site in OUTSIDE.items():
        text = (ROOT / repository).read_text("utf-8")
        files.append(File.generated(config, site, content=text))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt the links that lead out of ``docs/`` or come from outside."""
    site = page.file.src_uri
    repository = _INSIDE.get(site, f"docs/{site}")

    def adapted(link: re.Match[str]) -> str:
        before, target, rest = link.groups()
        if re.match(r"[a-z]+:", target):
            return link[0]
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(repository), target))
        found = OUTSIDE.get(wanted) or NOT_PAGES.get(wanted)
        if found is None and wanted.startswith("docs/"):
            found = wanted.removeprefix("docs/")
        if found is None:
            raise PluginError(f"{repository}: the site has no page for {target!r}; see docs/site_hooks.py")
        return before + posixpath.relpath(found, posixpath.dirname(site) or ".") + rest

    return _LINK.sub(adapted, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that a browser would have to load something for from another server."""
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri}: loads something from elsewhere: {found[0]}")
    return output

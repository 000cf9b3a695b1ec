"""``gsd github run`` and ``gsd github watch``: from an issue to a pull request."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from gsd_core import GsdError, UserError, own_command, safe_text, settings_of

from .api import Data, GitHub, Refused, login_of
from .repository import Remote, branch_for
from .settings import GitHubSettings, Issue, token
from .texts import fenced, marked, pull_request_text

MAX_IDEA = 300_000


@attrs.frozen(kw_only=True)
class IssueRun:
    """One issue from its text to a pull request; *arguments* are those of ``gsd run``."""

    github: GitHub
    issue: Issue
    folder: Path
    settings: GitHubSettings
    arguments: Sequence[str] = ()
    attended: bool = True

    async def run(self) -> int:
        """Run, and open a pull request if the result is verified; return the exit code of the run."""
        about: Data = await self.github.call("GET", f"{self.issue.path}/issues/{self.issue.number}")
        if "pull_request" in about:
            raise UserError(f"{self.issue} is a pull request, not an issue")
        repository: Data = await self.github.call("GET", self.issue.path)
        url, base = str(repository["clone_url"]), str(repository["default_branch"])
        remote = Remote(url=url, base=base, number=self.issue.number, token=token())
        await asyncio.to_thread(remote.prepare, self.folder)
        code = await self._run_gsd(self._idea(about))
        if code:
            await self._say(f"gsd ended with exit code {code}; its terminal and `gsd status` say why.")
            return code
        reports = await asyncio.to_thread(remote.push, self.folder)
        address = await self._open_pull_request(str(about.get("title") or ""), base, reports)
        click.echo(f"pull request: {safe_text(address, multiline=False)}")
        return 0

    def _idea(self, about: Data) -> Path:
        """Write the issue's text beside the clone, once: a resumed run keeps the idea it began with."""
        path = self.folder.with_name(f"{self.folder.name}.idea.md")
        if not path.exists():
            text = f"# {about.get('title') or ''}\n\n{about.get('body') or ''}\n"
            path.write_text(safe_text(text[:MAX_IDEA]), encoding="utf-8")
        return path

    async def _run_gsd(self, idea: Path) -> int:
        # The setting is read through the environment or a file too, but a flag is kept for a resume.
        command = [*own_command(), "-C", str(self.folder), "run", str(idea)]
        command += ["--github-issue", str(self.issue), *self.arguments]
        if not self.attended:
            command.append("--no-input")
        stdin = None if self.attended else subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(*command, stdin=stdin)
        try:
            return await process.wait()
        except asyncio.CancelledError:
            # An interrupt from the terminal reaches gsd as well: it records where it stopped.
            await process.wait()
            raise

    async def _open_pull_request(self, title: str, base: str, reports: dict[str, str]) -> str:
        branch = branch_for(self.issue.number)
        text = pull_request_text(self.issue.number, reports, "Each phase was verified: gsd run ended with 0.")
        pulls = f"{self.issue.path}/pulls"
        content = {"title": safe_text(title, multiline=False)[:200], "body": text}
        head = f"{self.issue.owner}:{branch}"
        async for known in self.github.pages(f"{pulls}?state=open&head={head}"):
            found: Data = known.get("head") or {}
            if found.get("ref") == branch:
                await self.github.call("PATCH", f"{pulls}/{known['number']}", content)
                return str(known["html_url"])
        opened = await self.github.call("POST", pulls, {**content, "head": branch, "base": base})
        return str(opened["html_url"])

    async def _say(self, text: str) -> None:
        path = f"{self.issue.path}/issues/{self.issue.number}/comments"
        await self.github.call("POST", path, {"body": marked(f"end:{self.issue.number}", text)})


@attrs.frozen(kw_only=True)
class Watcher:
    """Takes the labeled issues of a repository, one after the other."""

    github: GitHub
    owner: str
    repo: str
    folder: Path
    settings: GitHubSettings
    arguments: Sequence[str] = ()

    async def take_all(self) -> None:
        """Take each open issue with the label; remove the label when its run has ended."""
        path = f"/repos/{self.owner}/{self.repo}"
        labeled = f"{path}/issues?state=open&labels={self.settings.label}&sort=created&direction=asc"
        for about in [issue async for issue in self.github.pages(labeled)]:
            issue = Issue(owner=self.owner, repo=self.repo, number=int(about["number"]))
            if "pull_request" in about:
                continue
            if why := await self._why_not(issue, about):
                click.echo(f"{issue} is left alone: {why}", err=True)
                continue
            click.echo(f"{issue}: {safe_text(str(about.get('title')), multiline=False)}", err=True)
            run = IssueRun(
                github=self.github,
                issue=issue,
                folder=self.folder / f"issue-{issue.number}",
                settings=self.settings,
                arguments=self.arguments,
                attended=False,
            )
            try:
                await run.run()
            except GsdError as error:
                # The label is removed all the same: an issue that cannot work would be tried for ever.
                click.echo(f"{issue}: {safe_text(str(error))}", err=True)
                text = f"gsd could not work on this:\n\n{fenced(str(error))}"
                await self.github.call(
                    "POST", f"{path}/issues/{issue.number}/comments", {"body": marked("end", text)}
                )
            try:
                await self.github.call("DELETE", f"{path}/issues/{issue.number}/labels/{self.settings.label}")
            except Refused as error:
                if error.status != 404:  # a person removed it
                    raise

    async def _why_not(self, issue: Issue, about: Data) -> str:
        """Return why the issue is not taken: its author can change its text after somebody labeled it."""
        author = login_of(about)
        if not self.settings.may_answer(author):
            return f"its author, {author!r}, is not in github.users; take it with: gsd github run '{issue}'"
        by = ""
        async for event in self.github.pages(f"{issue.path}/issues/{issue.number}/events"):
            label: Data = event.get("label") or {}
            if event.get("event") == "labeled" and label.get("name") == self.settings.label:
                by = login_of(event, "actor")
        return "" if self.settings.may_answer(by) else f"{by!r}, who labeled it, is not in github.users"


@click.group("github")
def group() -> None:
    """Take issues as ideas, and return pull requests."""


@group.command("run")
@click.argument("issue")
@click.option("--folder", type=click.Path(path_type=Path), help="where to clone to (default: ./REPO-N)")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(issue: str, folder: Path | None, arguments: tuple[str, ...]) -> int:
    """Work on ISSUE (OWNER/REPO#N), and open a pull request if the result is verified.

    Arguments after -- are passed to gsd run. Run it again to continue.
    """
    try:
        found = Issue.parse(issue)
    except ValueError as error:
        raise UserError(str(error)) from error

    async def work(settings: GitHubSettings) -> int:
        async with GitHub.connect(settings.api_url, token()) as github:
            place = folder or Path(f"{found.repo}-{found.number}")
            return await IssueRun(
                github=github, issue=found, folder=place, settings=settings, arguments=arguments
            ).run()

    return asyncio.run(work(settings_of(GitHubSettings)))


@group.command("watch")
@click.argument("repository")
@click.option("--folder", type=click.Path(path_type=Path), help="where to clone to (default: ./REPO-issues)")
@click.option(
    "--every", type=click.IntRange(min=5), default=60, help="seconds between two looks (default: 60)"
)
@click.option("--once", is_flag=True, help="take what is labeled now, then end")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def watch(repository: str, folder: Path | None, every: int, once: bool, arguments: tuple[str, ...]) -> None:
    """Take each issue of REPOSITORY (OWNER/REPO) that somebody in github.users wrote and labeled.

    Arguments after -- are passed to each gsd run.
    """
    try:
        named = Issue.parse(f"{repository}#1")
    except ValueError as error:
        raise UserError(f"expected OWNER/REPO, got {repository!r}") from error

    async def work(settings: GitHubSettings) -> None:
        if not settings.users:
            raise UserError("nobody is in github.users", hint="set it in your own settings")
        place = folder or Path(f"{named.repo}-issues")
        place.mkdir(parents=True, exist_ok=True)
        async with GitHub.connect(settings.api_url, token()) as github:
            watcher = Watcher(
                github=github,
                owner=named.owner,
                repo=named.repo,
                folder=place,
                settings=settings,
                arguments=arguments,
            )
            while True:
                try:
                    await watcher.take_all()
                except GsdError as error:
                    if once:
                        raise
                    click.echo(f"{safe_text(str(error))}; trying again", err=True)
                if once:
                    return
                await asyncio.sleep(every)

    asyncio.run(work(settings_of(GitHubSettings)))

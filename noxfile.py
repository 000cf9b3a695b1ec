"""What CI runs, as sessions: ``nox -s NAME``, ``nox -l`` lists them, arguments after ``--`` go to the tool.

The sessions use the environment that nox itself runs in, which ``pip install -e '.[dev]'`` has set up.
An environment for each session would install the same packages half a dozen times, more than a minute each
on a small machine, and the type checkers are configured for one environment. Only ``wheel`` creates its
own environment, because it tests what a user installs.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

nox.options.default_venv_backend = "none"
nox.options.sessions = ["lint", "types", "tests"]

ROOT = Path(__file__).parent
# Tools, and tests that start tools, also find them if the environment is not activated.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
PYTEST = ("python", "-m", "pytest", "-q")
WORKERS = ("-n", "2")
MINIMUM_BRANCHES = 90.0
FRONTEND = ROOT / "plugins" / "gsd_plugins" / "web" / "frontend"
STATIC = FRONTEND.parent / "static"


@nox.session
def tests(session: nox.Session) -> None:
    """Run the quick tests."""
    session.run(*PYTEST, *WORKERS, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests: the real Claude Code with a scripted model, and runs that are killed."""
    # The longest take minutes: what the others have left over goes to whoever is free. On two cores, half of
    # the time is spent waiting for timers and processes, so three workers are faster than two.
    session.run(*PYTEST, "-n", "3", "--dist", "worksteal", "-m", "slow and not long", *session.posargs)


@nox.session
def long(session: nox.Session) -> None:
    """Run the tests for which CI has no time: many variants of what the other tests check."""
    session.run(*PYTEST, *WORKERS, "-m", "long", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Run the tests of the dashboard in the Chromium that is installed."""
    # The tests of a file share a server and its sessions.
    session.run(*PYTEST, *WORKERS, "--dist", "loadfile", "-m", "browser", "tests/browser", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the quick tests and report the branch coverage of gsd_core.

    ``nox -s coverage -- report`` only reports what earlier sessions have measured.
    """
    if session.posargs != ["report"]:
        session.run("python", "-m", "coverage", "erase")
        # Whether the tests pass is decided by the session `tests`. Here gsd is slower, because it is measured
        # too, and tests with a time limit may fail.
        run = ("python", "-m", "coverage", "run", "-m", "pytest", "-q", *WORKERS, *session.posargs)
        session.run(*run, success_codes=[0, 1])
    session.run("python", "-m", "coverage", "combine", "--quiet")
    report = Path(session.create_tmp()).resolve() / "coverage.json"
    session.run("python", "-m", "coverage", "json", "--quiet", "--fail-under=0", "-o", str(report))
    session.run("python", "-m", "coverage", "report")
    # The total of the report counts lines and branches together, and lines are easier to reach.
    totals = json.loads(report.read_text("utf-8"))["totals"]
    branches = 100 * totals["covered_branches"] / totals["num_branches"]
    session.log(
        f"branches of gsd_core covered: {branches:.1f} % (at least {MINIMUM_BRANCHES:.0f} % required)"
    )
    if branches < MINIMUM_BRANCHES:
        session.error("not enough branches of gsd_core are covered by tests")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, spelling and changelog fragments; ruff formats files that need it."""
    session.run("python", "-m", "pre_commit", "run", "--all-files", "--show-diff-on-failure")
    session.run("python", "-m", "towncrier", "build", "--draft", "--version", "next", silent=True)


@nox.session
def types(session: nox.Session) -> None:
    """Check types with mypy and pyright, at the same time: each uses one core."""
    pyright = subprocess.Popen([sys.executable, "-m", "pyright"], stdout=subprocess.PIPE, text=True)
    session.run("python", "-m", "mypy")
    output, _ = pyright.communicate()
    session.log(output)
    if pyright.returncode:
        session.error("pyright found errors")


@nox.session
def docs(session: nox.Session) -> None:
    """Check that the reference matches the code, build the site, and run the code blocks of the pages."""
    site(session)
    session.run(*PYTEST, "tests/docs", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """Check that the reference matches the code, and build the site; the quick tests run the code blocks."""
    session.run("python", "-m", "docs.generate", "--check")
    # The notice about the successor of the theme is no warning about our pages.
    session.run("python", "-m", "mkdocs", "build", "--quiet", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def frontend(session: nox.Session) -> None:
    """Check that the dashboard's types and built files are those of its sources, and run its tests."""
    built = Path(session.create_tmp()).resolve() / "static"
    session.chdir(FRONTEND)
    # Also checks the version of Node: the packages and package.json say which ones they work with.
    session.run("npm", "ci", "--no-audit", "--no-fund", external=True)
    session.run("npm", "run", "types", "--", "--check", external=True)
    session.run("npm", "test", external=True)
    session.run("npm", "run", "build", "--", "--outDir", str(built), "--emptyOutDir", external=True)
    session.chdir(ROOT)
    made, committed = _files_below(built), _files_below(STATIC)
    _, other, unreadable = filecmp.cmpfiles(built, STATIC, made & committed, shallow=False)
    if different := sorted({*other, *unreadable, *(made ^ committed)}):
        session.error(
            f"{STATIC.relative_to(ROOT)} is not built from {FRONTEND.relative_to(ROOT)}; "
            f"run there: npm run build, and commit the result. Different: {', '.join(different)}"
        )


def _files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel, install it into a new environment outside the repository, and rehearse a run."""
    # Not below the repository: gsd would find the repository's .git.
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = Path(folder).resolve()
        session.run("python", "-m", "build", "--outdir", str(elsewhere / "dist"), ".", silent=True)
        session.run("python", "-m", "venv", str(elsewhere / "venv"))
        programs = elsewhere / "venv" / "bin"
        session.run(str(programs / "pip"), "install", "-q", *map(str, elsewhere.glob("dist/*.whl")))
        shutil.copy(ROOT / "examples" / "greeter.md", elsewhere / "idea.md")
        session.chdir(elsewhere)
        gsd = str(programs / "gsd")
        session.run(gsd, "--help", silent=True)
        session.run(gsd, "plugins")
        session.run(gsd, "run", "idea.md", "--agent", "rehearsal", "-C", "project", "--yes")
        session.run(gsd, "-C", "project", "status", "--json")
        modules = "gsd_core, gsd_plugins.native, gsd_core.testing"
        session.run(str(programs / "python"), "-c", f"import {modules}; print(gsd_core.__version__)")
        session.chdir(ROOT)

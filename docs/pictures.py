"""Make the pictures of the tutorial from real rehearsals: ``python -m docs.pictures``.

They are captures of what a terminal shows, as SVG, and a screenshot of the report. Commit ids and times
differ each time; make them again when the output has changed, and look at them. It takes three minutes, and
needs tmux and Chromium. ``tests/docs/test_pictures.py`` makes them without Claude Code, and fails if what
they say has changed.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tutorial" / "pictures"
COLUMNS, ROWS = 100, 40
HOME = "/home/you"
"""Shown in place of the temporary folder."""
RUN = ("run", "examples/greeter.md", "--agent", "rehearsal", "-C", "demo")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MAX_PNG_BYTES = 150_000
PATIENCE = 300.0  # seconds
GIT_CONFIG = "[user]\nname = You\nemail = you@example.org\n[init]\ndefaultBranch = main\n"
# rich's own format loads a font from a server.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S).replace("Fira Code, ", "")


def main(target: Path = FOLDER, *, quick: bool = False) -> int:
    """Rehearse in temporary folders, and write the pictures to *target*.

    *quick* leaves out Claude Code, and with it the picture of what it does.
    """
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as base:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GSD_")},
            "HOME": base,
            "FORCE_COLOR": "1",
            "COLUMNS": str(COLUMNS),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
            **({"GSD_REHEARSAL_CLI": "false", "GSD_REHEARSAL_OVERLOADED": "false"} if quick else {}),
        }
        (Path(base) / ".gitconfig").write_text(GIT_CONFIG, encoding="utf-8")
        plain = Shell(folder=_folder(Path(base) / "plain"), environment=environment)
        words = (*RUN, "--yes", "--phases", "1")
        save(target / "run.svg", words, plain.output(words), rows=60)

        live = Shell(folder=_folder(Path(base) / "live"), environment=environment)
        _rehearse(live, target, quick=quick)
        words = ("log", "-C", "demo", "--phase", "1")
        save(target / "log.svg", words, live.output(words), rows=30)
        live.output(("report", "-C", "demo", "-o", "report.html"))
        photograph(live.folder / "report.html", target / "report.png")
    return 0


def _folder(folder: Path) -> Path:
    (folder / "examples").mkdir(parents=True)
    (folder / "examples" / "greeter.md").write_text((ROOT / "examples" / "greeter.md").read_text("utf-8"))
    return folder


@frozen(kw_only=True)
class Shell:
    """Where the commands run."""

    folder: Path
    environment: Mapping[str, str]

    def output(self, words: Sequence[str]) -> str:
        """Run gsd with *words* without a terminal, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "gsd_core", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout.replace(str(self.folder), HOME)


def _rehearse(shell: Shell, target: Path, *, quick: bool) -> None:
    """Rehearse in a real terminal, answer its question, and save three of its screens."""
    server = ("tmux", "-L", f"gsd-pictures-{os.getpid()}")
    command = shlex.join([sys.executable, "-m", "gsd_core", *RUN])
    # COLUMNS would count for more than the terminal's own width, and the program stays to be looked at.
    terminal = {name: value for name, value in shell.environment.items() if name != "COLUMNS"}
    size = ("-x", str(COLUMNS), "-y", str(ROWS))
    subprocess.run(
        [*server, "-f", os.devnull, "new-session", "-d", *size, f"{command}; exec sleep 600"],
        cwd=shell.folder,
        env=terminal,
        check=True,
    )
    try:
        asked = _screen(shell, server, lambda seen: "↑↓ choose" in seen)
        save(target / "question.svg", RUN, asked, last=16)
        subprocess.run([*server, "send-keys", "Enter"], check=True)
        if not quick:
            save(target / "live.svg", RUN, _screen(shell, server, _is_busy), last=24)
        done = _screen(shell, server, lambda seen: "done: 3 phases complete;" in seen)
        save(target / "end.svg", RUN, done, last=18)
    finally:
        subprocess.run([*server, "kill-server"], check=False)


def _is_busy(seen: str) -> bool:
    """Whether the live view shows a task of the second phase or a later one, and what its agent does."""
    return re.search(r"^▸ [23]/execute/\S+ .*task \d.*│", seen, re.M) is not None and "v details" in seen


def _screen(shell: Shell, server: Sequence[str], shows: Callable[[str], bool]) -> str:
    """Return the screen with its colors once it *shows* what is wanted."""
    deadline = time.monotonic() + PATIENCE
    seen = ""
    while time.monotonic() < deadline:
        done = subprocess.run(
            [*server, "capture-pane", "-p", "-e"], capture_output=True, text=True, check=True
        )
        seen = Text.from_ansi(done.stdout).plain
        if shows(seen):
            return done.stdout.rstrip().replace(str(shell.folder), HOME)
        time.sleep(0.1)
    raise TimeoutError(f"the terminal does not show it:\n{seen}")


def save(picture: Path, words: Sequence[str], output: str, *, rows: int = 40, last: int = 0) -> None:
    """Save the first *rows* of *output*, or its *last* ones, as an SVG image; it may have colors."""
    lines = Text.from_ansi(output).split("\n", allow_blank=True)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    if not last:
        console.print(f"$ gsd {' '.join(words)}", style="bold", markup=False, highlight=False)
    shown = list(lines)[-last:] if last else list(lines)[:rows]
    for line in shown:
        line.rstrip()
        console.print(line, overflow="fold")
    if not last and len(lines) > rows:
        console.print("…")
    text = console.export_svg(title="gsd", code_format=FORMAT, unique_id=f"gsd-{picture.stem}")
    picture.write_text(text, encoding="utf-8")


def photograph(page: Path, picture: Path) -> None:
    """Save what a browser shows of *page*."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        raise FileNotFoundError(f"none of {', '.join(BROWSERS)} is installed")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                "--window-size=1200,800",
                f"--screenshot={picture}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
            timeout=PATIENCE,
        )
    if picture.stat().st_size > MAX_PNG_BYTES:
        raise ValueError(f"{picture.name} has more than {MAX_PNG_BYTES} bytes")


if __name__ == "__main__":
    sys.exit(main())

"""Make the pictures of the tutorial from a real rehearsal: ``python -m docs.pictures``.

They are captures of what a terminal shows, as SVG. Commit ids and times differ each time, so nothing compares
them; make them again when the output has changed, and look at them.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "tutorial" / "pictures"
COLUMNS = 100
# rich's own format loads a font from a server.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S).replace("Fira Code, ", "")


@frozen(kw_only=True)
class Picture:
    """A picture of what a command prints, without the first *skip* lines and at most *rows* of them."""

    name: str
    args: Sequence[str]
    skip: int = 0
    rows: int = 40


PICTURES = (
    Picture(
        name="run",
        args=("run", "examples/greeter.md", "--agent", "rehearsal", "-C", "demo", "--yes", "--phases", "1"),
    ),
)
"""In the order in which their commands run, in the same folder."""


def svg(picture: Picture, output: str) -> str:
    """Return *output*, with its escape sequences for colors, as an SVG image."""
    lines = output.splitlines()[picture.skip :]
    if len(lines) > picture.rows:
        lines = [*lines[: picture.rows], "…"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    console.print(f"$ gsd {' '.join(picture.args)}", style="bold", markup=False, highlight=False)
    for line in lines:
        console.print(Text.from_ansi(line), overflow="fold")
    return console.export_svg(title="gsd", code_format=FORMAT, unique_id=f"gsd-{picture.name}")


def captured(picture: Picture, folder: Path, environment: Mapping[str, str]) -> str:
    """Run the command of *picture* in *folder* and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "gsd_core", *picture.args],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def main() -> int:
    """Rehearse in a temporary folder, and write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "work"
        (folder / "examples").mkdir(parents=True)
        (folder / "examples" / "greeter.md").write_text((ROOT / "examples" / "greeter.md").read_text("utf-8"))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GSD_")},
            "HOME": base,
            "FORCE_COLOR": "1",
            "COLUMNS": str(COLUMNS),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }
        for picture in PICTURES:
            text = svg(picture, captured(picture, folder, environment))
            (FOLDER / f"{picture.name}.svg").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

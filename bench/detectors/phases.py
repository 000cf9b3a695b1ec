"""Read the phases of the benchmark, and write one as a project.

A file in ``data/`` contains phases. ``=== NAME`` begins one, ``=== NAME < BASE`` one that changes another
(which may be in any file), and ``! KIND`` marks one with a planted defect. Directives follow (``artifact:``,
``link:``, ``files:`` …; those of a kind replace the base's), then files: ``--- PATH`` with its text,
``--- PATH deleted``, or ``~~~ PATH`` with lines to remove (``-``) and to add (``+``), and perhaps
``renamed NEW``.
``git: yes`` makes a repository, in which the files of ``uncommitted:`` are in no commit.
PLAN, SUMMARY, ROADMAP and REQUIREMENTS are generated.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from gsd_core.planning.model import History, PhaseView
from gsd_core.planning.survey import survey

FOLDER = Path(__file__).parent / "data"
LANGUAGES = {".py": "Python", ".go": "Go", ".ts": "TypeScript", ".tsx": "TypeScript"}
ORDER = {"lookalikes": 1, "holdout": 2, "fresh": 3}
"""Files whose phases change phases of other files; those are read after them."""
COMMIT = "4f0c2a9d7be1863355aa90217c64de0b19f8e372"
"""The one commit of each project's history."""


@attrs.frozen(kw_only=True)
class Phase:
    """One phase of the benchmark; *defect* is the kind of the planted defect, empty if it is sound.

    *base* is the name of the phase that it changes, if it changes one.
    """

    name: str
    base: str = ""
    defect: str
    group: str
    directives: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]

    @property
    def language(self) -> str:
        """The language of most of its code."""
        suffixes = [LANGUAGES.get(Path(path).suffix) for path in self.files]
        names = [name for name in suffixes if name]
        return max(names, key=names.count) if names else "JavaScript"

    def values(self, key: str) -> list[str]:
        """Return the comma-separated values of a directive."""
        return [v.strip() for line in self.directives.get(key, ()) for v in line.split(",") if v.strip()]


def read_phases(*groups: str) -> list[Phase]:
    """Return all phases, or those of the files named *groups*, in order."""
    known: dict[str, Phase] = {}
    for path in sorted(FOLDER.glob("*.txt"), key=lambda path: (ORDER.get(path.stem, 0), path.stem)):
        for phase in _parse(path, known):
            assert phase.name not in known, phase.name
            known[phase.name] = phase
    return [phase for phase in known.values() if not groups or phase.group in groups]


def _parse(path: Path, known: Mapping[str, Phase]) -> Iterator[Phase]:
    found: dict[str, Phase] = {}
    for block in re.split(r"(?m)^=== ", path.read_text("utf-8"))[1:]:
        title, _, rest = block.partition("\n")
        match = re.fullmatch(r"([\w-]+)(?: < ([\w-]+))?(?: ! (.+))?", title.strip())
        assert match, title
        base = (found | dict(known))[match[2]] if match[2] else None
        files = dict(base.files) if base else {}
        directives: dict[str, list[str]] = {}
        section = ""
        body: list[str] = []
        for line in [*rest.split("\n"), "--- "]:
            if line.startswith(("--- ", "~~~ ")):
                if section:
                    _apply(section, body, files, match[1])
                section, body = line, []
            elif section:
                if section.startswith("~~~") and (directive := re.match(r"(\w[\w-]*): ?(.*)", line)):
                    directives.setdefault(directive[1], []).append(directive[2])
                else:
                    body.append(line)
            elif line.strip():
                key, _, value = line.partition(":")
                directives.setdefault(key, []).append(value.strip())
        merged = {**(base.directives if base else {}), **{k: tuple(v) for k, v in directives.items()}}
        found[match[1]] = Phase(
            name=match[1],
            base=match[2] or "",
            defect=match[3] or "",
            group=path.stem,
            directives=merged,
            files=files,
        )
    yield from found.values()


def _apply(section: str, body: list[str], files: dict[str, str], name: str) -> None:
    path, _, action = section[4:].strip().partition(" ")
    if action == "deleted":
        del files[path]
    elif action.startswith("renamed "):
        files[action.removeprefix("renamed ")] = files.pop(path)
    elif section.startswith("--- "):
        # One blank line before the next section is for the reader.
        files[path] = "\n".join(body[:-1] if body and not body[-1] else body).rstrip("\n") + "\n" * any(body)
        if len(body) > 2 and not any(body):
            files[path] = "\n" * len(body)
    else:
        for old, new in _hunks(body):
            assert files[path].count(old) >= 1, f"{name}: {path} does not contain {old!r}"
            files[path] = files[path].replace(old, new, 1)


def _hunks(body: list[str]) -> Iterator[tuple[str, str]]:
    old: list[str] = []
    new: list[str] = []
    for line in [*body, "- "]:
        if ((line.startswith("-") and new) or not line.strip("- ")) and old:
            # A removed part of a line is replaced within it.
            yield "\n".join(old), "\n".join(new)
            old, new = [], []
        if line.startswith("-") and line != "- ":
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])


# Writing a project


def write_phase(phase: Phase, root: Path) -> PhaseView:
    """Write *phase* as a project below *root* and return what its detectors get."""
    for path, text in phase.files.items():
        _write(root, path, text)
    requirements = phase.values("requirements")
    planned = phase.values("plan-requirements")
    listed = ", ".join(requirements) or "none"
    _write(root, ".planning/ROADMAP.md", ROADMAP.format(requirements=listed))
    folder = ".planning/phases/01-build"
    _write(root, f"{folder}/01-01-PLAN.md", _plan(phase, planned))
    _write(root, f"{folder}/01-01-SUMMARY.md", _summary(phase, planned))
    if later := phase.directives.get("later"):
        _write(root, ".planning/phases/02-more/02-01-SUMMARY.md", f"# Summary\n\n- {later[0]}\n")
    if phase.directives.get("git"):
        _commit(root, phase.values("uncommitted"))
    view = survey(root).view("1")
    uncommitted = set(phase.values("uncommitted"))
    files = frozenset(path for path in phase.files if path not in uncommitted)
    return attrs.evolve(view, history=History(files=files, commits=frozenset({COMMIT})))


def _commit(root: Path, left_out: list[str]) -> None:
    """Make a repository whose one commit has all files but those *left_out* and those that it ignores."""

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)

    git("init", "--quiet")
    git("add", ".")
    if left_out:
        git("rm", "--quiet", "--cached", "--ignore-unmatch", "--", *left_out)
    git("-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "--quiet", "-m", "feat: build")


def _write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


ROADMAP = """# Roadmap

## Phases

- [ ] **Phase 1: Build** - builds it

## Phase Details

### Phase 1: Build
**Goal**: It works
**Requirements**: {requirements}
**Plans**: 1 plan

Plans:
- [x] 01-01-PLAN.md
"""


def _plan(phase: Phase, planned: list[str]) -> str:
    lines = ["---", "phase: 01-build", 'plan: "01"', "type: execute", "wave: 1", "depends_on: []"]
    lines += [f"files_modified: [{', '.join(map(repr, phase.values('files')))}]", "autonomous: true"]
    lines += [
        f"requirements: [{', '.join(planned)}]",
        "must_haves:",
        "  truths:",
        "    - It works",
        f"  serves: [{', '.join(map(repr, [', '.join(planned) or '-']))}]",
        "  artifacts:",
    ]
    for line in phase.directives.get("artifact", ()):
        path, *options = re.split(r" \| ", line)
        lines.append(f"    - path: {path!r}")
        for option in options:
            key, _, value = option.partition(": ")
            names = [repr(name.strip()) for name in value.split(",")]
            lines.append(
                f"      {key}: " + (f"[{', '.join(names)}]" if key == "exports" else _quoted(key, value))
            )
    lines.append("  key_links:")
    for line in phase.directives.get("link", ()):
        ends, *options = re.split(r" \| ", line)
        source, _, target = ends.partition(" -> ")
        lines += [f"    - from: {source!r}", f"      to: {target!r}"]
        lines += [f"      {k}: {_quoted(k, v)}" for k, _, v in (option.partition(": ") for option in options)]
    check = phase.directives.get("check", ("true",))[0]
    verify = f"<verify><automated>{check}</automated></verify>"
    task = f'<task type="auto"><name>Build</name>{verify}<done>Done</done></task>'
    return "\n".join([*lines, "---", "", "<objective>Build it</objective>", "<tasks>", task, "</tasks>", ""])


def _quoted(key: str, value: str) -> str:
    return value if key == "min_lines" else "'" + value.replace("'", "''") + "'"


def _summary(phase: Phase, planned: list[str]) -> str:
    created = phase.values("created") or [
        re.split(r" \| ", line)[0] for line in phase.directives.get("artifact", ())
    ]
    commit = phase.directives.get("commit", (COMMIT[:7],))[0]
    return "\n".join(
        [
            "---",
            "phase: 01-build",
            'plan: "01"',
            "key-files:",
            f"  created: [{', '.join(map(repr, created))}]",
            f"requirements-completed: [{', '.join(planned)}]",
            "---",
            "",
            "# Summary",
            "",
            "## Task Commits",
            "",
            f"1. **Task 1: Build** - `{commit}` (feat)",
            "",
            "## Self-Check: " + phase.directives.get("self-check", ("PASSED",))[0],
            "",
        ]
    )

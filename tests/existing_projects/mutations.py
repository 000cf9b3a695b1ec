"""Bad files made from good ones: truncated, mutated, in other encodings, and costly to parse."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.planning.trees import plan_text

GOOD: dict[str, str] = {
    "ROADMAP.md": (
        "# Roadmap: X\n\n## Milestones\n\n- ✅ **v1.0 MVP** — Phases 1-2 (shipped 2026-01-01)\n"
        "- 🚧 **v1.1 Next** — Phases 3-4\n\n<details>\n<summary>✅ v1.0 MVP (Phases 1-2)</summary>\n\n"
        "- [x] Phase 1: Foundation (2/2 plans) — completed 2026-01-01\n\n</details>\n\n### 🚧 v1.1 Next\n\n"
        "- [ ] **Phase 3: New** - what is new\n\n#### Phase 3: New (INSERTED)\n**Goal**: It is new\n"
        "**Depends on**: Phases 1-2 and 2.1 (both)\n**Requirements**: [CORE-01, CORE-02..04]\n"
        "**Success Criteria** (what must be TRUE):\n  1. It holds\n     for long\n"
        "**Plans**: 2 plans\n\nPlans:\n- [x] 03-01-PLAN.md — one\n- [ ] 03-02: TBD\n\n## Progress\n\n"
        "| Phase | Milestone | Plans Complete | Status | Completed |\n|---|---|---|---|---|\n"
        "| 3. New | v1.1 | 1/2 | In Progress | - |\n"
    ),
    "REQUIREMENTS.md": (
        "# Requirements\n\n**Core Value:** x\n\n## v1 Requirements\n\n### Core\n\n"
        "- [x] **CORE-01**: It works\n- [ ] **CORE-02**: It lasts <!-- long -->\n\n## Traceability\n\n"
        "| Requirement | Phase | Status |\n|---|---|---|\n| CORE-01 | Phase 3 | Complete |\n"
    ),
    "STATE.md": (
        "---\ngsd_state_version: '1.0'\nmilestone: v1.1\nprogress:\n  percent: 20\n---\n# Project State\n\n"
        "## Current Position\n\nPhase: 3 of 4 (New)\nPlan: 1 of 2\n**Current Phase:** 03\n"
        "Progress: [██░░] 20%\n\n### Decisions\n\n- [Phase 3]: text\n"
    ),
    "PROJECT.md": "# X\n\n## What This Is\n\nAn x.\n\n## Core Value\n\nIt lasts\n\n## Requirements\n",
    "config.json": '{\n  "mode": "yolo",\n  "depth": "quick",\n  "w": {"research": true},\n  "n": 1e3\n}',
    "phases/03-new/03-01-PLAN.md": plan_text(
        depends_on='["03-02"]',
        frontmatter=(
            'must_haves:\n  truths:\n    - "It works: always"\n  artifacts:\n    - path: "a.py"\n'
            '      min_lines: 10\n      exports: ["run"]\n  key_links:\n    - from: "a.py"\n'
            '      to: "b.py"\n      pattern: "import\\s+b"\n'
        ),
        body=(
            '<objective>\nDo it\n</objective>\n<tasks>\n<task type="auto">\n  <name>Task 1: Do</name>\n'
            "  <files>a.py, b.py (new)</files>\n  <action>\nif a &lt; b && c\n  </action>\n"
            "  <verify><automated>pytest -q</automated></verify>\n  <done>done</done>\n</task>\n</tasks>\n"
        ),
    ),
    "phases/03-new/03-VERIFICATION.md": (
        '---\nphase: 03-new\nstatus: gaps_found\nscore: 1/2\ngaps:\n  - truth: "It works"\n'
        "    status: failed\n    reason: 'no: not yet'\n    artifacts:\n      - path: a.py\n"
        '        issue: stub\n    missing:\n      - "b"\nhuman_verification:\n  - test: t\n'
        "    expected: e\n    why_human: w\n---\n# Report\n"
    ),
    "milestones/v1.0-ROADMAP.md": "# Milestone v1.0: MVP\n\n### Phase 1: Foundation\n**Goal**: x\n",
}

Case = tuple[str, str, bytes]
"""What was done, the file's name, and its content."""


def truncated(step: int) -> Iterator[Case]:
    """Truncate each file at every *step*-th byte."""
    for name, text in GOOD.items():
        data = text.encode()
        for at in range(0, len(data), step):
            yield f"cut at {at}", name, data[:at]


def mutated(count: int, seed: int) -> Iterator[Case]:
    """Change each file at random, *count* times."""
    rng = random.Random(seed)
    for name, text in GOOD.items():
        for number in range(count):
            data = bytearray(text.encode())
            for _ in range(rng.randint(1, 6)):
                _change(data, rng)
            yield f"mutation {number} of seed {seed}", name, bytes(data)


SPECIAL = [
    b"\0",
    b"\t",
    b"\r",
    b"\r\n",
    b"\xff",
    b"\xe4",
    "\u2028".encode(),
    "\u202e".encode(),
    b"---\n",
    b"```\n",
    b"<details>",
    b"</details>",
    b"<task>",
    b"&a ",
    b"*a ",
    b"[[[[",
    b"{{",
    b": ",
    b"- - ",
    b"? ",
    b"|",
    b"!!x ",
    b"9" * 400,
    b"#" * 8,
    b"**",
    b'"',
    b"'",
    b"\\",
    b"%YAML 9.9\n",
    b"\xef\xbb\xbf",
    "٣".encode(),
]


def _change(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.randint(0, 40))
    match rng.randrange(5):
        case 0:
            data[at:at] = rng.choice(SPECIAL)
        case 1:
            del data[at:end]
        case 2:
            data[at:at] = data[at:end] * rng.randint(1, 4)
        case 3:
            data[at:end] = bytes(rng.randrange(256) for _ in range(end - at))
        case _:
            data[at:end] = rng.choice(SPECIAL)


def encoded() -> Iterator[Case]:
    """Write each file in the encodings and line ends of other systems, and with common defects."""
    for name, text in GOOD.items():
        yield "CRLF", name, text.replace("\n", "\r\n").encode()
        yield "CR", name, text.replace("\n", "\r").encode()
        yield "BOM", name, b"\xef\xbb\xbf" + text.encode()
        yield "two BOMs", name, b"\xef\xbb\xbf" * 2 + text.encode()
        yield "Latin-1", name, (text + "ä").encode("latin-1", "replace")
        yield "UTF-16", name, text.encode("utf-16")
        yield "NUL", name, text.replace(" ", "\0", 5).encode()
        yield "all NUL", name, b"\0" * 1000
        yield "tabs", name, text.replace("  ", "\t").encode()
        yield "no line end", name, text.rstrip("\n").encode()
        yield "nothing", name, b""
        yield "twice", name, text.encode() * 2
        yield "duplicate keys", name, text.replace("\n", "\nstatus: passed\nstatus: failed\n", 1).encode()


def _frontmatter(inside: str) -> str:
    return f"---\n{inside}\n---\n"


def shaped() -> Iterator[Case]:
    """Small inputs that are costly to parse without limits."""
    deep = 20_000
    bomb = "a: &a [x, x]\n" + "".join(
        f"{c}: &{c} [*{p}, *{p}, *{p}]\n" for p, c in zip("abcdefghi", "bcdefghij", strict=True)
    )
    shapes = {
        "flow lists": _frontmatter("a: " + "[" * deep),
        "closed flow lists": _frontmatter("a: " + "[" * deep + "]" * deep),
        "flow maps": _frontmatter("a: " + "{a: " * (deep // 3)),
        "sequences": _frontmatter("a:\n" + "- " * deep),
        "complex keys": _frontmatter("? " * deep),
        "indents": _frontmatter("\n".join(" " * n + "a:" for n in range(240))),
        "aliases": _frontmatter(bomb),
        "merges": _frontmatter("a: &a {b: c}\nd:\n  <<: *a"),
        "tags": _frontmatter("a: !!python/object:os.system x\nb: !!set {c}\nd: !!omap [e: f]"),
        "big number": _frontmatter("wave: " + "9" * 5000 + "\nplan: " + "9" * 5000),
        "many keys": _frontmatter("\n".join(f"k{n}: v" for n in range(1400))),
        "one flow": _frontmatter("a: [" + "[b], " * 5000 + "]"),
        "tasks": "<task>" * 60_000,
        "whole tasks": "<tasks>" + "<task><name>x</name></task>\n" * 20_000,
        "unclosed": "<verify>" + "<automated>" * 30_000,
        "attributes": "<task " + 'a="' * 30_000,
        "phases": "".join(f"### Phase {n}: X\n" for n in range(30_000)),
        "digits": "### Phase " + "9" * 90_000 + ": X\n",
        "dots": "### Phase 1" + ".1" * 40_000 + ": X\n",
        "spaces": "### Phase 1: " + " " * 90_000 + "x\n**Goal**" + " " * 90_000 + "x\n",
        "brackets": "### " + "[a] " * 20_000 + "x\n",
        "parentheses": "### Phase 1: A\n**Depends on**: " + "(" * 90_000 + "\n",
        "dependencies": "### Phase 1: A\n**Depends on**: " + "Phase 1-99, " * 8_000 + "\n",
        "ids": "### Phase 1: A\n**Requirements**: " + "A-1..999999999, " * 6_000 + "\n",
        "letters": "### Phase 1: A\n**Requirements**: " + "A" * 90_000 + "\n",
        "comments": "### Phase 1: A\n**Requirements**: " + "<!--" * 20_000 + "\n",
        "details": "<details>\n" * 40_000,
        "summaries": "<details><summary>" + "v1." * 30_000,
        "table": "| Phase | Name | Status |\n|---|---|---|\n" + "| 1 | A | x |\n" * 40_000,
        "pipes": "|" * 90_000,
        "fences": "```\n" * 40_000,
        "lines": "\n" * 49_000,
        "too many lines": "\n" * 1_900_000,
        "a long line": "x" * 1_900_000,
        "nested JSON": "[" * deep,
        "closed JSON": '{"a":' * deep + "1" + "}" * deep,
        "a long JSON number": '{"a": ' + "9" * 90_000 + "}",
        "JSON constants": '{"a": NaN, "b": Infinity, "c": 1e999, "a": 2}',
    }
    for what, text in shapes.items():
        for name in GOOD:
            yield what, name, text.encode()

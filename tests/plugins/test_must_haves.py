"""Gaps between the must-haves of plans and the tree, through the hook."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from gsd_core import Artifact, GapReport, History, KeyLink, MustHaves, PhaseView, Plan
from gsd_plugins import must_haves
from gsd_plugins.must_haves.patterns import Found, search
from gsd_plugins.must_haves.source import read_source

REAL = "def greet(name):\n    return f'hello {name}'\n"


def find(
    project: Path,
    *artifacts: Artifact,
    links: tuple[KeyLink, ...] = (),
    summary: str = "01-01-SUMMARY.md",
) -> GapReport:
    promised = MustHaves(artifacts=artifacts, key_links=links)
    plan = Plan(id="01-01", phase="1", must_haves=promised, summary=summary)
    phase = PhaseView(number="1", name="Greeting", project=project, plans=(plan,))
    report = asyncio.run(must_haves.must_haves_hold(phase))
    assert isinstance(report, GapReport)
    return report


def write(project: Path, path: str, text: str) -> Path:
    file = project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def reason(project: Path, text: str, path: str = "app.py", **promise: object) -> str:
    """Return why a file with *text* is a gap; empty if it is not one."""
    write(project, path, text)
    report = find(project, Artifact(path=path, **promise))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert len(report.gaps) + len(report.evidence) == 1
    return report.gaps[0].reason if report.gaps else ""


def test_a_file_that_meets_its_must_haves_is_evidence(tmp_path: Path) -> None:
    write(tmp_path, "app.py", REAL)

    report = find(tmp_path, Artifact(path="app.py", min_lines=2, exports=("greet",), contains="hello"))

    assert report.passed
    assert [(proof.about, proof.holds) for proof in report.evidence] == [("app.py", True)]


def test_a_plan_that_was_not_executed_is_not_judged(tmp_path: Path) -> None:
    assert find(tmp_path, Artifact(path="app.py"), summary="") == GapReport()


def test_a_missing_file_is_a_gap_identified_by_its_path(tmp_path: Path) -> None:
    (gap,) = find(tmp_path, Artifact(path="./app.py", provides="the greeting")).gaps

    assert (gap.about, gap.truth, gap.reason) == (
        "app.py",
        "app.py provides the greeting",
        "it does not exist",
    )
    assert gap.missing == ("app.py",)


def test_two_artifacts_with_the_same_path_make_one_gap(tmp_path: Path) -> None:
    write(tmp_path, "app.py", REAL)

    report = find(tmp_path, Artifact(path="app.py", min_lines=9), Artifact(path="./app.py", contains="bye"))

    assert [gap.about for gap in report.gaps] == ["app.py"]
    assert "at least 9" in report.gaps[0].reason
    assert "'bye'" in report.gaps[0].reason


def test_a_file_outside_of_the_project_does_not_count(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    secret = write(tmp_path, "secret.py", REAL)
    (project / "link.py").symlink_to(secret)

    gaps = find(
        project, Artifact(path="link.py"), Artifact(path="../secret.py"), Artifact(path=str(secret))
    ).gaps

    assert len(gaps) == 3
    assert all("outside the project" in gap.reason for gap in gaps)


def test_a_link_within_the_project_counts(tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(write(tmp_path, "app.py", REAL))

    assert find(tmp_path, Artifact(path="link.py")).passed


def test_a_folder_counts_only_if_the_path_asks_for_one_and_it_contains_files(tmp_path: Path) -> None:
    write(tmp_path, "migrations/001.sql", "create table a (b);\n")
    (tmp_path / "empty").mkdir()

    report = find(tmp_path, *(Artifact(path=path) for path in ("migrations/", "migrations", "empty/")))

    assert [gap.about for gap in report.gaps] == ["migrations", "empty/"]


def test_a_glob_pattern_needs_one_matching_file(tmp_path: Path) -> None:
    write(tmp_path, "migrations/001.sql", "create table a (b);\n")

    report = find(tmp_path, Artifact(path="migrations/*.sql"), Artifact(path="../*.sql"))

    assert [gap.about for gap in report.gaps] == ["../*.sql"]


def test_a_binary_file_has_to_exist_and_not_be_empty(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "empty.png").write_bytes(b"")

    report = find(tmp_path, Artifact(path="logo.png", min_lines=10), Artifact(path="empty.png"))

    assert [(gap.about, gap.reason) for gap in report.gaps] == [("empty.png", "it is empty")]


def test_text_missing_from_the_beginning_of_a_huge_file_is_unverified(tmp_path: Path) -> None:
    write(tmp_path, "data.csv", "a,b\n" * 600_000)

    (gap,) = find(tmp_path, Artifact(path="data.csv", min_lines=700_000, contains="zebra")).gaps

    assert gap.status == "unverified"


@pytest.mark.parametrize("name", ["__init__.py", "py.typed", ".gitkeep"])
def test_some_files_are_empty_by_design(name: str, tmp_path: Path) -> None:
    assert reason(tmp_path, "", name) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("greet('hello')", ""),
        ('x = 1\ngreet("hello")', ""),
        ("greet(\n'hello')", "it does not contain 'greet(\"hello\")'"),
        ("greet('you')", "it does not contain 'greet(\"hello\")'"),
    ],
)
def test_quotes_do_not_matter_to_contains(text: str, problem: str, tmp_path: Path) -> None:
    assert reason(tmp_path, text, "app.js", contains='greet("hello")') == problem


@pytest.mark.parametrize(
    "text",
    [
        "def greet(): return 1",
        "async def greet(): return 1",
        "class greet: x = 1",
        "greet = print",
        "greet: object = print",
        "from other import greet",
        "from other import hello as greet",
        "import greet",
        "try:\n    from a import greet\nexcept ImportError:\n    x = 1",
        "if True:\n    def greet(): return 1",
        "a, (greet, b) = 1, (2, 3)",
        "from other import *",
        "def __getattr__(name): return print",
        "def x(:  # greet, in words only: no Python that parses\n",
    ],
)
def test_a_python_name_that_the_module_binds_is_exported(text: str, tmp_path: Path) -> None:
    assert reason(tmp_path, text, exports=("greet",)) == ""


@pytest.mark.parametrize(
    "text", ["# greet\nx = 1", "x = 'greet'", "def outer():\n    greet = 1\n    return greet", "x.greet = 1"]
)
def test_a_python_name_that_is_only_mentioned_is_not_exported(text: str, tmp_path: Path) -> None:
    assert reason(tmp_path, text, exports=("greet",)) == "it does not define 'greet'"


@pytest.mark.parametrize(
    "name", ["greet()", "def greet", "greet(name: str) -> str", "Greeter.greet", "Greeter::greet"]
)
def test_an_export_may_be_written_in_many_ways(name: str, tmp_path: Path) -> None:
    text = f"{REAL}class Greeter:\n    def greet(self):\n        return greet('x')\n"

    assert reason(tmp_path, text, exports=(name,)) == ""


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("app.py", "def load(path, limit):\n    return open(path).read()\n", "limit"),
        ("app.py", "def load(path, limit):\n    return open(path).read(limit)\n", ""),
        ("app.py", "def load(path, _limit):\n    return open(path).read()\n", ""),
        ("app.js", "export function load(path, limit) {\n  return read(path, { limit: 100 });\n}\n", "limit"),
        ("app.js", "export function load(path, limit) {\n  return read(path, { limit });\n}\n", ""),
        ("q.go", "package q\n\nfunc load(limit int) *Q { return &Q{limit: 100} }\n", "limit"),
        ("q.go", "package q\n\nfunc load(limit int) *Q { return &Q{limit: limit} }\n", ""),
    ],
)
def test_a_promised_function_that_never_uses_a_parameter_is_observed(
    path: str, text: str, said: str, tmp_path: Path
) -> None:
    write(tmp_path, path, text)

    seen = find(tmp_path, Artifact(path=path, exports=("load",))).observations

    assert [one.text for one in seen] == ["load() never uses its parameter limit"] * bool(said)
    assert find(tmp_path, Artifact(path=path)).observations == ()


def test_a_missing_method_is_named(tmp_path: Path) -> None:
    assert reason(tmp_path, REAL, exports=("Greeter.greet",)) == "it does not define 'Greeter.greet'"


def test_an_export_described_in_prose_is_not_judged(tmp_path: Path) -> None:
    assert reason(tmp_path, REAL, exports=("all public types",)) == ""


def test_in_other_languages_an_export_is_a_word_of_the_text(tmp_path: Path) -> None:
    text = "export const greet = (name) => `hello ${name}`;\nexport function GET() { return greet('x'); }\n"

    assert reason(tmp_path, text, "app.ts", exports=("greet", "GET")) == ""
    assert reason(tmp_path, text, "app.ts", exports=("gree",)) == "it does not define 'gree'"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("lib.rs", "mod store;\n\npub use store::*;\n"),
        ("shop.dart", "export 'src/cart.dart';\n"),
    ],
)
def test_in_other_languages_a_name_may_be_in_a_file_that_is_passed_on(
    path: str, text: str, tmp_path: Path
) -> None:
    assert reason(tmp_path, text, path, exports=("Cart",)) == ""


STUBS = {
    "empty.py": "\n\n",
    "docstring.py": '"""Greets people."""\n',
    "comment.py": "# nothing yet\n",
    "pass.py": "pass\n",
    "function.py": 'def greet(name):\n    """Greet."""\n    pass\n',
    "dots.py": "def greet(name): ...\n",
    "none.py": "def greet(name):\n    return None\n",
    "raises.py": "def greet(name):\n    raise NotImplementedError\n",
    "raises_text.py": "def greet(name):\n    raise NotImplementedError('later')\n",
    "method.py": "class Greeter:\n    def greet(self):\n        raise NotImplementedError()\n",
    "todo.py": "def greet(name):\n    # TODO: implement this properly\n    return 'x'\n",
    "empty.js": "\n",
    "todo.js": "export function greet() {\n  // TODO: implement\n}\n",
    "throws.ts": "export function greet(): string {\n  throw new Error('Not implemented');\n}\n",
    "component.tsx": "export default function Page() {\n  return null;\n}\n",
    "component2.tsx": "import React from 'react';\nexport const Page = () => <div>Page</div>;\n",
    "component3.jsx": "export function Page() {\n  return (\n    <></>\n  );\n}\n",
    "placeholder.tsx": "export const Page = () => {\n  return <p>Placeholder</p>;\n};\n",
    "route.ts": "export async function GET() {\n  return Response.json({ message: 'Not implemented' });\n}\n",
    "todo.rs": "// TODO: implement the greeting\npub fn greet() {}\n",
    "panic.go": 'package app\n\nfunc Greet() string {\n\tpanic("not implemented")\n}\n',
    "coming.html": "<html><body>\n<h1>Coming soon</h1>\n</body></html>\n",
    "lorem.md": "# About\n\nLorem ipsum dolor sit amet.\n",
    "todo.md": "# Usage\n\nTODO\n",
    "todo.kt": "fun greet(): String {\n    TODO()\n}\n",
    "answer.js": "app.delete('/:id', (req, res) => {\n  res.status(501).send('TODO');\n});\n",
    "soon.jsx": "export const Orders = ({ user }) => <main className='x'><p>Coming soon</p></main>;\n",
    "default.ts": (
        "export class Disk implements Store {\n  read(k: string) {\n    return load(k);\n  }\n"
        "  write(k: string, v: string) {}\n}\n"
        "export const open = (store: Store = new Disk()) => store.read('a');\n"
    ),
    "never.ts": "export function save(a: number): never {\n  throw new Error('Not implemented');\n}\n",
    "stub.sh": "#!/bin/sh\n# placeholder for the deployment\nexit 0\n",
}


@pytest.mark.parametrize("name", STUBS)
def test_a_stub_is_found(name: str, tmp_path: Path) -> None:
    exports = ("greet",) if name in ("none.py",) else ()

    assert reason(tmp_path, STUBS[name], name, exports=exports).startswith(("it is a stub", "it is empty"))


BODY = "".join(f"    total = total + step({n})\n" for n in range(20))
NO_STUBS = {
    "cli.rs": (
        "#[derive(Subcommand)]\npub enum Command {\n    /// Fills the placeholder of a template.\n"
        "    Todo { file: PathBuf },\n}\n"
    ),
    "error.rs": 'pub enum E {\n    #[error("not implemented: {0}")]\n    Other(String),\n}\n',
    "protocol.py": "class P(Protocol):\n    def greet(self) -> str: ...\n",
    "abstract.py": (
        "class A(ABC):\n    @abstractmethod\n    def greet(self):\n        pass\n"
        "    def hook(self):\n        raise NotImplementedError\n"
    ),
    "errors.py": "class Bad(Exception):\n    pass\nclass Worse(Bad):\n    '''Even worse.'''\n",
    "base.py": (
        "class Shape:\n    def area(self):\n        raise NotImplementedError\n"
        "class Square(Shape):\n    def area(self):\n        return 4\n"
    ),
    "base2.py": "class BaseShape:\n    def area(self):\n        raise NotImplementedError\n",
    "group.py": "@click.group()\ndef cli():\n    pass\n@cli.command()\ndef run():\n    print(1)\n",
    "handler.py": f"class H(Base):\n    def log(self, *a):\n        pass\n    def do_GET(self):\n{BODY}",
    "one_noop.py": f"def noop():\n    pass\ndef a(total):\n{BODY}def b(total):\n{BODY}",
    "remark.py": f"def greet(total):\n    # TODO: implement caching\n{BODY}    return total\n",
    "constants.py": "LIMIT = 3\n",
    "imports.py": "from .greeting import greet\n",
    "handled.py": "def greet():\n    try:\n        return 1\n    except OSError:\n        pass\n",
    "status.py": "STATUS = {501: 'Not Implemented'}\n",
    "escape.py": "import re\nP = re.compile('\\d+')\n",
    "form.tsx": 'export const Form = () => <input placeholder="Your name" onChange={save} />;\n',
    "form.css": "input::placeholder { color: grey; }\n",
    "guard.tsx": (
        "export function Page({ user }) {\n  if (!user) return null;\n  return <Profile user={user} />;\n}\n"
    ),
    "remark.ts": "// TODO: implement caching\n"
    + "".join(f"export const a{n} = load({n});\n" for n in range(15)),
    "status.ts": "export const NOT_IMPLEMENTED = 501;\nexport const text = (c: number) => names[c];\n",
    "sql.sql": "-- users\ncreate table users (id integer primary key);\n",
    "rest.js": "app.all('*', (req, res) => {\n  res.status(501).send('not implemented');\n});\n",
    "drag.jsx": (
        "export function Drop() {\n  const handleDragOver = (event) => {\n    event.preventDefault();\n  };\n"
        "  return <div onDragOver={handleDragOver} />;\n}\n"
    ),
    "failed.jsx": (
        "export function Form({ save }) {\n  const handleSaveError = (e) => {\n    console.error(e);\n"
        "  };\n  return <form onSubmit={() => save().catch(handleSaveError)} />;\n}\n"
    ),
    "soon.tsx": "export const SoonBadge = () => <span className='badge'>Coming soon</span>;\n",
    "empty.jsx": (
        "const Empty = () => null;\nexport const List = ({ items, Fallback = Empty }) =>\n"
        "  items.length ? <ul>{items}</ul> : <Fallback />;\n"
    ),
    "visitor.js": (
        "class Visitor {\n  enter(node) {}\n  leave(node) {}\n}\n"
        "export function visit(tree, visitor = new Visitor()) {\n  visitor.enter(tree);\n}\n"
    ),
    "types.js": "/** @typedef {{ id: string }} Change */\nexport {};\n",
    "never.ts": (
        "export function never(value: never): never {\n"
        "  throw new Error(`not implemented for ${value}`);\n}\n"
    ),
    "windows.go": (
        "package fifo\n\nfunc Make(path string) error {\n"
        '\treturn errors.New("fifo: not implemented on windows")\n}\n'
    ),
    "assembly.go": "package num\n\ntype V struct{ a int }\n\nfunc (v V) Add(o V) V\n\nfunc Sum(v []V) V\n",
    "one_branch.py": "def jpeg(head):\n    if head[0] == 0xFF:\n        return 'jpeg'\n",
    "icon.tsx": 'export const Icon = () => <svg viewBox="0 0 1 1"><path d="M0 0" /></svg>;\n',
}


@pytest.mark.parametrize("name", NO_STUBS)
def test_working_code_that_looks_like_a_stub_is_not_one(name: str, tmp_path: Path) -> None:
    assert reason(tmp_path, NO_STUBS[name], name) == ""


FINISHED = {
    "what no branch handles": (
        "read.py",
        "def read(kind, text):\n    if kind == 'json':\n        return json.loads(text)\n"
        "    raise NotImplementedError(f'format {kind}')\n",
    ),
    "a refusal with a reason": (
        "cookies.py",
        "class Request:\n    def add_header(self, name, value):\n"
        "        raise NotImplementedError('cookies have to be added with add_unredirected_header()')\n"
        "    def get_header(self, name):\n        return self.headers[name]\n",
    ),
    "a fallback": (
        "console.py",
        "import sys\n\nif sys.platform == 'win32':\n    from _windows import stream\nelse:\n"
        "    def stream(file, encoding):\n        return None\n",
    ),
    "a marker": (
        "retry.py",
        "class Retry:\n    pass\n\n\ndef is_retry(value):\n    return isinstance(value, Retry)\n",
    ),
    "a factory": (
        "keys.go",
        "package keys\n\ntype Key interface{ Sign() }\n\nfunc rsa(version int) Key { return rsaKey{} }\n",
    ),
}
"""Found in finished projects."""


@pytest.mark.parametrize("name", FINISHED)
def test_finished_code_that_does_little_is_not_reported(name: str, tmp_path: Path) -> None:
    path, text = FINISHED[name]

    assert reason(tmp_path, text, path) == ""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "read.py",
            "def read(kind, text):\n    if not kind:\n        return None\n    raise NotImplementedError\n",
        ),
        (
            "pay.py",
            "def pay(order):\n    raise NotImplementedError('the gateway will be connected in phase 3')\n",
        ),
        ("app.mjs", "app.get('/a', (req, res) => {\n  // TODO: answer\n  res.sendStatus(501);\n});\n"),
    ],
)
def test_unfinished_code_like_it_is_reported(path: str, text: str, tmp_path: Path) -> None:
    assert reason(tmp_path, text, path)


def link(project: Path, source: str, target: str, text: str, pattern: str = "") -> GapReport:
    write(project, source, text)
    return find(project, links=(KeyLink(source=source, target=target, via="import", pattern=pattern),))


def test_a_link_whose_pattern_matches_is_evidence(tmp_path: Path) -> None:
    report = link(
        tmp_path, "src/app.ts", "src/api.ts", "import { call } from './api'\n", r"import.*from.*api"
    )

    assert report.passed
    assert [proof.about for proof in report.evidence] == ["src/app.ts -> src/api.ts"]


def test_a_pattern_matches_an_import_that_a_formatter_broke(tmp_path: Path) -> None:
    write(tmp_path, "store.ts", "export const load = (id: string) => fetch(id);\n")
    text = "import {\n  load,\n  save,\n} from './store';\nexport const show = (id) => load(\n  id,\n);\n"

    assert link(tmp_path, "app.ts", "store.ts", text, r"import.*save.*from.*store").passed
    assert link(tmp_path, "app.ts", "store.ts", text, r"load\(.*id").passed
    assert not link(tmp_path, "app.ts", "store.ts", text, r"show.*remove\(").passed
    assert not link(
        tmp_path, "app.ts", "store.ts", "const a = () => {\n  b();\n  c();\n};\n", r"b\(.*c\("
    ).passed


def test_a_link_whose_pattern_does_not_match_is_a_gap_identified_by_its_ends(tmp_path: Path) -> None:
    (gap,) = link(tmp_path, "src/app.ts", "src/api.ts", "import { call } from './other'\n", r"fetch\(").gaps

    assert (gap.about, gap.status) == ("src/app.ts -> src/api.ts", "failed")
    assert gap.reason == r"nothing in src/app.ts matches /fetch\(/"


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("const STEPS = ['sendMail(welcome)', 'call sendMail'];\n", False),
        ("import { sendMail } from './mailer';\nsendMail('x');\n", True),
        ("container.resolve('sendMail')('x');\n", True),
    ],
)
def test_the_name_of_a_function_has_to_occur_outside_of_texts(
    text: str, passed: bool, tmp_path: Path
) -> None:
    write(tmp_path, "mailer.ts", "export const sendMail = (to: string) => post(to);\n")

    assert link(tmp_path, "app.ts", "mailer.ts", text, "sendMail").passed is passed


def test_the_search_for_a_pattern_that_explodes_times_out(tmp_path: Path) -> None:
    began = time.monotonic()

    found = asyncio.run(search(r"(a+)+$", "a" * 64 + "b", seconds=0.5))

    assert found is Found.TIMEOUT
    assert time.monotonic() - began < 10


def test_a_pattern_with_repetition_is_searched_line_by_line(tmp_path: Path) -> None:
    assert asyncio.run(search(r"^b+$", "a\nbb\nc")) is Found.YES
    assert asyncio.run(search(r"^b+c$", "a\nbb\nc")) is Found.NO


def test_an_invalid_pattern_is_searched_as_plain_text(tmp_path: Path) -> None:
    assert link(tmp_path, "a.js", "b.js", "call((x\n", "call((x").passed
    (gap,) = link(tmp_path, "a.js", "b.js", "nothing\n", "call((x").gaps

    assert gap.status == "unverified"


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("src/app.py", "src/store.py", "from .store import save\n"),
        ("src/app.py", "src/shop/__init__.py", "import shop\n"),
        ("src/app.ts", "src/components/index.ts", "import { B } from './components'\n"),
        ("src/chat.tsx", "src/app/api/chat/route.ts", "fetch('/api/chat')\n"),
        ("src/chat.tsx", "/api/chat", "await fetch('/api/chat', { method: 'POST' })\n"),
        ("lib/a.rb", "lib/user_service.rb", "UserService.new\n"),
        ("app.py", "templates/home.html", "render('home.html')\n"),
        ("src/page.tsx (header)", "NewDialog", "import NewDialog from './x'\n"),
        ("src/a.ts", "api.tasks.list()", "await api.tasks.list()\n"),
        ("src/user-card.ts", "src/user-card.component.ts", "from './user-card.component'\n"),
    ],
)
def test_without_a_pattern_a_mention_of_the_target_is_evidence(
    source: str, target: str, text: str, tmp_path: Path
) -> None:
    write(tmp_path, source.split(" ")[0], text)

    report = find(tmp_path, links=(KeyLink(source=source, target=target),))

    assert (len(report.gaps), len(report.evidence)) == (0, 1)


def test_without_a_pattern_or_a_mention_there_is_a_gap(tmp_path: Path) -> None:
    (gap,) = link(tmp_path, "src/app.py", "src/store.py", "import restore\n").gaps

    assert gap.reason == "src/app.py does not refer to src/store.py"


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        ("the header of the page", "NewDialog", ""),
        ("src/app.py", "the user's session", "x = 1\n"),
        ("store/user.go", "store/sqlite.go", "package store\n"),
        ("app.py", "shop/cart.py", "from shop import Cart\n".replace("Cart", "checkout")),
    ],
)
def test_a_link_that_code_cannot_judge_is_left_to_the_verifier(
    source: str, target: str, text: str, tmp_path: Path
) -> None:
    if "." in source:
        write(tmp_path, source, text)

    assert find(tmp_path, links=(KeyLink(source=source, target=target),)) == GapReport()


def test_a_link_from_a_missing_file_is_a_gap(tmp_path: Path) -> None:
    (gap,) = find(tmp_path, links=(KeyLink(source="src/app.py", target="src/store.py"),)).gaps

    assert gap.reason == "src/app.py: it does not exist"


def test_the_same_link_in_two_plans_is_one_gap(tmp_path: Path) -> None:
    one = KeyLink(source="a.py", target="b.py")

    assert len(find(tmp_path, links=(one, one)).gaps) == 1


@pytest.mark.parametrize(
    ("path", "text", "bodies"),
    [
        (
            "cart.py",
            "class Cart:\n    @property\n    def total(self) -> int:\n        return 1  # é\n\n\n"
            "def clear(cart): cart.clear()\n",
            {"Cart.total": "return 1  # é", "clear": "cart.clear()"},
        ),
        (
            "cart.ts",
            "// é\nexport class Cart { total(): number { return 1; } }\n"
            "export const clear = (cart: Cart) => cart.clear();\n",
            {"Cart.total": " return 1; ", "clear": "cart.clear()"},
        ),
        (
            "cart.go",
            "package cart\n\n// é\nfunc (c *Cart) Total() int {\n\treturn 1\n}\n",
            {"Cart.Total": "\n\treturn 1\n"},
        ),
    ],
)
def test_the_bodies_of_functions_are_known_by_their_bytes(
    path: str, text: str, bodies: dict[str, str]
) -> None:
    source = read_source(path, text)

    assert source
    assert {f.name: text.encode()[slice(*f.span)].decode() for f in source.functions} == bodies


# Files that nobody expects


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("min.js", b"function a(b){return 0}" + b"var x=1;" * 20_000),
        ("latin.py", "def name(x):\n    return 'é' + x\n".encode("latin-1")),
        ("deep.ts", b"export const a = " + b"[" * 5_000 + b"1" + b"]" * 5_000 + b";\n"),
        ("deep.py", b"a = " + b"(" * 5_000 + b"1" + b")" * 5_000 + b"\n"),
        ("broken.go", b"func a( { let \xf0\x9f\x8d\xb5 = \n"),
        ("huge.go", b"package a\n\nvar x = 1\n" * 60_000),
        ("crlf.ts", b"export function a(x: number) {\r\n  return x + 1;\r\n}\r\n"),
        ("bom.py", b"\xef\xbb\xbfdef a(x):\n    return x + 1\n"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_judged_without_an_error(
    name: str, data: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)

    assert find(tmp_path, Artifact(path=name)).passed


def test_a_listed_file_that_is_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").symlink_to(write(tmp_path, "stub.py", "def greet(name):\n    pass\n"))
    plan = Plan(id="01-01", phase="1", summary="s", files_modified=("app.py",))

    phase = PhaseView(number="1", name="Greeting", project=project, plans=(plan,))
    assert asyncio.run(must_haves.must_haves_hold(phase)) == GapReport()


def test_a_stub_in_a_file_that_a_plan_only_lists_is_a_gap(tmp_path: Path) -> None:
    write(tmp_path, "app.py", f"{REAL}\n\ndef leave(name):\n    raise NotImplementedError\n")
    plan = Plan(
        id="01-01", phase="1", summary="s", files_modified=("app.py", "gone.py", ".planning/STATE.md")
    )
    report = asyncio.run(
        must_haves.must_haves_hold(PhaseView(number="1", name="Greeting", project=tmp_path, plans=(plan,)))
    )

    assert isinstance(report, GapReport)
    assert [(gap.about, "leave()" in gap.reason) for gap in report.gaps] == [("app.py", True)]


BOARD = (
    "def ranking(lines):\n    return sorted(lines)\n\n\ndef top(lines, n):\n    return ranking(lines)[:n]\n"
)
LOW = "\nfunc low() int { return 1 }\n"
TESTS = """from board import ranking, top

def test_top():
    assert top(ranking([2, 1]), 1) == [1]
"""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"main.py": "from board import ranking\n\nprint(ranking([]))\n"}, ["top"]),
        ({"main.py": "from board import ranking, top\n\nprint(top(ranking([]), 1))\n"}, []),
        ({"main.py": "from board import ranking\n\n# top is for later\nprint(ranking([]))\n"}, ["top"]),
        ({"README.md": "Use `ranking` or `top`.\n"}, []),
        ({"page.js": "export { load as '' };\nfunction load() {\n  return 1;\n}\n"}, []),
        ({"main.go": f"package main\n\nfunc main() {{}}\n{LOW}", "main_test.go": "low"}, ["low"]),
        ({"lib.go": "package lib\n\nfunc Low() int { return 1 }\n", "lib_test.go": "Low"}, []),
    ],
)
def test_functions_that_only_tests_use_are_observed_unless_this_is_a_library(
    files: dict[str, str], said: list[str], tmp_path: Path
) -> None:
    tree = {"board.py": BOARD, "test_board.py": TESTS, **files}
    for path, text in tree.items():
        write(tmp_path, path, text)
    plan = Plan(id="01-01", phase="1", files_modified=tuple(tree), summary="01-01-SUMMARY.md")
    history = History(files=frozenset(tree))
    phase = PhaseView(number="1", name="Board", project=tmp_path, plans=(plan,), history=history)

    report = asyncio.run(must_haves.must_haves_hold(phase))

    assert isinstance(report, GapReport)
    assert [one.text for one in report.observations] == [f"no code but tests names {name}()" for name in said]

"""Do the tests of a file prove anything: are they collected, do they run, and can they fail?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from .modules import Sources
from .source import LANGUAGES, Source, Test

_IN_FOLDER = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|e2e|cypress)/")
_NAMED = re.compile(
    r"(?:^|[._-])(?:tests?|specs?|checks?)(?=[._-]|$)|(?-i:Tests?|Specs?)(?=\.|$)", re.IGNORECASE
)
_HELPER = re.compile(
    r"(?i)(?:^|[._-])(?:conftest|helpers?|fixtures?|factor(?:y|ies)|utils?|support|setup|mocks?|common|data|base"
    r"|harness|stubs?|fakes?|server|__init__|mod|main|config|globals?|matchers?|builders?|seed|types?|page|testing)(?=[._-]|$)"
)
_SMOKE = re.compile(
    r"(?i)smoke|(?:does|do|did|should|will|is|must)[_\s-]*n[o']t[_\s-]*(?:be[_\s-]*)?(?:raise|throw|panic|crash|fail|error|hang|block|leak)"
    r"|without[_\s-]*(?:an?[_\s-]*)?(?:error|exception|crash|throw|panic|fail)|no[_\s-]*(?:error|exception|crash|panic|throw)"
    r"|stress|concurren|(?<![tgb])race(?![a-z])|copes|tolerat|surviv|import|compil|set[_\s-]?up|clean[_\s-]?up|tear[_\s-]?down|fixture|benchmark|never[_\s-]*(?:raise|panic|throw|fail|crash|error)|doesn.?t|is[_\s-]safe|leak"
)
_MOCHA_CONFIGS = tuple(f".mocharc.{suffix}" for suffix in ("json", "jsonc", "yml", "yaml", "js", "cjs"))
_CONFIGS = (
    "package.json",
    "Makefile",
    "tox.ini",
    "noxfile.py",
    "pyproject.toml",
    "setup.cfg",
    "pytest.ini",
    "deno.json",
    *_MOCHA_CONFIGS,
)
_RUNNERS = (
    *("vitest", "jest", "mocha", "playwright", "cypress", "ava", "tape"),
    *("bun", "jasmine", "karma", "deno"),
)
_DOTTED = r"(?:^|[/.])(?:test|spec)\.[cm]?[jt]sx?$"
_COLLECTED = {
    "jest": rf"{_DOTTED}|__tests__/",
    "mocha": r"^(?:test|spec)/",
    "cypress": r"\.cy\.[^/]*$",
    "ava": rf"{_DOTTED}|(?:^|/)(?:tests?|__tests__)/|^test",
    "node": r"(?:^|/)test/|(?:^|[/.\-_])test\.[cm]?[jt]s$|(?:^|/)test-[^/]*$",
    **dict.fromkeys(("bun", "deno"), r"[._](?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)test\.[^/]*$"),
    **dict.fromkeys(("tape", "jasmine", "karma"), ""),
}
"""The files that each runner collects without a configuration, if not only dotted ones."""
_JS_CONFIGS = tuple(
    f"{name}.config.{suffix}"
    for name in ("vitest", "vite", "jest", "playwright")
    for suffix in ("ts", "js", "mjs", "cjs", "mts")
)


def is_test_file(path: str, source: Source) -> bool:
    """Whether a promised file is meant to contain tests."""
    pure = PurePosixPath(path)
    helper = (".d.ts", ".pyi", "__init__.py", "__main__.py")
    if pure.suffix not in LANGUAGES or pure.name.endswith(helper):
        return False
    # A helper of Go's tests has to be named *_test.go as well.
    has_tests = re.search(r"\(\w+ \*testing\.[TBF]\)", source.bare) and "func TestMain(" not in source.code
    if pure.suffix == ".go" and not source.tests and not has_tests:
        return False
    if _HELPER.search(pure.stem) and not re.match(r"test_|.*(?:_test|\.test|\.spec)$", pure.stem):
        return bool(source.tests) and _IN_FOLDER.search(path) is not None
    if pure.suffix == ".go" and not pure.name.endswith("_test.go") and "testing." not in source.bare:
        return False
    if _NAMED.search(pure.stem):
        if _IN_FOLDER.search(path) or source.tests:
            return True
        # A script such as test_connection.py is a program.
        is_program = "__main__" in source.code or "sys.exit" in source.code or _is_library(source)
        return re.match(r"test_|.*(?:_test|\.test|\.spec)$", pure.stem) is not None and not is_program
    return bool(source.tests) and _IN_FOLDER.search(path) is not None


def _is_library(source: Source) -> bool:
    """Whether a file outside of tests (``page_trend_test.py``) has functions, and nothing of a test."""
    works = any(f.body == "code" and f.parameters and f.exported for f in source.functions)
    return works and re.search(r"\b(?:assert|pytest|unittest|expect|describe|it|test)\b", source.bare) is None


def find_weak_tests(sources: Sources, path: str, source: Source, commands: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the tests of a file; *commands* are the checks of the phase's plans."""
    if not is_test_file(path, source):
        return
    if not source.tests:
        imported = [name for reference in source.references for name in reference.names]
        elsewhere = any(re.match(r"\*$|load_tests$|test_", name) for name in imported)
        if not source.empty and not source.faulty and not elsewhere:
            yield "it contains no test that a runner would collect"
        return
    if reason := _not_collected(sources, path, commands):
        yield reason
    lost = [test.name for test in source.tests if not test.runs]
    if lost:
        yield f"tests never run, because of their names: {_listed(lost)}"
    if all(test.skipped for test in source.tests):
        yield f"all {len(source.tests)} of its tests are skipped"
    weak = [t for t in source.tests if not t.asserts and not t.skipped and t.runs and not _is_smoke(t)]
    # "Accepts valid input" fails by an exception: among more tests that assert, that is ordinary.
    if 10 * len(weak) <= len(source.tests):
        return  # in a long suite, one that only runs something is ordinary
    if 2 * len(weak) <= sum(1 for test in source.tests if test.runs and not test.skipped):
        weak = [test for test in weak if test.pretends]
    if weak:
        yield f"tests that assert nothing: {_listed([f'{test.name} (line {test.line})' for test in weak])}"


def _is_smoke(test: Test) -> bool:
    return _SMOKE.search(test.name) is not None or test.name.startswith(("Benchmark", "Fuzz", "Example"))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _not_collected(sources: Sources, path: str, commands: Sequence[str]) -> str:
    """Return why the runner does not collect the file; empty if it does, or if that is unknown."""
    name = posixpath.basename(path)
    texts = [*commands, *(sources.text(config) or "" for config in (*_CONFIGS, *_JS_CONFIGS))]
    stem = name.rpartition(".")[0]
    dotted = path.rpartition(".")[0].replace("/", ".")
    if any(name in text or dotted in text or re.search(rf"\b{re.escape(stem)}\b", text) for text in commands):
        return ""
    match LANGUAGES[PurePosixPath(path).suffix]:
        case "python":
            return _python(path, name, "\n".join(texts))
        case "javascript":
            return _javascript(sources, path, "\n".join(texts))
        case "go":
            return "" if name.endswith("_test.go") else "go test only runs files named *_test.go"


def _python(path: str, name: str, config: str) -> str:
    patterns = re.findall(
        r"[\w*?\[\]]+\.py\b", "\n".join(re.findall(r"python_files\s*=.*(?:\n\s+.*)*", config))
    )
    patterns = patterns or ["test_*.py", "*_test.py"]
    if "unittest" in config or "manage.py" in config or "django" in config.lower() or name == "tests.py":
        patterns.append("test*.py")
    if name in config or any(PurePosixPath(name).match(pattern) for pattern in patterns):
        return ""
    return f"its tests never run: {name} matches none of {', '.join(patterns)}"


def _javascript(sources: Sources, path: str, config: str) -> str:
    manifest = sources.json("package.json")
    for parent in PurePosixPath(path).parents:
        manifest = sources.json((parent / "package.json").as_posix()) or manifest
        if manifest:
            break
    name = posixpath.basename(path)
    text = f"{manifest or ''}\n{config}"
    if any(map(sources.exists, _MOCHA_CONFIGS)):
        text += "\nmocha"
    configured: list[str] = []
    for key in ("include", "testMatch", "spec", "testRegex", "testDir", "files"):
        for match in re.finditer(
            rf"[\"']?\b{key}[\"']?\s*[:=]\s*(\[[^\]]*\]|[\"'][^\"'\n]*[\"']|/[^\n]*/)", text
        ):
            if not re.search(r"coverage\W*\{[^}]*$", text[: match.start()]):
                configured += re.findall(r"[\"'/]([^\"'\n]+)[\"'/]", match[1])
    if any(_matches(pattern, path) for pattern in configured):
        return ""
    if re.search(r"--config|projects|workspace|testRegex|--test-name|testDir", text):
        others = _other_configs(sources, text)
        if any(_matches(pattern, path) for pattern in others):
            return ""
        if others == [] and re.search(r"--config|projects|workspace", text):
            return ""
    runners = [runner for runner in _RUNNERS if runner in text]
    node = re.search(r"node\b[^\"&|]*--test", text) is not None
    if re.search(rf"[\"'\s/]{re.escape(name)}\b", text):
        return ""
    if not runners and not node:
        runners = ["jest"]
    globs = re.findall(r"[\w./@-]*\*[\w.*/{},()|@?-]*", text)
    if any(_matches(glob, path) for glob in globs):
        return ""
    for runner in [*runners, *(["node"] if node else [])]:
        if re.search(_COLLECTED.get(runner, _DOTTED), path):
            return ""
    return f"its tests never run: {' and '.join(runners) or 'node --test'} would not collect {path}"


def _other_configs(sources: Sources, text: str) -> list[str]:
    """Return the patterns of the configurations that scripts name with ``--config``."""
    found: list[str] = []
    for path in re.findall(r"--config[= ]+([\w./-]+)", text):
        other = sources.text(posixpath.normpath(path)) or ""
        for match in re.finditer(
            r"(?:testRegex|testMatch|include|spec)[\"']?\s*[:=]\s*(\[[^\]]*\]|\"[^\"]*\"|'[^']*')", other
        ):
            found += re.findall(r"[\"']([^\"']+)[\"']", match[1])
    return found


_GLOB = {
    "**/": "(?:.*/)?",
    "**": ".*",
    "*": "[^/]*",
    "{": "(?:",
    "}": ")",
    ",": "|",
    ".": r"\.",
    "?(": "(?:",
    "@(": "(?:",
}


def _matches(pattern: str, path: str) -> bool:
    """Whether a glob or a regular expression of a configuration fits a path."""
    if "\\" in pattern or pattern.endswith("$"):
        try:
            return re.search(pattern.replace("\\\\", "\\"), path) is not None
        except re.error:
            return True
    pattern = pattern.replace("<rootDir>/", "").removeprefix("./")
    regex = re.sub(r"\*\*/|\*\*|\*|[?@]\(|[{},.]", lambda match: _GLOB[match[0]], pattern)
    try:
        found = re.fullmatch(regex, path) is not None or re.search(rf"(?:^|/){regex}$", path) is not None
    except re.error:
        return True
    return found or ("*" not in pattern and path.startswith(pattern.rstrip("/") + "/"))

"""Checks in the sandbox do not find what an agent or another check left in its home or its caches."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import attrs
import psutil
import pytest

from gsd_core.hookspecs import gsd_sandbox
from gsd_core.model.agent import Allow, Permission, ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.run.commands import check, environment, run_inside
from gsd_core.run.private_home import INSTALLED, SHARED
from gsd_core.run.sandbox import Sandbox, choose_sandbox
from gsd_core.settings import RunSettings
from gsd_core.testing import make_hooks
from gsd_plugins import bubblewrap
from tests.planning.trees import make_project, plan_text
from tests.sandbox.box import git, require_sandbox

LIMIT = timedelta(seconds=60)
PLANT = """
set -e
site=$("$PYTHON" -m site --user-site)
mkdir -p "$site" ~/.config/git ~/.config/pip ~/.cache/pip
rm -f ~/.local/bin; mkdir -p ~/.local/bin
echo 'print("PLANTED usercustomize")' > "$site/usercustomize.py"
echo 'import sys; sys.stdout.write("PLANTED pth")' > "$site/evil.pth"
echo 'print("PLANTED module")' > "$site/planted_tool.py"
printf '#!/bin/sh\\necho PLANTED tool\\n' > ~/.local/bin/planted; chmod +x ~/.local/bin/planted
for file in .bashrc .bash_profile .profile .zshenv; do echo 'echo PLANTED shell' > ~/$file; done
printf '[alias]\\n\\tcheck = !echo PLANTED git\\n' > ~/.gitconfig
echo 'node-options=--require=PLANTED' > ~/.npmrc
echo PLANTED cache > ~/.cache/pip/kept
"""
LOOK = """
"$PYTHON" -c 'print("python ran")'; "$PYTHON" -c 'import planted_tool' 2>/dev/null
PATH="$HOME/.local/bin:$PATH" planted 2>/dev/null
bash -lic true 2>/dev/null; bash -ic true 2>/dev/null; git check 2>/dev/null
cat ~/.npmrc ~/.cache/pip/kept 2>/dev/null; echo left > ~/left; ls -A ~ | wc -l
"""


@attrs.frozen
class _Gate:
    """Allows everything."""

    sandbox: Sandbox
    step: str = "1/execute/01-01"
    mark: str = "run"

    async def decide(self, use: ToolUse) -> Permission:
        return Allow()


@pytest.fixture
def gate(project: Path, monkeypatch: pytest.MonkeyPatch) -> _Gate:
    require_sandbox()
    # Not in an environment, which has no user site.
    monkeypatch.setenv("PYTHON", str(Path(sys.base_prefix) / "bin" / "python3"))
    monkeypatch.setattr("gsd_core.run.commands.PASSED_ON", (*environment.__globals__["PASSED_ON"], "PYTHON"))
    hooks = make_hooks(bubblewrap=bubblewrap)
    assert hooks.plugins_of(gsd_sandbox)
    settings = RunSettings(
        sandbox="required", sandboxes=("bubblewrap",), sandbox_caches=False, checks_share_caches=False
    )
    return _Gate(asyncio.run(choose_sandbox(hooks, settings, project)))


async def act(gate: _Gate, tree: Path, script: str) -> str:
    """Run *script* as a process of an agent, and return what it printed."""
    async with gate.sandbox.around(tree) as inside:
        ran = await run_inside(inside, ("bash", "-c", script), environment("run"), LIMIT)
    assert ran.exit == 0, ran
    return ran.output


def run_checks(gate: _Gate, tree: Path, *commands: str) -> Sequence[CheckResult]:
    async def together() -> Sequence[CheckResult]:
        return await asyncio.gather(*(check(gate, command, tree, LIMIT) for command in commands))

    return asyncio.run(together())


def test_what_an_agent_leaves_in_its_home_does_not_reach_a_check(gate: _Gate, project: Path) -> None:
    asyncio.run(act(gate, project, PLANT))
    assert asyncio.run(act(gate, project, LOOK)).count("PLANTED") > 5  # it reaches the agent's own commands

    [first] = run_checks(gate, project, LOOK)
    [second] = run_checks(gate, project, LOOK)

    assert (first.exit, second.exit) == (0, 0)
    assert "PLANTED" not in first.output + second.output
    assert "python ran" in first.output
    # A check leaves nothing for the next one either.
    assert first.output == second.output


def test_a_check_that_somebody_ended_is_run_again(gate: _Gate, project: Path) -> None:
    nap = ["sleep", "3141592"]
    command = f"test -e again && exit 0; touch again; {' '.join(nap)}"

    async def ended() -> CheckResult:
        task = asyncio.create_task(check(gate, command, project, LIMIT))
        async with asyncio.timeout(30):
            while not (found := [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == nap]):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        found[0].kill()
        return await task

    assert asyncio.run(ended()).ok


CACHES = """
for name in $NAMES; do mkdir -p ~/$name; (echo own > ~/$name/own) 2>/dev/null; ls -A ~/$name; done
"""


@pytest.mark.parametrize("shared", [False, True], ids=["own caches", "shared caches"])
def test_a_check_has_the_caches_of_the_agent_only_if_the_user_wants_it(
    gate: _Gate, project: Path, user_home: Path, shared: bool
) -> None:
    gate = attrs.evolve(gate, sandbox=attrs.evolve(gate.sandbox, shares_caches=shared))
    # The last one is replaced by a link to what no process in the sandbox may see.
    names = f"NAMES='{' '.join(SHARED[:-1])}'"
    plant = f"{names}; for name in $NAMES; do mkdir -p ~/$name; echo x > ~/$name/planted; done"
    asyncio.run(act(gate, project, f"{plant}; rm -rf ~/{SHARED[-1]}; ln -s {user_home}/.ssh ~/{SHARED[-1]}"))

    [first] = run_checks(gate, project, f"NAMES='{' '.join(SHARED)}'; {CACHES}")
    [second] = run_checks(gate, project, f"{names}; {CACHES}")
    [installed] = run_checks(gate, project, f"NAMES='{' '.join(INSTALLED)}'; {CACHES}")
    left = asyncio.run(act(gate, project, f"{names}; for name in $NAMES; do ls ~/$name; done"))

    others = len(SHARED) - 1 - len(INSTALLED)
    if shared:
        assert second.output.split().count("planted") == len(SHARED) - 1
        assert left.split().count("own") == len(SHARED) - 1
    else:
        assert installed.output.split() == ["planted"] * len(INSTALLED)  # and read-only
        assert second.output.split().count("own") == others
        assert second.output.split().count("planted") == len(INSTALLED)
        assert {*left.split()} == {"planted"}
    assert (first.exit, first.output.split().count("own")) == (0, others + 1 + shared * len(INSTALLED))
    assert sorted(path.name for path in (user_home / ".ssh").iterdir()) == ["id_ed25519"]


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


@pytest.mark.slow
def test_a_wheel_that_an_agent_put_into_the_cache_of_pip_is_not_installed_by_a_check(
    gate: _Gate, project: Path
) -> None:
    wheel = """
        import zipfile
        def build_wheel(folder, config_settings=None, metadata_directory=None):
            with zipfile.ZipFile(f"{folder}/demo-1-py3-none-any.whl", "w") as wheel:
                wheel.writestr("demo.py", "print('honest')")
                about = "Metadata-Version: 2.1\\nName: demo\\nVersion: 1\\n"
                wheel.writestr("demo-1.dist-info/METADATA", about)
                tags = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
                wheel.writestr("demo-1.dist-info/WHEEL", tags)
                wheel.writestr("demo-1.dist-info/RECORD", "")
            return "demo-1-py3-none-any.whl"
    """
    write(
        project,
        {
            "demo-1/pyproject.toml": (
                '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            ),
            "demo-1/PKG-INFO": "Metadata-Version: 2.1\nName: demo\nVersion: 1\n",
            "demo-1/backend.py": textwrap.dedent(wheel),
            "poison.py": (
                "import pathlib, zipfile\n"
                "[wheel] = pathlib.Path.home().rglob('.cache/pip/wheels/**/*.whl')\n"
                "with zipfile.ZipFile(wheel) as z: kept = {n: z.read(n) for n in z.namelist()}\n"
                "kept['demo.py'] = b'print(\"PLANTED\")'\n"
                "with zipfile.ZipFile(wheel, 'w') as z: [z.writestr(n, d) for n, d in kept.items()]\n"
            ),
        },
    )
    subprocess.run(["tar", "czf", "demo-1.tar.gz", "demo-1"], cwd=project, check=True)
    install = (
        'rm -rf into; "$PYTHON" -m pip install -q --no-index --find-links . --target into demo '
        '&& PYTHONPATH=into "$PYTHON" -m demo'
    )
    asyncio.run(act(gate, project, f'{install} && "$PYTHON" poison.py'))
    assert "PLANTED" in asyncio.run(act(gate, project, install))

    [done] = run_checks(gate, project, install)

    assert (done.exit, done.output.splitlines()[-1]) == (0, "honest")


@pytest.mark.slow
def test_go_takes_the_modules_of_an_agent_if_they_are_what_the_project_names(
    gate: _Gate, project: Path
) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    version = project / "proxy" / "example.org" / "lib" / "@v"
    module = "module example.org/lib\n\ngo 1.19\n"
    write(version, {"v1.0.0.mod": module, "v1.0.0.info": '{"Version": "v1.0.0"}', "list": "v1.0.0\n"})
    with zipfile.ZipFile(version / "v1.0.0.zip", "w") as archive:
        archive.writestr("example.org/lib@v1.0.0/go.mod", module)
        archive.writestr(
            "example.org/lib@v1.0.0/lib.go", 'package lib\n\nfunc Name() string { return "honest" }\n'
        )
    write(
        project,
        {
            "go.mod": "module example.org/shop\n\ngo 1.19\n\nrequire example.org/lib v1.0.0\n",
            "main.go": ('package main\n\nimport "example.org/lib"\n\nfunc main() { println(lib.Name()) }\n'),
            "poison.py": (
                "import pathlib, zipfile\n"
                "[file] = pathlib.Path.home().glob('go/pkg/mod/cache/download/example.org/lib/@v/*.zip')\n"
                "with zipfile.ZipFile(file) as z: kept = {n: z.read(n) for n in z.namelist()}\n"
                "with zipfile.ZipFile(file, 'w') as z:\n"
                "    [z.writestr(n, d.replace(b'honest', b'PLANTED')) for n, d in kept.items()]\n"
            ),
        },
    )
    fetch = 'export GOPROXY="file://$PWD/proxy" GONOSUMDB="*" GOFLAGS="-mod=mod"; go mod tidy'
    asyncio.run(act(gate, project, f"{fetch} && go run ."))

    # Offline, in an empty module cache.
    [honest] = run_checks(gate, project, "go run .")
    asyncio.run(act(gate, project, f"chmod -R u+w ~/go; {sys.executable} poison.py"))
    [poisoned] = run_checks(gate, project, "go run . 2>&1")

    assert (honest.exit, honest.output.splitlines()[-1]) == (0, "honest")
    assert poisoned.exit == 1
    assert "checksum mismatch" in poisoned.output


WITH_EMPTY_CACHES = {
    "npm": "npm ci --offline --no-audit --no-fund && node --test",
    "cargo": "cargo test --offline --manifest-path crate/Cargo.toml",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", WITH_EMPTY_CACHES)
def test_a_check_with_empty_caches_does_everyday_work(
    gate: _Gate, project: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    # The home folder is another one here, in which rustup would find no toolchain.
    rustup = Path(pwd.getpwuid(os.getuid()).pw_dir, ".rustup")
    if rustup.is_dir():
        monkeypatch.setenv("RUSTUP_HOME", str(rustup))
    package = {
        "name": "shop",
        "version": "1.0.0",
        "lockfileVersion": 3,
        "packages": {
            "": {"name": "shop", "version": "1.0.0", "dependencies": {"lib": "file:lib"}},
            "lib": {"version": "1.0.0"},
            "node_modules/lib": {"resolved": "lib", "link": True},
        },
    }
    write(
        project,
        {
            "lib/package.json": '{"name": "lib", "version": "1.0.0"}',
            "lib/index.js": "module.exports = x => 2 * x;\n",
            "package.json": '{"name": "shop", "version": "1.0.0", "dependencies": {"lib": "file:lib"}}',
            "package-lock.json": json.dumps(package),
            "app.test.js": (
                "require('node:test')('x', () => require('node:assert').equal(require('lib')(2), 4));\n"
            ),
            "crate/Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
            "crate/src/lib.rs": "#[test]\nfn runs() {}\n",
        },
    )

    [done] = run_checks(gate, project, WITH_EMPTY_CACHES[program])

    assert done.exit == 0, done.output


MEET = """
set -e
test ! -e ~/name; echo $$ > ~/name
mktemp node_modules/here.XXXX
for n in $(seq 400); do test $(ls node_modules | grep -c here) = 2 && break; sleep 0.05; done
test $(cat ~/name) = $$
"""
CHECK = (
    '<tasks><task type="auto"><name>X</name><verify><automated>sh meet.sh</automated></verify></task></tasks>'
)


@pytest.mark.slow
def test_two_processes_that_run_checks_at_the_same_time_have_separate_homes(
    gate: _Gate, project: Path
) -> None:
    make_project(
        project,
        {
            "ROADMAP.md": "### Phase 1: A\n",
            "phases/01-a/01-01-PLAN.md": plan_text(body=CHECK),
            "phases/01-a/01-01-SUMMARY.md": "done",
        },
    )
    (project / "meet.sh").write_text(MEET)
    # Both checkouts are linked to it.
    (project / ".gitignore").write_text("node_modules\n")
    (project / "node_modules").mkdir()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "plan")
    command = (sys.executable, "-m", "gsd_core", "gaps", "1", "--run-checks", "--json")

    both = [
        subprocess.Popen(command, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]

    shown = [json.loads(process.communicate(timeout=100)[0]) for process in both]
    assert [gap for found in shown for gap in found["gaps"] if gap["found_by"] == "checks"] == []

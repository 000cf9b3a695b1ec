"""Which sandbox a run uses, and what runs in it: plan checks, commit hooks, agents. With real processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gsd_core.errors import NoSandbox, Permanent, PluginError, PluginRefused
from gsd_core.hookspecs import gsd_permit_tool, gsd_sandbox
from gsd_core.model.agent import AgentHost, AgentResult, AgentTask, Allow, Permission, ToolUse
from gsd_core.model.checks import CheckResult
from gsd_core.model.sandbox import ConfinedProcess, SandboxedCommand, SandboxUnavailable
from gsd_core.run.commands import check
from gsd_core.run.sandbox import Sandbox, choose_sandbox, warning_about
from gsd_core.run.start import run_project
from gsd_core.settings import RunSettings
from gsd_core.testing import make_hooks
from gsd_plugins import bubblewrap
from tests.run import harness as h
from tests.sandbox.box import require_sandbox

LIMIT = timedelta(seconds=60)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a commit, in the home folder of a user with a secret."""
    home = tmp_path / "ada"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id").write_text("PRIVATE-KEY")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("SERVICE_TOKEN", "TOKEN-OF-A-SERVICE")
    root = h.repository(home / "project")
    (root / "app.py").write_text("x = 1\n")
    (root / ".planning").mkdir()
    (root / ".planning" / "ROADMAP.md").write_text("# Roadmap\n")
    h.git(root, "add", "-A")
    h.git(root, "commit", "-qm", "first")
    return root


def plugin(answer: Callable[[ConfinedProcess], Any]) -> object:
    async def confine(process: ConfinedProcess) -> SandboxedCommand | SandboxUnavailable | None:
        result: SandboxedCommand | SandboxUnavailable | None = answer(process)
        return result

    return h.plugin(gsd_sandbox, confine)


def through(*prefix: str) -> object:
    """Return a sandbox that starts processes through the program *prefix*."""

    def answer(process: ConfinedProcess) -> SandboxedCommand:
        return SandboxedCommand(command=(*prefix, *process.command), environment=process.environment)

    return plugin(answer)


MISSING = plugin(lambda _: SandboxUnavailable(reason="no box here", fix="install a box"))
ELSEWHERE = plugin(lambda _: None)
WORKS = through("/usr/bin/env")
FAILS = through("/bin/sh", "-c", "echo no namespaces >&2; exit 3")


def choose(root: Path, used_before: str = "", sandbox: Any = "auto", **plugins: object) -> Sandbox:
    settings = RunSettings(sandbox=sandbox, sandboxes=tuple(plugins))
    return asyncio.run(choose_sandbox(make_hooks(**plugins), settings, root, used_before=used_before))


def test_the_first_sandbox_that_starts_a_program_is_used(root: Path) -> None:
    assert choose(root, a=MISSING, b=ELSEWHERE, c=FAILS, d=WORKS).name == "d"


def test_without_one_the_reasons_and_fixes_are_said(root: Path) -> None:
    found = choose(root, a=MISSING, b=ELSEWHERE, c=FAILS)

    assert found.name == ""
    assert "a: no box here" in warning_about(found)
    assert "exit code 3: no namespaces" in warning_about(found)
    assert "install a box" in warning_about(found)
    assert warning_about(choose(root, d=WORKS)) == ""


def test_a_sandbox_that_fails_only_in_this_project_is_not_left_out(root: Path) -> None:
    """Something in the project may be the reason, and must not turn the sandbox off."""

    def answer(process: ConfinedProcess) -> SandboxedCommand:
        command = ("false",) if process.cwd == root else ("true",)
        return SandboxedCommand(command=command, environment=process.environment)

    with pytest.raises(Permanent, match="sandbox a works, but not for this project"):
        choose(root, a=plugin(answer))


def test_a_start_that_fails_once_is_repeated(root: Path) -> None:
    answers = iter(["false", "true"])
    chosen = choose(root, a=plugin(lambda _: SandboxedCommand(command=(next(answers),), environment={})))

    assert chosen.name == "a"


@pytest.mark.parametrize(("wanted", "used"), [("required", ""), ("required", "d"), ("auto", "d")])
def test_a_run_that_needs_one_does_not_start_without(root: Path, wanted: str, used: str) -> None:
    with pytest.raises(NoSandbox, match="no box here") as caught:
        choose(root, used, wanted, a=MISSING)

    assert "install a box" in caught.value.hint
    assert "--sandbox off" in caught.value.hint


def test_off_starts_nothing_and_continues_a_run_that_had_one(root: Path) -> None:
    broken = plugin(lambda _: pytest.fail("it was asked"))

    assert choose(root, "d", "off", a=broken).name == ""


def test_a_sandbox_that_stops_working_starts_nothing(root: Path) -> None:
    answers = iter([SandboxedCommand(command=("true",), environment={}), SandboxUnavailable(reason="gone")])
    chosen = choose(root, a=plugin(lambda _: next(answers)))

    with pytest.raises(PluginError, match=r"'a' failed in gsd_sandbox: cannot start '/bin/bash': gone"):
        asyncio.run(check(Gate(chosen), "touch started", root, LIMIT))

    assert not (root / "started").exists()


def test_a_check_that_the_sandbox_cannot_start_any_more_has_not_failed(root: Path) -> None:
    broken = root.parent / "broken"
    script = f'[ ! -e {broken} ] || {{ echo no namespaces left >&2; exit 1; }}; exec "$@"'
    gate = Gate(choose(root, a=through("/bin/sh", "-c", script, "sh")))
    assert asyncio.run(check(gate, "exit 5", root, LIMIT)).exit == 5
    broken.touch()

    with pytest.raises(PluginRefused, match="starts nothing any more: no namespaces left"):
        asyncio.run(check(gate, "true", root, LIMIT))


# With the real sandbox


class Gate:
    """Allows everything, in a sandbox."""

    step = "1/verify"
    mark = "r-test"

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.uses: list[ToolUse] = []

    async def decide(self, use: ToolUse) -> Permission:
        """Allow *use*."""
        self.uses.append(use)
        return Allow()


def confined(root: Path, command: str) -> CheckResult:
    require_sandbox()
    return asyncio.run(check(Gate(choose(root, bubblewrap=bubblewrap)), command, root, LIMIT))


def test_a_check_works_in_the_project_and_sees_no_secrets(root: Path) -> None:
    home = root.parent
    script = f"echo new > made; cat {home}/.ssh/id ~/.ssh/id; env; ls -a {home}; git log --format=%s"
    found = confined(root, script)

    assert (found.exit, (root / "made").read_text()) == (0, "new\n")
    assert "first" in found.output
    assert "PRIVATE-KEY" not in found.output
    assert "TOKEN-OF-A-SERVICE" not in found.output
    assert ".ssh" not in found.output.splitlines()


@pytest.mark.parametrize(
    "attempt",
    [
        "echo x > {home}/outside",
        "echo x > .planning/ROADMAP.md",
        "mv .planning elsewhere",
        "git commit -q --allow-empty -m forged && git update-ref refs/heads/other HEAD",
        "git config core.hooksPath /nowhere",
        "printf '#!/bin/sh' > .git/hooks/pre-commit",
    ],
)
def test_a_check_changes_nothing_else(root: Path, attempt: str) -> None:
    def state() -> Mapping[str, str]:
        files = [path for path in root.parent.rglob("*") if path.is_file() and ".cache" not in path.parts]
        return {str(path): path.read_text("utf-8", "replace") for path in files}

    before = state()
    # Some of it succeeds inside, where it changes a copy.
    confined(root, attempt.format(home=root.parent))

    assert state() == before


@pytest.mark.slow
def test_nothing_of_a_check_outlives_it(root: Path) -> None:
    confined(
        root, "setsid sh -c 'while :; do date > alive; sleep 0.05; done' & until test -e alive; do :; done"
    )
    (root / "alive").unlink(missing_ok=True)
    time.sleep(0.3)

    assert not (root / "alive").exists()


# The repository's hooks


def hook(root: Path, name: str, text: str) -> None:
    path = root / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def run_confined(root: Path, *, elsewhere: bool = False, **more: Any) -> Any:
    """Run one phase with the fake agent, in the real sandbox; return its end.

    Plans are executed in the project's own folder, or *elsewhere*, in work trees.
    """
    require_sandbox()
    more = {"run": {} if elsewhere else {"workspace": ["inplace"]}, **more}
    agent = more.pop("agent", None) or h.one_phase()
    shutil.rmtree(root / ".planning")
    h.git(root, "-c", "core.hooksPath=/dev/null", "commit", "-qam", "no plan")
    return h.do(h.request(root, agent, given=h.idea(), bubblewrap=bubblewrap, **more))


@pytest.mark.slow
def test_hooks_run_confined_in_their_order_and_format_what_is_committed(root: Path) -> None:
    (root / ".git" / "info" / "exclude").write_text("seen\n")
    home = root.parent
    say = f'echo "$(basename $0) $(basename "$1") $2" >> seen; env >> seen; cat {home}/.ssh/id >> seen || :'
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"):
        hook(root, name, say)
    hook(
        root,
        "pre-commit",
        f"{say}\nfor f in $(git diff --cached --name-only -- '*.py'); do\n"
        "grep -q formatted $f || echo '# formatted' >> $f; git add $f; done\n"
        "echo made > generated.txt; git add generated.txt",
    )
    hook(root, "commit-msg", f'{say}\necho "Reviewed-by: Hook" >> "$1"')

    end = run_confined(root)

    assert end.exit == 0, end.reason
    seen = (root / "seen").read_text()
    order = [line.split()[0] for line in seen.splitlines() if line.startswith(("pre", "commit-", "post"))]
    assert order[:4] == ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]
    assert "prepare-commit-msg COMMIT_EDITMSG message" in seen
    assert "PRIVATE-KEY" not in seen
    assert "TOKEN-OF-A-SERVICE" not in seen
    commits = [fact.data["commit"] for fact in h.facts(root, "task.committed")]
    assert all("Reviewed-by: Hook" in h.git(root, "log", "-1", "--format=%B", one) for one in commits)
    code = h.git(root, "diff", "--name-only", f"{commits[0]}~", commits[0]).split()
    assert "generated.txt" in code
    assert all("# formatted" in h.git(root, "show", f"{commits[0]}:{p}") for p in code if p.endswith(".py"))
    assert h.git(root, "status", "--porcelain") == ""
    assert len(commits) == len(h.trailed(root)) - len(h.facts(root, "step.completed"))


PLANT = """
set -e
mkdir -p ~/.config/husky; rm -rf ~/.local/bin; mkdir -p ~/.local/bin
echo 'exit 0' | tee ~/.huskyrc > ~/.config/husky/init.sh
printf '[alias]\\n\\tcheck = !echo PLANTED git\\n' > ~/.gitconfig
printf '#!/bin/sh\\necho PLANTED tool\\n' > ~/.local/bin/planted; chmod +x ~/.local/bin/planted
echo PLANTED > ~/.npmrc
"""
HOOK = """
set +e
{ echo ran; cat ~/.npmrc; git check; PATH="$HOME/.local/bin:$PATH" planted; } >> seen 2>/dev/null
echo 'style is wrong' >&2
exit 1
"""


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_hook_refuses_whatever_an_agent_left_in_its_home_and_the_agent_is_told(
    root: Path, elsewhere: bool
) -> None:
    """With the real husky, which runs a file in the home before each hook: it could skip all of them."""
    husky = Path(os.environ.get("GSD_PEER_DIR", "/nowhere"), "tools", "node_modules", "husky")
    if not husky.is_dir():
        reason = "no husky: see tests/peer/install.sh"
        pytest.fail(reason) if os.environ.get("GSD_REQUIRE_SANDBOX") == "1" else pytest.skip(reason)
    subprocess.run(["node", husky / "bin.js"], cwd=root, check=True)
    (root / ".husky" / "pre-commit").write_text(HOOK)
    (root / ".git" / "info" / "exclude").write_text("seen\n")
    h.git(root, "add", "-A")
    h.git(root, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "husky")
    planted: list[int | None] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not planted:
            variables = {"PATH": os.environ["PATH"], **host.environment}
            confined = await host.confine(("/bin/sh", "-c", PLANT), variables)
            process = await asyncio.create_subprocess_exec(
                *confined.command, cwd=task.tree, env=dict(confined.environment)
            )
            planted.append(await process.wait())
        return None

    end = run_confined(root, agent=h.Watched(h.one_phase(), before), elsewhere=elsewhere)

    assert (end.exit, planted) == (1, [0]), end
    assert "style is wrong" in end.reason
    *_, tree = [Path(line.split()[0]) for line in h.git(root, "worktree", "list").splitlines()]
    assert (tree != root) == elsewhere
    assert {*(tree / "seen").read_text().split()} == {"ran"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["COMMIT_EDITMSG", "index"])
def test_a_hook_that_puts_a_folder_in_the_way_refuses_the_commit(root: Path, name: str) -> None:
    """The message is written after pre-commit; the index is made again after a hook that changes files."""
    change = "for f in $(git diff --cached --name-only); do echo '# changed' >> $f; done"
    replace = f"cd .git && rm -f {name} && mkdir {name} && touch {name}/x && cd .."
    hook(root, "pre-commit", f"{change}; {replace}; exit 1" if name == "index" else replace)

    end = run_confined(root)

    assert end.exit == 1, end
    assert name in end.reason
    assert "bug in gsd" not in end.reason


# Whose change is it?


@pytest.mark.slow
def test_what_a_person_changes_during_a_confined_call_stays(root: Path) -> None:
    notes: list[str] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role != "executor" or notes:
            return None
        confined = await host.confine(
            ("/bin/sh", "-c", "git tag forged; echo x > .claude/x"), dict(os.environ)
        )
        process = await asyncio.create_subprocess_exec(
            *confined.command, cwd=task.tree, env=dict(confined.environment)
        )
        await process.wait()
        # A person in another terminal, at the same time.
        (root / ".planning" / "PROJECT.md").write_text("# Mine\n")
        h.git(root, "tag", "mine")
        h.git(root, "config", "alias.mine", "status")
        notes.append(confined.sandbox)
        return None

    end = run_confined(root, agent=h.Watched(h.one_phase(), before))

    assert (end.exit, notes) == (0, ["bubblewrap"]), end
    assert h.facts(root, "guard.found") == []
    assert {p for f in h.facts(root, "guard.accepted") for p in f.data["paths"]} >= {".planning/PROJECT.md"}
    assert (root / ".planning" / "PROJECT.md").read_text() == "# Mine\n"
    assert h.git(root, "tag").split() == ["mine"]
    assert h.git(root, "config", "alias.mine") == "status\n"


@pytest.mark.slow
def test_an_agent_that_is_not_confined_is_guarded_in_a_confined_run(root: Path) -> None:
    forged: list[str] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not forged:
            forged.append("")
            (root / ".planning" / "ROADMAP.md").write_text("all done\n")
        return None

    run_confined(root, agent=h.Watched(h.one_phase(), before))

    assert [fact.data["what"] for fact in h.facts(root, "guard.found")] == [
        [".planning/ROADMAP.md was changed"]
    ]


@pytest.mark.slow
def test_what_an_agent_ticks_in_the_project_from_a_work_tree_is_verified_all_the_same(root: Path) -> None:
    forged: list[str] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor" and not forged:
            forged.append("")
            roadmap = root / ".planning" / "ROADMAP.md"
            roadmap.write_text(roadmap.read_text().replace("- [ ] **Phase", "- [x] **Phase"))
            [folder] = (root / ".planning" / "phases").glob("01-*")
            (folder / "01-VERIFICATION.md").write_text("---\nstatus: passed\n---\n")
        return None

    agent = h.Watched(h.one_phase(), before)
    end = run_confined(root, agent=agent, elsewhere=True)

    assert (end.outcome, end.exit) == ("done", 0), end
    assert len(agent.of("verifier")) == 1
    [verification] = (root / ".planning" / "phases").glob("01-*/01-VERIFICATION.md")
    assert "truths" in verification.read_text().lower()


@pytest.mark.slow
def test_uses_of_an_agent_count_as_confined_once_its_processes_are(root: Path) -> None:
    seen: list[bool] = []

    async def before(task: AgentTask, host: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            use = ToolUse(step=task.step, name="Read", input={}, asked_by="agent", tree=task.tree)
            await host.permit(use)
            await host.confine(("true",), {})
            await host.permit(use)
        return None

    async def policy(use: ToolUse) -> Permission | None:
        if use.name == "Read":
            seen.append(use.confined)
        return Allow()

    run_confined(root, agent=h.Watched(h.one_phase(), before), zz_policy=h.plugin(gsd_permit_tool, policy))

    assert seen[:2] == [False, True]


@pytest.mark.slow
def test_a_run_records_its_sandbox_and_does_not_resume_without_it(root: Path) -> None:
    run_confined(root)

    assert [f.data["sandbox"]["name"] for f in h.facts(root, "run.opened")] == ["bubblewrap"]
    count = len(h.facts(root))
    with pytest.raises(NoSandbox, match="the run used 'bubblewrap'"):
        asyncio.run(run_project(h.request(root, h.one_phase(), run={"sandboxes": ["gone"]}, gone=MISSING)))
    assert len(h.facts(root)) == count


@pytest.mark.slow
def test_what_a_person_makes_in_the_project_stays_while_a_confined_agent_works_beside_it(root: Path) -> None:
    made = {".envrc": "export A=1\n", ".mcp.json": "{}\n", "gsd.toml": "# mine\n"}

    async def beside(task: AgentTask, _: AgentHost) -> AgentResult | None:
        if task.role == "executor":
            assert task.tree != root
            for name, text in made.items():
                (root / name).write_text(text)
        return None

    end = run_confined(root, elsewhere=True, agent=h.Watched(h.one_phase(), beside))

    assert end.exit == 0, end
    assert h.facts(root, "guard.found", "attempt.failed") == []
    assert {name: (root / name).read_text() for name in made} == made

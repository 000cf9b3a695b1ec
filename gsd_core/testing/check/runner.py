"""Run a plugin in a separate process, with an empty project and an empty home folder.

:func:`run_plugin` starts the process, :func:`main` is what runs in it. A plugin that hangs, exits or
leaves files behind does no harm there, and the findings up to that point are still reported.
"""

from __future__ import annotations

import importlib
import json
import os
import site
import subprocess
import sys
import tempfile
import time
from operator import attrgetter
from pathlib import Path
from typing import Any

import attrs

from gsd_core.errors import ConfigError
from gsd_core.plugins.importing import Candidate, import_candidate
from gsd_core.plugins.validation import hooks_of
from gsd_core.testing.registry import make_manager
from gsd_core.testing.samples import make_repository

from .rules import Findings
from .side_effects import AuditHook, captured_stdout, process_state
from .target import Target

TIMEOUT = 180.0
"""Seconds for the plugin's process."""
MAX_IMPORT_SECONDS = 0.5
MAX_IMPORT_WAIT = 2.0
MAX_PAUSE = 15.0
"""Seconds for which the plugin may keep the process from going on: longer, and it blocks the event loop."""
HEAVY_LIBRARIES = frozenset(
    [
        *("aiohttp", "anthropic", "apprise", "boto3", "claude_agent_sdk", "cryptography", "django"),
        *("fastapi", "flask", "google", "httpx", "mcp", "numpy", "openai", "pandas", "pydantic"),
        *("requests", "scipy", "sqlalchemy", "starlette", "temporalio", "tensorflow", "torch"),
        *("transformers", "uvicorn"),
    ]
)
# Not `python -m`: the package imports this module, and Python warns about a module that is run twice.
_COMMAND = (sys.executable, "-c", "from gsd_core.testing.check.runner import main; main()")


@attrs.frozen(kw_only=True)
class Request:
    """What the process is to check.

    *file*, *module* or its *attribute* is the plugin, *findings* the file for the results.
    """

    name: str
    module: str
    attribute: str
    file: str
    path: str
    project: str
    home: str
    findings: str
    commands: list[str]
    run_agent: bool
    settings: dict[str, Any] = attrs.field(factory=dict[str, Any])


def run_plugin(target: Target, commands: list[str], *, run_agent: bool) -> Findings:
    """Run *target* in a separate process, for a limited time; return the findings."""
    with tempfile.TemporaryDirectory(prefix="gsd-check-") as name:
        base = Path(name)
        project, home, saved = base / "project", base / "home", base / "findings.json"
        home.mkdir()
        make_repository(project, {"README.md": "# Example\n"})
        Findings(path=saved).begin("start")
        request = Request(
            name=target.name,
            module=target.module,
            attribute=target.attribute,
            file=str(target.file or ""),
            path=str(target.path or ""),
            project=str(project),
            home=str(home),
            findings=str(saved),
            commands=commands,
            run_agent=run_agent,
            settings=dict(target.check_settings),
        )
        rule, how = _run_process(request)
        findings = Findings.load(saved)
    if findings.current != "end":
        # It ended too early: the part that was running broke a rule.
        rule = findings.current if findings.current in ("imports", "fits") else rule
        findings.add(rule, [f"{findings.current}: {how}"])
    return findings


def _run_process(request: Request) -> tuple[str, str]:
    """Run :func:`main` in another process; return the rule that its end breaks, and how it ended."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GSD_")}
    environment = {
        **own,
        "HOME": request.home,
        # With another HOME, Python would no longer find what `pip install --user` installed.
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    try:
        done = subprocess.run(
            _COMMAND,
            input=json.dumps(attrs.asdict(request)),
            text=True,
            capture_output=True,
            cwd=request.project,
            env=environment,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "prompt", f"did not finish within {TIMEOUT:g} s"
    last_line = done.stderr.strip().rpartition("\n")[2][:300]
    how = f"the process exited with code {done.returncode}"
    return "names-errors", f"{how}: {last_line}" if last_line else how


def main() -> None:
    """Check the plugin that standard input describes, in this process."""
    request = Request(**json.loads(sys.stdin.read()))
    findings = Findings(path=Path(request.findings))
    if request.path:
        sys.path.insert(0, request.path)
    state = process_state()
    plugin = _import_plugin(request, findings)
    if plugin is not None:
        findings.begin("fits")
        try:
            manager = make_manager(**{request.name: plugin})
        except ConfigError as error:
            findings.add("fits", [str(error)])
        else:
            from .invocation import call_hooks

            findings.add("fits")
            findings.hooks = list(hooks_of(manager, plugin))
            call_hooks(plugin, request, findings, state)
    findings.begin("end")
    sys.stdout.flush()
    sys.stderr.flush()
    # Do not wait for threads and exit handlers that the plugin left behind.
    os._exit(0)


def _import_plugin(request: Request, findings: Findings) -> object:
    """Import the plugin and record the rules about importing; return ``None`` if that fails."""
    findings.begin("imports")
    audit, loaded, start = AuditHook(), set(sys.modules), time.process_time()
    began = time.monotonic()
    sys.addaudithook(audit)
    plugin: object
    try:
        with captured_stdout() as printed, audit.listen():
            if request.file:
                path = Path(request.file)
                candidate = Candidate(name=request.name, source="file", target=path)
                plugin = import_candidate(candidate, path.read_bytes())
            else:
                plugin = importlib.import_module(request.module)
                if request.attribute:
                    plugin = attrgetter(request.attribute)(plugin)
    except BaseException as error:
        findings.add("imports", [f"{type(error).__name__}: {error}"])
        return None
    seconds = time.process_time() - start
    findings.add("imports")
    # A module that waits uses no CPU time; a busy machine makes every import last longer.
    waited = time.monotonic() - began
    findings.seconds["import"] = waited
    slow = [f"took {seconds:.2f} s"] if seconds > MAX_IMPORT_SECONDS else []
    slow += [f"took {waited:.1f} s, most of it waiting"] if waited > MAX_IMPORT_WAIT + 10 * seconds else []
    findings.add("cheap-import", slow)
    heavy = sorted({name.split(".")[0] for name in set(sys.modules) - loaded} & HEAVY_LIBRARIES)
    findings.add("light-import", [f"loads {name}" for name in heavy])
    findings.add("quiet-import", [*audit.events[:5], *(f"printed {text!r}" for text in printed)])
    return plugin

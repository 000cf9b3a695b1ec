"""Plugins that each break one rule, as source text; ``HEAD`` goes before each of them."""

from __future__ import annotations

HEAD = '''"""A plugin that breaks a rule."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from attrs import frozen

from gsd_core import Allow, Answer, ConfigValue, Event, Finding, Gap, Inquiry, Notice, PhaseView, ProjectInfo
from gsd_core import Permission, StepHost, StepRequest, StepResult, ToolUse, implements, setting
from gsd_core.hookspecs import gsd_answer, gsd_cli_commands, gsd_doctor, gsd_execute_step, gsd_find_gaps
from gsd_core.hookspecs import gsd_notify, gsd_on_event, gsd_permit_tool, gsd_settings, gsd_write_config

'''

NOTIFY = '''

@implements(gsd_notify)
async def notify(notice: Notice) -> None:
    """Do nothing."""
'''


def notifying(*lines: str) -> str:
    """Return a notifier whose body is *lines*."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"{NOTIFY}{body}\n"


BAD: dict[str, str] = {
    "imports": "import no_such_module_here\n" + NOTIFY,
    "fits": "async def gsd_notfy(notice: Notice) -> None:\n    '''Misspelled.'''\n",
    "cheap-import": "while time.process_time() < 2:\n    pass\n" + NOTIFY,
    "light-import": "import claude_agent_sdk\n" + NOTIFY,
    "quiet-import": "Path('litter.txt').write_text('x')\n" + NOTIFY,
    "public-imports": "from gsd_core.run.loop import run\n" + NOTIFY,
    "documented": NOTIFY.replace('    """Do nothing."""\n', "    return None\n"),
    "typed": NOTIFY.replace("notice: Notice", "notice"),
    "settings": (
        "@frozen\nclass Loose:\n    '''No default.'''\n\n    path: str\n\n\n"
        "@implements(gsd_settings)\ndef settings() -> Iterable[type]:\n    '''Settings.'''\n    yield Loose\n"
    ),
    "contributes": (
        "@implements(gsd_cli_commands)\ndef commands() -> Iterable[click.Command]:\n    '''Commands.'''\n"
        "    yield click.Command('run', help='ours')\n"
    ),
    "returns": (
        "@implements(gsd_permit_tool)\nasync def permit(use: ToolUse) -> Permission | None:\n"
        "    '''Allow.'''\n    return 'yes'\n"
    ),
    "names-errors": notifying("raise ValueError('no one there')"),
    "prompt": (
        "@implements(gsd_permit_tool)\nasync def permit(use: ToolUse) -> Permission | None:\n"
        "    '''Think.'''\n    if use.name == 'WebFetch':\n        await asyncio.sleep(3600)\n"
    ),
    "cancels": notifying(
        "while True:",
        "    try:",
        "        await asyncio.sleep(3600)",
        "    except asyncio.CancelledError:",
        "        pass",
    ),
    "leaves-nothing": notifying("subprocess.Popen(['sleep', '30'])"),
    "no-state": "seen: list[str] = []\n" + notifying("seen.append(notice.key)"),
    "writes-nothing": notifying("await asyncio.to_thread(Path('notices.log').write_text, notice.title)"),
    "does-not-block": notifying("time.sleep(0.6)"),
    "same-twice": (
        "@implements(gsd_find_gaps)\nasync def look(phase: PhaseView) -> Sequence[Gap]:\n    '''Count.'''\n"
        "    return [Gap(truth=str(time.time_ns()), reason='now')]\n"
    ),
    "says-nothing": notifying("print(notice.title)"),
    "pickles": (
        "class Odd(Allow):\n    '''Odd.'''\n\n"
        "    def __reduce__(self) -> str:\n        return 'nowhere'\n\n\n"
        "@implements(gsd_permit_tool)\nasync def permit(use: ToolUse) -> Permission | None:\n"
        "    '''Allow.'''\n    return Odd()\n"
    ),
    "hands-off": notifying("os.environ['GSD_SEEN'] = notice.key"),
}
"""The rest of a single-file plugin, by the rule that it breaks."""

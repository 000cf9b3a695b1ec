"""Call every hook of a plugin: to its end, again, twice at once and cancelled; note what does not hold."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import frozen

from gsd_core import hookspecs
from gsd_core.errors import PluginError
from gsd_core.plugins.call_group import Outcome
from gsd_core.testing.conformance_runs import Trying

from .occasions import Occasion, occasions, prepare, same
from .offers import try_offers
from .trial import Notes
from .watch import changed, files_of, left_behind, module_state, printed, surroundings

BLOCKED = 0.4
_ASYNC_RULES = ("returns", "names-errors", "prompt", "cancels", "does-not-block", "same-twice", "pickles")
_COSTLY = "an agent may cost money or need the network; --run-agent tries it"


def try_hooks(
    plugin: object, given: Mapping[str, Any], notes: Notes, *, surroundings_before: Mapping[str, str]
) -> None:
    """Try every hook, then look at what has changed."""
    tree, home = Path(given["tree"]), Path(given["home"])
    prepare(tree)
    state, files = module_state(given["module"] or _own_name(plugin)), files_of(tree, home)
    with printed() as said:
        for hook in notes.hooks:
            notes.enter(hook)
            with _files_watched(hook, notes, (tree, home), files):
                _try(plugin, hook, tree, given, notes)
    notes.enter("end")
    notes.look("says-nothing", [f"printed {text!r}" for text in said])
    after = module_state(given["module"] or _own_name(plugin))
    notes.look("no-state", [f"{name} has changed" for name in changed(state, after)])
    notes.look("hands-off", [f"{name} changed" for name in changed(surroundings_before, surroundings())])
    notes.look("leaves-nothing", left_behind())


def _own_name(plugin: object) -> str:
    name: str = getattr(plugin, "__name__", "")
    return name


@contextmanager
def _files_watched(
    hook: str, notes: Notes, folders: tuple[Path, ...], files: dict[str, str]
) -> Generator[None]:
    yield
    now = files_of(*folders)
    if hook == "gsd_doctor":  # it asks programs, which keep files of their own at home
        files.update({path: text for path, text in now.items() if Path(path).is_relative_to(folders[1])})
    touched = sorted(path for path in {*files, *now} if files.get(path) != now.get(path))
    notes.look("writes-nothing", [f"{hook} changed {Path(path).name}" for path in touched[:3]])
    files.clear()
    files.update(now)


def _try(plugin: object, hook: str, tree: Path, given: Mapping[str, Any], notes: Notes) -> None:
    spec = getattr(hookspecs, hook)
    if not inspect.iscoroutinefunction(spec):
        try_offers(plugin, hook, tree, tuple(given["verbs"]), notes)
        return
    if hook == "gsd_run_agent" and not given["run_agent"]:
        for rule in _ASYNC_RULES:
            notes.skipped.setdefault(rule, _COSTLY)
        return
    for occasion in occasions(hook, tree):
        call = Call(plugin=plugin, hook=hook, spec=spec, occasion=occasion, notes=notes)
        if not call.judge():
            return


@frozen(kw_only=True)
class Call:
    """One occasion of one hook, to be judged."""

    plugin: object
    hook: str
    spec: Callable[..., Any]
    occasion: Occasion
    notes: Notes

    def judge(self) -> bool:
        """Call the hook in every way; note what does not hold. A hook that is late is not tried on."""
        trying = Trying(plugin=self.plugin, spec=self.spec, limit=self.occasion.limit)
        first, took, gap = self._run(trying)
        in_time = self._outcome(first)
        if in_time:
            self._compare(trying, first, took, gap)
            self._told("leaves-nothing", lambda: trying.twice(*self.occasion.args()))
        self._told("cancels", lambda: trying.cancelled(*self.occasion.args()))
        return in_time

    def _compare(self, trying: Trying, first: Outcome[Any], took: float, gap: float) -> None:
        again, _, other_gap = self._run(trying)
        late = first.value is None and first.error is None and took > 1.0
        self._look("prompt", [f"took {took:.1f} s to decline"] if late else [])
        blocked = min(gap, other_gap)
        self._look("does-not-block", [f"held up the loop for {blocked:.1f} s"] if blocked > BLOCKED else [])
        differs = not first.error and not again.error and self._same(first) != self._same(again)
        self._look("same-twice", ["says something else the second time"] if differs else [])

    def _run(self, trying: Trying) -> tuple[Outcome[Any], float, float]:
        try:
            return trying.timed(*self.occasion.args())
        except AssertionError as error:
            self._look("leaves-nothing", [str(error)])
            return Outcome(plugin="tried"), 0.0, 0.0

    def _same(self, outcome: Outcome[Any]) -> Any:
        return same(self.hook, outcome.value) if outcome.value is not None else None

    def _told(self, rule: str, run: Callable[[], None]) -> None:
        """Note what the conformance kit says; what *judge* says of outcomes need not be said again."""
        try:
            run()
        except AssertionError as error:
            text = str(error)
            about = rule if "stop within" in text or "left tasks" in text else ""
            self._look(rule, [text] if about else [])
        else:
            self._look(rule)

    def _outcome(self, outcome: Outcome[Any]) -> bool:
        """Note what is wrong with an outcome; return whether it came in time."""
        rule, text = _fault(outcome, self.occasion)
        for name in ("returns", "names-errors", "prompt", "cancels"):
            self._look(name, [text] if name == rule else [])
        self._look("pickles", [] if _pickles(outcome, self.hook) else ["what it gives cannot be pickled"])
        return rule not in ("prompt", "cancels")

    def _look(self, rule: str, problems: list[str] | None = None) -> None:
        known = {text for name, text in self.notes.problems if name == rule}
        told = [f"{self.hook}: {problem}" for problem in problems or []]
        self.notes.look(rule, [text for text in told if text not in known])


def _fault(outcome: Outcome[Any], occasion: Occasion) -> tuple[str, str]:
    """Return the rule that an outcome breaks, and what to say; empty if none."""
    error = outcome.error
    if not isinstance(error, PluginError):
        return "", ""
    if "ran out of time" in error.cause_text:
        return ("", "") if occasion.waits else ("prompt", f"no answer within {_seconds(occasion.limit)}")
    if "ignores its cancellation" in error.cause_text:
        return "cancels", "goes on when it is cancelled"
    if error.__cause__ is None and error.cause_text.startswith("returned "):
        return "returns", error.cause_text
    return "names-errors", error.cause_text


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"


def _pickles(outcome: Outcome[Any], hook: str) -> bool:
    """Whether value and error survive; a workspace is a context manager, which nobody keeps."""
    if hook == "gsd_workspace" and not outcome.error:
        return True
    given: Any = outcome.error or outcome.value
    try:
        copy = pickle.loads(pickle.dumps(given))
    except Exception:
        return False
    return type(copy) is type(given) and str(copy) == str(given)

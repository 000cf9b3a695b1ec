"""The rules: what has to hold, why, and how to mend it."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Rule:
    """One rule; its *id* never changes its meaning."""

    id: str
    what: str
    why: str
    mend: str


def _rule(rule_id: str, what: str, why: str, mend: str) -> Rule:
    return Rule(id=rule_id, what=what, why=why, mend=mend)


RULES: tuple[Rule, ...] = (
    _rule(
        "imports", "it can be imported",
        "a plugin that does not load is left out of every run",
        "run `python -c 'import …'` and mend what it says",
    ),
    _rule(
        "fits", "it implements hooks that there are, with their arguments",
        "a misspelt hook is never called, and a plugin that does not fit is not loaded",
        "mark functions with @implements(gsd_…) and run mypy or pyright, which compare the signatures",
    ),
    _rule(
        "cheap-import", "importing it takes less than 0.5 s of processor time",
        "every command of gsd imports every installed plugin",
        "import what is expensive inside the function that needs it",
    ),
    _rule(
        "light-import", "importing it loads no heavy library",
        "clients and frameworks cost time and memory in runs that do not use them",
        "import the library inside the function that needs it",
    ),
    _rule(
        "quiet-import", "importing it writes, starts, connects and prints nothing",
        "reading commands import plugins as well, in projects that are none of their business",
        "move the work into a hook; what lives as long as a run belongs into gsd_lifespan",
    ),
    _rule(
        "public-doors", "of gsd it imports public modules only",
        "what is not public changes without notice",
        "import from gsd_core, gsd_core.hookspecs, gsd_core.planning, gsd_core.testing",
    ),
    _rule(
        "declared", "what it imports is among its dependencies",
        "on another machine the import fails",
        "add the distribution to project.dependencies in pyproject.toml",
    ),
    _rule(
        "entry-point", "it has an entry point in the group gsd, under a name that is free",
        "without one it is not found, and of two plugins with one name the second is left out",
        'add [project.entry-points.gsd] with name = "module" to pyproject.toml',
    ),
    _rule(
        "packaged", "its package says that it is typed, which Python it needs, and that it needs gsd-core",
        "an installer and a type checker believe what the package says",
        "add py.typed, requires-python and the dependency gsd-core",
    ),
    _rule(
        "documented", "its module, its hooks and its package say what they do",
        "`gsd plugins` tells a name; who finds it in a project wants to know more",
        "write a docstring for the module and for each hook, and a README",
    ),
    _rule(
        "typed", "every function says what it takes and returns",
        "mypy and pyright find wrong hooks only where there are types",
        "annotate every parameter and every return",
    ),
    _rule(
        "tested", "its tests name each of its hooks",
        "what a test does not name breaks unseen",
        "write tests/test_….py with gsd_core.testing.conformance.check_…",
    ),
    _rule(
        "settings", "its settings are frozen attrs classes with a docstring and a default for every field",
        "a plugin has to work where gsd.toml does not mention it",
        "give each field a default by setting(…), and the class @frozen(kw_only=True) and a docstring",
    ),
    _rule(
        "contributes", "what it contributes has names of its own, commands have help, findings have a fix",
        "the same name twice is an error that ends the start",
        "rename what clashes; give each command a help text and each finding a fix",
    ),
    _rule(
        "returns", "what its hooks return is what they promise",
        "anything else counts as the plugin's failure",
        "return the types of the hook's signature; None is how to decline",
    ),
    _rule(
        "names-errors", "what its hooks raise is Transient or Permanent",
        "only these say what to do; anything else is reported as the plugin's own mistake",
        "catch what you expect, and raise Transient or Permanent with a hint from it",
    ),
    _rule(
        "prompt", "it decides, or declines, within the time of the hook",
        "others wait for the answer, and a policy that is late counts as a failure",
        "decline by None at once when it is none of your business",
    ),
    _rule(
        "cancels", "it stops within 5 s when it is cancelled",
        "who presses Ctrl-C does not wait, and a plugin that does not stop is left behind",
        "let CancelledError pass; clean up in finally, quickly",
    ),
    _rule(
        "leaves-nothing", "it leaves no task, thread or process behind",
        "what is left goes on after its run, with nobody to stop it",
        "use asyncio.TaskGroup, and end processes in finally",
    ),
    _rule(
        "no-state", "it keeps no state in its modules",
        "two runs may share a process",
        "read settings by settings_of, and keep resources in gsd_lifespan",
    ),
    _rule(
        "writes-nothing", "it writes neither into the project nor into the home folder by itself",
        "the core writes and commits; whatever else changes looks like the user's own work",
        "return files from gsd_execute_step; write elsewhere only where a setting says so",
    ),
    _rule(
        "does-not-block", "it does not hold up the loop",
        "everything of a run waits meanwhile: the screen, the clocks, the agent",
        "await asyncio.to_thread(…) for files, and an asyncio process for programs",
    ),
    _rule(
        "same-twice", "asked the same again, it says the same",
        "gaps are compared from round to round, and a run that is resumed asks again",
        "sort what you list; leave out times and random numbers",
    ),
    _rule(
        "says-nothing", "its hooks print nothing to standard output",
        "standard output is for data that programs read",
        "use logging, or write to standard error",
    ),
    _rule(
        "pickles", "its values and errors survive pickling",
        "what a step returns is recorded, and errors cross processes",
        "return the values of gsd_core; let errors of your own pass all arguments to super().__init__",
    ),
    _rule(
        "hands-off", "it leaves the process as it is: environment, folder, signals, logging",
        "they belong to everybody in the process",
        "give an environment and a folder to the processes you start; log by logging.getLogger(__name__)",
    ),
)  # fmt: skip

BY_ID = {rule.id: rule for rule in RULES}

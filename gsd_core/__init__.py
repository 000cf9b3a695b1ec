"""GSD turns an idea document into verified, committed software, phase by phase.

Everything that a plugin needs can be imported from here; the hooks are in :mod:`gsd_core.hookspecs`. Mark
a function with :func:`implements`, or with pluggy's own :data:`hookimpl` if you prefer its conventions::

    @implements(gsd_notify)            # any name; a type checker compares the signatures
    async def beep(notice: Notice) -> None: ...

    @hookimpl                          # the hook's name; only the names of the arguments are checked
    async def gsd_notify(notice: Notice) -> None: ...
"""

__version__ = "0.1.0"

# Nothing is imported here before `cli.main` runs, because until then Ctrl+C prints a traceback. Type checkers
# treat this name like that of `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from .api import *  # noqa: F403 - all that it imports
else:
    # Importing all public names takes several times as long as `gsd --help` may. Type checkers do not see
    # this function, because with it they would accept every name.
    def __getattr__(name: str) -> object:
        import importlib

        api = vars(importlib.import_module(".api", __name__))
        if name in globals():  # a submodule that was imported just now
            return globals()[name]
        if name == "__all__":
            return globals().setdefault(name, [each for each in api if not each.startswith("_")])
        if name in api and not name.startswith("_"):
            return globals().setdefault(name, api[name])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

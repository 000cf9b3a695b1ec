"""Dependencies: which wave a thing belongs to, and whether they run in a circle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def waves(dependencies: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the wave of each key: 1 without dependencies, else one after its last dependency.

    Names that are no keys do not count. What lies on a circle, or behind one, has no wave.
    """
    known = {key: _known(dependencies, key) for key in dependencies}
    found: dict[str, int] = {}
    while ready := [key for key in known if key not in found and all(n in found for n in known[key])]:
        for key in ready:
            found[key] = 1 + max((found[name] for name in known[key]), default=0)
    return {key: found[key] for key in dependencies if key in found}


def cycle(dependencies: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return one circle of dependencies (``("a", "b", "a")``), or nothing if there is none."""
    placed = waves(dependencies)
    stuck = {
        key: [name for name in _known(dependencies, key) if name not in placed]
        for key in dependencies
        if key not in placed
    }
    if not stuck:
        return ()
    path = [next(iter(stuck))]
    while (following := stuck[path[-1]][0]) not in path:
        path.append(following)
    return (*path[path.index(following) :], following)


def _known(dependencies: Mapping[str, Sequence[str]], key: str) -> list[str]:
    return [name for name in dependencies[key] if name in dependencies]

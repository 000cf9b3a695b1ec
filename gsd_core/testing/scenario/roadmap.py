"""The roadmap of a product."""

from __future__ import annotations

from .product import Product
from .work import Json

_REQUIREMENTS = {
    "CORE-01": ("Core", "User can write an entry as `topic: text`, and a line that is none is refused"),
    "CORE-02": ("Core", "User can see all entries as a listing"),
    "DOC-01": ("Documentation", "User can read in the README how it is used"),
    "STORE-01": ("Storage", "User finds entries again that were saved earlier"),
    "CLI-01": ("Command line", "User can add and list entries from the command line"),
    "CLI-02": ("Command line", "User is told what is wrong with a bad line"),
    "REPORT-01": ("Report", "User can see how many entries each topic has"),
}


def roadmap(product: Product, phases: int) -> Json:
    """Return the roadmap as a roadmapper gives it."""
    planned = _phases(product, phases)
    wanted = [name for phase in planned for name in phase["requirements"]]
    return {
        "name": product.title,
        "summary": f"{product.title} keeps entries on {', '.join(product.topics)} as lines of plain text. "
        "It is for one person at a terminal, and needs nothing but Python.",
        "core_value": "An entry that was written is found again, exactly as it was written.",
        "requirements": [_requirement(name, *_REQUIREMENTS[name]) for name in wanted],
        "later": [_requirement("SHARE-01", "Sharing", "User can merge the entries of two people")],
        "out_of_scope": [{"feature": "A web page", "reason": "the terminal is enough for one person"}],
        "constraints": [
            {"type": "Technology", "what": "Python's standard library only", "why": "nothing to install"}
        ],
        "phases": planned,
    }


def _requirement(name: str, category: str, text: str) -> Json:
    return {"id": name, "category": category, "text": text}


def _phases(product: Product, count: int) -> list[Json]:
    """Return the first *count* phases; each depends on the one before."""
    core = ["CORE-01", "CORE-02", "DOC-01"] if count == 1 else ["CORE-01", "CORE-02", "STORE-01", "DOC-01"]
    phases = [
        _phase(
            "Entries",
            "Entries can be read, listed and kept" if count > 1 else "Entries can be read and listed",
            core,
            "A line `topic: text` becomes an entry, and a bad line is refused with a reason",
            "A listing shows every entry with a mark in front",
        ),
        _phase(
            "Command line",
            f"`python3 -m {product.package}` adds and lists entries",
            ["CLI-01", "CLI-02"],
            "An entry added by one command is listed by the next",
            "A bad line ends with exit code 1 and a message",
        ),
        _phase(
            "Report",
            "A report shows what there is",
            ["REPORT-01"],
            "The report has a line for each topic",
            "The last line is the total",
        ),
    ]
    return [{**phase, "depends_on": [str(n)] if n else []} for n, phase in enumerate(phases[:count])]


def _phase(name: str, goal: str, requirements: list[str], *criteria: str) -> Json:
    return {"name": name, "goal": goal, "requirements": requirements, "criteria": list(criteria)}


def requirements_of(product: Product, phases: int, number: str) -> tuple[str, ...]:
    """Return the ids that a phase of the roadmap delivers; none if it is no phase of it."""
    planned = {str(n): phase for n, phase in enumerate(_phases(product, phases), 1)}
    return tuple(planned.get(number, {}).get("requirements", ()))

"""Plans that nobody could foresee: for gaps, and for phases that somebody else made."""

from __future__ import annotations

import re

from .product import Product
from .work import USAGE, Job, Work, artifact

_TRUTH = re.compile(r"""^[\s\-*]*["']?truth["']?\s*:\s*["']?(.+?)["']?,?\s*$""", re.MULTILINE)
_NO_LICENSE = re.compile(r"no LICENSE|LICENSE (is )?missing", re.IGNORECASE)


def repair(product: Product, section: str, about: str) -> Work:
    """Return the plan that closes the gaps that *about* tells of, as far as the scenario can."""
    job = _licence(product) if _NO_LICENSE.search(about) else _say_usage(product, section)
    truths = tuple(dict.fromkeys(_TRUTH.findall(about))) or (f"{job.files[0]} holds what was promised",)
    return Work(
        name=f"Close the gap in {job.files[0]}",
        objective=job.done,
        truths=truths,
        artifacts=(USAGE if job.files == ("README.md",) else artifact(job.files[0], job.done),),
        jobs=(job,),
    )


def _say_usage(product: Product, section: str) -> Job:
    return Job(
        name="Say how it is used",
        edits=(product.readme_with(section),),
        action="README.md has no section `## Usage`: add one, with an example, before `## Develop`.",
        check='grep -q "^## Usage" README.md',
        done="README.md says how it is used",
    )


def _licence(product: Product) -> Job:
    return Job(
        name="Add a licence",
        edits=(product.license(),),
        action="There is no LICENSE in the root: add one.",
        check="test -s LICENSE",
        done="The project has a licence",
    )


def unknown(product: Product, phase: str, requirements: tuple[str, ...] = ()) -> Work:
    """Return a plan for a phase that somebody else put into the roadmap."""
    edit = product.extra(phase)
    module = edit.path.removesuffix(".py").replace("/", ".")
    job = Job(
        name="Find entries by a word",
        edits=(product.ignored(), edit),
        action=f"In {edit.path} write `containing(entries, word)`.",
        check=f'python3 -c \'from {module} import containing; assert containing(["One"], "one")\'',
        done="Entries that hold a word are found",
    )
    return Work(
        name="Find entries by a word",
        objective=job.done,
        requirements=requirements,
        truths=("Entries are found by a word of their text, whatever its case",),
        artifacts=(artifact(edit.path, "Finding entries", exports=["containing"]),),
        jobs=(job,),
    )

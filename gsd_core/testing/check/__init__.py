"""Grade a plugin by rules that have names: ``gsd plugins check``.

What can be read is read; what has to be tried is tried in a process of its own, in an empty
project, so that a plugin that hangs, exits or litters spoils nothing.
"""

from .grade import SCHEMA_VERSION, Verdict, check_plugin
from .rules import RULES, Rule
from .target import Target, find_target

__all__ = ["RULES", "SCHEMA_VERSION", "Rule", "Target", "Verdict", "check_plugin", "find_target"]

"""A run: from what the user asks for to how it ended."""

from .begin import run_project
from .session import Observer, RunEnd, RunRequest

__all__ = ["Observer", "RunEnd", "RunRequest", "run_project"]

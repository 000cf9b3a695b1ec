"""A run: from what the user asks for to how it ended."""

from .runtime import Observer, RunEnd, RunRequest
from .start import run_project

__all__ = ["Observer", "RunEnd", "RunRequest", "run_project"]

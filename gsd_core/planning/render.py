"""Values to planning files, in the shapes of GSD v1.20.5. Pure functions.

A model's text is data: wherever it stands, it opens no frontmatter, heading, table row or tag.
"""

from .config import render_config
from .context import render_context
from .plan import render_plan
from .project import render_project
from .requirements import render_requirements
from .roadmap import render_roadmap
from .state import render_state
from .summary import render_summary
from .verification import render_verification

__all__ = [
    "render_config",
    "render_context",
    "render_plan",
    "render_project",
    "render_requirements",
    "render_roadmap",
    "render_state",
    "render_summary",
    "render_verification",
]

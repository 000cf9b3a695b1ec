"""Values to planning files, in the shapes of GSD v1.20.5. Pure functions.

A model's text is data: wherever it stands, it opens no frontmatter, heading, table row or tag.
"""

from gsd_core.planning.render_phase import render_context, render_summary
from gsd_core.planning.render_plan import render_plan
from gsd_core.planning.render_project import render_project, render_requirements
from gsd_core.planning.render_roadmap import render_config, render_roadmap, render_state
from gsd_core.planning.render_verdict import render_verification

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

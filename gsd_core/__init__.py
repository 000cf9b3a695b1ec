"""GSD: from an idea document to verified, committed software, phase by phase.

Everything that a plugin needs can be imported from here; the hooks are in :mod:`gsd_core.hookspecs`. Mark
a function with :func:`implements`, or with pluggy's own :data:`hookimpl` if you prefer its conventions::

    @implements(gsd_notify)            # any name; a type checker compares the signatures
    async def beep(notice: Notice) -> None: ...

    @hookimpl                          # the hook's name; only the names of the arguments are checked
    async def gsd_notify(notice: Notice) -> None: ...
"""

from .errors import (
    ConfigError,
    Credentials,
    Exhausted,
    GsdError,
    Permanent,
    PlanningError,
    PluginError,
    StepError,
    Transient,
    UserError,
)
from .hookspecs import ConfigValue, Finding, ProjectInfo, RunInfo
from .markers import hookimpl, implements
from .model.agent import (
    Activity,
    AgentFunction,
    AgentHost,
    AgentResult,
    AgentTask,
    Allow,
    Ask,
    Conversation,
    Deny,
    Ended,
    Limits,
    Permission,
    Role,
    ToolUse,
)
from .model.checks import CheckResult, TaskCheck
from .model.event import EVENT_NAMES, Event, EventName
from .model.gap import BadArtifact, Evidence, Gap, GapReport, GapStatus, HumanCheck
from .model.ids import StepId, StepKind, normal_phase, padded, phase_order, slug
from .model.notice import Notice
from .model.question import Answer, Asked, Inquiry, Option, Question, refusal
from .model.step import (
    Depth,
    Done,
    FileWrite,
    Idea,
    Profile,
    RunStep,
    StepHost,
    StepRequest,
    StepResult,
    TaskCommit,
    Verified,
)
from .model.usage import Pause, Spend, Stop, Usage
from .planning.changes import (
    AddDecisions,
    Change,
    ListPlans,
    MapRequirement,
    SetPosition,
    TickPhase,
    TickPlan,
)
from .planning.model import (
    Artifact,
    KeyLink,
    MustHaves,
    PhaseView,
    Plan,
    PlannedPhase,
    Planning,
    Requirement,
    Task,
    Truth,
    Verdict,
)
from .protected import PROTECTED_NAMES, fold_name, is_secret_name, protected_part
from .settings import bind_settings, setting, settings_of

__version__ = "0.1.0"

__all__ = [
    "EVENT_NAMES",
    "PROTECTED_NAMES",
    "Activity",
    "AddDecisions",
    "AgentFunction",
    "AgentHost",
    "AgentResult",
    "AgentTask",
    "Allow",
    "Answer",
    "Artifact",
    "Ask",
    "Asked",
    "BadArtifact",
    "Change",
    "CheckResult",
    "ConfigError",
    "ConfigValue",
    "Conversation",
    "Credentials",
    "Deny",
    "Depth",
    "Done",
    "Ended",
    "Event",
    "EventName",
    "Evidence",
    "Exhausted",
    "FileWrite",
    "Finding",
    "Gap",
    "GapReport",
    "GapStatus",
    "GsdError",
    "HumanCheck",
    "Idea",
    "Inquiry",
    "KeyLink",
    "Limits",
    "ListPlans",
    "MapRequirement",
    "MustHaves",
    "Notice",
    "Option",
    "Pause",
    "Permanent",
    "Permission",
    "PhaseView",
    "Plan",
    "PlannedPhase",
    "Planning",
    "PlanningError",
    "PluginError",
    "Profile",
    "ProjectInfo",
    "Question",
    "Requirement",
    "Role",
    "RunInfo",
    "RunStep",
    "SetPosition",
    "Spend",
    "StepError",
    "StepHost",
    "StepId",
    "StepKind",
    "StepRequest",
    "StepResult",
    "Stop",
    "Task",
    "TaskCheck",
    "TaskCommit",
    "TickPhase",
    "TickPlan",
    "ToolUse",
    "Transient",
    "Truth",
    "Usage",
    "UserError",
    "Verdict",
    "Verified",
    "bind_settings",
    "fold_name",
    "hookimpl",
    "implements",
    "is_secret_name",
    "normal_phase",
    "padded",
    "phase_order",
    "protected_part",
    "refusal",
    "setting",
    "settings_of",
    "slug",
]

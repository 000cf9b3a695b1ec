"""The public names of :mod:`gsd_core`, which imports this module when the first of them is used.

Each is imported as itself, which type checkers take for the export of a name; this module has no others.
"""

# ruff: noqa: I001 - each alias would get a statement of its own

from .errors import (
    ConfigError as ConfigError,
    Conflict as Conflict,
    Credentials as Credentials,
    Exhausted as Exhausted,
    GsdError as GsdError,
    Interference as Interference,
    NotFound as NotFound,
    Outage as Outage,
    Permanent as Permanent,
    PlanningError as PlanningError,
    PluginError as PluginError,
    PluginRefused as PluginRefused,
    Postponed as Postponed,
    RejectedAnswer as RejectedAnswer,
    StepError as StepError,
    Transient as Transient,
    UserError as UserError,
)
from .files import FileRefused as FileRefused, read_below as read_below, read_start as read_start
from .hook_markers import hookimpl as hookimpl, implements as implements
from .hookspecs import (
    CommandOptions as CommandOptions,
    ConfigValue as ConfigValue,
    Finding as Finding,
    ProjectInfo as ProjectInfo,
    RunInfo as RunInfo,
)
from .model.agent import (
    Activity as Activity,
    AgentFunction as AgentFunction,
    AgentHost as AgentHost,
    AgentResult as AgentResult,
    AgentTask as AgentTask,
    Allow as Allow,
    Ask as Ask,
    Conversation as Conversation,
    Deny as Deny,
    Ended as Ended,
    Limits as Limits,
    Permission as Permission,
    Role as Role,
    ToolRecord as ToolRecord,
    ToolUse as ToolUse,
)
from .model.checks import (
    CaseResult as CaseResult,
    CheckResult as CheckResult,
    ReplacedBecause as ReplacedBecause,
    ReplacedCheck as ReplacedCheck,
    TaskCheck as TaskCheck,
)
from .model.counts import counted as counted, dollars_text as dollars_text, some_of as some_of
from .model.event import EVENT_NAMES as EVENT_NAMES, Event as Event, EventName as EventName
from .model.gap import (
    BadArtifact as BadArtifact,
    Evidence as Evidence,
    Gap as Gap,
    GapReport as GapReport,
    GapStatus as GapStatus,
    HumanCheck as HumanCheck,
    Observation as Observation,
    Severity as Severity,
)
from .model.ids import (
    StepId as StepId,
    normal_phase as normal_phase,
    padded as padded,
    phase_order as phase_order,
    slug as slug,
)
from .model.mutant import Mutant as Mutant, SourceFile as SourceFile, Unnoticed as Unnoticed
from .model.notice import Delivery as Delivery, Notice as Notice
from .model.panel import Panel as Panel
from .model.question import (
    Answer as Answer,
    Asked as Asked,
    Inquiry as Inquiry,
    Option as Option,
    Question as Question,
    parse_typed_answer as parse_typed_answer,
    refusal as refusal,
)
from .model.sandbox import (
    ConfinedProcess as ConfinedProcess,
    Place as Place,
    SandboxedCommand as SandboxedCommand,
    SandboxUnavailable as SandboxUnavailable,
)
from .model.session import (
    Session as Session,
    SessionHost as SessionHost,
    SessionRequest as SessionRequest,
    SessionState as SessionState,
)
from .model.step import (
    CompletedStep as CompletedStep,
    DeferredTask as DeferredTask,
    Depth as Depth,
    Done as Done,
    FileMove as FileMove,
    FileWrite as FileWrite,
    Found as Found,
    Idea as Idea,
    Profile as Profile,
    RunStep as RunStep,
    StepHost as StepHost,
    StepRequest as StepRequest,
    StepResult as StepResult,
    StepSituation as StepSituation,
    StepType as StepType,
    Tag as Tag,
    TaskCommit as TaskCommit,
    Verified as Verified,
)
from .model.work_unit import (
    Dispatcher as Dispatcher,
    UnitEnd as UnitEnd,
    UnitFact as UnitFact,
    WorkUnit as WorkUnit,
)
from .model.usage import (
    Amount as Amount,
    Cap as Cap,
    Pause as Pause,
    Postpone as Postpone,
    Scope as Scope,
    Spend as Spend,
    Stop as Stop,
    Unit as Unit,
    Usage as Usage,
)
from .own_process import data_output as data_output
from .planning.changes import (
    AddDecisions as AddDecisions,
    AddPhase as AddPhase,
    AddQuickTask as AddQuickTask,
    Change as Change,
    ListPlans as ListPlans,
    MapRequirement as MapRequirement,
    SetPosition as SetPosition,
    TickPhase as TickPhase,
    TickPlan as TickPlan,
)
from .planning.model import (
    Artifact as Artifact,
    History as History,
    KeyLink as KeyLink,
    MustHaves as MustHaves,
    PhaseView as PhaseView,
    Plan as Plan,
    PlannedPhase as PlannedPhase,
    Planning as Planning,
    Requirement as Requirement,
    Statement as Statement,
    Task as Task,
    Truth as Truth,
    Verdict as Verdict,
)
from .plugins.unit_process import UnitProcess as UnitProcess, UnitProcesses as UnitProcesses
from .plugins.worktrees import (
    why_no_work_tree as why_no_work_tree,
    without_work_trees as without_work_trees,
    work_tree as work_tree,
)
from .processes import (
    boot_id as boot_id,
    process_start as process_start,
    refuse_agents as refuse_agents,
    remember_origin as remember_origin,
    signal_process as signal_process,
    start_time as start_time,
)
from .programs import (
    find_program as find_program,
    open_in_browser as open_in_browser,
    own_command as own_command,
)
from .protected_paths import (
    PROTECTED_NAMES as PROTECTED_NAMES,
    fold_name as fold_name,
    is_secret_name as is_secret_name,
    protected_part as protected_part,
)
from .sanitize import (
    redact as redact,
    redact_data as redact_data,
    safe_data as safe_data,
    safe_text as safe_text,
)
from .settings import (
    at_most as at_most,
    bind_settings as bind_settings,
    convert_value as convert_value,
    lower_only as lower_only,
    setting as setting,
    settings_of as settings_of,
    state_folder as state_folder,
)

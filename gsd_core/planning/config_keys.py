"""What each key of GSD's ``config.json`` does here: one table, for validation, warnings and the docs.

Sources: the config of GSD v1.20.5, and gsd-core 1.14 (``config-schema.manifest.json``, and the keys that
its capabilities add). A name may contain ``<x>``, which matches one part of a dotted key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, TypeAlias, cast

import attrs

from gsd_core.errors import ConfigError

Allowed: TypeAlias = "type | tuple[str, ...]"
Status: TypeAlias = Literal["honored", "not applicable"]


@attrs.frozen(kw_only=True)
class ConfigKey:
    """A key, and what it does here, or why it does nothing.

    *allowed* is the type of its values, or the strings that are allowed; ``None`` if they are not checked,
    because nothing here reads them. ``null`` always counts as not set. *legacy* are older names of the key.
    """

    name: str
    status: Status
    effect: str
    allowed: Allowed | None = None
    legacy: tuple[str, ...] = ()

    def matches(self, key: str) -> bool:
        """Whether a dotted *key* is this one, or one of its older names."""
        return any(_pattern(name).fullmatch(key) for name in (self.name, *self.legacy))

    def problem(self, value: object) -> str:
        """Return what is expected instead of *value*; empty if it is valid."""
        match self.allowed:
            case None:
                return ""
            case tuple() as words:
                # Names of other versions are valid: "fine" is "comprehensive".
                return "" if value in words else f"expected one of {', '.join(map(repr, words))}"
            case kind:
                is_number = kind in (int, float) and isinstance(value, int | float)
                # To Python, true is a number.
                valid = kind is bool if isinstance(value, bool) else isinstance(value, kind) or is_number
                return "" if valid else f"expected {_KINDS[kind]}"

    @property
    def values(self) -> str:
        """The allowed values, for people."""
        if self.allowed is None:
            return ""
        if isinstance(self.allowed, tuple):
            return ", ".join(f"`{word}`" for word in self.allowed)
        return _KINDS[self.allowed]


_KINDS: dict[type, str] = {
    bool: "true or false",
    str: "a string",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    object: "a path or a list of paths",
}
PROFILES = ("quality", "balanced", "budget", "adaptive", "inherit")
DEPTHS = ("quick", "standard", "comprehensive", "coarse", "fine")
STEPS = ("planning", "discuss", "research", "execution", "verification", "completion")
GATES: Mapping[str, str] = {
    "confirm_project": "before the first step of a phase, after a new project was set up",
    "confirm_phases": "like `gates.confirm_project`, and the same question",
    "confirm_roadmap": "like `gates.confirm_project`, and the same question",
    "confirm_breakdown": "before the first plan of a phase is executed",
    "confirm_plan": "like `gates.confirm_breakdown`, and the same question",
    "execute_next_plan": "before each further plan of a phase is executed",
    "issues_review": "before the gaps that a verification found are planned",
    "confirm_transition": "before a verified phase is marked as complete",
}
"""GSD's gates, and when the question is asked."""


def _honored(name: str, allowed: Allowed, effect: str, *legacy: str) -> ConfigKey:
    return ConfigKey(name=name, status="honored", effect=effect, allowed=allowed, legacy=legacy)


def _not_applicable(reason: str, names: str) -> Iterator[ConfigKey]:
    for name in names.split():
        yield ConfigKey(name=name, status="not applicable", effect=reason, legacy=_LEGACY.get(name, ()))


_LEGACY: Mapping[str, tuple[str, ...]] = {
    "workflow.plan_check": ("plan_checker",),
    "search_gitignored": ("planning.search_gitignored",),
}
"""Older names of keys that are not honored."""

_REVIEWERS = "`/gsd:review` with other vendors' tools does not exist here"
_SEARCH = "other vendors' search services are not used"

KEYS: tuple[ConfigKey, ...] = (
    # Models.
    _honored("model_profile", PROFILES, "the models of all roles; setting `run.profile`"),
    _honored(
        "model_overrides.<agent>", str, "the model of one agent, by the names of `agent_skills.<agent>`"
    ),
    _honored(
        "models.<step>", str, f"the model of one kind of step ({', '.join(STEPS)}), after the overrides"
    ),
    _honored(
        "model_profile_overrides.<runtime>.<tier>",
        str,
        "with the runtime `claude`: the model to use for `opus`, `sonnet` or `haiku`",
    ),
    *_not_applicable(
        "the Claude CLI resolves the names of models; full ids go into `model_profile_overrides.claude`",
        "resolve_model_ids runtime model_policy.provider model_policy.budget model_policy.high "
        "model_policy.medium model_policy.low model_policy.runtime_tiers.<runtime>.<tier>",
    ),
    *_not_applicable(
        "a failed step is tried again with the same model; a person decides about more",
        "dynamic_routing.enabled dynamic_routing.escalate_on_failure dynamic_routing.max_escalations "
        "dynamic_routing.provider_escalation dynamic_routing.tier_models.<tier>",
    ),
    *_not_applicable(
        "an agent's effort and speed are left to the Claude CLI and its settings",
        "effort.default effort.routing_tier_defaults.<tier> effort.agent_overrides.<agent> "
        "fast_mode.enabled fast_mode.routing_tier_defaults.<tier> fast_mode.agent_overrides.<agent> "
        "context_window workflow.smart_zone_tokens",
    ),
    # How much is planned and checked.
    _honored(
        "granularity",
        DEPTHS,
        "how finely work is divided; setting `run.depth`: `coarse` is `quick`, `fine` is `comprehensive`",
        "depth",
        "planning.granularity",
    ),
    *_not_applicable("one depth holds for all steps: `granularity`", "granularities.<step>"),
    _honored("workflow.verifier", bool, "`false` is the setting `run.skip_verify`", "verifier"),
    _honored(
        "workflow.skip_discuss",
        bool,
        "setting `run.skip_discuss`: nobody is asked; the step decides, and CONTEXT.md says what was assumed",
    ),
    _honored(
        "workflow.tdd_mode",
        bool,
        "`true`: the planner makes a test-driven plan of each feature that can be tested by input and output",
    ),
    _honored("workflow.test_command", str, "named to the planner and the executor as the command for tests"),
    _honored("workflow.build_command", str, "named to the planner and the executor as the build command"),
    _honored(
        "response_language", str, "the language of the questions and texts that agents write for people"
    ),
    _honored(
        "workflow.research",
        bool,
        "if phases are researched: at depth `comprehensive` unless `false`, at `standard` only if `true`",
        "research",
    ),
    _honored(
        "workflow.research_before_questions",
        bool,
        "`true`: a phase that is researched is researched before its questions are asked",
    ),
    _honored(
        "workflow.discuss_mode",
        ("discuss", "assumptions"),
        "`assumptions`: one question, whether the recommended answers to all questions are right",
    ),
    _honored(
        "workflow.max_discuss_passes",
        int,
        "how often the questions about a phase may lead to further ones; 2 if it is not set",
    ),
    _honored(
        "workflow.human_verify_mode",
        ("end-of-phase", "mid-flight"),
        "when `checkpoint:human-verify` is asked: with the other checks of the verification, unless "
        "`mid-flight`; always at once if nothing verifies the phase",
    ),
    _honored("agent_skills", dict, "see `agent_skills.<agent>`"),
    # Before the pattern below, which matches them too.
    *_not_applicable(
        "the agent's role does not exist here",
        "agent_skills.gsd-advisor-researcher agent_skills.gsd-code-fixer agent_skills.gsd-code-reviewer "
        "agent_skills.gsd-doc-writer agent_skills.gsd-eval-auditor agent_skills.gsd-integration-checker "
        "agent_skills.gsd-nyquist-auditor agent_skills.gsd-project-researcher "
        "agent_skills.gsd-research-synthesizer agent_skills.gsd-security-auditor "
        "agent_skills.gsd-ui-auditor agent_skills.gsd-ui-checker agent_skills.gsd-ui-researcher",
    ),
    _honored(
        "agent_skills.<agent>",
        object,
        "folders in the project with a SKILL.md that this agent is told to read: `gsd-codebase-mapper`, "
        "`gsd-roadmapper`, `gsd-assumptions-analyzer` (the discussion), `gsd-phase-researcher`, "
        "`gsd-planner`, `gsd-plan-checker`, `gsd-executor`, `gsd-verifier`, `gsd-debugger`",
    ),
    _honored("project_code", str, "the prefix of new phase folders: `CK` gives `CK-01-name`"),
    _honored(
        "git.quick_branch_template",
        str,
        "the branch of a quick task, with `{num}`, `{slug}`; it stays the current one",
    ),
    *_not_applicable(
        "the check is code here, costs nothing and is always made",
        "workflow.plan_check workflow.nyquist_validation workflow.post_planning_gaps "
        "workflow.context_coverage_gate workflow.plan_drift_precheck workflow.context_drift_precheck "
        "workflow.context_drift_action workflow.assumption_delta workflow.specless_probe_fallback "
        "plan_review.source_grounding plan_review.source_grounding_authority",
    ),
    *_not_applicable(
        "a step of gsd-core that does not exist here; a plugin can add such a step with `gsd_steps`",
        "workflow.code_review workflow.code_review_depth workflow.code_review_depth_overrides "
        "workflow.code_review_command workflow.code_review_point workflow.plan_bounce "
        "workflow.plan_bounce_script workflow.plan_bounce_passes workflow.plan_review_convergence "
        "workflow.security_enforcement workflow.security_asvs_level workflow.security_block_on "
        "workflow.ui_phase workflow.ui_review workflow.ui_safety_gate workflow.live_dom_uat "
        "workflow.ai_integration_phase workflow.api_coverage_gate workflow.pattern_mapper "
        "workflow.schema_drift_gate workflow.schema_push_detection workflow.drift_threshold "
        "workflow.drift_action workflow.windows_enforce workflow.mvp_mode refactor.trigger_enabled "
        "refactor.complexity_threshold refactor.complexity_jump_delta refactor.trigger_strict "
        "code_quality.fallow.enabled code_quality.fallow.scope code_quality.fallow.profile "
        "code_quality.fallow.mcp",
    ),
    *_not_applicable(
        "a task whose check fails goes back to its agent; then the retries of the step and a person decide",
        "workflow.node_repair workflow.node_repair_budget",
    ),
    # Questions.
    _honored("mode", ("interactive", "yolo"), "`yolo` asks no gate; only `--yes` answers other questions"),
    *(
        _honored(f"gates.{name}", bool, f"`true`: a person is asked to continue {when}; `--yes` answers")
        for name, when in GATES.items()
    ),
    _honored(
        "gates.confirm_milestone_scope",
        bool,
        "unless `false`: a question before a finished milestone is closed for a new idea; `--yes` consents",
    ),
    *_not_applicable(
        "commands that destroy something or reach out of the project are always checked before they run, and "
        "a project's file cannot turn that off",
        "safety.always_confirm_destructive safety.always_confirm_external_services",
    ),
    *_not_applicable(
        "a run always continues with the next step by itself",
        "workflow.auto_advance workflow._auto_chain_active",
    ),
    *_not_applicable(
        "questions are plain text with options, wherever they are answered", "workflow.text_mode"
    ),
    # Git.
    _honored(
        "commit_docs",
        bool,
        "setting `run.commit_docs`: `false` leaves `.planning/` out of commits, as if git ignored it",
        "planning.commit_docs",
    ),
    _honored("phase_commit_docs.<phase>", bool, "`commit_docs` for the steps of one phase"),
    _honored(
        "git.branching_strategy",
        ("none", "phase", "milestone"),
        "a branch for each phase, or for the milestone, created before the first step of a phase",
        "branching_strategy",
        "planning.branching_strategy",
    ),
    _honored(
        "git.phase_branch_template",
        str,
        "the name of a phase's branch, with `{phase}`, `{slug}`, `{milestone}`",
        "phase_branch_template",
        "planning.phase_branch_template",
    ),
    _honored(
        "git.milestone_branch_template",
        str,
        "the name of a milestone's branch, with `{milestone}`, `{slug}`",
        "milestone_branch_template",
        "planning.milestone_branch_template",
    ),
    _honored(
        "git.base_branch",
        str,
        "a new branch begins there if it contains all that the current one does, else at the current commit",
    ),
    _honored("git.create_tag", bool, "`false`: completing a milestone makes no tag"),
    _honored("git.protected_branches", list, "branches that no branch template may name"),
    *_not_applicable(
        "with `git.branching_strategy: none`, commits go to the branch on which you start the run",
        "git.allow_default_branch_commits",
    ),
    _honored("parallelization", bool, "`false` is like `parallelization.enabled: false`"),
    _honored(
        "parallelization.enabled",
        bool,
        "`false`: one plan is executed at a time, if the setting `run.max_parallel` is 0",
    ),
    _honored("parallelization.plan_level", bool, "like `parallelization.enabled`"),
    _honored(
        "parallelization.max_concurrent_agents",
        int,
        "how many plans are executed at the same time, if the setting `run.max_parallel` is 0",
    ),
    _honored(
        "parallelization.min_plans_for_parallel",
        int,
        "if fewer plans can be executed at the same time, they are executed one after the other",
    ),
    *_not_applicable(
        "the setting `run.workspace` says where plans are executed, and `run.max_parallel` how many at once",
        "parallelization.<key> planning.chunked_parallel workflow.plan_chunked "
        "workflow.use_worktrees workflow.worktree_skip_hooks workflow.inline_plan_threshold",
    ),
    *_not_applicable(
        "one repository is one project; start a run in each", "planning.sub_repos sub_repos multiRepo"
    ),
    *_not_applicable("`/gsd:pr-branch` and `/gsd:ship` do not exist here", "planning.pr_strict ship.<key>"),
    # Limits.
    *_not_applicable(
        "see the settings `limits.idle` and `limits.hard`, which hold for every agent call",
        "workflow.subagent_timeout executor.stall_detect_interval_minutes executor.stall_threshold_minutes "
        "planner.stall_detect_interval_minutes planner.stall_threshold_minutes",
    ),
    *_not_applicable("see the setting `limits.check`", "workflow.test_gate_timeout"),
    # Agents and what they see.
    *_not_applicable(
        "agents are given the planning files they need, whether or not git ignores them", "search_gitignored"
    ),
    *_not_applicable(_SEARCH, "brave_search firecrawl exa_search tavily_search ref_search perplexity jina"),
    *_not_applicable(
        "each role has fixed tools, so that a project's file cannot widen them",
        "agent_tools agent_tools.<selector> agent_skills_security.trusted_global_roots "
        "workflow.agent_hint_routing",
    ),
    *_not_applicable(
        "work is done by the agents of the setting `run.agent`",
        "workflow.cross_ai_execution workflow.cross_ai_command workflow.cross_ai_timeout "
        "claude_orchestration.<key> external_job.<key>",
    ),
    *_not_applicable(
        "prompts are built by code and have fixed limits",
        "context workflow.compact_content workflow.context_guard_mode features.<name> learnings.max_inject "
        "intel.enabled graphify.<key> mempalace.<key> profile-pipeline.enabled",
    ),
    *_not_applicable(
        "text from outside is always sanitized and fenced, and never an instruction",
        "security.injection_blocking",
    ),
    *_not_applicable(
        "CLAUDE.md is the user's own: it is read, and never written",
        "claude_md_path claude_md_assembly.<key> claude_md_assembly.blocks.<name>",
    ),
    # Names of phases and files.
    *_not_applicable(
        "all forms of phase numbers are read, and new phases continue the project's own",
        "phase_naming phase_id_convention",
    ),
    *_not_applicable("STATE.md is kept short in any case", "workflow.auto_prune_state"),
    # Other commands and programs.
    *_not_applicable(_REVIEWERS, "review.<key> review.<key>.<name> review.reviewer_instances.<name>.<key>"),
    *_not_applicable(
        "for a setup of Claude Code or another host, which is not used here",
        "hooks.<key> statusline.<key> capabilities.strict_known_registries capabilities.auto_update",
    ),
    *_not_applicable("for a command that does not exist here", "manager.flags.<step>"),
)
"""Every key that is known."""

_NAMES = tuple(name for key in KEYS for name in (key.name, *key.legacy))


def key_of(name: str) -> ConfigKey | None:
    """Return the entry of a dotted key; ``None`` if it is unknown."""
    return next((key for key in KEYS if key.matches(name)), None)


def unknown_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a config that no version of GSD has, each with the known key it resembles."""
    known = [name for name in _NAMES if "<" not in name]
    found: list[str] = []
    for name, _ in _entries(config):
        if key_of(name) is None:
            close = get_close_matches(name, known, 1, 0.8)
            found.append(f"{name!r} (did you mean {close[0]!r}?)" if close else repr(name))
    return tuple(found)


def validate_config(config: Mapping[str, Any], path: str) -> None:
    """Raise ``ConfigError`` with each invalid value of an honored key: the file, the key, what is allowed.

    Values of other keys are not read here, so they are never an error.
    """
    problems = [
        f"{path}: {name}: {problem}, got {value!r}"
        for name, value in _entries(config)
        if value is not None and (key := key_of(name)) and (problem := key.problem(value))
    ]
    if problems:
        lines = problems if len(problems) == 1 else [f"{len(problems)} values are invalid", *problems]
        raise ConfigError(
            "\n  ".join(lines), hint="correct or remove them; the reference of config.json lists all keys"
        )


def _entries(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys with their values; an object that is itself a known key's is not taken apart."""
    for name, value in config.items():
        key = f"{prefix}{name}"
        known = key_of(key)
        is_open = known is None or known.allowed in (None, bool)
        if isinstance(value, Mapping) and is_open and _may_contain(key):
            yield from _entries(cast("Mapping[str, Any]", value), f"{key}.")
        else:
            # A part that should be an object, as "workflow": 1.
            yield key, value


def _may_contain(key: str) -> bool:
    depth = key.count(".") + 1
    return any(
        len(parts := name.split(".")) > depth and _pattern(".".join(parts[:depth])).fullmatch(key)
        for name in _NAMES
    )


@cache
def _pattern(name: str) -> re.Pattern[str]:
    parts: Iterable[str] = re.split(r"(<\w+>)", name)
    # A phase's number has dots of its own: phase_commit_docs.2.1.
    wild = r".+" if "<phase>" in name else r"[^.]+"
    return re.compile("".join(wild if part.startswith("<") else re.escape(part) for part in parts))

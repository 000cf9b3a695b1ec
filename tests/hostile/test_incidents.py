"""Incidents of products of this kind, each with the tests that prove that it cannot happen here."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

INCIDENTS: Mapping[str, tuple[str, ...]] = {
    # The server
    "a middleware for HTTP let WebSockets through": (
        "web/test_gate.py::test_no_attack_on_a_route_succeeds",
        "web/test_gate.py::test_a_socket_needs_the_token_as_a_subprotocol",
    ),
    "a page of another site opened a WebSocket": (
        "web/test_gate.py::test_no_attack_on_a_route_succeeds",
        "web/test_serve.py::test_the_token_is_private_and_in_no_log_and_dies_with_the_server",
    ),
    "the server listened on all addresses, and everything was open to everybody": (
        "web/test_serve.py::test_it_listens_on_this_machine_only",
        "web/test_gate.py::test_nobody_without_a_token_learns_which_routes_exist",
        "web/test_gate.py::test_a_route_outside_of_the_table_does_not_exist",
    ),
    "CORS for every origin": ("web/test_gate.py::test_no_attack_on_a_route_succeeds",),
    "JSON was accepted as text/plain, which needs no preflight": (
        "web/test_gate.py::test_no_attack_on_a_route_succeeds",
        "web/test_serve.py::test_the_token_is_private_and_in_no_log_and_dies_with_the_server",
    ),
    "Host and Origin were not checked (DNS rebinding)": (
        "web/test_gate.py::test_no_attack_on_a_route_succeeds",
        "web/test_gate.py::test_a_tunnel_has_to_be_named",
    ),
    "a cookie for the server was sent to the agent's own application on another port": (
        "web/test_gate.py::test_no_attack_on_a_route_succeeds",
        "web/test_serve.py::test_the_token_is_private_and_in_no_log_and_dies_with_the_server",
    ),
    "the token was in a query, a log or the arguments of a process": (
        "web/test_gate.py::test_tokens_have_256_bits_and_are_never_shown",
        "web/test_serve.py::test_the_token_is_private_and_in_no_log_and_dies_with_the_server",
    ),
    "an open stream kept the server from stopping": (
        "web/test_serve.py::test_it_stops_within_three_seconds_with_streams_of_every_kind",
    ),
    "a project that could not be read was left out of the lists in silence": (
        "hostile/test_sinks.py::test_a_project_that_cannot_be_read_is_listed_with_the_reason",
    ),
    "one project kept the server from answering for the others": (
        "hostile/test_server.py::test_no_route_is_harmed_by_a_hostile_project",
    ),
    # What is shown
    "output of agents wrote to the clipboard (OSC 52)": (
        "sanitize/test_sequences.py::test_nothing_of_a_sequence_reaches_a_terminal_or_a_planning_file",
        "web/test_stream.py::test_output_for_the_page_has_no_escape_sequences",
        "mcp/test_tools.py::test_output_is_text_as_a_terminal_shows_it",
    ),
    "the full-screen view was sanitized, and another sink was forgotten": (
        "hostile/test_server.py::test_no_route_is_harmed_by_a_hostile_project",
        "sessions/test_adversaries.py::test_the_list_fits_a_narrow_terminal_and_its_names_control_nothing",
        "sessions/test_adversaries.py::test_hostile_output_is_stored_as_it_is_and_can_be_read_as_text",
        "web/test_stream.py::test_a_secret_and_a_control_character_in_data_are_not_sent",
        "hostile/test_sinks.py::test_changes_that_a_reader_follows_have_no_control_characters",
        "hostile/test_sinks.py::test_every_tool_and_document_of_mcp_is_harmless",
        "hostile/test_server.py::test_every_message_of_a_socket_is_answered_without_control_characters",
        "hostile/test_server.py::test_streamed_events_and_mcp_over_http_have_no_control_characters",
        "hostile/test_reading_commands.py::test_a_share_of_the_reading_commands_in_every_hostile_project",
        "terminal/test_showing.py::test_untrusted_text_cannot_control_the_terminal",
        "terminal/test_menu.py::test_hostile_options_and_keys_cannot_control_the_terminal",
        "secrets/test_nothing_leaks.py::test_no_secret_and_no_sequence_is_printed_or_sent",
    ),
    "approvals that hid part of the command behind bidi or padding": (
        "hostile/test_sinks.py::test_no_list_of_questions_hides_a_part_of_a_command_that_is_to_be_approved",
        "terminal/test_prompt.py::test_a_permission_shows_its_reason_and_the_whole_command",
    ),
    # The harness and the autopilot of before
    "a terminated session was recorded as completed": (
        "sessions/test_adversaries.py::test_a_runner_killed_at_any_point_leaves_no_process_and_a_reason",
        "sessions/test_adversaries.py::test_stop_by_name_for_a_running_and_a_queued_session",
    ),
    "recovery killed a stored process id without checking whose it was": (
        "sessions/test_sessions.py::test_a_process_that_only_has_the_same_id_is_left_alone",
    ),
    "a page never learned of a question, or not after a reload": (
        "browser/test_questions.py::test_a_question_is_on_the_page_within_a_quarter_of_a_second",
        "browser/test_run.py::test_a_page_comes_back_after_a_break_and_a_killed_server_and_misses_nothing",
    ),
    "since was accepted and ignored": (
        "mcp/test_tools.py::test_a_session_is_followed_read_by_cursor_and_ended",
        "cli/test_status_log_questions.py::test_after_is_a_cursor_and_since_is_a_time",
    ),
    "two orchestrators ran on one project": (
        "sessions/test_sessions.py::test_two_sessions_of_a_project_never_run_at_once",
        "e2e/test_one_at_a_time.py::test_two_that_start_at_the_same_time_are_one_run",
        "run/test_before.py::test_a_second_run_in_the_project_ends_immediately_naming_the_first_one",
    ),
    "an answer was lost, or given twice": (
        "browser/test_questions.py::test_of_two_pages_that_answer_at_once_one_wins_and_the_other_shows_the_answer",
        "mcp/test_tools.py::test_a_question_is_answered_and_a_manual_check_judged",
    ),
    "a model passed a check that nobody had looked at": (
        "mcp/test_tools.py::test_a_question_is_answered_and_a_manual_check_judged",
        "hostile/test_sinks.py::test_calls_of_a_careless_model_are_errors_that_say_what_to_do",
        "native/test_verify_step.py::test_a_manual_check_that_nobody_looked_at_is_assumed_and_stays_listed",
    ),
    "an unanswered question silently became the model's own decision": (
        "cli/test_run.py::test_an_unanswered_question_ends_the_run_and_resume_continues_it",
        "run/test_unanswered.py::test_the_recommended_option_is_taken_after_the_timeout_and_recorded_as_such",
    ),
    "the verifier passed when it could not read the verdict": (
        "run/test_gaps.py::test_an_unreadable_answer_of_the_verifier_does_not_pass",
        "native/test_verify_step.py::test_an_invalid_verdict_is_not_a_pass",
    ),
    "the verifier believed the executor's own story": (
        "adversarial/test_false_verdicts.py::"
        "test_a_verifier_that_says_holds_and_cites_what_it_did_not_do_does_not_end_with_0",
        "machine/test_claims.py::test_a_summary_and_a_verdict_that_appear_during_the_run_are_not_believed",
    ),
    "after the last gap fix nothing verified again": (
        "run/test_gaps.py::test_there_are_at_most_three_gap_rounds_and_the_last_one_is_verified_too",
        "machine/test_walk.py::test_gaps_are_planned_executed_and_verified_even_after_the_last_round",
    ),
    "on resume gaps_found on disk counted as completed": (
        "run/test_gaps.py::test_gaps_in_the_verdict_of_an_earlier_run_are_closed",
        "adversarial/test_claims_in_files.py::test_a_ticked_phase_whose_verification_found_gaps_is_not_complete",
    ),
    "retry, skip and abort were shown, and the run aborted whatever one chose": (
        "run/test_failures.py::test_a_human_may_retry_a_failure_which_starts_the_step_from_scratch",
        "run/test_failures.py::test_a_human_may_skip_what_fails_or_abort",
    ),
    "questions were never batched": (
        "native/test_discuss_step.py::test_the_questions_are_asked_in_one_batch_with_a_recommendation",
    ),
    "a run's ceiling was checked between units only": (
        "run/test_failures.py::test_what_is_left_of_a_budget_is_the_limit_of_each_call",
        "claude/test_calls.py::test_a_call_ends_at_its_limit_of_dollars",
        "run/test_failures.py::test_what_calls_at_once_have_spent_so_far_counts_for_each_of_them",
    ),
    "quota death looked like a crash": (
        "claude/test_failures.py::test_a_usage_limit_is_transient_and_has_its_end",
        "run/test_failures.py::test_a_usage_limit_is_waited_for_by_a_timer",
        "git/test_recovery.py::test_everything_uncommitted_is_kept_without_touching_anything",
    ),
    # The autopilot of before
    "defaults of flags overrode the file and the environment": (
        "cli/test_start.py::test_a_flag_that_was_not_given_overrides_nothing",
    ),
    "the search for gaps found a word in a report that had passed": (
        "planning/test_read.py::test_only_a_known_status_is_a_verdict",
        "existing_projects/test_flaws.py::test_a_verdict_that_is_stated_twice_is_none",
    ),
    "the parser of dependencies knew one form only, and dependent phases ran together": (
        "planning/test_read.py::"
        "test_a_phase_is_read_at_every_heading_level_and_with_colons_in_or_after_the_bold_text",
        "planning/test_read.py::test_dependencies_are_the_named_phases",
        "planning/test_read.py::test_depends_on_may_be_called_dependencies",
    ),
    "phases 3.1 and 3.10 became one": (
        "planning/test_read.py::test_folders_are_matched_to_phases_by_number_and_not_by_prefix",
        "planning/test_edit.py::test_phase_1_is_not_mistaken_for_1_1_or_10",
        "planning/test_edit.py::test_a_phase_number_in_the_frontmatter_stays_what_it_is",
    ),
    "a time-out ran while a human was thinking": (
        "run/test_timeouts.py::"
        "test_an_agent_is_ended_exactly_when_its_unpaused_time_or_silence_reaches_the_limit",
        "run/test_questions.py::test_an_agent_that_waits_too_long_is_ended_and_resumed_with_the_answer",
    ),
    "an error of the service had no name and was retried at once": (
        "claude/test_failures.py::test_a_server_error_is_transient_after_the_clis_own_retries",
        "plugins/test_small_policies.py::"
        "test_pauses_double_up_to_the_maximum_and_jitter_shortens_them_by_up_to_half",
        "run/test_outages.py::test_each_attempt_after_an_outage_resumes_the_same_conversation",
    ),
    "an answer was deleted when no matching question was open": (
        "cli/test_answer_and_stop.py::test_an_unknown_question_is_an_error_that_lists_the_open_ones",
        "journal/test_inbox.py::test_an_item_outlives_the_run_that_did_not_take_it",
        "run/test_questions.py::test_a_refused_answer_in_the_inbox_is_recorded_and_the_question_stays_open",
    ),
    "the link to a question had the wrong id": (
        "run/test_events.py::"
        "test_a_question_that_nobody_answers_is_notified_with_the_command_that_answers_it",
        "web/test_links.py::test_a_run_with_its_own_page_links_to_it_without_the_token",
        "browser/test_questions.py::test_a_link_to_a_question_opens_it_ready_for_an_answer_by_key",
    ),
    "a failed merge counted as resolved, and the work went with its worktree": (
        "run/test_before.py::test_changed_tracked_files_are_named_and_nothing_is_written",
        "run/test_config_json.py::test_a_branch_that_cannot_be_is_an_error_and_nothing_is_lost",
        "run/test_users_files.py::test_what_a_person_edits_between_two_runs_is_not_swept_into_a_commit",
        "run/test_checkout.py::test_nothing_that_runs_in_it_changes_the_real_history",
    ),
    "an abort did not reach the worker that was running": (
        "kills/test_signals.py::test_a_signal_while_a_command_runs_stops_the_run_and_resume_finishes_it",
        "e2e/test_steering.py::test_a_run_that_was_stopped_from_elsewhere_is_resumed",
        "claude/test_conversation.py::test_cancelling_a_call_during_a_command_leaves_no_process",
    ),
    "without verification the progress never reached its end": (
        "views/test_views.py::test_a_phase_without_verification_has_no_step_left",
        "run/test_gaps.py::test_a_run_without_verification_says_so",
    ),
    # The harness of before
    "nothing ever said that a session waits for an answer": (
        "sessions/test_sessions.py::test_a_run_in_the_background_waits_for_its_answer_and_takes_it",
        "mcp/test_tools.py::test_a_question_is_answered_and_a_manual_check_judged",
    ),
    "output was joined again with line breaks between its pieces": (
        "sessions/test_output.py::test_every_byte_is_read_once_whatever_the_sizes",
        "mcp/test_tools.py::test_a_session_is_followed_read_by_cursor_and_ended",
    ),
    "the range of slots differed from tool to tool": (
        "sessions/test_adversaries.py::test_settings_that_would_let_sessions_wait_for_ever_are_refused",
        "sessions/test_sessions.py::test_more_sessions_than_slots_wait_their_turn",
    ),
    "a live session was not found again after a restart": (
        "sessions/test_adversaries.py::test_a_deleted_registry_is_made_anew_and_the_session_is_found_again",
        "web/test_serve.py::test_a_server_that_is_killed_and_started_again_knows_the_same",
    ),
    "a session that was watched but not read was killed after ten minutes": (
        "sessions/test_adversaries.py::"
        "test_a_session_that_nobody_reads_and_that_prints_nothing_for_long_is_left_alone",
    ),
    # GSD and its rivals
    "sub-agents cannot start sub-agents, so that checking and verifying were skipped": (
        "machine/test_walk.py::test_a_project_without_problems_is_done_with_every_step_once",
        "native/test_depth.py::test_an_agent_reviews_the_plans_of_a_comprehensive_project",
        "claude/test_calls.py::test_only_the_tasks_tools_are_sent",
    ),
    "executors edited STATE.md and ROADMAP.md themselves and lost both": (
        "adversarial/test_false_verdicts.py::test_an_executor_may_not_write_what_belongs_to_another_step",
        "run/test_guard.py::test_what_only_the_run_may_change_is_undone_and_the_next_attempt_is_told",
        "sandbox/test_escapes.py::test_the_plan_and_the_settings_cannot_be_changed",
    ),
    "edits of markdown by pattern drifted": (
        "planning/test_projects.py::test_each_change_leaves_all_other_lines_alone_and_applies_only_once",
    ),
    "a subset of YAML made by hand destroyed lists": (
        "planning/test_round_trips.py::test_a_rendered_plan_is_read_with_the_same_values",
        "planning/test_read.py::test_a_scalar_is_the_text_that_the_file_has_and_no_number_date_or_truth",
    ),
    "012 became 10": (
        "planning/test_read.py::test_a_scalar_is_the_text_that_the_file_has_and_no_number_date_or_truth",
    ),
    "one unit was dispatched 202 times": (
        "kills/test_repeated_kills.py::test_a_step_lost_three_times_ends_the_run_with_a_question",
        "run/test_own_steps.py::test_a_step_that_stays_due_is_not_repeated_for_ever",
        "native/test_execute_step.py::test_an_executor_that_only_claims_to_be_done_is_rejected",
    ),
    "a ceiling began again at zero after each restart": (
        "run/test_failures.py::test_a_spent_budget_stays_spent_after_a_restart",
        "run/test_failures.py::test_a_lost_call_is_counted_once_by_its_turns_and_its_conversation_is_resumed",
        "cli/test_continued_run.py::test_a_continued_run_keeps_its_limits_and_models",
    ),
    "20 calls at once passed the same check, because nothing was reserved": (
        "run/test_failures.py::test_calls_at_once_cannot_each_pass_the_same_check_of_the_budget",
        "plugins/test_small_policies.py::test_a_budget_stops_before_a_call_that_could_exceed_it",
    ),
    "a run was blocked for good: a state had no exit": (
        "machine/test_walk.py::test_every_state_within_the_bound_has_something_due_and_can_reach_an_end",
        "machine/test_walk.py::test_an_end_can_be_reached_after_any_events",
    ),
    # Measured traps
    "SQLite corrupted a WAL file with several writers": (
        "journal/test_store.py::test_sqlite_has_no_bug_that_corrupts_a_wal_file_with_several_writers",
        "journal/test_inbox.py::test_many_processes_may_put_while_the_run_writes",
    ),
    "a killed commit left HEAD.lock, and nothing could be committed any more": (
        "git/test_recovery.py::test_every_lock_file_of_git_is_removed_and_nothing_else",
        "git/test_recovery.py::test_after_a_killed_commit_sweeping_is_enough_to_continue",
        "e2e/test_users_files.py::test_a_lock_of_a_running_git_is_waited_for_and_never_removed",
        "kills/test_random_kills.py::test_runs_killed_sixty_times_are_each_finished_once",
    ),
    "a stale file with a process id blocked the next run": (
        "journal/test_lock.py::test_a_kill_releases_the_lock",
        "e2e/test_one_at_a_time.py::test_a_lock_file_left_by_a_killed_run_does_not_block_the_next",
    ),
    "a thread that waited for a human kept the process from ending": (
        "cli/test_run.py::test_ctrl_c_at_the_prompt_ends_the_run_and_resume_asks_again",
        "cli/test_run.py::test_an_answer_from_another_terminal_is_seen_at_this_one",
        "terminal/test_prompt.py::test_a_line_cannot_be_awaited_from_a_file",
    ),
    "YAML with duplicate keys, or a bomb of aliases": (
        "existing_projects/test_flaws.py::test_a_duplicate_key_is_a_warning_and_drops_no_promise",
        "existing_projects/test_bad_files.py::test_costly_files_are_read_or_rejected",
    ),
    "each command loaded every library": (
        "package/test_startup.py::test_a_command_that_only_shows_something_loads_no_heavy_library",
        "cli/test_help.py::test_help_imports_no_heavy_library",
    ),
    "a live view printed its last frame only where there is no terminal": (
        "terminal/test_showing.py::test_a_run_is_shown_line_by_line",
    ),
    "six event streams used up a browser's connections": (
        "package/test_conventions.py::test_the_page_has_one_connection_for_all_that_it_follows",
        "web/test_stream.py::test_a_frame_has_at_most_256_changes_and_no_number_is_missing",
    ),
    "the terminal on the page was black on black while its text was there": (
        "browser/test_terminal.py::test_the_terminal_shows_text_takes_keys_and_has_the_size_of_the_page",
    ),
}
"""Each incident, and the tests as a file below ``tests`` and a function."""


@pytest.mark.parametrize("incident", INCIDENTS)
def test_the_tests_for_an_incident_exist(incident: str) -> None:
    for name in INCIDENTS[incident]:
        path, _, function = name.partition("::")
        tree = ast.parse((TESTS / path).read_text("utf-8"))
        found = [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert function in [one.name for one in found], name

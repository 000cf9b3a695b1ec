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
    ),
    "two orchestrators ran on one project": (
        "sessions/test_sessions.py::test_two_sessions_of_a_project_never_run_at_once",
        "e2e/test_one_at_a_time.py::test_two_that_start_at_the_same_time_are_one_run",
    ),
    "an answer was lost, or given twice": (
        "browser/test_questions.py::test_of_two_pages_that_answer_at_once_one_wins_and_the_other_shows_the_answer",
        "mcp/test_tools.py::test_a_question_is_answered_and_a_manual_check_judged",
    ),
    "a model passed a check that nobody had looked at": (
        "mcp/test_tools.py::test_a_question_is_answered_and_a_manual_check_judged",
        "hostile/test_sinks.py::test_calls_of_a_careless_model_are_errors_that_say_what_to_do",
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
    ),
    "quota death looked like a crash": (
        "claude/test_failures.py::test_a_usage_limit_is_transient_and_has_its_end",
        "run/test_failures.py::test_a_usage_limit_is_waited_for_by_a_timer",
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

"""What a check's output says that its exit code does not: the outputs of test runners, and of shells.

The outputs are those of the runners themselves, as they print them or as their documentation shows them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from gsd_core.run.check_output import HIDDEN_FAILURE, NO_TESTS, does_nothing, flaw_in, why_unusable

LINE = "-" * 70
NONE = {
    "unittest 3.11": f"\n{LINE}\nRan 0 tests in 0.000s\n\nOK\n",
    "unittest 3.12": f"\n{LINE}\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "unittest skipped": f"s\n{LINE}\nRan 1 test in 0.001s\n\nOK (skipped=1)\n",
    "unittest class skipped": f"s\n{LINE}\nRan 0 tests in 0.000s\n\nOK (skipped=1)\n",
    "django": f"Found 0 test(s).\nSystem check identified no issues (0 silenced).\n\n{LINE}\n"
    f"Ran 0 tests in 0.000s\n\nOK\n",
    "pytest": "collected 0 items\n\n============ no tests ran in 0.01s ============\n",
    "pytest -q": "\nno tests ran in 0.00s\n",
    "pytest skipped": "collected 2 items\n\ntests/test_a.py ss       [100%]\n\n"
    "============ 2 skipped in 0.01s ============\n",
    "pytest -q skipped": "ss                                              [100%]\n2 skipped in 0.01s\n",
    "pytest deselected": "collected 3 items / 3 deselected / 0 selected\n\n==== 3 deselected in 0.01s ====\n",
    "pytest warnings": "=== 1 skipped, 2 warnings in 0.20s ===\n",
    "pytest --collect-only": "tests/test_a.py::test_a\n\n1 test collected in 0.01s\n",
    "jest": "No tests found, exiting with code 0\n",
    "jest skipped": "Test Suites: 1 skipped, 0 of 1 total\nTests:       3 skipped, 3 total\n"
    "Snapshots:   0 total\n",
    "jest todo": "Test Suites: 1 passed, 1 total\nTests:       1 todo, 1 total\nTime:        0.4 s\n",
    "vitest": "No test files found, exiting with code 0\n",
    "vitest skipped": " Test Files  1 skipped (1)\n      Tests  2 skipped (2)\n   Start at  10:00:00\n",
    "vitest empty": " Test Files  1 passed (1)\n      Tests  no tests\n",
    "mocha": "\n\n  0 passing (1ms)\n\n",
    "mocha pending": "\n  a\n    - works\n\n\n  0 passing (2ms)\n  1 pending\n\n",
    "ava": "  ✖ Couldn't find any files to test\n",
    "ava skipped": "\n  1 test skipped\n",
    "tape": "TAP version 13\n\n1..0\n# tests 0\n# pass  0\n\n# ok\n",
    "tap skipped": "TAP version 13\n1..1\nok 1 # skip no database\n",
    "node:test": "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\n",
    "node:test without a folder": "Could not find '/project/test'\n",
    "node:test skipped": "ok 1 - x # SKIP\n1..1\n# tests 1\n# suites 0\n# pass 0\n# fail 0\n"
    "# cancelled 0\n# skipped 1\n",
    "go test -cover": "\texample.com/demo\t\tcoverage: 0.0% of statements\n",
    "bun": "\n 0 pass\n 0 fail\nRan 0 tests across 1 file. [9.00ms]\n",
    "bun skipped": "bun test v1.1.0\n\n 0 pass\n 2 skip\n 0 fail\nRan 2 tests across 1 file. [9.00ms]\n",
    "deno": "error: No test modules found\n",
    "deno ignored": "running 1 test from ./a.ts\nx ... ignored (0ms)\n\n"
    "ok | 0 passed | 0 failed | 1 ignored (3ms)\n",
    "jasmine": "Ran 0 of 0 specs\n\n0 specs, 0 failures\nFinished in 0.003 seconds\n",
    "karma": "HeadlessChrome: Executed 0 of 0 SUCCESS (0.002 secs / 0 secs)\n",
    "playwright skipped": "Running 1 test using 1 worker\n\n  -  1 a.spec.ts:3:6 › x\n\n  1 skipped\n",
    "npm script": "\n> demo@1.0.0 test\n> exit 0\n\n",
    "npm init": '\n> demo@1.0.0 test\n> echo "no tests yet" && exit 0\n\nno tests yet\n',
    "go no files": "?   \texample.com/demo\t[no test files]\n",
    "go none": "testing: warning: no tests to run\nPASS\nok  \texample.com/demo\t0.002s [no tests to run]\n",
    "go run filter": "ok  \texample.com/a\t0.002s [no tests to run]\n?   \texample.com/b\t[no test files]\n",
    "go skipped": "=== RUN   TestA\n    a_test.go:5: later\n--- SKIP: TestA (0.00s)\nPASS\n"
    "ok  \texample.com/demo\t0.002s\n",
    "gotestsum": "\nDONE 0 tests in 0.351s\n",
    "gotestsum skipped": "∅  .\n\nDONE 2 tests, 2 skipped in 0.351s\n",
    "ginkgo": "Ran 0 of 3 Specs in 0.000 seconds\nSUCCESS! -- 0 Passed | 0 Failed | 0 Pending | 3 Skipped\n",
    "cargo": "running 0 tests\n\n"
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    "cargo filtered": "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 12 filtered out; "
    "finished in 0.00s\n" * 2,
    "cargo ignored": "test result: ok. 0 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; "
    "finished in 0.00s\n",
    "nextest": "    Starting 0 tests across 1 binary\n"
    "     Summary [   0.003s] 0 tests run: 0 passed, 0 skipped\n",
    "dotnet": "No test is available in /src/bin/Debug/net8.0/Demo.Tests.dll. Make sure that test "
    "discoverer\n",
    "dotnet filter": "No test matches the given testcase filter `Name=x` in /src/Demo.Tests.dll\n",
    "dotnet skipped": "Skipped! - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: "
    "3 ms - Demo.Tests.dll\n",
    "dotnet total": "Total tests: 2\n     Skipped: 2\n Total time: 0.9 Seconds\n",
    "maven": "[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n",
    "maven -DskipTests": "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS\n",
    "maven skipped": "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2, Time elapsed: 0.03 "
    "s\n[INFO] BUILD SUCCESS\n",
    "gradle": "> Task :compileTestJava NO-SOURCE\n> Task :testClasses UP-TO-DATE\n"
    "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
    "sbt": "[info] Passed: Total 0, Failed 0, Errors 0, Passed 0\n[info] No tests were executed.\n",
    "phpunit": "PHPUnit 10.5.0\n\nNo tests executed!\n",
    "phpunit skipped": "S   1 / 1 (100%)\n\nOK, but some tests were skipped!\n"
    "Tests: 1, Assertions: 0, Skipped: 1.\n",
    "pest": "\n   INFO  No tests found.\n",
    "pest skipped": "\n  Tests:    1 skipped (0 assertions)\n  Duration: 0.03s\n",
    "rspec": "No examples found.\n\nFinished in 0.0003 seconds\n0 examples, 0 failures\n",
    "rspec pending": "**\n\n2 examples, 0 failures, 2 pending\n",
    "minitest": "Run options: --seed 1\n\n0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n",
    "minitest skips": "SS\n\n2 runs, 0 assertions, 0 failures, 0 errors, 2 skips\n",
    "test-unit": "0 tests, 0 assertions, 0 failures, 0 errors, 0 pendings, 0 omissions, 0 notifications\n",
    "exunit": "There are no tests to run\n",
    "exunit skipped": "Finished in 0.01 seconds\n2 tests, 0 failures, 2 skipped\n",
    "bats": "1..0\n",
    "prove": "t/a.t .. skipped: no db\nFiles=1, Tests=0,  0 wallclock secs ( 0.03 usr)\nResult: NOTESTS\n",
    "ctest": "Test project /src/build\nNo tests were found!!!\n",
    "ctest skipped": "1/1 Test #1: two ......***Skipped   0.01 sec\n\n"
    "100% tests passed, 0 tests failed out of 1\n\n"
    "The following tests did not run:\n\t  1 - two (Skipped)\n",
    "googletest": "[==========] Running 0 tests from 0 test suites.\n"
    "[==========] 0 tests from 0 test suites ran. (0 ms total)\n"
    "[  PASSED  ] 0 tests.\n",
    "googletest skipped": "[==========] 1 test from 1 test suite ran. (0 ms total)\n[  PASSED  ] 0 tests.\n"
    "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.B\n",
    "catch2": "No tests ran\n",
    "doctest": "[doctest] test cases: 0 | 0 passed | 0 failed | 0 skipped\n[doctest] Status: SUCCESS!\n",
    "swift": "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n"
    "✔ Test run with 0 tests passed after 0.001 seconds.\n",
    "swift skipped": "\t Executed 2 tests, with 2 tests skipped and 0 failures (0 unexpected) in 0.0 "
    "(0.0) seconds\n",
    "zig": "All 0 tests passed.\n",
    "dart": "00:01 +0: No tests ran.\nNo tests ran.\n",
    "dart skipped": "00:01 +0 ~2: All tests skipped.\n",
    "busted": "0 successes / 0 failures / 0 errors / 0 pending : 0.0 seconds\n",
    "testthat": "[ FAIL 0 | WARN 0 | SKIP 2 | PASS 0 ]\n",
    "make, a folder": "make: 'tests' is up to date.\n",
    "make, no recipe": "make: Nothing to be done for 'test'.\n",
    "leiningen": "Ran 0 tests containing 0 assertions.\n0 failures, 0 errors.\n",
}
SOME = {
    "unittest": f"..\n{LINE}\nRan 2 tests in 0.001s\n\nOK\n",
    "unittest one skipped": f".s\n{LINE}\nRan 2 tests in 0.001s\n\nOK (skipped=1)\n",
    "unittest expected failure": f"x\n{LINE}\nRan 1 test in 0.001s\n\nOK (expected failures=1)\n",
    "two unittest runs": f"{LINE}\nRan 0 tests in 0.000s\n\nOK\n.\n{LINE}\nRan 1 test in 0.001s\n\nOK\n",
    "pytest": "=========== 1 passed, 1 skipped, 3 warnings in 0.12s ===========\n",
    "pytest -q": ".                                            [100%]\n1 passed in 0.01s\n",
    "pytest slow": "====== 210 passed, 2 skipped, 1 xfailed in 62.31s (0:01:02) ======\n",
    "pytest xfailed": "1 xfailed in 0.01s\n",
    "jest": "Test Suites: 2 passed, 2 total\nTests:       1 skipped, 4 passed, 5 total\n"
    "Snapshots:   0 total\n",
    "vitest": " Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n",
    "mocha": "\n  3 passing (5ms)\n  1 pending\n",
    "ava": "\n  2 tests passed\n  1 test skipped\n",
    "node:test": "✔ x (0.4ms)\nℹ tests 1\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ skipped 0\n",
    "tape": "ok 1 should be equal\n\n1..1\n# tests 1\n# pass  1\n\n# ok\n",
    "bun": "\n 3 pass\n 0 fail\n 3 expect() calls\nRan 3 tests across 1 file. [9.00ms]\n",
    "deno": "ok | 1 passed (2 steps) | 0 failed (5ms)\n",
    "jasmine": "5 specs, 0 failures, 1 pending spec\n",
    "playwright": "Running 2 tests using 1 worker\n\n  1 skipped\n  1 passed (1.2s)\n",
    "npm script": "\n> demo@1.0.0 test\n> node --test\n\nℹ tests 1\nℹ pass 1\nℹ fail 0\n",
    "go": "?   \texample.com/demo\t[no test files]\nok  \texample.com/demo/store\t0.004s\n",
    "go cached": "ok  \texample.com/demo\t(cached)\n",
    "go coverage": "ok  \texample.com/demo\t0.004s\tcoverage: 81.2% of statements\n",
    "go -v": "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\n"
    "PASS\nok  \texample.com/demo\t0.002s\n",
    "gotestsum": "DONE 3 tests, 1 skipped in 0.351s\n",
    "cargo with doc tests": "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered "
    "out; finished in 0.01s\n\n"
    "   Doc-tests demo\n\nrunning 0 tests\n\n"
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    "cargo bench": "test result: ok. 0 passed; 0 failed; 0 ignored; 2 measured; 0 filtered out; "
    "finished in 1.00s\n",
    "nextest": "     Summary [   0.003s] 3 tests run: 3 passed (1 slow), 1 skipped\n",
    "dotnet": "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 9 ms - "
    "Demo.Tests.dll (net8.0)\n",
    "dotnet total": "Total tests: 3\n     Passed: 3\n Total time: 0.9 Seconds\n",
    "dotnet 9": "Test summary: total: 3, failed: 0, succeeded: 3, skipped: 0, duration: 1s\n",
    "maven": "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.03 s -- in DemoTest\n",
    "maven modules": "[INFO] No tests to run.\n[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n",
    "gradle": "> Task :app:test\n\nBUILD SUCCESSFUL in 3s\n",
    "gradle modules": "> Task :lib:test NO-SOURCE\n> Task :app:test UP-TO-DATE\n\nBUILD SUCCESSFUL in 3s\n",
    "phpunit": "OK (3 tests, 5 assertions)\n",
    "phpunit skipped": "OK, but some tests were skipped!\nTests: 3, Assertions: 4, Skipped: 1.\n",
    "pest": "\n  Tests:    2 passed (3 assertions)\n  Duration: 0.03s\n",
    "rspec": "3 examples, 0 failures, 1 pending\n",
    "minitest": "3 runs, 4 assertions, 0 failures, 0 errors, 1 skips\n",
    "exunit": "1 doctest, 2 tests, 0 failures\n",
    "exunit doctests": "3 doctests, 0 failures\n",
    "bats": "1..2\nok 1 adds\nok 2 lists # skip later\n",
    "prove": "t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=1,  0 wallclock secs\nResult: PASS\n",
    "ctest": "100% tests passed, 0 tests failed out of 2\n\nThe following tests did not run:\n"
    "\t  2 - two (Skipped)\n",
    "googletest": "[==========] 3 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 3 tests.\n",
    "catch2": "All tests passed (3 assertions in 1 test case)\n",
    "swift": "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n"
    "✔ Test run with 3 tests passed after 0.001 seconds.\n",
    "zig": "All 3 tests passed.\n",
    "dart": "00:01 +3: All tests passed!\n",
    "two runners": "No tests found, exiting with code 0\n=== 3 passed in 0.10s ===\n",
}
PROSE = (
    "",
    "make: 'build' is up to date.\n",
    "make: Nothing to be done for 'all'.\n",
    "0 tests\n",
    "There are 0 tests in this folder, so write some.\n",
    "0 failed, 0 errors\n",
    "Checked 12 files: 0 errors, 0 warnings\n",
    "12 modules transformed.\nbuilt in 0.52s\n",
    "3 skipped files in cache\n",
    "Tests: see the folder tests/\n",
    "no tests are needed for the docs\n",
    "ok\n",
    "> greeter@1.0.0 build\n> tsc\n",
    "Total: 0\n",
    "ran no tests yesterday\n",
)
FAILED = {
    "unittest": f"F\n{LINE}\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
    "pytest": "=== 1 failed, 3 passed in 0.10s ===\n",
    "pytest error": "1 error in 0.05s\n",
    "jest": "Tests:       1 failed, 2 passed, 3 total\n",
    "vitest": "      Tests  1 failed | 2 passed (3)\n",
    "mocha": "\n  3 passing (5ms)\n  1 failing\n",
    "node:test": "ℹ tests 2\nℹ pass 1\nℹ fail 1\n",
    "tap": "1..2\nok 1 a\nnot ok 2 b\n",
    "go": "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/demo\t0.002s\n",
    "cargo": "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished "
    "in 0.00s\n",
    "rspec": "3 examples, 1 failure\n",
    "maven": "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n",
    "phpunit": "Tests: 3, Assertions: 3, Failures: 1.\n",
    "minitest": "3 runs, 4 assertions, 1 failures, 0 errors, 0 skips\n",
}


@pytest.mark.parametrize("name", NONE)
def test_a_run_without_tests_proves_nothing(name: str) -> None:
    assert flaw_in("make test", 0, NONE[name]) == NO_TESTS


@pytest.mark.parametrize("name", SOME)
def test_a_run_with_a_test_is_no_false_alarm(name: str) -> None:
    assert flaw_in("make test", 0, SOME[name]) == ""


@pytest.mark.parametrize("text", PROSE)
def test_prose_about_tests_is_not_a_summary(text: str) -> None:
    assert flaw_in("sh check.sh", 0, text) == ""


@pytest.mark.parametrize("name", FAILED)
def test_failed_tests_behind_exit_code_0_are_noticed(name: str) -> None:
    assert flaw_in("sh run_tests.sh", 0, FAILED[name]) == HIDDEN_FAILURE
    assert flaw_in("sh run_tests.sh", 1, FAILED[name]) == ""


@pytest.mark.parametrize(
    "command", ["! pytest tests/broken", "pytest || pytest --last-failed", "if pytest; then exit 1; fi"]
)
def test_a_command_may_expect_a_failure(command: str) -> None:
    assert flaw_in(command, 0, FAILED["pytest"]) == ""


@pytest.mark.slow
def test_the_runners_that_are_here_print_what_the_table_says(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import unittest\n@unittest.skip('x')\nclass A(unittest.TestCase):\n def test_a(self): pass\n"
    )
    for command in (
        ["unittest", "-q"],
        ["unittest", "test_a"],
        ["pytest", "-q"],
        ["pytest", "-k", "nothing"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert flaw_in("", done.returncode, done.stdout + done.stderr) == NO_TESTS, command


def test_a_megabyte_of_output_is_searched_in_a_moment() -> None:
    lines = (
        "  0 passing-ish words 12 tests, and so on\n" * 12_000,
        " " * 1_000_000,
        "\n" * 1_000_000,
        "ok " * 300_000,
        "1 " * 500_000,
    )

    def seconds(text: str) -> float:
        began = time.process_time()
        assert flaw_in("make", 0, text) == ""
        return time.process_time() - began

    for text in lines:
        # Other work on the machine counts too.
        assert any(seconds(text) < 3 for _ in range(4))


@pytest.mark.parametrize(
    ("script", "empty"),
    [
        ("#!/bin/sh\nexit 0\n", True),
        ("#!/bin/sh\nset -eu\n# run the tests\necho 'all tests pass'\nexit 0\n", True),
        ("", True),
        ("true\n", True),
        ("printf 'ok\\n'; exit\n", True),
        ("#!/bin/sh\npython3 -m unittest\nexit 0\n", False),
        ("echo $(rm x)\n", False),
        ("exit 1\n", False),
        ("test -s notes.py\n", False),
        ("echo x | grep y\n", False),
    ],
)
def test_a_script_that_cannot_fail_is_recognized(script: str, empty: bool) -> None:
    assert does_nothing(script) is empty


@pytest.mark.parametrize(
    ("command", "code", "output", "named"),
    [
        ("jq . a.json", 127, "/bin/sh: 1: jq: not found\n", "`jq`"),
        ("jq . a.json", 127, "/bin/sh: line 1: jq: command not found\n", "`jq`"),
        ("jq . a.json", 127, "/bin/sh: jq: not found\n", "`jq`"),
        ("jq . a.json", 127, "/usr/bin/bash: line 1: jq: command not found\n", "`jq`"),
        ("./tools/check", 126, "/bin/bash: line 1: ./tools/check: Permission denied\n", "./tools/check"),
        ("echo 'x", 2, "/bin/bash: -c: line 1: unexpected EOF while looking for matching `''\n", "syntax"),
        ("cat a | jq . | grep x", 1, "/bin/sh: 1: jq: not found\n", "`jq`"),
        ("[[ -f a ]]", 127, "/bin/sh: 1: [[: not found\n", "`[[`"),
        ("./tools/check", 126, "/bin/sh: 1: ./tools/check: Permission denied\n", "./tools/check"),
        ("echo 'x", 2, "/bin/sh: 1: Syntax error: Unterminated quoted string\n", "syntax"),
        ("echo 'x", 2, "/bin/sh: -c: line 1: unexpected EOF while looking for matching `''\n", "syntax"),
        ("set -o pipefail; x", 2, "/bin/sh: 1: set: Illegal option -o pipefail\n", "syntax"),
        (
            "python3 tools/x.py",
            2,
            "python3: can't open file '/p/tools/x.py': [Errno 2] No such file or directory\n",
            "x.py",
        ),
        ("python3 -m pytest -q", 1, "/usr/bin/python3: No module named pytest\n", "pytest"),
        ("npm run e2e", 1, 'npm ERR! Missing script: "e2e"\nnpm ERR!\n', "e2e"),
        ("npm run e2e", 1, 'npm error Missing script: "e2e"\n', "e2e"),
        ("make verify", 2, "make: *** No rule to make target 'verify'.  Stop.\n", "verify"),
        ("cargo nextest run", 101, "error: no such command: `nextest`\n", "nextest"),
        ("node tools/x.js", 1, "Error: Cannot find module '/p/tools/x.js'\n    at x\n", "x.js"),
        ("sh tools/x.sh", 2, "sh: 0: cannot open tools/x.sh: No such file\n", "tools/x.sh"),
        ("bash tools/x.sh", 127, "bash: tools/x.sh: No such file or directory\n", "tools/x.sh"),
    ],
)
def test_a_command_that_cannot_run_is_the_plans_fault(
    command: str, code: int, output: str, named: str
) -> None:
    assert named in why_unusable(command, code, output, ("notes.py", "tests/test_notes.py"))


@pytest.mark.parametrize(
    ("command", "code", "output", "promised"),
    [
        # What the plan's own tasks should have made.
        ("./run.sh", 127, "/bin/sh: 1: ./run.sh: not found\n", "run.sh"),
        ("./run.sh", 126, "/bin/sh: 1: ./run.sh: Permission denied\n", "run.sh"),
        (
            "python3 tests/x.py",
            2,
            "python3: can't open file '/p/tests/x.py': [Errno 2] No such file\n",
            "tests/x.py",
        ),
        ("python3 -m greeter", 1, "/usr/bin/python3: No module named greeter\n", "src/greeter/cli.py"),
        ("python3 -m greeter.cli", 1, "/usr/bin/python3: No module named greeter.cli\n", "greeter.py"),
        ("greeter --help", 127, "/bin/sh: 1: greeter: not found\n", "src/greeter/__init__.py"),
        ("npm test", 1, 'npm error Missing script: "test"\n', "package.json"),
        ("make test", 2, "make: *** No rule to make target 'test'.  Stop.\n", "Makefile"),
        # What a script of the project does is not the check's fault, and neither is a failing test.
        ("make test", 2, "/bin/sh: 1: foo: not found\nmake: *** [Makefile:2: test] Error 127\n", "notes.py"),
        ("sh run.sh", 127, "run.sh: 3: foo: not found\n", "notes.py"),
        ("python3 -m unittest", 1, "ModuleNotFoundError: No module named 'requests'\n", "notes.py"),
        ("grep -q x a.txt", 2, "grep: a.txt: No such file or directory\n", "notes.py"),
        ("python3 a.py", 1, "SyntaxError: invalid syntax\n", "a.py"),
        ("jq . a.json", 0, "/bin/sh: 1: jq: not found\n", "notes.py"),
    ],
)
def test_what_the_task_should_have_made_is_the_executors_fault(
    command: str, code: int, output: str, promised: str
) -> None:
    assert why_unusable(command, code, output, (promised,)) == ""

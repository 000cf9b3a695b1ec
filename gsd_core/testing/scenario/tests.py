"""The tests of the product: templates, filled in by ``Product``."""

ENTRIES = """import unittest

from $package.entries import TOPICS, Entry, count, parse


class EntriesTest(unittest.TestCase):
    def test_a_line_is_read_back_as_it_was_written(self):
        entry = parse("$first:  $sample ")
        self.assertEqual(entry, Entry("$first", "$sample"))
        self.assertEqual(parse(str(entry)), entry)

    def test_a_line_without_a_topic_is_refused(self):
        with self.assertRaisesRegex(ValueError, "expected 'topic: text'"):
            parse("$sample")

    def test_an_unknown_topic_is_refused_and_the_known_ones_are_named(self):
        with self.assertRaisesRegex(ValueError, ", ".join(TOPICS)):
            parse("nonsense: $sample")

    def test_every_topic_is_counted(self):
        counts = count([Entry("$first", "one"), Entry("$first", "two")])
        self.assertEqual(list(counts), list(TOPICS))
        self.assertEqual(counts["$first"], 2)
        self.assertEqual(sum(counts.values()), 2)
"""

LISTING = """import unittest

from $package.entries import Entry
from $package.listing import MARK, listing


class ListingTest(unittest.TestCase):
    def test_every_entry_has_the_mark_in_front(self):
        self.assertEqual(listing([Entry("$first", "$sample")]), [f"{MARK} $first: $sample"])

    def test_nothing_is_listed_when_there_is_nothing(self):
        self.assertEqual(listing([]), [])
"""

STORE = """import tempfile
import unittest
from pathlib import Path

from $package.entries import Entry
from $package.store import load, save


class StoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "$package.txt"

    def test_what_was_saved_is_loaded(self):
        entries = [Entry("$first", "$sample"), Entry("$last", "two: parts")]
        save(self.path, entries)
        self.assertEqual(load(self.path), entries)

    def test_no_file_is_no_entries(self):
        self.assertEqual(load(self.path), [])
"""

CLI = """import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from $package.cli import main
from $package.listing import MARK


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "$package.txt")

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "--file", self.path])
        return code, out.getvalue(), err.getvalue()

    def test_what_was_added_is_listed(self):
        self.assertEqual(self.run_main("add", "$first: $sample"), (0, "added\\n", ""))
        self.assertEqual(self.run_main("list"), (0, f"{MARK} $first: $sample\\n", ""))

    def test_a_bad_line_is_an_error_and_keeps_nothing(self):
        code, out, err = self.run_main("add", "nonsense")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("expected 'topic: text'", err)
        self.assertEqual(self.run_main("list"), (0, "\\n", ""))
"""

REPORT = """import unittest

from $package.entries import TOPICS, Entry
from $package.report import report


class ReportTest(unittest.TestCase):
    def test_every_topic_has_a_line_and_the_total_is_last(self):
        lines = report([Entry("$first", "one"), Entry("$last", "two")])
        self.assertEqual([line.split()[0] for line in lines], [*TOPICS, "total"])
        self.assertEqual(lines[-1].split()[1], "2")

    def test_the_numbers_are_aligned(self):
        self.assertEqual(len({len(line) for line in report([])}), 1)
"""

REPORT_COMMAND = """import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).parent.parent


class ReportCommandTest(unittest.TestCase):
    def test_the_command_prints_the_report(self):
        command = [sys.executable, "-m", "$package", "report", "--file", "no-such-file"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines()[-1].split(), ["total", "0"])
"""

"""The runner of the golden cases tells right from wrong."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import answers

RUNNER = pathlib.Path(__file__).with_name("run.py")

STUB = """#!/bin/sh
case "$1" in
  say) echo "$2" ;;
  fail) echo "stoker: no" >&2; exit 3 ;;
  where) pwd ;;
  open) printf 'no line break' ;;
esac
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.binary = self.root / "bin" / "stoker"
        self.binary.parent.mkdir()
        self.binary.write_text(STUB)
        self.binary.chmod(0o755)
        (self.root / "cases").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def run_on(self, text, *flags):
        self.case = self.root / "cases" / "one.golden"
        self.case.write_text(text)
        return subprocess.run([sys.executable, RUNNER, "--binary", self.binary, "--cases", self.root / "cases", *flags],
                              capture_output=True, text=True)

    def test_right_output_passes(self):
        done = self.run_on("Prose.\n\n$ stoker say hello\n| hello\n\n$ stoker fail\n! stoker: no\n= 3\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 passed, 0 failed", done.stdout)

    def test_each_kind_of_difference_fails(self):
        for text in ("$ stoker say hello\n| hallo\n", "$ stoker say hello\n", "$ stoker say hello\n| hello\n|\n",
                     "$ stoker fail\n! stoker: no\n", "$ stoker fail\n! stoker: no\n= 2\n",
                     "$ stoker fail\n| stoker: no\n= 3\n", "$ stoker open\n| no line break\n"):
            done = self.run_on(text)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn("one: $ stoker", done.stdout)

    def test_placeholders(self):
        good = "$ stoker say 'took 1,234.5 ms'\n| took {NUMBER} ms\n$ stoker where\n| {FOLDER}\n"
        self.assertEqual(self.run_on(good).returncode, 0)
        self.assertEqual(self.run_on("$ stoker say 'took long'\n| took {NUMBER}\n").returncode, 1)
        self.assertEqual(self.run_on("$ stoker say axb\n| a.b\n").returncode, 1)

    @unittest.skipUnless(answers.available(), "needs jsonschema")
    def test_answers_are_checked_against_their_schemas(self):
        answer = '{"schema": "stoker-models-1", "stoker": "0.1.0", "models": []}'
        self.assertEqual(answers.faults(answer), [])
        self.assertEqual(answers.faults(answer.replace('"0.1.0"', "1")), ["stoker: 1 is not of type 'string'"])
        self.assertEqual(answers.faults(answer.replace(', "models": []', "")),
                         ["the answer: 'models' is a required property"])
        self.assertEqual(answers.faults('{"schema": "x"}'), ["schema 'x' is no file of docs/schema"])
        self.assertEqual(answers.faults('{"format": "stoker-probe"}'), [])
        self.assertEqual(len(answers.faults("{")), 1)

    def test_missing_line_break_is_seen(self):
        self.assertEqual(self.run_on("$ stoker open\n|> no line break\n").returncode, 0)

    def test_update_rewrites_and_keeps_prose_and_placeholders(self):
        text = "Prose.\n\n$ stoker say '5 ms'; stoker say new\n| {NUMBER} ms\n| old\n\nMore.\n"
        self.assertEqual(self.run_on(text, "--update").returncode, 0)
        self.assertEqual(self.case.read_text(), text.replace("old", "new"))
        self.assertEqual(self.run_on(self.case.read_text()).returncode, 0)

    def test_damaged_cases_are_refused(self):
        self.assertNotEqual(self.run_on("| output of nothing\n").returncode, 0)
        self.assertNotEqual(self.run_on("only prose\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()

"""How checks/tests.py judges what tests do: by small programs that answer as the harness of Rust
does. And which tests it takes for tests without a machine."""

import io
import os
import tempfile
import threading
import unittest
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import layers
import tests

# A program of one test, which fails as often as there are lines in its file `failures`.
PROGRAM = """#!/bin/sh
case "$*" in *--list*) echo "one: test"; exit ;; esac
cd "$(dirname "$0")"
if [ -s failures ]; then
    sed -i 1d failures
    echo "it said why"
    exit 101
fi
cat printed 2>/dev/null
"""


class Silent:
    """In place of what is printed meanwhile."""

    def line(self, *_):
        pass

    def again(self, *_):
        pass


@unittest.mock.patch.object(tests, "is_busy", lambda: False)
class Judged(unittest.TestCase):
    def programs(self, *failures, printed=""):
        """A program for each number, which fails so often."""
        made = []
        for number, count in enumerate(failures):
            folder = Path(self.folder.name) / str(number)
            folder.mkdir()
            (folder / "failures").write_text("again\n" * count)
            (folder / "printed").write_text(printed)
            (folder / "program").write_text(PROGRAM)
            (folder / "program").chmod(0o755)
            made.append(tests.Program(f"made/{number}", str(folder / "program"), str(folder)))
        return made

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def end(self, programs, allowed={}, may_miss=()):
        """The states of their tests, the exit status, and what was printed."""
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            ran, _ = tests.of_machine(programs, [], Silent())
            tests.again(ran, Silent())
            status = tests.judge(ran, allowed, may_miss)
        return [test.state for test in ran], status, out.getvalue()

    def test_what_passes_runs_once(self):
        programs = self.programs(0)
        self.assertEqual(self.end(programs)[:2], (["passed"], 0))

    def test_what_fails_always_is_red_after_three_runs(self):
        states, status, said = self.end(self.programs(9))
        self.assertEqual((states, status), (["failed"], 1))
        self.assertIn("failed: made/0 one, 3 times of 3", said)
        self.assertEqual((Path(self.folder.name) / "0/failures").read_text().count("again"), 6)

    def test_what_fails_every_second_time_is_unsteady_and_listed(self):
        for failures in (1, 2):
            with self.subTest(failures=failures):
                states, status, said = self.end(self.programs(failures))
                self.assertEqual((states, status), (["unsteady"], 0))
                self.assertIn(f"unsteady: made/0 one, which failed {failures} of {failures + 1} times:", said)
                self.assertEqual(said.count("it said why"), failures)
            self.folder.cleanup()
            Path(self.folder.name).mkdir()

    def test_what_others_leave_without_a_result_is_unsteady_only_if_they_did(self):
        for busy, expected in [(True, "unsteady"), (False, "failed")]:
            with self.subTest(busy=busy), unittest.mock.patch.object(tests, "is_busy", lambda: busy):
                program = self.programs(9)[0]
                script = Path(program.path)
                script.write_text(PROGRAM.replace("it said why", "inconclusive: others"))
                self.assertEqual(self.end([program])[0], [expected])
            self.folder.cleanup()
            Path(self.folder.name).mkdir()

    def test_more_than_three_unsteady_tests_are_red(self):
        self.assertEqual(self.end(self.programs(1, 1, 1))[1], 0)
        self.folder.cleanup()
        Path(self.folder.name).mkdir()
        self.assertEqual(self.end(self.programs(1, 1, 1, 1))[1], 1)

    def test_a_skip_is_red_unless_its_need_may_be_missing(self):
        skipping = "skipped: jvm: there is none\n"
        states, status, said = self.end(self.programs(0, printed=skipping))
        self.assertEqual((states, status), (["skipped"], 1))
        self.assertIn("made/0 one: there is none", said)
        for allowed, may_miss, expected in [
            ({"jvm": ("always", "why")}, (), 0),
            ({"jvm": ("as a user", "why")}, (), int(os.geteuid() == 0)),
            ({}, ("jvm",), 0),
            ({"go": ("always", "why")}, ("go",), 1),
        ]:
            self.folder.cleanup()
            Path(self.folder.name).mkdir()
            self.assertEqual(self.end(self.programs(0, printed=skipping), allowed, may_miss)[1], expected)

    def test_a_script_that_did_nothing_is_skipped_only_if_it_names_the_need(self):
        for script, expected in [
            ("echo 'skipped: buildah: nothing was built'; exit 3", "skipped"),
            ("echo nothing; exit 3", "failed"),
            ("echo 'skipped: lintian: not looked at'; exit 1", "failed"),
        ]:
            test = tests.Test("made", ["sh", "-c", script], self.folder.name, skipping=tests.NOTHING_DONE)
            self.assertEqual(test.run().state, expected, script)

    def test_every_script_is_run_by_a_soak(self):
        paths = [path for folder in ("packaging", "checks/fleet") for path in (tests.ROOT / folder).iterdir()]
        scripts = {str(path.relative_to(tests.ROOT)) for path in paths if os.access(path, os.X_OK)}
        self.assertEqual(scripts, set(tests.SCRIPTS))

    def test_a_program_without_a_machine_is_never_run_again(self):
        program = self.programs(1)[0]
        program.name = "pagewise-model/made"
        ran = tests.whole(program, Silent())
        self.assertEqual([test.state for test in ran], ["failed"])
        self.assertEqual(len(ran[0].attempts), 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root may give the CPUs back")
    def test_what_left_the_cpus_to_others_takes_part_when_nothing_measures(self):
        shows = "import os; print(os.sched_getscheduler(0), flush=True)"
        script = f"{shows}; open('fifo').read(); {shows}; os.spawnlp(os.P_WAIT, 'python3', 'python3', '-c', '{shows}')"
        folder = Path(self.folder.name)
        os.mkfifo(folder / "fifo")
        test = tests.Test("made", ["python3", "-c", script], str(folder))
        tests.measuring.set()
        runs = threading.Thread(target=test.run, kwargs={"idle": True})
        runs.start()
        # Opens once the program reads.
        with open(folder / "fifo", "w"):
            tests.measured()
        runs.join()
        usual = [str(os.SCHED_OTHER)]
        self.assertEqual(test.attempts[0].output.split(), [str(os.SCHED_IDLE), *usual, *usual])
        after = tests.Test("made", ["python3", "-c", shows], str(folder)).run(idle=True)
        self.assertEqual(after.attempts[0].output.split(), usual)

    def test_every_need_of_the_list_has_a_reason(self):
        for name, (when, reason) in tests.needs(tests.ROOT / "checks/needs").items():
            self.assertIn(when, ("always", "as a user"), name)
            self.assertGreater(len(reason), 10, name)


class Layers(unittest.TestCase):
    def test_programs_without_a_machine_name_nothing_of_one(self):
        """No clock, no waiting, no dataset: their tests' texts are searched for the words."""
        for name in layers.WITHOUT_MACHINE:
            package, _, target = name.partition("/")
            folders = [tests.ROOT / parent / package.removeprefix("pagewise-") for parent in ("crates", "extras")]
            crate = next(folder for folder in folders if folder.is_dir())
            folder = crate / "tests" if target else crate
            paths = [path for path in folder.rglob("*.rs") if not target or target in path.relative_to(folder).parts[0]]
            self.assertTrue(paths, name)
            for path in paths:
                text = path.read_text(encoding="utf-8")
                of_tests = "tests" in path.relative_to(crate).parts or path.name == "tests.rs"
                self.assertEqual(layers.needs(text if of_tests else layers.tests_of(text)), {}, path)

    def test_a_test_needs_what_it_and_the_helpers_of_its_file_name(self):
        inside = """
use std::time::Instant;
#[cfg(test)]
mod tests {
    #[test]
    fn computes() {
        assert_eq!(1, 1);
    }

    #[test]
    fn waits() {
        std::thread::sleep(LONG);
    }
}
"""
        of_helpers = "fn made() -> Dataset { Dataset::new() }\n\n#[test]\nfn computes() {\n    made();\n}\n"
        with tempfile.TemporaryDirectory() as folder:
            crate = Path(folder)
            (crate / "src/deep").mkdir(parents=True)
            (crate / "src/deep/inside.rs").write_text(inside)
            (crate / "src/deep/tests.rs").write_text(of_helpers)
            both, other = (tests.Program(name, "", folder) for name in (min(layers.OF_BOTH_KINDS), "made/other"))
            for program, name, expected in [
                (both, "deep::inside::tests::computes", False),
                (both, "deep::inside::tests::waits", True),
                (both, "deep::tests::computes", True),
                (both, "deep::tests::nowhere", True),
                (both, "nowhere::tests::computes", True),
                (other, "deep::inside::tests::computes", True),
            ]:
                self.assertEqual(layers.needs_machine(program, name), expected, name)


class Swept(unittest.TestCase):
    def test_what_a_killed_test_left_is_cleaned(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(tests, "ROOT", Path(folder)):
            (Path(folder) / "target" / "debug").mkdir(parents=True)
            program = Path(folder) / "target" / "debug" / "pagewise"
            program.write_text(f'#!/bin/sh\necho "$1 $PAGEWISE_STATE_DIR" >> {folder}/called\n')
            program.chmod(0o755)
            state = Path(folder) / "target" / "place-a1" / "state"
            state.mkdir(parents=True)
            with unittest.mock.patch.object(tempfile, "gettempdir", lambda: folder):
                tests.sweep()
            self.assertEqual((Path(folder) / "called").read_text(), f"clean {state}\n")
            self.assertFalse(state.parent.exists())


if __name__ == "__main__":
    unittest.main()

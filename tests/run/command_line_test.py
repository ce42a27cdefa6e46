"""The command line of an emitted program: help, options and their errors, data that are wrong, full disks,
--dry-run, --eval, --export, --weights, and the exact columns of the log.
"""
import json
import os
import struct

import numpy
from harness import HERE, Case, main, read_safetensors, sh, write_csv, write_safetensors

GOOD = [[k / 10, 12 - k, k % 3] for k in range(12)]


class CommandLine(Case):
    built_before = {}

    def setUp(self):
        super().setUp()
        if "m" not in self.built_before:  # one build for all tests
            with open(os.path.join(HERE, "command_line.amp.in")) as f:
                source = self.emit(f.read(), "-O2", "--half=f16", name="m")
            self.built_before["m"] = self.compile(source, "-O0")
        self.program = self.built_before["m"]
        self.folder = os.path.join(self.directory, "run")
        os.makedirs(self.folder)
        write_csv(os.path.join(self.folder, "rows.csv"), GOOD)

    def m(self, *arguments, status=0):
        """(standard output, standard error) in the test's folder."""
        code, out, err = sh([self.program.exe, *[str(a) for a in arguments]], self.folder)
        self.assertEqual(code, status, (arguments, out, err))
        return out, err

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_help(self):
        with open(os.path.join(HERE, "command_line.help")) as f:
            self.assertEqual(self.m("--help"), (f.read(), ""))

    def test_wrong_usage_is_2_and_names_option_and_value(self):
        for arguments, message in [
            (["--epochs"], "unknown option '--epochs'"),
            (["--lrr", "1"], "did you mean '--lr'?"),
            (["--lr", "2"], "option '--lr': '2' is not in 0..1"),
            (["--lr", "-0.1"], "option '--lr': '-0.1' is not in 0..1"),
            (["--lr", "nan"], "option '--lr': 'nan' is not a finite number"),
            (["--lr", "1e999"], "option '--lr': '1e999' is too large or too small"),
            (["--lr", "0.1x"], "option '--lr': '0.1x' is not a"),
            (["--lr"], "option '--lr' needs a value"),
            (["--n", "1.5"], "option '--n': '1.5' is not a whole number"),
            (["--n", "0"], "option '--n': '0' is not in 1..100000"),
            (["--n", "99999999999999999999"], "is not a whole number"),
            (["--kind", "c"], "option '--kind': 'c' is not in a|b"),
            (["--fast", "maybe"], "option '--fast': 'maybe' is neither true nor false"),
            (["--threads", "-1"], "option '--threads': '-1' is not in 0..4096"),
            (["--log-format", "xml"], "option '--log-format': 'xml' is not in tsv|jsonl"),
            (["extra"], "unexpected argument 'extra'"),
        ]:
            out, err = self.m(*arguments, status=2)
            self.assertIn("m: ", err)
            self.assertIn(message, err)
            self.assertEqual((out, err.count("\n")), ("", 1))

    def test_a_configuration_file_is_what_print_config_prints(self):
        out, _ = self.m("--lr", 0.25, "--kind", "b", "--print-config")
        with open(self.path("c"), "w") as f:
            f.write(out)
        self.assertEqual(self.m("--config", "c", "--print-config")[0].replace('config = "c"\n', ""), out)
        self.assertIn("lr = 0.5\n", self.m("--config", "c", "--lr", 0.5, "--print-config")[0])

    def test_data_that_are_missing_or_wrong(self):
        for rows, status, message in [
            (None, 3, "cannot open rows.csv: No such file or directory"),
            ([], 1, "rows.csv"),
            ([[1, 2]] * 12, 1, "rows.csv"),
            ([[1, 2, 1]] * 3 + [[1, 2, "x"]] * 9, 1, "rows.csv: line 4"),
            ([[1, 2, 1]] * 3 + [[1, 2]] * 9, 1, "rows.csv: line 4"),
            ([[1, 2, 1]] * 3 + [[1, "nan", 1]] * 9, 1, "rows.csv: line 4"),
            ([[1, 2, 1]] * 5 + [[1, 2, 3]] + [[1, 2, 1]] * 6, 1, "row 5"),
            ([[1, 2, -1]] + [[1, 2, 1]] * 11, 1, "row 0"),
            ([[1, 2, 0.5]] + [[1, 2, 1]] * 11, 1, "row 0"),
            ([[1e39, 2, 0]] + [[1, 2, 1]] * 11, 1, "row 0"),
            ([[1, 2, 1]] * 4, 1, "fewer than the 4 of a step"),
        ]:
            os.path.exists(self.path("rows.csv")) and os.unlink(self.path("rows.csv"))
            if rows is not None:
                with open(self.path("rows.csv"), "w") as f:
                    f.writelines(",".join(map(str, row)) + "\n" for row in rows)
            out, err = self.m(status=status)
            self.assertEqual(out, "")
            self.assertIn(message, err)
            self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".ckpt")], [], rows)

    def test_disks_that_are_full_or_not_there(self):
        self.assertIn("cannot write /dev/full: No space left on device", self.m("--log", "/dev/full", status=3)[1])
        self.assertIn("/no/such/log", self.m("--log", "/no/such/log", status=3)[1])
        self.assertIn("/no/such/w.st", self.m("--export", "/no/such/w.st", status=3)[1])
        self.assertIn("/no/such/x", self.m("--checkpoint-dir", "/no/such/x", status=3)[1])
        self.assertIn("/dev/null", self.m("--checkpoint-dir", "/dev/null", status=3)[1])

    COLUMNS = ["step", "entry", "epoch", "skipped", "ms_per_step", "lr.opt", "grad_norm.opt", "scale.scaler", "loss",
               "accuracy", "mean_loss"]

    def test_log_columns(self):
        self.m("--log", "a.tsv")
        with open(self.path("a.tsv")) as f:
            lines = [line.rstrip("\n").split("\t") for line in f]
        self.assertEqual(lines[0], self.COLUMNS)
        # 9 rows of train in batches of 4: two steps an epoch, the test after each
        self.assertEqual([line[:3] for line in lines[1:]],
                         [["1", "fit", "1"], ["2", "fit", "1"], ["2", "test", "1"], ["3", "fit", "2"], ["4", "fit", "2"],
                          ["4", "test", "2"], ["5", "fit", "3"], ["6", "fit", "3"], ["6", "test", "3"]])
        for line in lines[1:]:
            filled = [bool(cell) for cell in line[4:]]
            self.assertEqual(filled, [True] * 5 + [False] * 2 if line[1] == "fit" else [False] * 5 + [True] * 2)

        self.m("--log", "a.jsonl", "--log-format", "jsonl")
        with open(self.path("a.jsonl")) as f:
            rows = [json.loads(line) for line in f]
        for line, row in zip(lines[1:], rows):
            names = [name for name, cell in zip(self.COLUMNS, line) if cell]
            self.assertEqual(list(row), names)
            for name, cell in zip(self.COLUMNS, line):
                if cell and name not in ("entry", "ms_per_step"):
                    self.assertEqual(float(cell), float(row[name]), name)
        self.assertEqual(rows[0]["grad_norm.opt"], "inf")  # JSON has no infinity; the first scale is too large

    def test_log_every(self):
        out, _ = self.m("--log", "-", "--log-every", 4)
        self.assertEqual([line.split("\t")[0] for line in out.splitlines() if "\tfit\t" in line], ["4", "6"])

    def test_dry_run_changes_nothing(self):
        out, err = self.m("--dry-run")
        self.assertRegex(out + err, r"\d+ bytes of memory")
        self.assertEqual(os.listdir(self.folder), ["rows.csv"])

    def test_exported_weights_come_back(self):
        _, _ = self.m("--export", "w.st", "--log", "a.tsv")
        weights = read_safetensors(self.path("w.st"))
        self.assertEqual(sorted(k for k in weights if k), ["fc.bias", "fc.weight"])
        self.assertEqual(weights["fc.weight"].dtype, numpy.float32)
        out, _ = self.m("--weights", "w.st", "--eval", "--log", "-")
        with open(self.path("a.tsv")) as f:
            last = f.read().splitlines()[-1].split("\t")
        now = out.splitlines()[1].split("\t")
        self.assertEqual((now[1], now[-2:]), ("test", last[-2:]))

    def test_eval_trains_nothing(self):
        out, _ = self.m("--eval", "--log", "-")
        self.assertNotIn("\tfit\t", out)
        self.assertEqual([n for n in os.listdir(self.folder) if n.endswith(".ckpt")], [])

    def test_weight_files_that_do_not_fit(self):
        good = {"fc.weight": numpy.ones((3, 2)), "fc.bias": numpy.zeros(3)}
        for tensors, status, message in [
            ({"fc.weight": good["fc.weight"]}, 1, "fc.bias"),
            (dict(good, **{"fc.bias": numpy.zeros(4)}), 1, "fc.bias"),
            (dict(good, more=numpy.zeros(1)), 0, "more"),
            (dict(good, **{"fc.bias": numpy.array([numpy.nan, 0, 0])}), 0, "fc.bias"),
        ]:
            write_safetensors(self.path("w.st"), tensors)
            self.assertIn(message, self.m("--weights", "w.st", "--eval", status=status)[1])
        self.assertIn("no.st", self.m("--weights", "no.st", status=3)[1])
        with open(self.path("w.st"), "wb") as f:
            f.write(struct.pack("<Q", 1 << 60) + b"{}")
        self.assertIn("w.st", self.m("--weights", "w.st", status=1)[1])

    def test_checkpoints_of_other_programs_are_refused(self):
        self.m()
        with open(os.path.join(HERE, "command_line.amp.in")) as f:
            text = f.read()
        other = self.compile(self.emit(text.replace("linear(3)", "linear(3, bias = false)"),
                                       "-O2", "--half=f16"), "-O0")
        code, _, err = sh(other.command("--resume"), self.folder)
        self.assertEqual(code, 1, err)
        self.assertIn("belongs to another program", err)
        lower = self.compile(self.emit(text, "-O3", "--half=f16"), "-O0")
        code, _, err = sh(lower.command("--resume"), self.folder)
        self.assertEqual(code, 1, err)
        self.assertIn("cannot go on at O3", err)
        level = self.compile(self.emit(text, "-O0"), "-O0")
        code, _, err = sh(level.command("--resume", "--n", "8"), self.folder)
        self.assertEqual(code, 0, err)
        self.assertIn("written with level O2, goes on with O0", err)


if __name__ == "__main__":
    main()

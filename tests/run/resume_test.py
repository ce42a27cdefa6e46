"""One program run twice, with 1, 2 and 4 threads, and resumed after any step or at a signal, ends in the same
bits: log and last checkpoint. In fused mode, as users run it.
"""
import os
import shutil
import signal
import subprocess
import time

from harness import TIMEOUT, Case, main, read_safetensors, read_tsv, sh
from strict_test import data, flags, model_text

PROGRAMS = [
    dict(model="mlp", level="O0", half="bf16", policy="apex", optimizer="adam", clip="", scale="default"),
    dict(model="mlp", level="O2", half="bf16", policy="apex", optimizer="groups", clip="clip norm 0.5 of opt;",
         scale="default"),
    dict(model="smooth", level="O1", half="f16", policy="torch", optimizer="nesterov", clip="", scale="dynamic"),
    dict(model="smooth", level="O3", half="bf16", policy="apex", optimizer="rmsprop", clip="", scale="default"),
    dict(model="lookup", level="O2", half="f16", policy="apex", optimizer="lamb", clip="", scale="dynamic"),
    dict(model="lookup", level="O1", half="bf16", policy="apex", optimizer="sgd",
         clip="clip value 0.01 of opt;", scale="256"),
]

# Long enough for a signal, an epoch is 7 steps; dropout and shuffling depend on the step.
LONG = """ampc 1;
option n: int = 1000000;
dataset rows = csv("rows.csv") { x: float[12] = columns(0, 12) / 16; y: i32 = column(12);
    split train = 0.7, test = 0.3; }
model Net(x: float[N, 12]) -> float[N, 5] {
    layer a = linear(64); layer b = linear(5);
    return x |> a |> relu |> dropout(0.5) |> b;
}
instance net = Net();
train fit(x: float[N, 12], y: i32[N]) on rows.train {
    batch = 8; steps = n; seed = 3;
    optimizer opt = adam(net, lr = 0.001);
    step { loss = cross_entropy(net(x), y); backward loss into opt; update opt; report loss; }
}
eval test(x: float[N, 12], y: i32[N]) on rows.test { report accuracy = accuracy(net(x), y); }
"""


def without_time(rows):
    return [{k: v for k, v in row.items() if k != "ms_per_step"} for row in rows]


class Resume(Case):
    def build_case(self, c, every="every 1 steps keep 1000"):
        return self.build(model_text(c).replace("every n steps", every), *flags(c), cflags=("-O2",))

    def test_threads_and_repetition_change_no_bit(self):
        for c in PROGRAMS:
            with self.subTest(**c):
                program = self.build_case(c)
                first = program.run(data=data())
                for threads in (1, 2, 4):
                    run = program.run(data=data(), threads=threads)
                    self.assertEqual(without_time(run.rows), without_time(first.rows), threads)
                    self.same(run.checkpoint(), first.checkpoint(), "%d threads" % threads)

    def test_resumed_after_any_step(self):
        for c in PROGRAMS:
            with self.subTest(**c):
                program = self.build_case(c)
                whole = program.run(data=data())
                final = whole.checkpoint()
                for step, path in whole.checkpoints().items():
                    run = program.run("--resume=" + path, data=data(), threads=1 + step % 2)
                    self.same(run.checkpoint() if run.checkpoints() else read_safetensors(path), final, step)
                    self.assertEqual(without_time(run.rows), without_time(whole.rows[step:]), step)

    def start(self, program, *arguments):
        """A run with its folder, in the background."""
        folder = program.run(status=None, log=False, data=data(), *("--dry-run",)).directory
        for name in os.listdir(folder):
            if name.endswith(".ckpt"):
                os.unlink(os.path.join(folder, name))
        process = subprocess.Popen(
            program.command("--threads", 1, "--log", "log.tsv", *arguments), cwd=folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return folder, process

    def wait_for_rows(self, folder, count):
        path, end = os.path.join(folder, "log.tsv"), time.time() + TIMEOUT
        while not os.path.exists(path) or open(path, "rb").read().count(b"\n") <= count:
            self.assertLess(time.time(), end, "the program writes no log")
            time.sleep(0.01)

    def finish(self, process, status):
        err = process.communicate(timeout=TIMEOUT)[1].decode()
        self.assertEqual(process.returncode, status, err)
        return err

    def check_against_whole_run(self, program, folder, step):
        """Goes on for some steps from the folder's checkpoint; equal to a run that nobody stopped."""
        more = step + 9
        whole = program.run("--n", more, data=data())
        status, _, err = sh(program.command("--threads", 2, "--log", "log.tsv", "--resume", "--n", more), folder)
        self.assertEqual(status, 0, err)
        self.assertEqual(without_time(read_tsv(os.path.join(folder, "log.tsv"))), without_time(whole.rows))
        return whole

    def test_sigint_and_sigterm_write_a_checkpoint(self):
        program = self.build(LONG, "-O2", "--half=f16", cflags=("-O2",))
        for number, status, rows in (signal.SIGINT, 130, 10), (signal.SIGTERM, 143, 40):
            folder, process = self.start(program)
            self.wait_for_rows(folder, rows)
            process.send_signal(number)
            self.finish(process, status)
            saved = [name for name in os.listdir(folder) if name.endswith(".ckpt")]
            self.assertEqual(len(saved), 1, saved)
            step = int(saved[0].rsplit("-", 1)[1][:-5])
            state = read_safetensors(os.path.join(folder, saved[0]))
            self.assertEqual(state["train/fit.step"], step)
            self.assertGreaterEqual(step, rows)
            trained = [row for row in read_tsv(os.path.join(folder, "log.tsv")) if row["entry"] == "fit"]
            self.assertEqual(int(trained[-1]["step"]), step)
            self.check_against_whole_run(program, folder, step)

    def test_sigusr1_writes_a_checkpoint_and_training_goes_on(self):
        program = self.build(LONG, "-O1", cflags=("-O2",))
        folder, process = self.start(program)
        self.wait_for_rows(folder, 10)
        process.send_signal(signal.SIGUSR1)
        end = time.time() + TIMEOUT
        while not [name for name in os.listdir(folder) if name.endswith(".ckpt")]:
            self.assertLess(time.time(), end)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        self.wait_for_rows(folder, open(os.path.join(folder, "log.tsv"), "rb").read().count(b"\n") + 5)
        process.send_signal(signal.SIGINT)
        self.finish(process, 130)
        self.assertEqual(len([name for name in os.listdir(folder) if name.endswith(".ckpt")]), 2)

    def test_a_second_signal_kills(self):
        """A step that takes long must not make the program immune: the second SIGINT strikes at once."""
        program = self.build(LONG.replace("batch = 8", "batch = 62").replace("linear(64)", "linear(20000)"), "-O0",
                             cflags=("-O0",))
        folder, process = self.start(program)
        self.wait_for_rows(folder, 0)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
        self.assertIn(process.returncode, (-signal.SIGINT, 130))

    def test_a_killed_program_resumes_from_the_last_whole_checkpoint(self):
        text = LONG.replace("step {", 'checkpoint "c.ckpt" every 3 steps keep 2;\n    step {')
        program = self.build(text, "-O2", "--half=bf16", cflags=("-O2",))
        folder, process = self.start(program)
        self.wait_for_rows(folder, 20)
        process.kill()
        process.communicate()
        saved = sorted(name for name in os.listdir(folder) if name.endswith(".ckpt"))
        self.assertIn(len(saved), (2, 3))  # the one that is pruned goes last
        # torn: the newest one loses its end, and the one before it is taken
        path = os.path.join(folder, saved[-1])
        os.truncate(path, os.path.getsize(path) - 5)
        before = int(saved[-2].rsplit("-", 1)[1][:-5])
        os.unlink(os.path.join(folder, "log.tsv"))
        status, _, err = sh(program.command("--log", "log.tsv", "--resume", "--n", before + 6), folder)
        self.assertEqual(status, 0, err)
        self.assertIn("trying the one before", err)
        whole = program.run("--n", before + 6, data=data())
        self.assertEqual(without_time(read_tsv(os.path.join(folder, "log.tsv"))),
                         without_time([row for row in whole.rows if int(row["step"] or 0) > before])
                         or without_time(whole.rows[before:]))


if __name__ == "__main__":
    main()

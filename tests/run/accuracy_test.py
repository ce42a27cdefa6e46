"""Digits: what mixed precision is for. Mean test accuracy over 5 splits at least 0.965 at O0, O1 and O2, in
both half types, and within a point of O0; O3, which has no f32 weights, at least learns.
"""
import os

from harness import Case, main

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/digits.amp")
SEEDS = range(5)
FLOOR, POINT = 0.965, 0.01


class Accuracy(Case):
    def mean_accuracy(self, level, half):
        with open(EXAMPLE) as f:
            text = f.read()
        text = text.replace("csv(data)", "csv(data, seed = SPLIT)").replace(
            "ampc 1;", "ampc 1;\nconst SPLIT: int = 0 in 0 .. 1000;", 1)
        self.assertIn("seed = SPLIT", text)
        total = 0.0
        for seed in SEEDS:
            program = self.compile(self.emit(text, "-" + level, "--half=" + half, "-D", "SPLIT=%d" % seed),
                                   "-O3", "-march=native")
            run = program.run(threads=2)
            total += run.column("accuracy", "test")[-1]
        return total / len(SEEDS)

    def test_levels_reach_what_O0_reaches(self):
        base = self.mean_accuracy("O0", "bf16")
        self.assertGreaterEqual(base, FLOOR, "O0")
        for level, half in ("O1", "bf16"), ("O1", "f16"), ("O2", "bf16"), ("O2", "f16"):
            mean = self.mean_accuracy(level, half)
            self.assertGreaterEqual(mean, FLOOR, (level, half))
            self.assertLessEqual(abs(mean - base), POINT, (level, half))

    def test_O3_learns(self):
        for half in ("bf16", "f16"):
            with open(EXAMPLE) as f:
                program = self.compile(self.emit(f.read(), "-O3", "--half=" + half), "-O3")
            self.assertGreater(program.run("--rounds", 5).column("accuracy", "test")[-1], 0.5, half)


if __name__ == "__main__":
    main()

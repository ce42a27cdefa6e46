"""Digits: what mixed precision is for. Mean test accuracy over 5 splits at least 0.965 at O0, O1 and O2, in
both half types, and within a point of O0; O3, which has no f32 weights, at least learns.
"""
import gzip
import os
import random

from harness import HERE, Case, main
from strict_test import DIGITS

SEEDS = range(5)
FLOOR, POINT = 0.965, 0.01


class Accuracy(Case):
    def program(self, level, half):
        with open(os.path.join(HERE, "../../examples/digits.amp")) as f:
            return self.build(f.read(), "-" + level, "--half=" + half, cflags=("-O2",))

    def accuracy(self, program, seed, *arguments):
        """The rows in another order: the split by row numbers takes others."""
        with gzip.open(DIGITS, "rt") as f:
            lines = f.readlines()
        random.Random(seed).shuffle(lines)
        path = os.path.join(self.directory, "digits.csv")
        with open(path, "w") as f:
            f.writelines(lines)
        return program.run("--data", path, *arguments).column("accuracy", "test")[-1]

    def mean_accuracy(self, level, half):
        program = self.program(level, half)
        return sum(self.accuracy(program, seed, "--rounds", 30) for seed in SEEDS) / len(SEEDS)

    def test_levels_reach_what_O0_reaches(self):
        base = self.mean_accuracy("O0", "bf16")
        self.assertGreaterEqual(base, FLOOR, "O0")
        for level, half in ("O1", "bf16"), ("O1", "f16"), ("O2", "bf16"), ("O2", "f16"):
            mean = self.mean_accuracy(level, half)
            self.assertGreaterEqual(mean, FLOOR, (level, half))
            self.assertLessEqual(abs(mean - base), POINT, (level, half))

    def test_O3_learns(self):
        for half in ("bf16", "f16"):
            self.assertGreater(self.accuracy(self.program("O3", half), 0, "--rounds", 10), 0.5, half)


if __name__ == "__main__":
    main()

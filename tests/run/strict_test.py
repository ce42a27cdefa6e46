"""Emitted programs with --rounding=strict against the interpreter, bit for bit: every number of the log, and
every weight, optimizer state and scale of the last checkpoint. No tolerance anywhere.

The choices (model, level, half type, policy, optimizer, clip, scale) are combined so that every pair of values
of two choices occurs; then a few programs are built by both compilers, with and without optimization, for every
instruction set and run with several threads.
"""
import itertools
import os
import random

import numpy
from harness import INTERPRET, Case, main, must, read_safetensors, read_tsv

STEPS = 12

MODELS = {
    # csv, classes, relu: the digits in small
    "mlp": """dataset rows = csv("rows.csv") { x: float[12] = columns(0, 12) / 16; y: i32 = column(12);
    split train = 0.8, test = 0.2; }
model Net(x: float[N, 12]) -> float[N, 5] {
    layer fc1 = linear(19); layer fc2 = linear(16); layer fc3 = linear(5);
    return x |> fc1 |> relu |> fc2 |> relu |> fc3;
}
instance net = Net();
train fit(x: float[N, 12], y: i32[N]) on rows.train {
    batch = 16; steps = n; seed = 3; %(train)s
    step { loss = cross_entropy(net(x), y); backward loss into opt; %(clip)s update opt;
           report loss, accuracy = accuracy(net(x), y); }
}
""",
    # csv, regression: smooth functions, normalisation by hand, dropout, a parameter of rank 1
    "smooth": """dataset rows = csv("rows.csv") { x: float[12] = columns(0, 12) / 16; y: float = column(12) / 4; }
model Net(x: float[N, 12]) -> float[N, 1] {
    param gain: float[24] = ones();
    layer a = linear(24, init = xavier_uniform()); layer b = linear(1);
    h = a(x);
    h = (h - mean(h, axis = -1, keep = true)) * rsqrt(var(h, axis = -1, keep = true) + 0.001) * gain;
    h = gelu(h) + tanh(h) * sigmoid(h);
    return b(dropout(h, 0.25));
}
instance net = Net();
train fit(x: float[N, 12], y: float[N]) on rows {
    batch = 11; steps = n; seed = 9; drop_last = false; %(train)s
    step { loss = smooth_l1(squeeze(net(x), axis = -1), y); backward loss into opt; %(clip)s update opt; report loss; }
}
""",
    # npy, a table of vectors, attention in small, softmax and exp
    "lookup": """dataset rows = npy("rows.npy") { t: i32[6] = columns(0, 6); y: i32 = column(6); }
model Net(t: i32[N, 6]) -> float[N, 5] {
    layer wte = embedding(7, 8); layer q = linear(8, bias = false); layer out = linear(5);
    x = wte(t);
    s = softmax(q(x) @ transpose(x) / sqrt(8), axis = -1);
    h = max(s @ x, axis = 1) + mean(exp(x) - x, axis = 1);
    return out(silu(h));
}
instance net = Net();
train fit(t: i32[N, 6], y: i32[N]) on rows {
    batch = 8; steps = n; seed = 5; shuffle = false; %(train)s
    step { loss = cross_entropy(net(t), y, smoothing = 0.1); backward loss into opt; %(clip)s update opt;
           report loss; }
}
""",
}

OPTIMIZERS = {
    "sgd": "sgd(net, lr = 0.1)",
    "nesterov": "sgd(net, lr = linear(0.1, warmup = 4), momentum = 0.9, nesterov = true, weight_decay = 0.01)",
    "adam": "adam(net, lr = cosine(0.01, warmup = 3, floor = 0.1))",
    "groups": 'adamw(net, lr = 0.01) { group "*.bias", "gain": weight_decay = 0, lr = 0.02; '
    'group "*": weight_decay = 0.1; }',
    "rmsprop": "rmsprop(net, lr = step(0.01, every = 5, factor = 0.5), momentum = 0.3)",
    "lamb": "lamb(net, lr = 0.02)",
}

CHOICES = {
    "model": list(MODELS),
    "level": ["O0", "O1", "O2", "O3"],
    "half": ["bf16", "f16"],
    "policy": ["apex", "torch"],
    "optimizer": list(OPTIMIZERS),
    "clip": ["", "clip norm 0.5 of opt;", "clip value 0.01 of opt;"],
    "scale": ["default", "dynamic", "256"],
}


def pairs_of(choice):
    return {frozenset(p) for p in itertools.combinations(choice.items(), 2)}


def covering():
    """Few combinations that contain every pair: each the best of some random ones."""
    random_ = random.Random(1)
    wanted = set()
    for (a, xs), (b, ys) in itertools.combinations(CHOICES.items(), 2):
        wanted |= {frozenset([(a, x), (b, y)]) for x in xs for y in ys}
    while wanted:
        # one wanted pair is in all of them, so that every round makes progress
        seed = dict(sorted(wanted, key=lambda p: sorted(map(str, p)))[0])
        tries = [{**{k: random_.choice(v) for k, v in CHOICES.items()}, **seed} for _ in range(60)]
        best = max(tries, key=lambda c: len(pairs_of(c) & wanted))
        wanted -= pairs_of(best)
        yield best


def model_text(c):
    train = "checkpoint \"m.ckpt\" every n steps; optimizer opt = %s" % OPTIMIZERS[c["optimizer"]]
    train += "" if train.endswith("}") else ";"
    text = MODELS[c["model"]]
    if c["scale"] == "dynamic": # one that moves within the run
        train += " scaler s = dynamic(init = 4194304, window = 3);"
        text = text.replace("into opt;", "into opt scaler s;")
    if '"gain"' in train and c["model"] != "smooth":
        train = train.replace(', "gain"', "")
    if '"*.bias"' in train and c["model"] == "lookup":
        train = train.replace("*.bias", "out.bias")
    return "ampc 1;\noption n: int = %d in 1 .. 1000;\n" % STEPS + text % {"train": train, "clip": c["clip"]}


def flags(c):
    out = ["-" + c["level"], "--half=" + c["half"], "--policy=" + c["policy"]]
    return out + (["--loss-scale=256"] if c["scale"] == "256" else [])


def data():
    """Learnable and irregular: labels depend on the row, some rows are large."""
    rng = numpy.random.RandomState(7)
    x = rng.randint(0, 17, (90, 12)).astype(float)
    x[::13] *= 40
    y = (x[:, :5] + 3 * x[:, 5:10]).argmax(axis=1)
    t = numpy.concatenate([rng.randint(0, 7, (90, 6)), y[:, None]], axis=1)
    return {"rows.csv": [list(r) + [int(k)] for r, k in zip(x, y)], "rows.npy": t.astype(numpy.int32)}


class Interpreted(Case):
    """A case that runs the interpreter beside the program."""

    def interpret(self, source, directory, *arguments):
        out = os.path.join(directory, "expected")
        must([INTERPRET, source[:-2] + ".amp", *arguments, "--out=" + out], directory)
        return read_tsv(out + ".tsv"), read_safetensors(out + ".st")

    def check(self, program, source, arguments, threads=1, env=None):
        run = program.run(data=data(), threads=threads, env=env)
        rows, state = self.interpret(source, run.directory, *arguments)
        self.assertEqual(len(rows), STEPS)
        for got, expected in zip(run.rows, rows):
            got = {name: got.get(name) for name in expected}
            self.assertEqual(got, expected, (source, arguments))
        self.same(run.checkpoint(), state, "%s %s" % (source, arguments))
        return run

    def combination(self, c):
        source = self.emit(model_text(c), "--rounding=strict", *flags(c))
        return source, flags(c) + ["--steps=%d" % STEPS]


class Strict(Interpreted):
    def test_all_pairs_of_choices_equal_the_interpreter(self):
        for c in covering():
            with self.subTest(**c):
                source, arguments = self.combination(c)
                self.check(self.compile(source, "-O0"), source, arguments)

    def test_overflows_are_part_of_the_comparison(self):
        """The dynamic scale starts too high for f16: steps are skipped, and the run goes on."""
        c = {"model": "mlp", "level": "O2", "half": "f16", "policy": "apex", "optimizer": "adam",
             "clip": "clip norm 0.5 of opt;", "scale": "dynamic"}
        source, arguments = self.combination(c)
        run = self.check(self.compile(source, "-O0"), source, arguments)
        self.assertGreater(int(run.rows[-1]["skipped"]), 2)
        self.assertLess(int(run.rows[-1]["skipped"]), STEPS - 2)

    def test_compilers_optimization_threads_and_instruction_sets_agree(self):
        cases = [
            {"model": "mlp", "level": "O2", "half": "bf16", "policy": "apex", "optimizer": "groups",
             "clip": "clip norm 0.5 of opt;", "scale": "default"},
            {"model": "smooth", "level": "O1", "half": "f16", "policy": "apex", "optimizer": "nesterov",
             "clip": "", "scale": "256"},
            {"model": "lookup", "level": "O3", "half": "f16", "policy": "torch", "optimizer": "lamb",
             "clip": "", "scale": "dynamic"},
            {"model": "mlp", "level": "O0", "half": "bf16", "policy": "apex", "optimizer": "adam",
             "clip": "", "scale": "default"},
        ]
        builds = [("gcc", "-O0"), ("gcc", "-O3"), ("clang", "-O0"), ("clang", "-O3"),
                  ("gcc", "-O2", "-march=native"), ("clang", "-O2", "-mavx2", "-mfma"),
                  ("gcc", "-O2", "-DRT_NO_CLONES", "-DRT_ISA_LIMIT=RT_ISA_PORTABLE"),
                  ("clang", "-O2", "-DRT_NO_CLONES", "-DRT_ISA_LIMIT=RT_ISA_AVX2")]
        for k, c in enumerate(cases):
            source, arguments = self.combination(c)
            chosen = builds if k == 0 else builds[k % 2 :: 2]
            for j, (cc, *options) in enumerate(chosen):
                with self.subTest(cc=cc, options=options, **c):
                    program = self.compile(source, *options, cc=cc, suffix="." + str(j))
                    for threads in (1, 2):
                        self.check(program, source, arguments, threads=threads)


DIGITS = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"


class RealData(Interpreted):
    """The example itself, on the real file, and IDX files like those of MNIST."""

    def test_digits(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../frontend/examples/digits.amp")
        with open(path) as f:
            text = f.read().replace("every 5 epochs keep 2", "every 12 steps")
        text = text.replace("epochs = rounds", "steps = rounds")
        for level, half in ("O1", "bf16"), ("O2", "f16"):
            source = self.emit(text, "-" + level, "--half=" + half, "-D", "HIDDEN=32", "--rounding=strict")
            run = self.compile(source).run("--rounds", STEPS)
            rows, state = self.interpret(source, run.directory, "-" + level, "--half=" + half, "-DHIDDEN=32",
                                         "--steps=%d" % STEPS)
            for got, expected in zip([r for r in run.rows if r["entry"] == "fit"], rows):
                self.assertEqual({name: got.get(name) for name in expected}, expected)
            self.same(run.checkpoint(), state, level)

    def test_idx(self):
        text = """ampc 1;
option n: int = %d;
dataset images = idx(dir = ".") { x: float[1, 5, 4] = (image / 255 - 0.5) / 0.25; y: i32 = label; }
model Net(x: float[N, 1, 5, 4]) -> float[N, 3] { layer a = linear(3); return x |> flatten |> a; }
instance net = Net();
train fit(x: float[N, 1, 5, 4], y: i32[N]) on images.train {
    batch = 8; steps = n; seed = 4; optimizer opt = adam(net, lr = 0.01); checkpoint "m.ckpt" every n steps;
    step { loss = cross_entropy(net(x), y); backward loss into opt; update opt; report loss; }
}
""" % STEPS
        rng = numpy.random.RandomState(1)
        source = self.emit(text, "-O2", "--half=bf16", "--rounding=strict")
        program = self.compile(source)
        run = program.run(status=None, log=False)  # makes the folder
        for part, rows in ("train", 40), ("t10k", 10):
            images, labels = rng.randint(0, 256, (rows, 5, 4)), rng.randint(0, 3, rows)
            for name, a in ("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels):
                head = bytes([0, 0, 8, a.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in a.shape)
                with open(os.path.join(run.directory, part + "-" + name), "wb") as f:
                    f.write(head + a.astype(numpy.uint8).tobytes())
        run = program.again(run.directory)
        rows, state = self.interpret(source, run.directory, "-O2", "--half=bf16", "--steps=%d" % STEPS)
        self.assertEqual([r["loss"] for r in run.rows], [r["loss"] for r in rows])
        self.same(run.checkpoint(), state, "idx")


if __name__ == "__main__":
    main()

"""Behaviours of whole programs that have a known exact answer: golden vectors (G) and public bug reports (B, S)
about mixed precision, each named after its number in ampc's list of public bug reports (B), sources (S) and golden vectors (G). Every program reads its batches from
a csv in which the last column, `boost`, multiplies the loss twice: 1 leaves it alone, 1e30 makes all gradients
infinite, at every level.
"""
import re

import numpy
from harness import AMPC, Case, main, must

BIG = 1e30
HALVES = [("O1", "bf16"), ("O1", "f16"), ("O2", "bf16"), ("O2", "f16"), ("O3", "bf16"), ("O3", "f16")]
LEVELS = [("O0", "bf16")] + HALVES

MODEL = """ampc 1;
option lr: real = 1 in 0 .. 1000000;
option n: int = 3 in 1 .. 100000;
dataset rows = csv("rows.csv") {
    x: float[%(width)d] = columns(0, %(width)d);
    boost: float = column(%(width)d);
}
model Probe(x: float[N, %(width)d]) -> float[N, %(width)d] {
    %(params)s
    return %(value)s;
}
instance net = Probe();
train fit(x: float[N, %(width)d], boost: float[N]) on rows {
    batch = 1;  steps = n;  shuffle = false;
    optimizer opt = %(optimizer)s;
    %(scaler)s
    checkpoint "p.ckpt" every 1 steps keep 1000;
    step {
        loss = %(loss)s;
        backward loss into opt%(into)s;
        %(clip)s
        update opt;
        report loss;
    }
}
"""


def probe(width=3, params=None, value="x * w", optimizer="sgd(net, lr = lr)", scaler="", clip="",
          loss="sum(net(x)) * mean(boost * boost)"):
    """A program whose gradient of w is x times the factors in the loss."""
    params = params or "param w: float[%d] = zeros();" % width
    into = " scaler s" if scaler else ""
    return MODEL % locals()


def rows(*boosts, x=(1.0, 1.0, 1.0)):
    return {"rows.csv": [list(x) + [b] for b in boosts]}


class Semantics(Case):
    def weights(self, run, step=None, name="w"):
        return run.checkpoint(step)["param/net/" + name].tolist()

    def equal_states(self, a, b, what):
        """All but what counts attempts and the scale: a skipped step changes nothing."""
        self.same(a, b, what, skip=("scaler/", "train/"))

    # ---- golden vectors ----

    G1 = dict(width=2, params="param w0: float[2] = zeros(); param w1: float[2] = zeros();",
              value="(x * w0) * w1", optimizer="sgd(net, lr = lr, momentum = 0.125)",
              scaler="scaler s = dynamic(init = 4);")
    G1_CASES = [(1, 0.25, [0, 0.53125], [1.59375, 2.125]), (2, 0.5, [-0.6875, -0.5], [1.625, 1.8125])]

    def golden1(self, *flags):
        program = self.build(probe(**self.G1), *flags)
        for u, lr, w0, w1 in self.G1_CASES:
            start = {"w0": [u, u + 1], "w1": [1 + u, 2 + u]}
            for boosts in ([1, 1], [BIG, 1, 1], [1, BIG, 1]):
                run = program.run("--lr", lr, "--n", len(boosts), "--weights", "start.st",
                                  data=dict(rows(*boosts, x=(1, 1)), **{"start.st": start}))
                self.assertEqual(self.weights(run, name="w0"), w0, (flags, boosts))
                self.assertEqual(self.weights(run, name="w1"), w1, (flags, boosts))
                self.assertEqual(int(run.rows[-1]["skipped"]), len(boosts) - 2)

    def test_G1_exact_at_every_level_with_and_without_an_overflow(self):
        for level, half in LEVELS:
            for rounding in ("strict", "fused"):
                self.golden1("-" + level, "--half=" + half, "--rounding=" + rounding)

    def test_G4_a_skipped_step_changes_no_bit_of_the_state(self):
        optimizers = ["sgd(net, lr = lr, momentum = 0.9, nesterov = true)", "adam(net, lr = lr)",
                      "adamw(net, lr = lr)", "rmsprop(net, lr = lr, momentum = 0.5)", "lamb(net, lr = lr)"]
        for k, optimizer in enumerate(optimizers):
            level, half = LEVELS[(k + 3) % len(LEVELS)]
            text = probe(params="param w: float[3] = normal(0, 1);", optimizer=optimizer,
                         scaler="scaler s = dynamic(init = 1024);")
            run = self.build(text, "-" + level, "--half=" + half).run(
                "--lr", 0.01, "--n", 5, data=rows(1, 2, 1, BIG, 1, x=(0.5, -2, 3)))
            before, after, later = run.checkpoint(3), run.checkpoint(4), run.checkpoint(5)
            self.equal_states(before, after, optimizer)
            self.assertEqual(before["scaler/s.scale"] / 2, after["scaler/s.scale"])
            self.assertEqual(before["scaler/s.skips"] + 1, after["scaler/s.skips"])
            self.assertEqual([row["skipped"] for row in run.rows], ["0", "0", "0", "1", "1"])
            self.assertNotEqual(after["param/net/w"].tolist(), later["param/net/w"].tolist(), optimizer)

    def trace(self, scaler, pattern):
        """log2 of the scale after each step: F finite, O overflow."""
        text = probe(scaler="scaler s = %s;" % scaler)
        boosts = [BIG if c == "O" else 1 for c in pattern]
        run = self.build(text, "-O1", "--half=f16").run("--lr", 0, "--n", len(pattern), data=rows(*boosts))
        used = [numpy.log2(x) for x in run.column("scale.s")]
        self.assertEqual(used[0], 16)
        return used[1:] + [numpy.log2(run.checkpoint()["scaler/s.scale"]).item()]

    def test_G5_scaler_traces(self):
        pattern = "FFOFFFOOFFFF"
        for scaler, expected in [
            ("dynamic(window = 2)", [16, 17, 16, 16, 17, 17, 16, 15, 15, 16, 16, 17]),
            ('dynamic(window = 2, mode = "apex")', [16, 17, 16, 16, 17, 17, 16, 15, 15, 16, 16, 17]),
            ('dynamic(window = 2, mode = "torch")', [16, 17, 16, 16, 17, 17, 16, 15, 15, 16, 16, 17]),
            ('dynamic(init = 65536, window = 2, hysteresis = 2, mode = "megatron")',
             [16, 17, 17, 17, 18, 18, 18, 17, 17, 18, 18, 19]),
            ('dynamic(window = 2, mode = "deepspeed")', [16, 16, 15, 15, 15, 16, 15, 14, 14, 14, 15, 15]),
            ('dynamic(window = 2, hysteresis = 2, mode = "deepspeed")',
             [16, 16, 16, 16, 16, 17, 17, 16, 16, 16, 17, 17]),
        ]:
            self.assertEqual(self.trace(scaler, pattern), expected, scaler)

    def test_G6_any_scale_gives_the_same_bits(self):
        text = """ampc 1;
dataset rows = csv("rows.csv") { x: float[4] = columns(0, 4); y: float[2] = columns(4, 6); }
model Net(x: float[N, 4]) -> float[N, 2] {
    layer a = linear(8); layer b = linear(2);
    return x |> a |> tanh |> b;
}
instance net = Net();
train fit(x: float[N, 4], y: float[N, 2]) on rows {
    batch = 8;  steps = 20;
    optimizer opt = sgd(net, lr = 0.05, momentum = 0.9);
    checkpoint "p.ckpt" every 20 steps;
    step { loss = mse(net(x), y); backward loss into opt; clip norm 1 of opt; update opt; report loss; }
}
"""
        # far from zero, so that no half gradient of 20 steps is subnormal
        random = numpy.random.RandomState(5)
        data = {"rows.csv": [[float(v) for v in random.uniform(0.5, 1.5, 4).round(3)] + [4.0, -4.0]
                             for _ in range(32)]}
        for level, half in [("O1", "bf16"), ("O2", "bf16"), ("O1", "f16"), ("O2", "f16")]:
            kept = None
            for scale in (2**4, 2**8, 2**12) if half == "f16" else (1, 2**4, 2**8, 2**12):
                run = self.build(text, "-" + level, "--half=" + half, "--rounding=strict",
                                 "--loss-scale=%d" % scale).run(data=data)
                state = run.checkpoint()
                if kept:
                    self.same(kept, state, "%s %s scale %d" % (level, half, scale), skip=("scaler/",))
                kept = kept or state

    def test_G7_a_scale_rescues_gradients_that_underflow(self):
        # the gradient is 2^-13 * 2^-13 = 2^-26, half of the smallest f16
        text = probe(loss="sum(net(x)) * 0.0001220703125 * mean(boost)")
        for scale, expected in (1, 0.0), (2**10, -(2.0**-26)):
            for rounding in ("strict", "fused"):
                run = self.build(text, "-O2", "--half=f16", "--loss-scale=%d" % scale, "--rounding=" + rounding).run(
                    "--n", 1, data=rows(1, x=(2.0**-13,) * 3))
                self.assertEqual(self.weights(run), [expected] * 3, (scale, rounding))

    def test_G8_cast_counts(self):
        text = """ampc 1;
model Net(x: float[N, 8]) -> float[N, 4] {
    param w1: float[8, 16] = ones(); param w2: float[16, 4] = ones();
    return softmax(relu(x @ w1) @ w2, axis = -1);
}
instance net = Net();
infer run(x: f32[N, 8]; N: int in 1 .. 4) -> (y: f32[N, 4]) { return net(x); }
"""
        for policy in ("apex", "torch"):
            self.emit_only(text)
            ir = must([AMPC, self.text, "-O1", "--half=f16", "--policy=" + policy, "--emit=ir:clean"])
            casts = re.findall(r"= cast\(([\w.#%]+), to=(\w+)", ir)
            self.assertEqual(sorted(to for _, to in casts), ["f16", "f16", "f16", "f32"], ir)

    def emit_only(self, text):
        self.text = self.directory + "/m.amp"
        with open(self.text, "w") as f:
            f.write(text)

    def test_G9_O0_is_the_program_without_mixed_precision(self):
        self.emit_only(probe(optimizer="adam(net, lr = lr)"))
        texts = {half: must([AMPC, self.text, "-O0", "--half=" + half, "--emit=ir:expand"]) for half in ("f16", "bf16")}
        for text in texts.values():
            self.assertNotRegex(text, r"cast\(|: b?f16")
        body = [re.sub(r"^ampc-ir.*\n", "", text) for text in texts.values()]
        self.assertEqual(body[0], body[1])
        ops = [re.findall(r"= (\w+)\(", must([AMPC, self.text, "-O0", "--emit=ir:" + stage]))
               for stage in ("infer", "cast")]
        self.assertEqual([op for op in ops[0] if op not in ("enter", "leave")], ops[1])

    def test_G9_bytes_and_types_by_level(self):
        text = probe(width=64, optimizer="adam(net, lr = lr)")
        for level, checkpoint, source in [
            ("O0", "F32", ["float *weight;", "float *gradient"]),
            ("O1", "F32", ["float *weight;", "float *gradient"]),
            ("O2", "F32", ["float *weight;", "uint16_t *copy, *gradient;"]),
            ("O3", "F16", ["uint16_t *weight;", "uint16_t *gradient"]),
        ]:
            path = self.emit(text, "-" + level, "--half=f16")
            with open(path) as f:
                emitted = f.read()
            for line in source:
                self.assertIn(line, emitted, level)
            run = self.compile(path).run("--n", 1, data=rows(1, x=(1.0,) * 64))
            with open(run.checkpoints()[1], "rb") as f:
                head = f.read(4096).decode(errors="replace")
            self.assertRegex(head, r'"param/net/w":\{"dtype":"%s"' % checkpoint)

    # ---- loss scalers ----

    def test_B1_endless_overflow_ends_at_the_floor(self):
        run = self.build(probe(scaler="scaler s = dynamic(min = 1);"), "-O1", "--half=f16").run(
            "--n", 40, data=rows(BIG))
        scales = run.column("scale.s")
        self.assertEqual((scales[15], scales[16], scales[-1]), (2.0, 1.0, 1.0))
        self.assertEqual(run.rows[-1]["skipped"], "40")
        self.equal_states(run.checkpoint(1), run.checkpoint(40), "40 skips")

    def test_B2_an_overflow_at_the_least_scale_divides_by_nothing(self):
        text = probe(scaler="scaler s = dynamic(init = 0.00006103515625, min = 0.00006103515625);")
        run = self.build(text, "-O1", "--half=f16").run("--n", 2, data=rows(BIG, 1))
        self.assertEqual(run.checkpoint()["scaler/s.scale"], 2.0**-14)
        self.assertEqual(self.weights(run), [-1.0] * 3)

    def test_B3_B4_growth_ends_at_the_cap(self):
        tiny = "sum(net(x)) * 1e-30 * mean(boost)"
        for scaler in ("dynamic(window = 1)", "dynamic(window = 1, factor = 10)"):
            run = self.build(probe(scaler="scaler s = %s;" % scaler, loss=tiny), "-O1", "--half=bf16").run(
                "--n", 70, "--lr", 1, data=rows(1))
            self.assertEqual(run.checkpoint()["scaler/s.scale"], 2.0**24)
            expected = -70 * numpy.float32(1e-30)
            self.assertLess(abs(self.weights(run)[0] / expected - 1), 1e-5)

    def test_B5_a_scale_below_1_is_found(self):
        # 1e5 is beyond f16, half of it is not
        text = probe(loss="sum(net(x)) * 100000 * mean(boost)", scaler="scaler s = dynamic(min = 0.0009765625);")
        run = self.build(text, "-O2", "--half=f16").run("--n", 20, "--lr", 1e-5, data=rows(1))
        self.assertEqual(run.column("scale.s")[-1], 0.5)
        self.assertEqual(run.rows[-1]["skipped"], "17")
        self.assertNotEqual(self.weights(run), [0.0] * 3)

    def test_B5_B8_skips_without_end_stop_the_program(self):
        text = probe(loss="sum(net(x)) * 100000 * mean(boost)", scaler="scaler s = dynamic(min = 1);")
        run = self.build(text, "-O2", "--half=f16").run("--n", 200, data=rows(1), status=5)
        self.assertEqual(len(run.rows), 50)
        self.assertIn("50 steps in a row were skipped", run.err)
        self.assertRegex(run.err, r"loss scale is 1\b")

    def test_B6_B7_growth_does_not_touch_the_step_that_earned_it(self):
        text = probe(scaler="scaler s = dynamic(init = 4, window = 1);", width=1)
        run = self.build(text, "-O1", "--half=f16").run("--n", 3, data=rows(1, x=(1,)))
        self.assertEqual([self.weights(run, k) for k in (1, 2, 3)], [[-1.0], [-2.0], [-3.0]])
        self.assertEqual(run.column("scale.s"), [4, 8, 16])
        self.assertEqual(run.column("grad_norm.opt"), [1, 1, 1])

    def test_B9_B10_an_infinite_bf16_gradient_is_skipped_and_counted(self):
        for level in ("-O1", "-O2", "-O3"):
            text = probe(optimizer="adam(net, lr = lr)", loss="sum(net(x)) * mean(boost)")
            run = self.build(text, level, "--half=bf16").run(
                "--n", 3, "--lr", 0.1, data={"rows.csv": [[1, 1, 1, 1], [1, 1e38, 1, BIG], [1, 1, 1, 1]]})
            self.equal_states(run.checkpoint(1), run.checkpoint(2), level)
            self.assertEqual([row["skipped"] for row in run.rows], ["0", "1", "1"])
            self.assertTrue(numpy.isfinite(run.checkpoint(3)["opt/opt/net/w.exp_avg"]).all())

    def test_B16_B17_schedules_count_steps_that_were_taken(self):
        for schedule in ("cosine(1, warmup = 0, total = 8)", "linear(1, warmup = 4, total = 8)", "step(1, every = 1)"):
            text = probe(optimizer="sgd(net, lr = %s)" % schedule, scaler="scaler s = dynamic(init = 4);")
            program = self.build(text, "-O1", "--half=f16")
            plain = program.run("--n", 6, data=rows(1)).column("lr.opt")
            skipped = program.run("--n", 8, data=rows(BIG, BIG, 1, 1, 1, 1, 1, 1)).column("lr.opt")
            self.assertEqual(skipped[2:], plain, schedule)
            self.assertGreaterEqual(len(set(plain)), 4)

    def test_B18_momentum_starts_at_the_first_step_that_was_taken(self):
        text = probe(optimizer="sgd(net, lr = lr, momentum = 0.9, dampening = 0.5)", scaler="scaler s = dynamic();")
        run = self.build(text, "-O2", "--half=f16").run("--n", 2, "--lr", 0.25, data=rows(BIG, 1))
        self.assertEqual(run.checkpoint()["opt/opt/net/w.momentum_buffer"].tolist(), [1.0] * 3)
        self.assertEqual(self.weights(run), [-0.25] * 3)

    # ---- clipping ----

    def test_B21_clip_acts_on_unscaled_gradients(self):
        for level, half in HALVES:
            text = probe(width=2, clip="clip norm 1 of opt;", scaler="scaler s = static(scale = 1024);")
            run = self.build(text, "-" + level, "--half=" + half).run("--n", 1, data=rows(1, x=(3, 4)))
            self.assertEqual(run.column("grad_norm.opt"), [5.0])
            half_ulp = {"f16": 2.0**-11, "bf16": 2.0**-8}[half] if level == "O3" else 1e-6
            for w, expected in zip(self.weights(run), (-0.6, -0.8)):
                self.assertLess(abs(w / expected - 1), half_ulp, (level, half))

    def test_B21_clip_by_value_acts_on_unscaled_gradients(self):
        text = probe(clip="clip value 2 of opt;", scaler="scaler s = static(scale = 1024);")
        run = self.build(text, "-O2", "--half=f16").run("--n", 1, data=rows(1, x=(1, 3, -4)))
        self.assertEqual(self.weights(run), [-1.0, -2.0, 2.0])

    def test_B23_norms_are_not_summed_in_half(self):
        text = probe(width=2, clip="clip norm 1 of opt;", scaler="scaler s = static(scale = 1);")
        run = self.build(text, "-O3", "--half=f16").run("--n", 1, data=rows(1, x=(5000, 5000)))
        self.assertLess(abs(run.column("grad_norm.opt")[0] / 7071.0678 - 1), 1e-7)

    def test_C1_a_norm_beyond_f32_clips_and_does_not_skip(self):
        # 2e19 and 2e19: the squares overflow f32, the norm is 2.83e19
        text = probe(width=2, clip="clip norm 1 of opt;", loss="sum(net(x)) * mean(boost)")
        run = self.build(text, "-O1", "--half=bf16").run("--n", 1, data=rows(2e19, x=(1, 1)))
        self.assertLess(abs(run.column("grad_norm.opt")[0] / (2e19 * 2**0.5) - 1), 1e-6)
        self.assertEqual(run.rows[-1]["skipped"], "0")
        self.assertLess(abs(self.weights(run)[0] + 0.5**0.5), 1e-6)

    # ---- numbers of the optimizers ----

    def test_B25_B26_zero_gradients_divide_by_eps(self):
        start = {"w": [1, -2, 0.5]}
        for level, half in HALVES:
            text = probe(optimizer="adam(net, lr = lr)", loss="sum(net(x)) * mean(boost)")
            run = self.build(text, "-" + level, "--half=" + half).run(
                "--n", 3, "--weights", "start.st", data=dict(rows(0), **{"start.st": start}))
            self.assertEqual(self.weights(run), start["w"], (level, half))
            run = self.build(text, "-" + level, "--half=" + half).run("--n", 3, "--lr", 0.001, data=rows(1))
            self.assertTrue(numpy.isfinite(run.checkpoint()["param/net/w"]).all(), (level, half))

    def test_B27_beta2_is_not_rounded_to_half(self):
        text = probe(optimizer="adam(net, lr = lr)")
        run = self.build(text, "-O2", "--half=bf16").run("--n", 1, "--lr", 0.125, data=rows(1))
        for w in self.weights(run):
            self.assertLess(abs(w + 0.125), 1e-6)

    def test_B28_beta2_of_three_and_four_nines_differ(self):
        trajectories = []
        for beta2 in ("0.999", "0.9999"):
            text = probe(optimizer="adam(net, lr = lr, betas = (0.9, %s))" % beta2)
            run = self.build(text, "-O2", "--half=bf16").run("--n", 5, "--lr", 0.1, data=rows(1, 2, 3, 1, 1))
            moments = run.checkpoint()
            power = float(numpy.float32(beta2)) ** 5  # of the f32 that the moments are made with
            self.assertLess(abs(moments["opt/opt.beta2_pow"].item() / power - 1), 1e-12)
            trajectories.append(self.weights(run) + moments["opt/opt/net/w.exp_avg_sq"].tolist())
        self.assertNotEqual(*trajectories)

    def test_B30_masters_keep_small_steps(self):
        text = probe(params="param w: float[3] = ones();")
        for level, expected in ("-O2", 0.9), ("-O3", 1.0):
            run = self.build(text, level, "--half=bf16").run("--n", 100, "--lr", 1e-3, data=rows(1))
            for w in self.weights(run):
                self.assertLess(abs(w - expected), 1e-5, level)

    def test_B34_O3_unscales_in_f32(self):
        # gradient 2^-26 arrives as 2^-16; unscaled in f16 it would be 0
        text = probe(loss="sum(net(x)) * 0.0001220703125 * mean(boost)")
        run = self.build(text, "-O3", "--half=f16", "--loss-scale=1024").run(
            "--n", 1, "--lr", 1024, data=rows(1, x=(2.0**-13,) * 3))
        self.assertEqual(self.weights(run), [-(2.0**-16)] * 3)

    # ---- weights that are used twice ----

    def twice(self, second, x, *flags):
        text = probe(width=1, loss="(sum(net(x)) + sum(net(%s))) * mean(boost)" % second)
        return self.weights(self.build(text, "--loss-scale=16", *flags).run("--n", 1, data=rows(1, x=(x,))))[0]

    def test_B35_a_forward_without_gradient_leaves_the_other_alone(self):
        for level, half in LEVELS:
            text = probe(width=1, loss="(sum(detach(net(x))) + sum(net(x))) * mean(boost)")
            run = self.build(text, "-" + level, "--half=" + half, "--loss-scale=16").run("--n", 1, data=rows(1, x=(3,)))
            self.assertEqual(self.weights(run), [-3.0], (level, half))

    def test_B37_B73_each_step_reads_the_weights_of_the_last(self):
        text = probe(width=1, params="param w: float[1] = ones();")
        for level, half in LEVELS:
            run = self.build(text, "-" + level, "--half=" + half, "--loss-scale=16").run(
                "--n", 3, "--lr", 0.25, data=rows(1, x=(1,)))
            self.assertEqual(run.column("loss"), [1, 0.75, 0.5], (level, half))

    def test_B38_a_weight_used_twice_gets_both_gradients(self):
        for level, half in LEVELS:
            self.assertEqual(self.twice("x", 3, "-" + level, "--half=" + half), -6.0, (level, half))

    def test_S1_gradients_of_a_shared_weight_add_in_f32(self):
        # 1 + 2^-9 needs ten bits, bf16 has eight
        for level in ("-O0", "-O1"):
            self.assertEqual(self.twice("x * 0.001953125", 1, level, "--half=bf16"), -1.001953125, level)

    # ---- checks ----

    def test_S9_a_scale_below_1_cannot_make_infinities_unseen(self):
        # the scaled gradient 3e36 is finite, the true one is not
        text = probe(width=1, loss="sum(net(x)) * 1e20 * mean(boost)", optimizer="sgd(net, lr = lr, momentum = 0.9)")
        run = self.build(text, "-O0", "--loss-scale=0.0009765625").run("--n", 2, "--lr", 0, data=rows(3.072e19, x=(1,)))
        self.assertEqual(run.rows[-1]["skipped"], "2")
        self.assertEqual(run.checkpoint()["opt/opt/net/w.momentum_buffer"].tolist(), [0.0])

    def test_S12_a_static_scale_skips_too(self):
        for level, half in HALVES:
            text = probe(scaler="scaler s = static(scale = 8);")
            run = self.build(text, "-" + level, "--half=" + half).run("--n", 3, data=rows(1, BIG, 1))
            self.assertEqual(self.weights(run), [-2.0] * 3)
            self.assertEqual(run.column("scale.s"), [8, 8, 8])
            self.assertEqual(run.rows[-1]["skipped"], "1")

    def test_S15_masters_survive_a_checkpoint(self):
        text = probe(params="param w: float[3] = normal(0, 1);", optimizer="adam(net, lr = lr)")
        program = self.build(text, "-O2", "--half=f16")
        data = rows(1, 2, 3, x=(0.3, -0.7, 0.11))
        whole = program.run("--n", 6, "--lr", 0.01, data=data)
        part = program.run("--n", 5, "--lr", 0.01, data=data)
        part = program.again(part.directory, "--n", 6, "--lr", 0.01, "--resume")
        self.same(whole.checkpoint(6), part.checkpoint(6), "one step after a restart")


if __name__ == "__main__":
    main()

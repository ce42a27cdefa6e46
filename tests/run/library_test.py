"""An emitted library in a C program: what each function does, what it refuses, and that a refused call changes
nothing. Built with ASan and UBSan, so that leaks and strays show.
"""
import os

from harness import AMPC, BASE_FLAGS, Case, main, must

MODEL = """ampc 1;
option lr: real = 0.01 in 0 .. 1 "learning rate";
model Mlp(x: float[N, 8]) -> float[N, 4] {
    layer a = linear(16);
    layer b = linear(4);
    return x |> a |> relu |> dropout(0.2) |> b;
}
instance m = Mlp();
train fit(x: float[N, 8], y: i32[N]) {
    batch = 6;  steps = 100;  seed = 5;
    optimizer opt = adam(m, lr = lr);
    step {
        loss = cross_entropy(m(x), y);
        backward loss into opt;
        update opt;
        report loss;
    }
}
eval test(x: float[N, 8], y: i32[N]) batch 6 { report accuracy = accuracy(m(x), y); }
infer label(x: u8[N, 8]; N: int in 1 .. 9) -> (label: i32[N], score: f32[N]) {
    p = softmax(m(float(x) / 16), axis = -1);
    return (argmax(p, axis = -1), max(p, axis = -1));
}
"""

CLIENT = r"""
#include "net.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static int failed;
#define CHECK(c) ((c) ? (void)0 : (void)(failed = 1, printf("line %d: %s\n", __LINE__, #c)))

static float x[6 * 8];
static int32_t y[6];

static net *make(double lr)
{
    net_config config;
    net *d = NULL;
    CHECK(net_config_init(&config, sizeof config) == 0);
    CHECK(config.lr == 0.01 && config.seed == 5 && config.threads == 0);
    config.lr = lr;
    config.threads = 1;
    CHECK(net_create(&d, &config) == 0);
    return d;
}

static void steps(net *d, int count, net_fit_report *report)
{
    for (int i = 0; i < count; i++)
        CHECK(net_fit_step(d, 6, x, y, report) == 0);
}

int main(void)
{
    float first[16 * 8], a[16 * 8], b[16 * 8];
    for (int i = 0; i < 6 * 8; i++)
        x[i] = (float)(i * 37 % 17) / 17;
    for (int i = 0; i < 6; i++)
        y[i] = i % 4;

    /* Two of the same kind end alike; a report tells what happened. */
    net *d = make(0.01), *e = make(0.01);
    net_fit_report report = {.struct_size = sizeof report};
    CHECK(net_get(d, "param/m/a.weight", first, 16 * 8) == 0);
    steps(d, 10, &report);
    CHECK(report.step == 10 && !report.skipped && report.loss > 0 && report.lr[0] == 0.01f);
    steps(e, 10, NULL);
    CHECK(net_get(d, "param/m/a.weight", a, 16 * 8) == 0);
    CHECK(net_get(e, "param/m/a.weight", b, 16 * 8) == 0);
    CHECK(!memcmp(a, b, sizeof a) && memcmp(a, first, sizeof a));

    /* What is refused changes nothing. */
    y[3] = 4;
    CHECK(net_fit_step(d, 6, x, y, NULL) == 1);
    CHECK(strstr(net_error(d), "y[3] is 4"));
    y[3] = 3;
    CHECK(net_fit_step(d, 7, x, y, NULL) == 2 && net_fit_step(d, 0, x, y, NULL) == 2);
    CHECK(net_get(d, "param/m/nothing", a, 1) == 2 && net_get(d, "param/m/a.weight", a, 3) == 2);
    CHECK(net_load(d, "no such file") == 3);
    CHECK(net_get(d, "param/m/a.weight", a, 16 * 8) == 0 && !memcmp(a, b, sizeof a));
    net_config wrong;
    net *none = d;
    CHECK(net_config_init(&wrong, 2) == 2);
    net_config_init(&wrong, sizeof wrong);
    wrong.lr = NAN;
    CHECK(net_create(&none, &wrong) == 2 && !none && strstr(net_error(NULL), "lr"));

    /* Going on from a file is going on: dropout and moments too. */
    CHECK(net_save(d, "d.ckpt") == 0);
    steps(d, 5, &report);
    net *f = make(0.01);
    CHECK(net_load(f, "d.ckpt") == 0);
    net_fit_report again = {.struct_size = sizeof again};
    steps(f, 5, &again);
    CHECK(again.step == 15 && again.loss == report.loss);
    CHECK(net_get(d, "param/m/a.weight", a, 16 * 8) == 0);
    CHECK(net_get(f, "param/m/a.weight", b, 16 * 8) == 0 && !memcmp(a, b, sizeof a));

    /* A gradient that is not finite: the step is skipped, and skipping does not end. */
    x[5] = INFINITY;
    for (int i = 0; i < 49; i++)
        CHECK(net_fit_step(d, 6, x, y, &report) == 0 && report.skipped == 1);
    CHECK(net_fit_step(d, 6, x, y, &report) == 5);
    CHECK(net_get(d, "param/m/a.weight", b, 16 * 8) == 0 && !memcmp(a, b, sizeof a));
    x[5] = 0;

    /* Weights that are set are used; fewer rows give the same answers. */
    for (int i = 0; i < 16 * 8; i++)
        a[i] = 0.125f;
    CHECK(net_set(d, "param/m/a.weight", a, 16 * 8) == 0);
    CHECK(net_get(d, "param/m/a.weight", b, 16 * 8) == 0 && !memcmp(a, b, sizeof a));
    uint8_t pixels[9 * 8];
    int32_t label[9], one;
    float score[9], one_score;
    for (int i = 0; i < 9 * 8; i++)
        pixels[i] = (uint8_t)(i * 5 % 17);
    CHECK(net_label(d, 9, pixels, label, score) == 0);
    for (int i = 0; i < 9; i++) {
        CHECK(net_label(d, 1, pixels + 8 * i, &one, &one_score) == 0);
        CHECK(one == label[i] && one_score == score[i] && score[i] >= 0.25f && score[i] <= 1);
    }
    net_test_report test = {.struct_size = sizeof test};
    CHECK(net_test_step(d, 6, x, y, &test) == 0 && test.accuracy >= 0 && test.accuracy <= 1);

    net_destroy(d);
    net_destroy(e);
    net_destroy(f);
    net_destroy(NULL);
    return failed;
}
"""


class Library(Case):
    def library(self, *flags):
        with open(os.path.join(self.directory, "net.amp"), "w") as f:
            f.write(MODEL)
        must([AMPC, "net.amp", "--emit=lib", "-o", "net.c", *flags], self.directory)

    def test_client(self):
        with open(os.path.join(self.directory, "client.c"), "w") as f:
            f.write(CLIENT)
        sanitize = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        for level, half in [("-O1", "f16"), ("-O2", "bf16"), ("-O3", "bf16")]: # -O0 does not skip
            with self.subTest(level=level):
                self.library(level, "--half=" + half)
                must(["gcc", *BASE_FLAGS, *sanitize, "client.c", "net.c", "-lm", "-o", "client"], self.directory)
                must(["./client"], self.directory)

    def test_only_prefixed_names_are_external(self):
        self.library("-O1", "--prefix=my")
        must(["gcc", "-c", "net.c"], self.directory)
        for line in must(["nm", "--defined-only", "-g", "net.o"], self.directory).splitlines():
            self.assertTrue(line.split()[-1].startswith("my_"), line)


if __name__ == "__main__":
    main()

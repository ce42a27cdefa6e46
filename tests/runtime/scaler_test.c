/* rt_scaler.h: the golden sequences of all modes, hysteresis, floor and limit, static scales. */
#include "rt_scaler.h"

#include "check.h"

/* F is a good step, O an overflow; wanted are the logarithms of the scale after each step. */
static void check_sequence(RtScaler s, const char *steps, const int *wanted)
{
    for (int i = 0; steps[i]; i++) {
        rt_scaler_update(&s, steps[i] == 'O');
        CHECK(s.scale == ldexpf(1, wanted[i]));
    }
}

static RtScaler short_window(int mode, int hysteresis)
{
    RtScaler s = rt_scaler_make(mode);
    s.scale = 0x1p16f;
    s.window = 2;
    s.hysteresis = s.hysteresis_full = hysteresis;
    return s;
}

static void test_golden_sequences(void)
{
    const char *steps = "FFOFFFOOFFFF";
    const int plain[] = {16, 17, 16, 16, 17, 17, 16, 15, 15, 16, 16, 17};
    const int patient[] = {16, 17, 17, 17, 18, 18, 18, 17, 17, 18, 18, 19};
    const int zero[] = {16, 16, 16, 16, 16, 17, 17, 16, 16, 16, 17, 17};
    const int late[] = {16, 16, 15, 15, 15, 16, 15, 14, 14, 14, 15, 15};
    check_sequence(short_window(RT_SCALER_AMPC, 1), steps, plain);
    check_sequence(short_window(RT_SCALER_APEX, 1), steps, plain);
    check_sequence(short_window(RT_SCALER_TORCH, 1), steps, plain);
    check_sequence(short_window(RT_SCALER_AMPC, 2), steps, patient);
    check_sequence(short_window(RT_SCALER_MEGATRON, 2), steps, patient);
    check_sequence(short_window(RT_SCALER_DEEPSPEED, 2), steps, zero);
    check_sequence(short_window(RT_SCALER_DEEPSPEED, 1), steps, late);
    check_sequence(short_window(RT_SCALER_FLAX, 1), steps, late);
}

/* What the sequence above does not tell apart. */
static void test_differences(void)
{
    const int refilled[] = {16, 16, 16, 16, 16, 15}, used_up[] = {16, 16, 15, 15, 14, 13};
    const int late_once[] = {16, 16, 17, 17, 18}, late_always[] = {16, 16, 17, 17, 17, 18};
    RtScaler ours = short_window(RT_SCALER_AMPC, 2), theirs = short_window(RT_SCALER_MEGATRON, 2);
    ours.window = theirs.window = 100;
    check_sequence(ours, "OFOFOO", refilled);
    check_sequence(theirs, "OFOFOO", used_up);
    check_sequence(short_window(RT_SCALER_DEEPSPEED, 1), "FFFFF", late_once);
    check_sequence(short_window(RT_SCALER_FLAX, 1), "FFFFFF", late_always);
}

/* 1/scale must be finite and the scale never 0 or infinite, however long it goes one way. */
static void test_bounds(void)
{
    for (int mode = 0; mode < RT_SCALER_MODES; mode++) {
        RtScaler s = rt_scaler_make(mode);
        CHECK_EQ(rt_scaler_check(&s), RT_OK);
        s.window = 1;
        for (int i = 0; i < 300; i++)
            rt_scaler_update(&s, 0);
        CHECK(s.scale == s.limit && s.limit <= 0x1p127f);
        for (int i = 0; i < 400; i++)
            rt_scaler_update(&s, 1);
        CHECK(s.scale == s.floor && 1.0f / s.scale <= 0x1p126f);
        CHECK(s.skips == 400 && s.skips_in_row == 400);
    }
    RtScaler s = rt_scaler_make(RT_SCALER_AMPC);
    s.window = 1;
    for (int i = 0; i < 300; i++)
        rt_scaler_update(&s, 0);
    CHECK(s.scale == 0x1p24f);
    s = rt_scaler_make(RT_SCALER_AMPC);
    s.floor = 1.0f;
    for (int i = 1; i <= 40; i++) {
        rt_scaler_update(&s, 1);
        CHECK(s.scale == ldexpf(1, i < 16 ? 16 - i : 0));
    }
    s = rt_scaler_make(RT_SCALER_FLAX);
    s.factor = 10.0f;
    s.window = 1;
    for (int i = 0; i < 200; i++)
        rt_scaler_update(&s, 0);
    CHECK(s.scale == 0x1p127f);
    rt_scaler_update(&s, 1);
    CHECK(s.scale < 0x1p127f);
}

static void test_counts(void)
{
    RtScaler s = rt_scaler_make_static(128.0f);
    CHECK_EQ(rt_scaler_check(&s), RT_OK);
    for (int i = 0; i < 10; i++)
        rt_scaler_update(&s, i % 3 == 0 || i == 8);
    CHECK(s.scale == 128.0f && s.skips == 5 && s.skips_in_row == 2);
    rt_scaler_update(&s, 0);
    CHECK(s.skips == 5 && s.skips_in_row == 0);
    s = rt_scaler_make(RT_SCALER_TORCH);
    for (int i = 0; i < 1999; i++)
        rt_scaler_update(&s, 0);
    CHECK(s.scale == 0x1p16f && s.growth == 1999);
    rt_scaler_update(&s, 0);
    CHECK(s.scale == 0x1p17f && s.growth == 0);
}

static void test_refused(void)
{
    const float scales[] = {0.0f, -1.0f, 0x1.000002p32f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        RtScaler s = rt_scaler_make_static(scales[i]);
        CHECK_EQ(rt_scaler_check(&s), RT_USAGE);
    }
    RtScaler s = rt_scaler_make(RT_SCALER_AMPC);
    s.factor = 1.0f;
    CHECK_EQ(rt_scaler_check(&s), RT_USAGE);
    s = rt_scaler_make(RT_SCALER_AMPC);
    s.window = 0;
    CHECK_EQ(rt_scaler_check(&s), RT_USAGE);
    s = rt_scaler_make(RT_SCALER_AMPC);
    s.floor = 0x1p17f;
    CHECK_EQ(rt_scaler_check(&s), RT_USAGE);
}

int main(void)
{
    test_golden_sequences();
    test_differences();
    test_bounds();
    test_counts();
    test_refused();
    return check_done();
}

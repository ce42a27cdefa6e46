/* What the progress line says, and when: the times are made up, so the output is exact. */
#include "rt_progress.h"

#include "check.h"

static char *written;
static size_t written_bytes;

static void check_written(FILE *stream, const char *wanted)
{
    fclose(stream);
    if (strcmp(written, wanted))
        fprintf(stderr, "found '%s', wanted '%s'\n", written, wanted);
    CHECK(!strcmp(written, wanted));
    free(written);
}

static void check_line(const RtProgressNow *now, const char *wanted)
{
    char text[RT_PROGRESS_TEXT];
    rt_progress_line(text, now);
    if (strcmp(text, wanted))
        fprintf(stderr, "found '%s', wanted '%s'\n", text, wanted);
    CHECK(!strcmp(text, wanted));
}

static void check_duration(double seconds, const char *wanted)
{
    char text[32];
    rt_progress_duration(text, sizeof text, seconds);
    CHECK(!strcmp(text, wanted));
}

/* Stands for a program that makes a step every ms_a_step and shows each. */
static FILE *train(RtProgressMode mode, int steps, double ms_a_step)
{
    RtProgress p;
    RtProgressNow now;
    FILE *stream = open_memstream(&written, &written_bytes);
    memset(&now, 0, sizeof now);
    now.entry = "fit";
    rt_progress_start(&p, stream, mode, 1000);
    for (now.step = 1; now.step <= steps; now.step++)
        rt_progress_show(&p, &now, 1000 + ms_a_step * (double)now.step);
    rt_progress_clear(&p);
    now.step = steps;
    rt_progress_end(&p, &now, 1000 + ms_a_step * steps);
    return stream;
}

int main(void)
{
    RtProgressNow now;
    memset(&now, 0, sizeof now);
    check_line(&now, "train");
    now.entry = "fit";
    now.epoch = 3;
    now.step = 288;
    now.report = "loss";
    now.value = INFINITY;
    check_line(&now, "fit  epoch 3  step 288  loss inf");
    now.epochs = 20;
    now.steps = 1920;
    now.value = 0.31251;
    now.scale = 65536;
    now.skipped = 2;
    now.ms_per_step = 1.84;
    check_line(&now, "fit  epoch 3/20  step 288/1920  loss 0.3125  scale 65536  skipped 2  "
                     "1.84 ms/step  ETA 0:03");
    now.entry =
        "a name so long that the line cannot hold it: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    char text[RT_PROGRESS_TEXT];
    rt_progress_line(text, &now);
    CHECK_EQ(strlen(text), RT_PROGRESS_TEXT - 1);

    check_duration(0, "0:00");
    check_duration(59.4, "0:59");
    check_duration(754, "12:34");
    check_duration(3599.6, "1:00:00");
    check_duration(10921, "3:02:01");
    check_duration(1e300, "?");

    check_written(train(RT_PROGRESS_OFF, 100, 1000), "");
    /* Ten a second at most, here after steps 10 and 20; then cleared, and the end. */
    check_written(train(RT_PROGRESS_BAR, 25, 10), "\rfit  step 10\033[K\rfit  step 20\033[K"
                                                  "\r\033[K\rfit  step 25\033[K\n");
    check_written(train(RT_PROGRESS_LINES, 25, 1000), "fit  step 10\nfit  step 20\nfit  step 25\n");
    check_written(train(RT_PROGRESS_AUTO, 25, 1000), "fit  step 10\nfit  step 20\nfit  step 25\n");
    return check_done();
}

/* SPDX-License-Identifier: 0BSD */
/* Tells a person how training goes: on a terminal one line that is rewritten at most ten times a
 * second, elsewhere a new line every ten seconds, or nothing. The caller gives the time, so that
 * nothing here depends on a clock.
 *
 *     rt_progress_start(&p, stderr, RT_PROGRESS_AUTO, rt_now_ms());
 *     rt_progress_show(&p, &now, rt_now_ms());
 *     rt_progress_end(&p, &now, rt_now_ms());
 *
 *     fit  epoch 3/20  step 288/1920  loss 0.3125  scale 65536  skipped 2  1.84 ms/step  ETA 0:03
 */
#ifndef AMPC_RT_PROGRESS_H
#define AMPC_RT_PROGRESS_H
#include "rt_base.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef enum RtProgressMode {
    RT_PROGRESS_AUTO, /* bar on a terminal, lines elsewhere */
    RT_PROGRESS_BAR,
    RT_PROGRESS_LINES,
    RT_PROGRESS_OFF
} RtProgressMode;

/* Where training stands. What a program does not have is left zero and not shown. */
typedef struct RtProgressNow {
    const char *entry;
    int64_t epoch, epochs; /* epoch counts from 1 */
    int64_t step, steps;   /* attempted so far, and in all */
    const char *report;    /* the value to show, `loss` for example */
    double value;
    double scale;
    int64_t skipped;
    double ms_per_step;
} RtProgressNow;

typedef struct RtProgress {
    FILE *stream;
    RtProgressMode mode;
    double every_ms, shown_ms; /* at most one output in every_ms; the last was at shown_ms */
    bool on_line;              /* the cursor stands on a line of ours */
} RtProgress;

enum { RT_PROGRESS_TEXT = 256 };

RT_FN void rt_progress_start(RtProgress *p, FILE *stream, RtProgressMode mode, double now_ms)
{
    const char *terminal = getenv("TERM");
    bool can_rewrite = isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb");
    p->stream = stream;
    p->mode = mode != RT_PROGRESS_AUTO ? mode : can_rewrite ? RT_PROGRESS_BAR : RT_PROGRESS_LINES;
    p->every_ms = p->mode == RT_PROGRESS_BAR ? 100 : 10000;
    p->shown_ms = now_ms;
    p->on_line = false;
}

/* Seconds as 0:07, 12:34 or 3:02:01. */
RT_FN void rt_progress_duration(char *out, size_t size, double seconds)
{
    long long s = seconds < 1e12 ? (long long)(seconds + 0.5) : 0;
    if (seconds >= 1e12)
        snprintf(out, size, "?");
    else if (s < 3600)
        snprintf(out, size, "%lld:%02lld", s / 60, s % 60);
    else
        snprintf(out, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
RT_FN void
rt_progress_add(char text[RT_PROGRESS_TEXT], const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, RT_PROGRESS_TEXT - used, format, arguments);
    va_end(arguments);
}

/* "  NAME 3/20", without the total where there is none. */
RT_FN void rt_progress_add_count(char text[RT_PROGRESS_TEXT], const char *name, int64_t k,
                                 int64_t n)
{
    if (k > 0)
        rt_progress_add(text, "  %s %lld", name, (long long)k);
    if (k > 0 && n > 0)
        rt_progress_add(text, "/%lld", (long long)n);
}

RT_FN void rt_progress_line(char text[RT_PROGRESS_TEXT], const RtProgressNow *now)
{
    text[0] = '\0';
    rt_progress_add(text, "%s", now->entry ? now->entry : "train");
    rt_progress_add_count(text, "epoch", now->epoch, now->epochs);
    rt_progress_add_count(text, "step", now->step, now->steps);
    if (now->report)
        rt_progress_add(text, "  %s %.4g", now->report, now->value);
    if (now->scale > 0)
        rt_progress_add(text, "  scale %.6g", now->scale);
    if (now->skipped > 0)
        rt_progress_add(text, "  skipped %lld", (long long)now->skipped);
    if (now->ms_per_step > 0)
        rt_progress_add(text, "  %.3g ms/step", now->ms_per_step);
    if (now->ms_per_step > 0 && now->steps > now->step) {
        char left[32];
        rt_progress_duration(left, sizeof left,
                             (double)(now->steps - now->step) * now->ms_per_step * 1e-3);
        rt_progress_add(text, "  ETA %s", left);
    }
}

/* Cuts the text to the terminal's width: a line that wraps cannot be rewritten. */
RT_FN void rt_progress_fit(const RtProgress *p, char text[RT_PROGRESS_TEXT])
{
    struct winsize window;
    size_t width = 80;
    if (!ioctl(fileno(p->stream), TIOCGWINSZ, &window) && window.ws_col > 1)
        width = window.ws_col;
    if (strlen(text) > width - 1)
        text[width - 1] = '\0';
}

/* Shows the state, unless it was shown a moment ago. Trouble with the terminal is not a reason to
 * stop training, so write errors are ignored. */
RT_FN void rt_progress_show(RtProgress *p, const RtProgressNow *now, double now_ms)
{
    char text[RT_PROGRESS_TEXT];
    if (p->mode == RT_PROGRESS_OFF || now_ms - p->shown_ms < p->every_ms)
        return;
    p->shown_ms = now_ms;
    rt_progress_line(text, now);
    if (p->mode == RT_PROGRESS_BAR) {
        rt_progress_fit(p, text);
        fprintf(p->stream, "\r%s\033[K", text);
        p->on_line = true;
    } else {
        fprintf(p->stream, "%s\n", text);
    }
    fflush(p->stream);
}

/* Takes the line away, so that something else can be printed. */
RT_FN void rt_progress_clear(RtProgress *p)
{
    if (p->on_line) {
        fputs("\r\033[K", p->stream);
        fflush(p->stream);
    }
    p->on_line = false;
}

/* Shows the last state, however short ago the one before was, and leaves it standing. */
RT_FN void rt_progress_end(RtProgress *p, const RtProgressNow *now, double now_ms)
{
    p->shown_ms = now_ms - p->every_ms;
    rt_progress_show(p, now, now_ms);
    if (p->on_line) {
        fputc('\n', p->stream);
        fflush(p->stream);
    }
    p->on_line = false;
}
#endif

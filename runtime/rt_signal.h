/* SPDX-License-Identifier: 0BSD */
/* Signals, as the training loop asks for them between steps: SIGINT and SIGTERM ask to finish the
 * step, write a checkpoint and leave with 128 + signal; the second one kills at once. SIGUSR1 asks
 * for a checkpoint, and training goes on. The handlers only set flags.
 *
 *     rt_signal_install();
 *     while (!rt_signal_stop()) { step(); if (rt_signal_take_save()) save(); }
 *     save();
 *     return 128 + rt_signal_stop();                                     130 after SIGINT
 */
#ifndef AMPC_RT_SIGNAL_H
#define AMPC_RT_SIGNAL_H
#include "rt_base.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

static volatile sig_atomic_t rt_signal_number; /* the SIGINT or SIGTERM that came, or 0 */
static volatile sig_atomic_t rt_signal_save;

RT_FN void rt_signal_on_stop(int number)
{
    if (!rt_signal_number) {
        rt_signal_number = number;
        return;
    }
    signal(number, SIG_DFL); /* it is blocked in here, so it strikes when we return */
    raise(number);
}

RT_FN void rt_signal_on_save(int number)
{
    (void)number;
    rt_signal_save = 1;
}

/* Interrupted reads and writes are restarted. A signal that the parent told us to ignore (nohup,
 * a background job) stays ignored. */
RT_FN int rt_signal_install(void)
{
    static const int number[] = {SIGINT, SIGTERM, SIGUSR1};
    for (int k = 0; k < 3; k++) {
        struct sigaction now, wanted;
        if (sigaction(number[k], NULL, &now))
            return rt_fail(RT_SYSTEM, "cannot read the handler of signal %d: %s", number[k],
                           strerror(errno));
        if (now.sa_handler == SIG_IGN)
            continue;
        memset(&wanted, 0, sizeof wanted);
        wanted.sa_handler = number[k] == SIGUSR1 ? rt_signal_on_save : rt_signal_on_stop;
        wanted.sa_flags = SA_RESTART;
        sigemptyset(&wanted.sa_mask);
        if (sigaction(number[k], &wanted, NULL))
            return rt_fail(RT_SYSTEM, "cannot handle signal %d: %s", number[k], strerror(errno));
    }
    return RT_OK;
}

/* The signal that asked to stop, or 0. */
RT_FN int rt_signal_stop(void)
{
    return (int)rt_signal_number;
}

/* Whether a checkpoint was asked for since the last call. */
RT_FN bool rt_signal_take_save(void)
{
    bool asked = rt_signal_save != 0;
    rt_signal_save = 0;
    return asked;
}
#endif

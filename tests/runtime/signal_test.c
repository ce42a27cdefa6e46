/* The first SIGINT or SIGTERM asks, the second kills; SIGUSR1 asks for a checkpoint, each time
 * anew; what the parent ignores stays ignored. */
#include "rt_signal.h"

#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

/* How a child ends that installs the handlers and sends itself these signals: its exit code, or
 * 1000 + the signal that killed it. It exits with what rt_signal_stop() says. */
static int child_end(int first, int second, bool ignore)
{
    pid_t child = fork();
    if (!child) {
        signal(first, ignore ? SIG_IGN : SIG_DFL);
        if (rt_signal_install())
            _exit(99);
        raise(first);
        if (second)
            raise(second);
        _exit(rt_signal_stop());
    }
    int how = 0;
    CHECK_EQ(waitpid(child, &how, 0), child);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
}

int main(void)
{
    CHECK_EQ(child_end(SIGINT, 0, false), SIGINT);
    CHECK_EQ(child_end(SIGTERM, 0, false), SIGTERM);
    CHECK_EQ(child_end(SIGUSR1, 0, false), 0);
    CHECK_EQ(child_end(SIGUSR1, SIGTERM, false), SIGTERM);
    CHECK_EQ(child_end(SIGINT, SIGUSR1, false), SIGINT);
    CHECK_EQ(child_end(SIGINT, SIGINT, false), 1000 + SIGINT);
    CHECK_EQ(child_end(SIGTERM, SIGINT, false), 1000 + SIGINT);
    CHECK_EQ(child_end(SIGINT, SIGTERM, false), 1000 + SIGTERM);
    CHECK_EQ(child_end(SIGINT, 0, true), 0);
    CHECK_EQ(rt_signal_install(), RT_OK);
    CHECK(!rt_signal_take_save());
    for (int k = 0; k < 2; k++) {
        CHECK(!raise(SIGUSR1));
        CHECK(rt_signal_take_save());
        CHECK(!rt_signal_take_save());
    }
    CHECK_EQ(rt_signal_stop(), 0);
    return check_done();
}

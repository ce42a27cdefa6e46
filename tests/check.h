/* What the C tests use to check: CHECK(condition) and CHECK_EQ(found, wanted) report file, line and
 * text of what failed and go on; check_done() prints how many ran and is the value main returns. */
#ifndef AMPC_TESTS_CHECK_H
#define AMPC_TESTS_CHECK_H
#include <stdio.h>

static long check_count, check_failed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        check_count++;                                                                             \
        if (!(condition) && check_failed++ < 20)                                                   \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
    } while (0)

#define CHECK_EQ(found, wanted)                                                                    \
    do {                                                                                           \
        long long found_ = (long long)(found), wanted_ = (long long)(wanted);                      \
        check_count++;                                                                             \
        if (found_ != wanted_ && check_failed++ < 20)                                              \
            fprintf(stderr, "%s:%d: %s is %lld, wanted %lld\n", __FILE__, __LINE__, #found,        \
                    found_, wanted_);                                                              \
    } while (0)

static inline int check_done(void)
{
    printf("%ld checks, %ld failed\n", check_count, check_failed);
    return check_failed || !check_count;
}
#endif

/* libampc as a program uses it: texts in, texts and messages out; wrong options; contexts in two
 * threads; and memory that runs out at every point, which gives status 3 and (under ASan) leaves
 * nothing behind.
 */
#include "runtime/ampc.h"
#include "check.h"
#include "support/arena.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char model[] = "ampc 1;\n"
                            "const HIDDEN: int = 8;\n"
                            "dataset d = csv(\"d.csv\") {\n"
                            "    x: float[4] = columns(0, 4);\n"
                            "    y: i32 = column(4);\n"
                            "}\n"
                            "model Net(x: float[N, 4]) -> float[N, 2] {\n"
                            "    layer a = linear(HIDDEN);\n"
                            "    layer b = linear(2);\n"
                            "    return x |> a |> relu |> b;\n"
                            "}\n"
                            "instance net = Net();\n"
                            "train fit(x: float[N, 4], y: i32[N]) on d {\n"
                            "    batch = 4;  steps = 10;\n"
                            "    optimizer opt = sgd(net, lr = 0.1);\n"
                            "    step {\n"
                            "        loss = cross_entropy(net(x), y);\n"
                            "        backward loss into opt;\n"
                            "        update opt;\n"
                            "        report loss;\n"
                            "    }\n"
                            "}\n";

static const char *const *options_for(const char *emit)
{
    static _Thread_local const char *options[4];
    options[0] = "-O2";
    options[1] = emit;
    return options;
}

static AmpcContext *opened(const char *emit)
{
    AmpcContext *context = NULL;
    CHECK_EQ(ampc_open(&context, options_for(emit)), 0);
    CHECK(context != NULL);
    return context;
}

static int emit(AmpcContext *context, const char *text, const char **out, size_t *bytes)
{
    return ampc_emit(context, "net.amp", text, strlen(text), out, bytes);
}

static void test_emits_twice(const char *kind)
{
    AmpcContext *context = opened(kind);
    const char *first, *second;
    size_t first_bytes, second_bytes;
    CHECK_EQ(emit(context, model, &first, &first_bytes), 0);
    CHECK_EQ(emit(context, model, &second, &second_bytes), 0);
    CHECK(first != second); /* the first is still there */
    CHECK(first_bytes > 0 && first_bytes == second_bytes);
    CHECK(first && second && memcmp(first, second, first_bytes + 1) == 0);
    CHECK(first && strlen(first) == first_bytes);
    CHECK_EQ(strlen(ampc_error(context)), 0);
    ampc_close(context);
}

static void test_reads_files(void)
{
    AmpcContext *context = opened("--emit=ast");
    const char *out;
    size_t bytes;
    CHECK_EQ(ampc_emit(context, "/no/such.amp", NULL, 0, &out, &bytes), 3);
    CHECK(!out && !bytes);
    CHECK(strstr(ampc_error(context), "cannot read /no/such.amp: No such file or directory"));
    ampc_close(context);
}

static void test_messages(void)
{
    AmpcContext *context = opened("--emit=ast");
    const AmpcDiagnostic *d;
    const char *out;
    size_t bytes;
    CHECK_EQ(ampc_diagnostics(context, &d), 0);
    CHECK_EQ(emit(context, "ampc 1;\nmodel A(x: f32) -> f32 {\n    if x {\n        y = x;\n", &out,
                  &bytes),
             1);
    CHECK(out == NULL);
    size_t count = ampc_diagnostics(context, &d);
    CHECK(count >= 2);
    int notes = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(d[i].file && strcmp(d[i].file, "net.amp") == 0);
        CHECK(d[i].line >= 1 && d[i].column >= 1);
        CHECK(d[i].end_line > d[i].line || d[i].end_column >= d[i].column);
        CHECK(strlen(d[i].message) > 0);
        CHECK(d[i].severity == AMPC_ERROR ? strcmp(d[i].code, "syntax") == 0
                                          : d[i].code[0] == '\0');
        CHECK(d[i].severity == AMPC_NOTE ? d[i].parent >= 0 && d[i].parent < (int)i
                                         : d[i].parent == -1);
        notes += d[i].severity == AMPC_NOTE;
    }
    CHECK(notes > 0);
    CHECK(count && strstr(ampc_error(context), d[0].message));
    CHECK_EQ(emit(context, "ampc 1;\n", &out, &bytes), 0); /* the context goes on */
    CHECK_EQ(ampc_diagnostics(context, &d), 0);
    CHECK_EQ(strlen(ampc_error(context)), 0);
    ampc_close(context);
}

static void test_wrong_options(void)
{
    static const struct {
        const char *option, *message;
    } wrong[] = {{"-O7", "-O takes"},
                 {"--hlf=f16", "did you mean '--half'?"},
                 {"--run", "not supported yet: --run"},
                 {"-o", "'-o' is an option of the command line only"},
                 {"--help", "'--help' is an option of the command line only"},
                 {"net.amp", "'net.amp' is no option"},
                 {"--emit=lib", "--prefix=NAME"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        AmpcContext *context = (AmpcContext *)wrong; /* not NULL */
        const char *options[] = {wrong[i].option, NULL};
        CHECK_EQ(ampc_open(&context, options), 2);
        CHECK(context == NULL);
        CHECK(strstr(ampc_error(NULL), wrong[i].message));
    }
    AmpcContext *context;
    CHECK_EQ(ampc_open(&context, NULL), 0);
    CHECK_EQ(strlen(ampc_error(NULL)), 0);
    ampc_close(context);
    ampc_close(NULL);
}

/* The options are the caller's again once the context is open. */
static void test_keeps_options(void)
{
    char option[] = "--emit=ast";
    const char *options[] = {option, NULL};
    AmpcContext *context;
    const char *out;
    size_t bytes;
    CHECK_EQ(ampc_open(&context, options), 0);
    memset(option, 'x', sizeof option - 1);
    CHECK_EQ(emit(context, model, &out, &bytes), 0);
    CHECK(out && strncmp(out, "ampc 1;", 7) == 0);
    ampc_close(context);
}

/* What each of two threads does at the same time. */
typedef struct Work {
    const char *kind;
    char *text; /* of the last round */
    int different;
} Work;

static void *work(void *data)
{
    Work *w = data;
    for (int round = 0; round < 20; round++) {
        AmpcContext *context = NULL;
        const char *out = NULL;
        size_t bytes = 0;
        int status = ampc_open(&context, options_for(w->kind));
        status |= status ? status : emit(context, model, &out, &bytes);
        w->different += status || (w->text && strcmp(w->text, out) != 0);
        if (out && !w->text) {
            w->text = malloc(bytes + 1);
            memcpy(w->text, out, bytes + 1);
        }
        ampc_close(context);
    }
    return NULL;
}

static void test_threads(const char *one, const char *other)
{
    Work w[2] = {{.kind = one}, {.kind = other}}, alone = {.kind = one};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    work(&alone);
    CHECK_EQ(w[0].different + w[1].different + alone.different, 0);
    CHECK(w[0].text && alone.text && strcmp(w[0].text, alone.text) == 0);
    free(w[0].text);
    free(w[1].text);
    free(alone.text);
}

/* Opens, emits and closes while the n-th request for memory fails. Gives the status. */
static int emit_with_failure(const char *kind, const char *text, long n, int for_good)
{
    AmpcContext *context;
    const AmpcDiagnostic *d;
    const char *out = NULL;
    size_t bytes;
    arena_fail_at(n, for_good);
    int status = ampc_open(&context, options_for(kind));
    if (!status)
        status = emit(context, text, &out, &bytes);
    arena_fail_at(0, 0);
    if (status == 3) {
        CHECK(strcmp(ampc_error(context), "out of memory") == 0);
        CHECK(out == NULL);
        CHECK(!context || ampc_diagnostics(context, &d) == 0);
    }
    ampc_close(context);
    return status;
}

static void test_out_of_memory(const char *kind, const char *text, int wanted)
{
    for (int for_good = 0; for_good < 2; for_good++) {
        long n = 0;
        int status;
        do
            status = emit_with_failure(kind, text, ++n, for_good);
        while (status == 3 && n < 100000);
        CHECK_EQ(status, wanted);
        CHECK(n > 2);
    }
}

int main(void)
{
    static const char *const kinds[] = {"--emit=ast", "--emit=ir", "--emit=summary",
                                        "--emit=program"};
    CHECK_EQ(ampc_abi(), AMPC_ABI);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        test_emits_twice(kinds[i]);
        test_threads(kinds[i], kinds[0]);
        test_out_of_memory(kinds[i], model, 0);
    }
    test_out_of_memory("--emit=ast", "model {", 1); /* while there are messages */
    test_reads_files();
    test_messages();
    test_wrong_options();
    test_keeps_options();
    return check_done();
}

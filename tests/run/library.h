/* Emitted libraries, many in one file of C: each is printed with a prefix of its own, the runtime
 * is included once, and names of file scope are told apart by macros. A shim gives every library
 * the same signatures.
 *
 *     LibraryText t = library_open("/tmp/m1");
 *     library_add(&t, "m17", text, &settings, &message);
 *     library_build(&t, "gcc -O1");            dlopen
 *     const Shim *s = library_shim(&t, "m17");
 */
#ifndef AMPC_TESTS_LIBRARY_H
#define AMPC_TESTS_LIBRARY_H
#include "passes/pass.h"
#include <stdio.h>

/* Arguments are inputs in declared order, then results; the report of a step is loss, skipped,
 * scale, lr, norm. */
typedef struct Shim {
    int (*create)(void **out);
    void (*destroy)(void *);
    const char *(*error)(const void *);
    int (*infer)(void *, int64_t rows, void **argument);
    int (*train)(void *, int64_t rows, void **argument, float *report);
    int (*eval)(void *, int64_t rows, void **argument, float *report);
    int (*get)(void *, const char *tensor, float *to, int64_t count);
    int (*set)(void *, const char *tensor, const float *from, int64_t count);
} Shim;

typedef struct Library {
    char path[200]; /* without .c and .so */
    FILE *file;
    void *handle;
} Library;

int library_open(Library *l, const char *path, int clones);
/* Compiles a model and adds what was emitted; 0: *message says why not. */
int library_add(Library *l, const char *prefix, const char *text, const Settings *settings,
                char *message, size_t room);
/* Shell command that compiles the file. */
void library_command(const Library *l, const char *compiler, const char *runtime, char *command,
                     size_t room);
int library_load(Library *l);
const Shim *library_shim(const Library *l, const char *prefix);
void library_close(Library *l);
#endif

#include "ir/optim.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Row {
    const char *id, *name, *hypers, *states, *derived, *body, *prose;
} Row;

static const Row rows[] = {
#define OPTIMIZER(id, name, hypers, states, derived, ...)                                          \
    OPTIMIZER_(id, name, hypers, states, derived, __VA_ARGS__)
#define OPTIMIZER_(id, name, hypers, states, derived, body, prose)                                 \
    {#id, name, hypers, states, derived, #body, prose},
#include "ir/optim.def"
#undef OPTIMIZER_
#undef OPTIMIZER
};
enum { COUNT = sizeof rows / sizeof *rows };

static OptimInfo infos[COUNT];
static char texts[COUNT][2][128];

static void add_hyper(OptimInfo *info, const char *name, const char *value)
{
    int i = info->hypers++;
    assert(i < MAX_HYPERS);
    info->hyper[i] = name;
    info->flag[i] = !strcmp(value, "false") || !strcmp(value, "true");
    info->fallback[i] = info->flag[i] ? value[0] == 't' : *value ? strtod(value, NULL) : NAN;
}

/* "lr=1e-3,betas=(0.9,0.999),eps=1e-8": betas become beta1 and beta2. */
static void read_hypers(OptimInfo *info, char *text)
{
    while (*text) {
        char *equals = strchr(text, '='), *value = equals + 1, *end;
        *equals = 0;
        if (*value == '(') {
            char *comma = strchr(value, ',');
            assert(!strcmp(text, "betas"));
            end = strchr(value, ')');
            *comma = *end = 0;
            add_hyper(info, "beta1", value + 1);
            add_hyper(info, "beta2", comma + 1);
            end++;
        } else {
            end = value + strcspn(value, ",");
            char *stop = end;
            end += *end == ',';
            *stop = 0;
            add_hyper(info, text, value);
            text = end;
            continue;
        }
        text = *end == ',' ? end + 1 : end;
    }
}

static void read_states(OptimInfo *info, char *text)
{
    for (char *name = strtok(text, ","); name; name = strtok(NULL, ",")) {
        assert(info->states < MAX_STATES);
        info->state[info->states++] = name;
    }
}

__attribute__((constructor)) static void build_infos(void)
{
    for (int i = 0; i < COUNT; i++) {
        OptimInfo *info = &infos[i];
        info->id = rows[i].id;
        info->name = rows[i].name;
        info->prose = rows[i].prose;
        info->body = rows[i].body;
        info->derived = rows[i].derived;
        assert(strlen(rows[i].hypers) < sizeof texts[i][0]);
        strcpy(texts[i][0], rows[i].hypers);
        strcpy(texts[i][1], rows[i].states);
        read_hypers(info, texts[i][0]);
        read_states(info, texts[i][1]);
    }
}

int optim_count(void)
{
    return COUNT;
}

const OptimInfo *optim_info(int kind)
{
    return &infos[kind];
}

int optim_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(rows[i].name, name))
            return i;
    return -1;
}

int optim_derives(const OptimInfo *info, const char *derived)
{
    size_t n = strlen(derived);
    for (const char *s = info->derived; *s; s += strcspn(s, ","), s += *s == ',')
        if (!strncmp(s, derived, n) && (s[n] == ',' || !s[n]))
            return 1;
    return 0;
}

void optim_list(Out *o)
{
    for (int i = 0; i < COUNT; i++)
        out_line(o, "%-8s (%s): %s", rows[i].name, rows[i].hypers, rows[i].prose);
}

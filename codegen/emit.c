/* The order of the file: banner, runtime pieces, state, parameters, kernels, optimizers, steps, and
 * data and main or the functions of a library.
 *
 * Everything after the runtime is printed first, because what it names decides which pieces of the
 * runtime are pasted; the banner comes last, because it knows the lines of all sections.
 */
#include "codegen/emit.h"
#include "codegen/host.h"
#include "codegen/kernel_print.h"
#include "codegen/runtime.h"
#include <string.h>

enum { COLUMNS = 100 };

/* ---- long lines ---- */

/* The best place to break a line at: after a comma, or an operator, outside strings. Breaks between
 * the outer parts of a call or row are better than those inside; else the last that fits is best.
 * *indent becomes the column of what follows. 0: there is none. */
static size_t break_place(const char *line, size_t bytes, int continued, size_t *indent)
{
    enum { DEPTH = 16, EARLY = 50 };
    size_t open[DEPTH], place[DEPTH] = {0}, depth = 0, lead = strspn(line, " ");
    int in_string = 0;
    open[depth] = continued ? lead : lead + 4;
    for (size_t i = lead; i < bytes && i <= COLUMNS; i++) {
        if (line[i] == '"' && line[i - 1] != '\\')
            in_string = !in_string;
        if (in_string)
            continue;
        if ((line[i] == '(' || line[i] == '{') && depth + 1 < DEPTH)
            open[++depth] = i + 1;
        else if ((line[i] == ')' || line[i] == '}') && depth)
            depth--;
        else if (line[i] == ' ' && i > lead && line[i - 1] == ',')
            place[depth] = i + 1;
        else if (line[i] == ' ' && i > lead && strchr("+-=|&?:", line[i - 1]) &&
                 place[depth] <= EARLY)
            place[depth] = i + 1;
    }
    size_t best = 0;
    for (size_t d = 0; d < DEPTH; d++)
        if (place[d] > EARLY || place[d] > place[best])
            if (place[best] <= EARLY)
                best = d;
    *indent = open[best];
    return place[best];
}

/* Writes a line, broken where it is too long. */
static void wrap_line(Out *o, const char *line, size_t bytes)
{
    char rest[4096];
    for (int continued = 0; bytes > COLUMNS && bytes < sizeof rest; continued = 1) {
        size_t indent = 0, at = break_place(line, bytes, continued, &indent);
        if (!at || at <= indent)
            break;
        out_printf(o, "%.*s\n", (int)(at - 1), line);
        memset(rest, ' ', indent);
        memmove(rest + indent, line + at, bytes - at);
        bytes = indent + bytes - at;
        line = arena_copy(o->arena, rest, bytes);
    }
    out_printf(o, "%.*s\n", (int)bytes, line);
}

static void wrap_text(Out *o, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        wrap_line(o, text, n);
        text += n + (text[n] == '\n');
    }
}

/* ---- what there is to emit ---- */

static int is_launched(const Host *h, const Kernel *k)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const EntryPlan *e = &h->plan->entry[i];
        for (int n = 0; is_emitted(h, h->program->entries.at[i]) && n < e->launches.n; n++)
            if (e->launches.at[n]->kernel == k)
                return 1;
    }
    return 0;
}

static void print_kernels(Host *h)
{
    int first = 1;
    section(h, "Kernels");
    for (int i = 0; i < h->plan->kernels.n; i++) {
        if (!is_launched(h, h->plan->kernels.at[i]))
            continue;
        if (!first)
            out_text(h->o, "\n");
        first = 0;
        kernel_print(h->o, h->program, h->plan->kernels.at[i], h->dialect);
    }
}

/* A program needs data for its entries. */
static int has_work(Host *h)
{
    int count = 0;
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        count += is_emitted(h, e);
        if (e->kind == ENTRY_TRAIN && !is_emitted(h, e))
            error_at(h->u->diags, CODE_RULE, e->span,
                     "'%s' has no dataset to run on; --emit=lib makes its step a C function",
                     e->name);
    }
    if (!count && !h->u->diags->errors)
        error_at(h->u->diags, CODE_RULE, (Span){0},
                 "nothing to emit: there is no train or eval with a dataset");
    return count && !h->u->diags->errors;
}

/* ---- the banner ---- */

static int64_t count_weights(const Host *h)
{
    int64_t count = 0;
    for (int i = 0; i < h->program->params.n; i++)
        if (!h->program->params.at[i]->is_buffer)
            count += h->place[i].count;
    return count;
}

/* Bytes of weights, copies, gradients and optimizer states. */
static int64_t count_bytes(const Host *h)
{
    int64_t bytes = 0;
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        int64_t each = dtype_bytes(pool->weight);
        each += pool->copy == DT_NONE ? 0 : dtype_bytes(pool->copy);
        if (pool->optimizer && pool->gradient != DT_NONE)
            each += dtype_bytes(pool->gradient) + 4 * optim_info(pool->optimizer->kind)->states;
        bytes += each * pool->size;
    }
    return bytes;
}

static const char *types_text(const Host *h)
{
    const Properties *p = &h->program->props;
    const char *half = dtype_info[p->half].name;
    static const char *const texts[][2] = {
        {"f32 everywhere", "f32 everywhere"},
        {"f32 weights, f16 where it is safe", "f32 weights, bf16 where it is safe"},
        {"f16 weights and values, f32 masters", "bf16 weights and values, f32 masters"},
        {"f16 everywhere", "bf16 everywhere"}};
    return texts[p->level][!strcmp(half, "bf16")];
}

enum { BANNER_WIDTH = 96 };

/* The options that made the output what it is: always these four, and what else was given. */
static void print_command(Host *h, Out *o)
{
    const Properties *p = &h->program->props;
    const char *given = h->u->settings->command;
    out_printf(o, " * Options: -O%d --half=%s --policy=%s --rounding=%s", p->level,
               dtype_info[p->half].name, p->torch_policy ? "torch" : "apex",
               p->strict ? "strict" : "fused");
    while (given && *given) {
        int length = (int)strcspn(given, " ");
        out_text(o, o->column + 1 + length > BANNER_WIDTH ? "\n *         " : " ");
        out_printf(o, "%.*s", length, given);
        given += length + (given[length] == ' ');
    }
    out_text(o, "\n");
}

static void print_banner(Host *h, Out *o, int contents, int lines_before)
{
    const Properties *p = &h->program->props;
    const char *stem = program_stem(h);
    out_line(o, "/* %s.amp at -O%d (%s), written by ampc %s.", stem, p->level, types_text(h),
             AMPC_VERSION);
    out_line(o, " *");
    if (h->prefix)
        out_line(o, " *     cc -O3 -fopenmp -c %s.c", h->prefix);
    else
        out_line(o, " *     cc -O3 -fopenmp %s.c -lm -o %s && ./%s --help", stem, stem, stem);
    out_line(o, " *");
    print_command(h, o);
    out_line(o, " * %lld weights; %lld bytes with gradients and optimizer states, %lld of values.",
             (long long)count_weights(h), (long long)count_bytes(h),
             (long long)h->plan->arena_bytes);
    out_line(o, " *");
    out_line(o, " * This file may be used, copied and changed freely, without conditions (0BSD).");
    out_line(o, " *");
    for (int i = 0; i < h->sections.n; i++)
        out_line(o, " * %6d  %s", h->sections.at[i].line + lines_before, h->sections.at[i].title);
    out_line(o, " */");
    (void)contents;
}

/* Lines of text. */
static int count_lines(const char *text)
{
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

/* Sections are found again in the finished text, because breaking long lines has moved them. */
static void find_sections(Host *h, const char *text)
{
    int line = 1, next = 0;
    for (const char *c = text; *c && next < h->sections.n; line++) {
        const char *head =
            arena_printf(h->arena, "/* ---- %s ---- */\n", h->sections.at[next].title);
        if (!strncmp(c, head, strlen(head)))
            h->sections.at[next++].line = line;
        c += strcspn(c, "\n");
        c += *c == '\n';
    }
}

static void assemble(Host *h, const char *text, Out *o)
{
    Out host, includes, runtime, body, banner;
    out_init(&host, h->arena);
    out_init(&includes, h->arena);
    out_init(&runtime, h->arena);
    out_init(&body, h->arena);
    out_init(&banner, h->arena);
    wrap_text(&host, text);
    runtime_paste(h->arena, host.text, &includes, &runtime);

    out_text(&body, "#define _GNU_SOURCE\n");
    if (h->prefix)
        out_line(&body, "#include \"%s.h\"", h->prefix);
    out_text(&body, includes.text);
    out_text(&body, "\n/* ---- Runtime ---- */\n");
    out_text(&body, runtime.text);
    out_text(&body, host.text);
    Section first = {"Runtime", 0};
    vec_push(h->arena, &h->sections, first);
    for (int i = h->sections.n - 1; i > 0; i--)
        h->sections.at[i] = h->sections.at[i - 1];
    h->sections.at[0] = first;
    find_sections(h, body.text);
    print_banner(h, &banner, h->sections.n, 0);
    int lines = count_lines(banner.text);
    banner.size = 0;
    *banner.text = 0;
    print_banner(h, &banner, h->sections.n, lines);
    out_text(o, banner.text);
    out_text(o, body.text);
}

/* ---- entry points ---- */

static Host host_make(Unit *u, const char *prefix)
{
    Host h = {.u = u,
              .program = u->program,
              .plan = u->plan,
              .types = &u->program->types,
              .arena = u->arena,
              .dialect = &dialect_c,
              .prefix = prefix ? intern(u->names, prefix) : NULL};
    make_pools(&h);
    name_parameters(&h);
    return h;
}

static void print_model(Host *h)
{
    section(h, "State");
    print_options(h);
    print_state(h);
    section(h, "Parameters");
    print_parameters(h);
    out_text(h->o, "\n");
    print_state_functions(h);
    print_kernels(h);
    print_optimizers(h);
    print_steps(h);
}

void emit_program(Unit *u, Out *o)
{
    Host h = host_make(u, NULL);
    Out text;
    if (!has_work(&h))
        return;
    out_init(&text, u->arena);
    h.o = &text;
    print_model(&h);
    print_data(&h);
    print_main(&h);
    assemble(&h, text.text, o);
}

void emit_lib(Unit *u, const char *prefix, Out *c, Out *header)
{
    Host h = host_make(u, prefix);
    Out text, head;
    out_init(&text, u->arena);
    out_init(&head, u->arena);
    h.o = &text;
    print_header(&h, &head);
    wrap_text(header, head.text);
    print_model(&h);
    print_library(&h);
    assemble(&h, text.text, c);
}

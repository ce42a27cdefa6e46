/* Prints the steps: a function an entry that runs its launches in order.
 *
 *     static void fit_step(State *s, int64_t N, const float *x, const int32_t *y)
 *         the weights it reads, the gradients and values it makes, then a launch after the other
 */
#include "codegen/host.h"
#include "codegen/kernel_print.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Does the text use this name? */
int text_names(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *c = text; (c = strstr(c, name)); c++)
        if ((c == text || !is_word(c[-1])) && !is_word(c[n]) &&
            (c < text + 2 || c[-1] != '>' || c[-2] != '-') && (c == text || c[-1] != '.'))
            return 1;
    return 0;
}

void end_function(Host *h, size_t from, const char *const *parameters, int count)
{
    const char *body = arena_copy(h->o->arena, h->o->text + from, h->o->size - from);
    for (int i = 0; i < count; i++)
        if (!text_names(body, parameters[i]))
            out_line(h->o, "    (void)%s;", parameters[i]);
    out_text(h->o, "}\n");
}

/* The names that C text uses. */
static Names names_in(Host *h, const char *text)
{
    Names names;
    names_init(&names, h->arena);
    for (const char *c = text; *c;) {
        const char *word = c;
        while (is_word(*c))
            c++;
        int is_member = word > text && (word[-1] == '.' || (word[-1] == '>' && word[-2] == '-'));
        if (c > word && !is_member)
            intern_n(&names, word, (size_t)(c - word));
        c += c == word;
    }
    return names;
}

/* ---- buffers ---- */

static void find_written(const EntryPlan *plan)
{
    for (int i = 0; i < plan->launches.n; i++) {
        const Launch *l = plan->launches.at[i];
        for (int k = 0; l->kernel && k < l->buffers; k++)
            l->buffer[k]->written |= l->kernel->param[k].written;
    }
}

static const char *place_of_param(Host *h, const Buffer *b)
{
    const ParamPlace *place = &h->place[b->param->index];
    const Pool *pool = place->pool;
    const char *what = b->kind == BUFFER_GRADIENT ? "gradient"
                       : pool->copy != DT_NONE    ? "copy"
                                                  : "weight";
    return arena_printf(h->arena, "s->%s.%s%s + %s", pool_member(h, pool), what, pool->suffix,
                        place->constant);
}

static void declare(Host *h, const Entry *e, const Buffer *b)
{
    const char *type = c_type(h, b->type->dtype), *text;
    switch (b->kind) {
    case BUFFER_ARENA:
        text = arena_printf(h->arena, "%s *%s = (%s *)(s->arena + %lld);", type, b->name, type,
                            (long long)b->offset);
        if (b->type->rank)
            out_line(h->o, "    %-56s /* %s */", text, shape_text(h, b->type));
        else
            out_line(h->o, "    %s", text);
        break;
    case BUFFER_PARAM:
    case BUFFER_GRADIENT:
        out_line(h->o, "    %s%s *%s = %s;", b->written ? "" : "const ", type, b->name,
                 place_of_param(h, b));
        break;
    case BUFFER_SCALE:
        out_line(h->o, "    const float *%s = &s->%s.scale;", b->name,
                 scaler_member(h, h->program->scalers.at[b->index]));
        break;
    case BUFFER_OPTION:
        out_line(h->o, "    const float %s_value = (float)s->option.%s, *%s = &%s_value;", b->name,
                 option_name(h, h->program->options.at[b->index]->name), b->name, b->name);
        break;
    case BUFFER_REPORT:
        out_line(h->o, "    float *%s = &s->%s.%s;", b->name, member(h, e, e->name),
                 report_name(h, e->reports.at[b->index]));
        break;
    case BUFFER_INPUT:
    case BUFFER_RESULT:
        break; /* parameters of the step */
    }
}

typedef struct Placed { /* a weight or gradient, and where it lies */
    Buffer *buffer;
    int pool;
    int64_t offset;
} Placed;

static int by_place(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->pool != y->pool)
        return x->pool - y->pool;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Weights and gradients in the order in which they lie in memory; pools in the order of their
 * first. */
static void sort_params(const Host *h, Buffer **buffers, int count)
{
    Placed *placed = new_array(h->arena, Placed, count + 1);
    Vec(const Pool *) pools = {.at = NULL};
    for (int i = 0; i < count; i++) {
        const ParamPlace *place = &h->place[buffers[i]->param->index];
        int pool = 0;
        while (pool < pools.n && pools.at[pool] != place->pool)
            pool++;
        if (pool == pools.n)
            vec_push(h->arena, &pools, place->pool);
        placed[i] = (Placed){buffers[i], pool, place->offset};
    }
    qsort(placed, (size_t)count, sizeof *placed, by_place);
    for (int i = 0; i < count; i++)
        buffers[i] = placed[i].buffer;
}

/* Declares the buffers of one kind that the body names. */
static void declare_kind(Host *h, const Entry *e, BufferKind kind, const Names *body)
{
    const EntryPlan *plan = plan_of(h, e);
    Buffer **found = new_array(h->arena, Buffer *, plan->buffers.n + 1);
    int count = 0;
    for (int i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.at[i]->kind == kind && names_hold(body, plan->buffers.at[i]->name))
            found[count++] = plan->buffers.at[i];
    if (kind == BUFFER_PARAM || kind == BUFFER_GRADIENT)
        sort_params(h, found, count);
    for (int i = 0; i < count; i++)
        declare(h, e, found[i]);
}

static void declare_buffers(Host *h, const Entry *e, const Names *body)
{
    static const BufferKind order[] = {BUFFER_PARAM,  BUFFER_GRADIENT, BUFFER_SCALE,
                                       BUFFER_OPTION, BUFFER_ARENA,    BUFFER_REPORT};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        declare_kind(h, e, order[k], body);
    if (names_hold(body, "scratch"))
        out_text(h->o, "    const RtScratch scratch = s->scratch;\n");
    if (names_hold(body, "seed"))
        out_text(h->o, "    const uint64_t seed = s->seed;\n");
    if (names_hold(body, "step")) {
        if (e->kind == ENTRY_TRAIN)
            out_line(h->o, "    const uint64_t step = (uint64_t)s->%s.step;",
                     member(h, e, e->name));
        else
            out_text(h->o, "    const uint64_t step = 0;\n");
    }
}

/* Parameters that nothing below reads. */
static void void_unused(Host *h, const Entry *e, const Names *body)
{
    int symbols[16];
    int count = entry_symbols(h, e, symbols, 16);
    for (int i = 0; i < count; i++) {
        Str name = host_name(h, h->types->symbol[symbols[i]].name);
        if (!names_hold(body, name))
            out_line(h->o, "    (void)%s;", name);
    }
    for (int i = 0; i < e->inputs.n; i++)
        if (!names_hold(body, input_name(h, e, i)))
            out_line(h->o, "    (void)%s;", input_name(h, e, i));
}

/* ---- launches ---- */

static void print_update_launch(Host *h, const Launch *l)
{
    const Optimizer *o = l->optimizer;
    Str name = member(h, o, o->name);
    const Scaler *scaler = program_scaler(h->program, l->update->attrs->at[1].s);
    const char *call =
        scaler && update_takes_scale(h, o)
            ? arena_printf(h->arena, "%s_update(s, s->%s.scale)", name, scaler_member(h, scaler))
            : arena_printf(h->arena, "%s_update(s)", name);
    if (is_checked(h, o))
        out_line(h->o, "    const bool %s_taken = %s;", name, call);
    else
        out_line(h->o, "    %s;", call);
}

/* "!opt_taken || !other_taken" over the checked updates, those with this scaler or all. */
static const char *skipped_c(Host *h, const EntryPlan *plan, const Scaler *scaler)
{
    Out o;
    out_init(&o, h->arena);
    for (int i = 0; i < plan->launches.n; i++) {
        const Launch *l = plan->launches.at[i];
        if (l->kind != LAUNCH_UPDATE || !is_checked(h, l->optimizer) ||
            (scaler && program_scaler(h->program, l->update->attrs->at[1].s) != scaler))
            continue;
        out_printf(&o, "%s!%s_taken", o.size ? " || " : "",
                   member(h, l->optimizer, l->optimizer->name));
    }
    return o.text;
}

static void print_end_of_step(Host *h, const Entry *e)
{
    const EntryPlan *plan = plan_of(h, e);
    Str name = member(h, e, e->name);
    const char *skipped = skipped_c(h, plan, NULL);
    for (int i = 0; i < h->program->scalers.n; i++) {
        const Scaler *x = h->program->scalers.at[i];
        const char *found = skipped_c(h, plan, x);
        if (is_scaler_used(h, x) && *found)
            out_line(h->o, "    rt_scaler_update(&s->%s, %s);", scaler_member(h, x), found);
    }
    out_line(h->o, "    s->%s.step++;", name);
    if (*skipped)
        out_line(h->o,
                 strchr(skipped, '|') ? "    s->%s.skipped += %s;" : "    s->%s.skipped += %s;",
                 name, skipped);
}

static const char *launches_text(Host *h, const Entry *e)
{
    const EntryPlan *plan = plan_of(h, e);
    Out body, *o = h->o;
    out_init(&body, h->arena);
    h->o = &body;
    for (int i = 0; i < plan->launches.n; i++) {
        const Launch *l = plan->launches.at[i];
        if (l->kind == LAUNCH_UPDATE) {
            print_update_launch(h, l);
        } else {
            out_indent(&body, 1);
            launch_print(&body, h->program, l, h->dialect);
            out_indent(&body, -1);
        }
    }
    h->o = o;
    return body.text;
}

static void print_step(Host *h, const Entry *e)
{
    const char *body = launches_text(h, e);
    Names names = names_in(h, body);
    find_written(plan_of(h, e));
    source_comment(h, e->span);
    out_line(h->o, "static void %s_step(State *s%s)\n{", host_name(h, e->name),
             step_parameters(h, e));
    size_t from = h->o->size;
    declare_buffers(h, e, &names);
    void_unused(h, e, &names);
    out_text(h->o, "\n");
    out_text(h->o, body);
    if (e->kind == ENTRY_TRAIN)
        print_end_of_step(h, e);
    end_function(h, from, (const char *const[]){"s"}, 1);
}

void print_steps(Host *h)
{
    section(h, "Steps");
    for (int i = 0; i < h->program->entries.n; i++) {
        if (i)
            out_text(h->o, "\n");
        print_step(h, h->program->entries.at[i]);
    }
}

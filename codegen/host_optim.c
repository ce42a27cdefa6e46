/* Prints optimizers: the body of a row of optim.def as one sweep over the flat buffers, and around
 * it an update that tests, unscales, clips and counts.
 *
 *     RT_LEAF void opt_sweep(int64_t lo, int64_t hi, opt_hyper h, float k, float *weight, ...)
 *         for each element: load the gradient, multiply by k, the row's body, store weight, copy
 *     static bool opt_update(State *s, float scale)
 *         norm; if it is not finite skip; the numbers of this step; the sweep over every group
 */
#include "codegen/host.h"
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>

/* What an optimizer's text depends on. */
typedef struct Look {
    const Optimizer *o;
    const OptimInfo *info;
    Str name; /* "opt" */
    int checked, clips_norm, clips_value;
    int scaled; /* gradients arrive multiplied by a loss scale */
    int trust;  /* lamb: a factor a tensor, from two norms */
} Look;

int update_takes_scale(const Host *h, const Optimizer *o)
{
    const Entry *e = o->entry;
    const EntryPlan *plan = plan_of(h, e);
    for (int i = 0; i < plan->launches.n; i++) {
        const Launch *l = plan->launches.at[i];
        const Scaler *s =
            l->kind == LAUNCH_UPDATE ? program_scaler(h->program, l->update->attrs->at[1].s) : NULL;
        if (s && l->optimizer == o && (s->dynamic || s->init < 1 || s->init > 1))
            return 1;
    }
    return 0;
}

static Look look_at(Host *h, const Optimizer *o)
{
    return (Look){.o = o,
                  .info = optim_info(o->kind),
                  .name = member(h, o, o->name),
                  .checked = is_checked(h, o),
                  .clips_norm = o->clip_kind && !strcmp(o->clip_kind, "norm"),
                  .clips_value = o->clip_kind && !strcmp(o->clip_kind, "value"),
                  .scaled = update_takes_scale(h, o),
                  .trust = optim_derives(optim_info(o->kind), "trust")};
}

static int has_factor(const Look *l)
{
    return l->scaled || l->clips_norm;
}

/* ---- the sweep ---- */

static int is_state(const OptimInfo *info, const char *name, size_t bytes)
{
    for (int i = 0; i < info->states; i++)
        if (strlen(info->state[i]) == bytes && !memcmp(info->state[i], name, bytes))
            return 1;
    return 0;
}

/* A statement of the body, in which states become elements of their buffers. */
static void print_statement(Host *h, const OptimInfo *info, const char *text, size_t bytes)
{
    out_text(h->o, "        ");
    for (size_t i = 0; i < bytes;) {
        size_t n = 0;
        while (i + n < bytes && (isalnum((unsigned char)text[i + n]) || text[i + n] == '_'))
            n++;
        if (!n)
            n = 1;
        out_printf(h->o, "%.*s%s", (int)n, text + i, is_state(info, text + i, n) ? "[i]" : "");
        i += n;
    }
    out_text(h->o, ";\n");
}

/* All statements of a body, or all but the last; gives the last one back. */
static const char *print_body(Host *h, const OptimInfo *info, int all)
{
    const char *c = info->body + 1, *last = c;
    while (1) {
        c += strspn(c, " ");
        size_t n = strcspn(c, ";}");
        if (c[n] != ';')
            return last;
        last = c;
        if (all || strchr(c + n + 1, ';'))
            print_statement(h, info, c, n);
        c += n + 1;
    }
}

static void print_hyper_locals(Host *h, const Look *l)
{
    Out o;
    out_init(&o, h->arena);
    for (int i = l->trust; i < l->info->hypers; i++) /* lr is not in the direction */
        out_printf(&o, "%s%s = h.%s", i > l->trust ? ", " : "const float ", l->info->hyper[i],
                   l->info->hyper[i]);
    for (const char *d = l->info->derived; *d;) {
        int n = (int)strcspn(d, ",");
        if (strncmp(d, "trust", 5))
            out_printf(&o, ", %.*s = h.%.*s", n, d, n, d);
        d += n + (d[n] == ',');
    }
    out_line(h->o, "    %s;", o.text);
}

static void print_sweep_head(Host *h, const Look *l, const Pool *pool)
{
    const char *r = h->dialect->restrict_kw;
    out_printf(h->o, "%s %s_sweep%s(int64_t lo, int64_t hi, %s_hyper h, ", h->dialect->leaf,
               l->name, pool->suffix, l->name);
    if (has_factor(l))
        out_text(h->o, "float k, ");
    out_printf(h->o, "%s%s *%s weight, ", l->trust ? "const " : "", c_type(h, pool->weight), r);
    if (pool->copy != DT_NONE && !l->trust)
        out_printf(h->o, "%s *%s copy, ", c_type(h, pool->copy), r);
    out_printf(h->o, "const %s *%s gradient", c_type(h, pool->gradient), r);
    for (int i = 0; i < l->info->states; i++)
        out_printf(h->o, ", float *%s %s", r, l->info->state[i]);
    if (l->trust)
        out_printf(h->o, ", float *%s direction", r);
    out_text(h->o, ")\n{\n");
}

static void print_loads(Host *h, const Look *l, const Pool *pool)
{
    const char *gradient = convert(h, h->dialect->type[pool->gradient].load, "gradient[i]");
    out_line(h->o, "        float p = %s;",
             convert(h, h->dialect->type[pool->weight].load, "weight[i]"));
    out_line(h->o, "        float g = %s%s;", has_factor(l) ? "k * " : "", gradient);
    if (l->clips_value)
        out_line(h->o, "        g = rt_clamp(g, %s, %s);",
                 float_text(h->arena, (float)-l->o->clip_limit),
                 float_text(h->arena, (float)l->o->clip_limit));
}

static void print_stores(Host *h, const Pool *pool)
{
    out_line(h->o, "        weight[i] = %s;",
             convert(h, h->dialect->type[pool->weight].store, "p"));
    if (pool->copy != DT_NONE)
        out_line(h->o, "        copy[i] = %s;",
                 convert(h, h->dialect->type[pool->copy].store, "p"));
}

/* The last statement of a row with `trust` is p = p - lr * trust * (direction). */
static void print_direction(Host *h, const OptimInfo *info, const char *last)
{
    const char *factor = strstr(last, "trust * ");
    assert(factor && "a row with trust ends in lr * trust * direction");
    const char *text = factor + strlen("trust * ");
    const char *statement =
        arena_printf(h->arena, "direction[i] = %.*s", (int)strcspn(text, ";"), text);
    print_statement(h, info, statement, strlen(statement));
}

static void print_sweep(Host *h, const Look *l, const Pool *pool)
{
    out_printf(h->o, "\n/* %s on elements lo to hi", l->info->name);
    out_text(h->o, has_factor(l) ? "; k times the gradient is what it acts on. */\n" : ". */\n");
    print_sweep_head(h, l, pool);
    print_hyper_locals(h, l);
    out_text(h->o, "    for (int64_t i = lo; i < hi; i++) {\n");
    print_loads(h, l, pool);
    const char *last = print_body(h, l->info, !l->trust);
    if (l->trust)
        print_direction(h, l->info, last);
    else
        print_stores(h, pool);
    out_text(h->o, "    }\n}\n");
}

/* Takes the step in the direction that the sweep left. */
static void print_apply(Host *h, const Look *l, const Pool *pool)
{
    const char *r = h->dialect->restrict_kw;
    out_printf(h->o,
               "\n/* Moves elements lo to hi by rate in their direction. */\n"
               "%s %s_apply%s(int64_t lo, int64_t hi, float rate, %s *%s weight, ",
               h->dialect->leaf, l->name, pool->suffix, c_type(h, pool->weight), r);
    if (pool->copy != DT_NONE)
        out_printf(h->o, "%s *%s copy, ", c_type(h, pool->copy), r);
    out_printf(h->o, "const float *%s direction)\n{\n", r);
    out_text(h->o, "    for (int64_t i = lo; i < hi; i++) {\n");
    out_line(h->o, "        const float p = %s - rate * direction[i];",
             convert(h, h->dialect->type[pool->weight].load, "weight[i]"));
    print_stores(h, pool);
    out_text(h->o, "    }\n}\n");
}

static void print_hyper_struct(Host *h, const Look *l)
{
    out_printf(h->o, "typedef struct %s_hyper {\n    float ", l->name);
    for (int i = 0; i < l->info->hypers; i++)
        out_printf(h->o, "%s%s", i ? ", " : "", l->info->hyper[i]);
    for (const char *d = l->info->derived; *d;) {
        int n = (int)strcspn(d, ",");
        if (strncmp(d, "trust", 5))
            out_printf(h->o, ", %.*s", n, d);
        d += n + (d[n] == ',');
    }
    out_printf(h->o, ";\n} %s_hyper;\n", l->name);
}

/* ---- learning rates ---- */

static const char *or_number(Host *h, const Scalar *s, const char *otherwise)
{
    return s ? real_c(h, s) : otherwise;
}

/* `t`: C text of the number of updates before this one. */
static const char *schedule_c(Host *h, const Look *l, const Schedule *lr, const char *t)
{
    const char *peak = real_c(h, lr->peak), *warmup = or_number(h, lr->warmup, "0.0");
    const char *floor_ = or_number(h, lr->floor, "0.0");
    const Entry *e = l->o->entry;
    const char *total = or_number(
        h, lr->total, arena_printf(h->arena, "(double)s->%s.steps", member(h, e, e->name)));
    if (!strcmp(lr->kind, "step"))
        return arena_printf(h->arena, "rt_lr_step(%s, %s, %s, %s, %s)", peak, warmup,
                            or_number(h, lr->every, "1.0"), or_number(h, lr->factor, "0.1"), t);
    if (!strcmp(lr->kind, "linear") || !strcmp(lr->kind, "cosine"))
        return arena_printf(h->arena, "rt_lr_%s(%s, %s, %s, %s, %s)", lr->kind, peak, warmup,
                            floor_, total, t);
    return lr->warmup ? arena_printf(h->arena, "rt_lr_constant(%s, %s, %s)", peak, warmup, t)
                      : peak;
}

/* The rate of the optimizer, before its step is counted. */
static const char *lr_c(Host *h, const Look *l)
{
    const char *t = arena_printf(h->arena, "(double)s->%s.step", l->name);
    return l->o->lr ? schedule_c(h, l, l->o->lr, t) : real_c(h, l->o->hyper[0]);
}

/* The rate of a group, after it. */
static const char *group_lr_c(Host *h, const Look *l, const ParamGroup *group)
{
    if (group->lr)
        return schedule_c(h, l, group->lr,
                          arena_printf(h->arena, "(double)(s->%s.step - 1)", l->name));
    return group->hyper[0] ? real_c(h, group->hyper[0])
                           : arena_printf(h->arena, "s->%s.lr", l->name);
}

/* ---- the update ---- */

static const char *as_float(Host *h, const Scalar *s)
{
    double value;
    if (is_number(s, &value))
        return float_text(h->arena, (float)value);
    return arena_printf(h->arena, "(float)(%s)", scalar_c(h, s));
}

/* The sum of the squares of all gradients of an optimizer. */
static void print_norm(Host *h, const Look *l)
{
    int count = 0;
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        if (pool->optimizer != l->o || pool->gradient == DT_NONE)
            continue;
        out_line(h->o, "    %s rt_flat_squares_%s(s->%s.gradient%s, %s, s->chunk);",
                 count++ ? "squares +=" : "double squares =", dtype_info[pool->gradient].name,
                 l->name, pool->suffix, pool->elements);
    }
    out_line(h->o, "    s->%s.grad_norm = sqrt(squares)%s;", l->name,
             l->scaled ? " / (double)scale" : "");
}

static void print_factor(Host *h, const Look *l)
{
    if (l->clips_norm && l->scaled)
        out_line(
            h->o,
            "    const float k = (float)(rt_clip_factor(s->%s.grad_norm, %s) / (double)scale);",
            l->name, double_text(h->arena, l->o->clip_limit));
    else if (l->clips_norm)
        out_line(h->o, "    const float k = (float)rt_clip_factor(s->%s.grad_norm, %s);", l->name,
                 double_text(h->arena, l->o->clip_limit));
    else if (l->scaled)
        out_text(h->o, "    const float k = (float)(1 / (double)scale);\n");
}

/* What the numbers of this step are: counts, powers, hypers. */
static void print_prologue(Host *h, const Look *l)
{
    const Optimizer *o = l->o;
    int bc = optim_derives(l->info, "bc1");
    out_line(h->o, "    %s_hyper h;", l->name);
    out_line(h->o, "    h.lr = (float)s->%s.lr;", l->name);
    for (int i = 1; i < l->info->hypers; i++)
        out_line(h->o, "    h.%s = %s;", l->info->hyper[i], as_float(h, o->hyper[i]));
    out_line(h->o, "    s->%s.step++;", l->name);
    for (int i = 0; bc && i < l->info->hypers; i++)
        if (!strncmp(l->info->hyper[i], "beta", 4)) {
            out_line(h->o, "    s->%s.%s_pow *= h.%s;", l->name, l->info->hyper[i],
                     l->info->hyper[i]);
            out_line(h->o, "    h.bc%c = (float)(1 / (1 - s->%s.%s_pow));", l->info->hyper[i][4],
                     l->name, l->info->hyper[i]);
        }
    if (optim_derives(l->info, "first"))
        out_line(h->o, "    h.first = s->%s.step == 1 ? 1.0f : 0.0f;", l->name);
}

static int group_of(const Param *p)
{
    return p->group < 0 ? 0 : p->group;
}

/* Where a group's range in a pool begins and how long it is; 0 when it has no members there. */
static int64_t group_range(const Host *h, const Pool *pool, int group, const Param **first)
{
    int64_t begin = -1, end = pool->size;
    for (int i = 0; i < pool->params.n; i++) {
        const Param *p = pool->params.at[i];
        int is_member = group < 0 || group_of(p) == group;
        if (is_member && begin < 0) {
            begin = h->place[p->index].offset;
            *first = p;
        } else if (!is_member && begin >= 0) {
            end = h->place[p->index].offset;
            break;
        }
    }
    return begin < 0 ? 0 : end - begin;
}

static void print_sweep_call(Host *h, const Look *l, const Pool *pool, int group)
{
    const Param *first = NULL;
    int64_t n = group_range(h, pool, group, &first);
    if (!n)
        return;
    const char *base = h->place[first->index].offset
                           ? arena_printf(h->arena, "%s + ", h->place[first->index].constant)
                           : "";
    const char *x = pool->suffix;
    Out o;
    out_init(&o, h->arena);
    out_printf(&o, "%s_sweep%s(%slo, %shi, h, %ss->%s.weight%s", l->name, x, base, base,
               has_factor(l) ? "k, " : "", l->name, x);
    if (pool->copy != DT_NONE && !l->trust)
        out_printf(&o, ", s->%s.copy%s", l->name, x);
    out_printf(&o, ", s->%s.gradient%s", l->name, x);
    for (int i = 0; i < l->info->states; i++)
        out_printf(&o, ", s->%s.%s%s", l->name, l->info->state[i], x);
    if (l->trust)
        out_printf(&o, ", s->%s.direction%s", l->name, x);
    const char *count =
        n == pool->size ? pool->elements : arena_printf(h->arena, "%lld", (long long)n);
    out_line(h->o, "    RT_FOR(lo, hi, %s, 4096,\n           %s));", count, o.text);
}

/* The second half of an update with `trust`: each tensor's rate, then its step. */
static void print_apply_calls(Host *h, const Look *l, const Pool *pool, int group)
{
    const char *x = pool->suffix, *m = l->name;
    int from = -1, to = 0;
    for (int i = 0; i < pool->params.n; i++)
        if (group < 0 || group_of(pool->params.at[i]) == group) {
            from = from < 0 ? i : from;
            to = i + 1;
        }
    if (from < 0)
        return;
    const char *end = to == pool->params.n ? pool->count : arena_printf(h->arena, "%d", to);
    out_line(h->o, "    for (int i = %d; i < %s; i++) {", from, end);
    out_line(h->o, "        const int64_t at = %s[i].offset, n = %s[i].count;", pool->table,
             pool->table);
    out_line(h->o,
             "        const double weight = sqrt(rt_flat_squares_%s(s->%s.weight%s + at, n, "
             "s->chunk));",
             dtype_info[pool->weight].name, m, x);
    out_line(h->o,
             "        const double direction =\n"
             "            sqrt(rt_flat_squares_f32(s->%s.direction%s + at, n, s->chunk));",
             m, x);
    out_text(h->o, "        const float rate =\n            h.lr * "
                   "(weight > 0 && direction > 0 ? (float)(weight / direction) : 1.0f);\n");
    const char *copy = pool->copy == DT_NONE ? "" : arena_printf(h->arena, ", s->%s.copy%s", m, x);
    out_line(h->o,
             "        RT_FOR(lo, hi, n, 4096,\n"
             "               %s_apply%s(at + lo, at + hi, rate, s->%s.weight%s%s,\n"
             "                         s->%s.direction%s));",
             m, x, m, x, copy, m, x);
    out_text(h->o, "    }\n");
}

/* Sets the hypers in which a group differs. */
static void print_group(Host *h, const Look *l, int group)
{
    const ParamGroup *g = l->o->groups.at[group];
    const ParamGroup *former = group ? l->o->groups.at[group - 1] : NULL;
    out_indent(h->o, 1);
    source_comment(h, g->span);
    out_indent(h->o, -1);
    if (g->lr || g->hyper[0] || (former && (former->lr || former->hyper[0])))
        out_line(h->o, "    h.lr = (float)(%s);", group_lr_c(h, l, g));
    for (int i = 1; i < l->info->hypers; i++)
        if (g->hyper[i] || (former && former->hyper[i]))
            out_line(h->o, "    h.%s = %s;", l->info->hyper[i],
                     as_float(h, g->hyper[i] ? g->hyper[i] : l->o->hyper[i]));
}

static void print_sweep_calls(Host *h, const Look *l)
{
    int groups = l->o->groups.n > 1 ? l->o->groups.n : 1;
    for (int k = 0; k < groups; k++) {
        if (l->o->groups.n)
            print_group(h, l, k);
        for (int i = 0; i < h->pools.n; i++) {
            const Pool *pool = h->pools.at[i];
            if (pool->optimizer != l->o || pool->gradient == DT_NONE)
                continue;
            print_sweep_call(h, l, pool, groups > 1 ? k : -1);
            if (l->trust)
                print_apply_calls(h, l, pool, groups > 1 ? k : -1);
        }
    }
}

static void print_update(Host *h, const Look *l)
{
    if (l->scaled && l->checked)
        out_text(h->o,
                 "\n/* Applies the gradients, which came with this loss scale. Skips, changing "
                 "nothing, when one of\n * them is not finite. Was the step taken? */\n");
    else if (l->checked)
        out_text(h->o,
                 "\n/* Applies the gradients. Skips, changing nothing, when one of them is not "
                 "finite. Was the\n * step taken? */\n");
    else
        out_text(h->o, "\n/* Applies the gradients. */\n");
    out_line(h->o, "static %s %s_update(State *s%s)", l->checked ? "bool" : "void", l->name,
             l->scaled ? ", float scale" : "");
    out_text(h->o, "{\n");
    if (has_norm(h, l->o))
        print_norm(h, l);
    out_line(h->o, "    s->%s.lr = %s;", l->name, lr_c(h, l));
    if (l->checked)
        out_line(h->o, "    if (!isfinite((float)s->%s.grad_norm))\n        return false;",
                 l->name);
    print_prologue(h, l);
    print_factor(h, l);
    print_sweep_calls(h, l);
    out_text(h->o, l->checked ? "    return true;\n}\n" : "}\n");
}

static int is_used(const Host *h, const Optimizer *o)
{
    for (int i = 0; i < h->pools.n; i++)
        if (h->pools.at[i]->optimizer == o && h->pools.at[i]->gradient != DT_NONE)
            return 1;
    return 0;
}

void print_optimizers(Host *h)
{
    for (int i = 0; i < h->program->optimizers.n; i++) {
        const Optimizer *o = h->program->optimizers.at[i];
        if (!is_used(h, o))
            continue;
        Look l = look_at(h, o);
        section(h, arena_printf(h->arena, "Optimizer %s", o->name));
        source_comment(h, o->span);
        print_hyper_struct(h, &l);
        for (int k = 0; k < h->pools.n; k++)
            if (h->pools.at[k]->optimizer == o && h->pools.at[k]->gradient != DT_NONE) {
                print_sweep(h, &l, h->pools.at[k]);
                if (l.trust)
                    print_apply(h, &l, h->pools.at[k]);
            }
        print_update(h, &l);
    }
}

#include "ir/op.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP = POLICY_KEEP, HALF = POLICY_HALF, FLOAT = POLICY_FLOAT };
enum { PROMOTE = POLICY_PROMOTE, BANNED = POLICY_BANNED };

typedef struct Row {
    const char *id, *spelling;
    int elementwise, arity;
    Policy apex, torch;
    int flags;
    const char *attrs, *value, *prose;
} Row;

static const Row rows[OP_COUNT] = {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    {#id, spelling, 1, arity, (Policy)apex, (Policy)torch, flags, attrs, #value, prose},
#define OTHER(id, spelling, arity, apex, torch, flags, grad, family, attrs, prose)                 \
    {#id, spelling, 0, arity, (Policy)apex, (Policy)torch, flags, attrs, NULL, prose},
#include "ir/ops.def"
#undef ELEM
#undef OTHER
};

static AttrKind kind_named(const char *text, size_t n)
{
    static const struct {
        const char *name;
        AttrKind kind;
    } kinds[] = {{"int", ATTR_INT},   {"real", ATTR_REAL}, {"bool", ATTR_BOOL},  {"str", ATTR_STR},
                 {"ints", ATTR_INTS}, {"dims", ATTR_DIMS}, {"dtype", ATTR_DTYPE}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == n && !memcmp(kinds[i].name, text, n))
            return kinds[i].kind;
    assert(!"ops.def: unknown kind of attribute");
    return ATTR_NONE;
}

/* Reads "min:real=-inf,why:str?" into the schema; the names go into `text`, which is cut up. */
static void read_schema(OpInfo *info, char *text)
{
    for (char *field = text; *field;) {
        char *colon = strchr(field, ':'), *end = field + strcspn(field, ",");
        char *next = *end ? end + 1 : end;
        *end = 0;
        *colon = 0;
        char *kind = colon + 1;
        size_t n = strcspn(kind, "?=");
        AttrSchema *a = &info->attr[info->attrs++];
        assert(info->attrs <= MAX_ATTRS);
        a->name = field;
        a->kind = kind_named(kind, n);
        a->optional = kind[n] == '?';
        a->fallback = kind[n] == '=' ? strtod(kind + n + 1, NULL) : 0;
        field = next;
    }
}

/* Built once, from constant data only: the same whoever comes first. */
static OpInfo infos[OP_COUNT];
static char schema_text[OP_COUNT][96];

__attribute__((constructor)) static void build_infos(void)
{
    for (int op = 0; op < OP_COUNT; op++) {
        const Row *row = &rows[op];
        OpInfo *info = &infos[op];
        info->id = row->id;
        info->spelling = row->spelling;
        info->elementwise = row->elementwise;
        info->arity = row->arity;
        info->apex = row->apex;
        info->torch = row->torch;
        info->flags = row->flags;
        info->value = row->value;
        info->prose = row->prose;
        assert(strlen(row->attrs) < sizeof schema_text[op]);
        strcpy(schema_text[op], row->attrs);
        read_schema(info, schema_text[op]);
    }
}

const OpInfo *op_info(Op op)
{
    return &infos[op];
}

int op_find(const char *spelling)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (!strcmp(rows[op].spelling, spelling))
            return op;
    return -1;
}

static const char *policy_name(Policy policy)
{
    static const char *const names[] = {"half", "float", "promote", "keep", "banned"};
    return names[policy];
}

void ops_list(Out *o)
{
    out_line(o, "%-18s %-8s %-8s %s", "op", "apex", "torch", "");
    for (int op = 0; op < OP_COUNT; op++)
        if (!op_is((Op)op, F_INTERNAL))
            out_line(o, "%-18s %-8s %-8s %s", infos[op].spelling, policy_name(infos[op].apex),
                     policy_name(infos[op].torch), infos[op].prose);
}

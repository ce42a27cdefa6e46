/* Prints a tree as .amp text in canonical form: four spaces a level, one statement a line, only the
 * parentheses that are needed, no comments but ///.
 */
#include "frontend/ast.h"
#include <string.h>

static const char *const scalars[] = {"",   "float", "half", "f16", "bf16", "f32", "f64",
                                      "i8", "u8",    "i16",  "i32", "i64",  "bool"};
static const char *const value_types[] = {"int", "real", "bool", "string"};
static const char *const policies[] = {"half", "float", "promote", "keep", "banned"};
static const char *const item_words[] = {
    "import",   "const",     "option", "struct", "def",     "model", "infer",
    "instance", "extern op", "policy", "amp",    "dataset", "train", "eval",
};

static const struct {
    const char *spelling;
    int precedence;
} operators[] = {
    [OPERATOR_NONE] = {"|>", 0},  [OPERATOR_NEG] = {"-", 6}, [OPERATOR_NOT] = {"!", 6},
    [OPERATOR_MUL] = {"*", 5},    [OPERATOR_DIV] = {"/", 5}, [OPERATOR_MOD] = {"%", 5},
    [OPERATOR_MATMUL] = {"@", 5}, [OPERATOR_ADD] = {"+", 4}, [OPERATOR_SUB] = {"-", 4},
    [OPERATOR_EQ] = {"==", 3},    [OPERATOR_NE] = {"!=", 3}, [OPERATOR_LT] = {"<", 3},
    [OPERATOR_LE] = {"<=", 3},    [OPERATOR_GT] = {">", 3},  [OPERATOR_GE] = {">=", 3},
    [OPERATOR_AND] = {"&&", 2},   [OPERATOR_OR] = {"||", 1},
};
enum { UNARY = 6, POSTFIX = 7 }; /* precedences above the binary ones */

const char *scalar_spelling(ElementType scalar)
{
    return scalars[scalar];
}

const char *operator_spelling(Operator operator)
{
    return operators[operator].spelling;
}

const char *value_type_spelling(ValueType type)
{
    return value_types[type];
}

const char *item_word(ItemKind kind)
{
    return item_words[kind];
}

/* --- expressions --- */

static void print_string(const char *text, Out *o)
{
    out_text(o, "\"");
    for (const char *p = text; *p;) {
        uint32_t c = 0;
        int length = utf8_decode(p, strlen(p), &c);
        if (*p == '\n')
            out_text(o, "\\n");
        else if (*p == '\t')
            out_text(o, "\\t");
        else if (*p == '"' || *p == '\\')
            out_printf(o, "\\%c", *p);
        else if (length == 1 && c >= ' ' && c < 0x7f)
            out_printf(o, "%c", *p);
        else if (length > 1 && c >= 0xa0 && !(c >= 0x2000 && c <= 0x206f) && c != 0x61c)
            out_printf(o, "%.*s", length, p);
        else
            for (int i = 0; i < (length ? length : 1); i++)
                out_printf(o, "\\x%02x", (unsigned char)p[i]);
        p += length ? length : 1;
    }
    out_text(o, "\"");
}

static int precedence_of(const Expr *e)
{
    if (e->kind == EXPR_BINARY || e->kind == EXPR_UNARY || e->kind == EXPR_PIPE)
        return operators[e->operator].precedence;
    if (e->kind == EXPR_INT || e->kind == EXPR_REAL)
        return UNARY; /* "1.x" would be read as a number */
    return POSTFIX;
}

/* An operand, in parentheses if it binds less tightly than `least`. */
static void print_operand(const Expr *e, int least, Out *o)
{
    int needs_parentheses = precedence_of(e) < least;
    out_text(o, needs_parentheses ? "(" : "");
    expr_print(e, o);
    out_text(o, needs_parentheses ? ")" : "");
}

static void print_args(const Args *args, Out *o)
{
    for (int i = 0; i < args->n; i++) {
        out_text(o, i ? ", " : "");
        if (args->at[i].name)
            out_printf(o, "%s = ", args->at[i].name);
        expr_print(args->at[i].value, o);
    }
}

static void print_index(const Index *index, Out *o)
{
    if (index->begin)
        expr_print(index->begin, o);
    if (index->is_slice)
        out_text(o, index->begin && index->end ? " : " : ":");
    if (index->end)
        expr_print(index->end, o);
}

static void print_items(const Expr *e, const char *open, const char *close, Out *o)
{
    out_text(o, open);
    for (int i = 0; i < e->items.n; i++) {
        out_text(o, i ? ", " : "");
        expr_print(e->items.at[i], o);
    }
    out_text(o, close);
}

static void print_binary(const Expr *e, int right, Out *o)
{
    print_operand(e->a, precedence_of(e), o);
    out_printf(o, " %s ", operators[e->operator].spelling);
    print_operand(e->b, right, o);
}

/* Reals are printed so that they stay reals: 1.0, 2e-3. */
void expr_print(const Expr *e, Out *o)
{
    switch (e->kind) {
    case EXPR_INT:
        out_printf(o, "%lld", (long long)e->integer);
        break;
    case EXPR_REAL:
        out_text(o, double_text(o->arena, e->real));
        break;
    case EXPR_STRING:
        print_string(e->text, o);
        break;
    case EXPR_NAME:
        out_text(o, e->name);
        break;
    case EXPR_SCALAR:
        out_text(o, scalars[e->scalar]);
        break;
    case EXPR_CALL:
        print_operand(e->a, POSTFIX, o);
        out_text(o, "(");
        print_args(&e->args, o);
        out_text(o, ")");
        break;
    case EXPR_INDEX:
        print_operand(e->a, POSTFIX, o);
        out_text(o, "[");
        for (int i = 0; i < e->indices.n; i++) {
            out_text(o, i ? ", " : "");
            print_index(&e->indices.at[i], o);
        }
        out_text(o, "]");
        break;
    case EXPR_MEMBER:
        print_operand(e->a, POSTFIX, o);
        out_printf(o, ".%s", e->name);
        break;
    case EXPR_UNARY:
        out_text(o, operators[e->operator].spelling);
        print_operand(e->a, UNARY, o);
        break;
    case EXPR_BINARY:
        print_binary(e, precedence_of(e) + 1, o);
        break;
    case EXPR_PIPE:
        print_binary(e, POSTFIX, o);
        break;
    case EXPR_TUPLE:
        print_items(e, "(", ")", o);
        break;
    case EXPR_LIST:
        print_items(e, "[", "]", o);
        break;
    }
}

static void print_range(const Range *range, Out *o)
{
    if (range->low) {
        expr_print(range->low, o);
        out_text(o, " .. ");
        expr_print(range->high, o);
        return;
    }
    out_text(o, "{");
    for (int i = 0; i < range->values.n; i++) {
        out_text(o, i ? ", " : "");
        expr_print(range->values.at[i], o);
    }
    out_text(o, "}");
}

/* --- types --- */

static void print_params(const Params *params, Out *o)
{
    for (int i = 0; i < params->n; i++) {
        out_text(o, i ? ", " : "");
        if (params->at[i].name)
            out_printf(o, "%s: ", params->at[i].name);
        type_expr_print(params->at[i].type, o);
    }
}

static void print_dim(const DimExpr *dim, Out *o)
{
    if (dim->size)
        expr_print(dim->size, o);
    else
        out_printf(o, "..%s", dim->rest ? dim->rest : "");
}

void type_expr_print(const TypeExpr *type, Out *o)
{
    switch (type->kind) {
    case TYPE_EXPR_TENSOR:
        out_text(o, scalars[type->scalar]);
        for (int i = 0; i < type->dims.n; i++) {
            out_text(o, i ? ", " : "[");
            print_dim(&type->dims.at[i], o);
        }
        out_text(o, type->dims.n ? "]" : "");
        break;
    case TYPE_EXPR_STRUCT:
        out_text(o, type->name);
        break;
    case TYPE_EXPR_TUPLE:
        out_text(o, "(");
        print_params(&type->parts, o);
        out_text(o, ")");
        break;
    }
}

static void print_value_decl(const ValueDecl *decl, Out *o)
{
    out_printf(o, "%s: %s", decl->name, value_types[decl->type]);
    if (decl->value) {
        out_text(o, " = ");
        expr_print(decl->value, o);
    }
    if (decl->range) {
        out_text(o, " in ");
        print_range(decl->range, o);
    }
}

static void print_signature(const Signature *sig, Out *o)
{
    out_text(o, "(");
    print_params(&sig->data, o);
    for (int i = 0; i < sig->attributes.n; i++) {
        out_text(o, i ? ", " : "; ");
        print_value_decl(&sig->attributes.at[i], o);
    }
    out_text(o, ")");
}

/* --- statements --- */

static void print_block(const Block *block, Out *o);

static void print_names(const NameRefs *names, Out *o)
{
    for (int i = 0; i < names->n; i++)
        out_printf(o, "%s%s", i ? ", " : "", names->at[i].name);
}

static void print_call(const Call *call, Out *o)
{
    out_printf(o, "%s(", call->name);
    print_args(&call->args, o);
    out_text(o, ")");
}

/* Words, then an expression, then words. */
static void print_around(const char *before, const Expr *e, const char *after, Out *o)
{
    out_text(o, before);
    expr_print(e, o);
    out_text(o, after);
}

static void print_assign(const Stmt *s, Out *o)
{
    out_text(o, s->is_tuple ? "(" : "");
    print_names(&s->names, o);
    out_text(o, s->is_tuple ? ")" : "");
    print_around(s->to_buffer ? " := " : " = ", s->value, ";", o);
}

static void print_backward(const Stmt *s, Out *o)
{
    print_around("backward ", s->value, " into ", o);
    print_names(&s->names, o);
    if (s->scaler.name)
        out_printf(o, " scaler %s", s->scaler.name);
    out_text(o, s->delay_unscale ? " delay_unscale;" : ";");
}

static void print_stmt(const Stmt *s, Out *o);

static void print_else(const Block *block, Out *o)
{
    out_text(o, " else ");
    if (block->stmts.n == 1 && block->stmts.at[0]->kind == STMT_IF)
        print_stmt(block->stmts.at[0], o);
    else
        print_block(block, o);
}

static void print_stmt(const Stmt *s, Out *o)
{
    switch (s->kind) {
    case STMT_PARAM:
    case STMT_BUFFER:
        out_printf(o, "%s %s: ", s->kind == STMT_PARAM ? "param" : "buffer", s->name);
        type_expr_print(s->type, o);
        print_around(" = ", s->value, s->frozen ? " frozen;" : ";", o);
        break;
    case STMT_LAYER:
        out_printf(o, "layer %s", s->name);
        if (s->count)
            print_around("[", s->count, "]", o);
        out_text(o, " = ");
        print_call(&s->call, o);
        out_text(o, ";");
        break;
    case STMT_REPEAT:
        out_printf(o, "repeat %s in ", s->name);
        print_around("", s->low, " .. ", o);
        print_around("", s->high, " ", o);
        print_block(&s->body, o);
        break;
    case STMT_PRECISION:
        out_printf(o, "precision %s ", s->scalar ? scalars[s->scalar] : "off");
        print_block(&s->body, o);
        break;
    case STMT_IF:
        print_around("if ", s->value, " ", o);
        print_block(&s->body, o);
        if (s->otherwise)
            print_else(s->otherwise, o);
        break;
    case STMT_ASSERT:
        print_around("assert ", s->value, "", o);
        if (s->text.text) {
            out_text(o, ", ");
            print_string(s->text.text, o);
        }
        out_text(o, ";");
        break;
    case STMT_REPORT:
        out_text(o, "report ");
        print_args(&s->args, o);
        out_text(o, ";");
        break;
    case STMT_RETURN:
        print_around("return ", s->value, ";", o);
        break;
    case STMT_ASSIGN:
        print_assign(s, o);
        break;
    case STMT_BACKWARD:
        print_backward(s, o);
        break;
    case STMT_CLIP:
        print_around(s->by_value ? "clip value " : "clip norm ", s->value, " of ", o);
        print_names(&s->names, o);
        out_text(o, ";");
        break;
    case STMT_UPDATE:
        out_text(o, "update ");
        print_names(&s->names, o);
        if (s->value)
            print_around(" if ", s->value, "", o);
        out_text(o, ";");
        break;
    case STMT_ZERO:
        out_text(o, "zero ");
        print_names(&s->names, o);
        out_text(o, ";");
        break;
    case STMT_ACCUMULATE:
        print_around("accumulate ", s->value, " ", o);
        print_block(&s->body, o);
        break;
    }
}

static void open_brace(Out *o)
{
    out_line(o, "{");
    out_indent(o, 1);
}

static void close_brace(Out *o)
{
    out_indent(o, -1);
    out_text(o, "}");
}

static void print_block(const Block *block, Out *o)
{
    open_brace(o);
    for (int i = 0; i < block->stmts.n; i++) {
        print_stmt(block->stmts.at[i], o);
        out_text(o, "\n");
    }
    close_brace(o);
}

/* --- items --- */

static void print_text(const char *before, Text text, Out *o)
{
    if (!text.text)
        return;
    out_text(o, before);
    print_string(text.text, o);
}

static void print_setting(const Arg *arg, Out *o)
{
    out_printf(o, "%s = ", arg->name);
    print_around("", arg->value, ";\n", o);
}

static void print_struct(const Item *item, Out *o)
{
    out_printf(o, "%sstruct %s", item->structure.is_extern ? "extern " : "", item->name);
    print_text(" from ", item->structure.header, o);
    print_text(" cast ", item->structure.cast, o);
    out_text(o, " ");
    open_brace(o);
    for (int i = 0; i < item->structure.fields.n; i++) {
        const ParamDecl *field = &item->structure.fields.at[i];
        out_printf(o, "%s: ", field->name);
        if (field->type)
            type_expr_print(field->type, o);
        print_text("opaque ", field->opaque, o);
        out_text(o, ";\n");
    }
    close_brace(o);
}

static void print_function(const Item *item, Out *o)
{
    out_printf(o, "%s %s", item_words[item->kind], item->name);
    print_signature(&item->function.signature, o);
    out_text(o, " -> ");
    type_expr_print(item->function.result, o);
    out_text(o, " ");
    print_block(&item->function.body, o);
}

static void print_clause(const Clause *clause, Out *o)
{
    switch (clause->kind) {
    case CLAUSE_POLICY:
        out_printf(o, "policy %s", policies[clause->policy]);
        print_text(" ", clause->text, o);
        break;
    case CLAUSE_FORWARD:
    case CLAUSE_BACKWARD:
        out_text(o, clause->kind == CLAUSE_FORWARD ? "forward" : "backward");
        print_text(clause->is_cuda ? " cuda " : " cpu ", clause->header, o);
        print_text(clause->is_inline ? " inline " : " call ", clause->function, o);
        break;
    case CLAUSE_SAVES:
        out_text(o, "saves ");
        print_names(&clause->names, o);
        break;
    case CLAUSE_CHECK:
        for (int i = 0; i < clause->names.n; i++) {
            out_printf(o, "%s%s in ", i ? ", " : "check ", clause->names.at[i].name);
            print_range(clause->ranges.at[i], o);
        }
        break;
    }
    out_text(o, ";\n");
}

static void print_op(const Item *item, Out *o)
{
    out_printf(o, "extern op %s", item->name);
    print_signature(&item->op.signature, o);
    out_text(o, " -> ");
    type_expr_print(item->op.result, o);
    out_text(o, " ");
    open_brace(o);
    for (int i = 0; i < item->op.clauses.n; i++)
        print_clause(&item->op.clauses.at[i], o);
    close_brace(o);
}

static void print_dataset(const Item *item, Out *o)
{
    out_printf(o, "dataset %s = ", item->name);
    print_call(&item->dataset.call, o);
    out_text(o, " ");
    open_brace(o);
    for (int i = 0; i < item->dataset.fields.n; i++) {
        const DataField *field = &item->dataset.fields.at[i];
        out_printf(o, "%s: ", field->name);
        type_expr_print(field->type, o);
        print_around(" = ", field->value, ";\n", o);
    }
    for (int i = 0; i < item->dataset.splits.n; i++) {
        out_text(o, "split ");
        print_args(&item->dataset.splits.at[i], o);
        out_text(o, ";\n");
    }
    close_brace(o);
}

static void print_optimizer(const OptimizerDecl *optimizer, Out *o)
{
    out_printf(o, "optimizer %s = ", optimizer->name);
    print_call(&optimizer->call, o);
    if (optimizer->groups.n == 0) {
        out_text(o, ";\n");
        return;
    }
    out_text(o, " ");
    open_brace(o);
    for (int i = 0; i < optimizer->groups.n; i++) {
        const GroupDecl *group = &optimizer->groups.at[i];
        for (int j = 0; j < group->patterns.n; j++)
            print_text(j ? ", " : "group ", group->patterns.at[j], o);
        out_text(o, ": ");
        print_args(&group->settings, o);
        out_text(o, ";\n");
    }
    close_brace(o);
    out_text(o, "\n");
}

static void print_checkpoint(const CheckpointDecl *checkpoint, Out *o)
{
    print_text("checkpoint ", checkpoint->path, o);
    print_around(" every ", checkpoint->every, checkpoint->in_epochs ? " epochs" : " steps", o);
    if (checkpoint->keep)
        print_around(" keep ", checkpoint->keep, "", o);
    out_text(o, ";\n");
}

static void print_on(const NameRef *on, Out *o)
{
    if (on->name)
        out_printf(o, " on %s", on->name);
}

static void print_train(const Item *item, Out *o)
{
    out_printf(o, "train %s", item->name);
    print_signature(&item->train.signature, o);
    print_on(&item->train.on, o);
    out_text(o, " ");
    open_brace(o);
    for (int i = 0; i < item->train.settings.n; i++)
        print_setting(&item->train.settings.at[i], o);
    for (int i = 0; i < item->train.optimizers.n; i++)
        print_optimizer(&item->train.optimizers.at[i], o);
    for (int i = 0; i < item->train.scalers.n; i++) {
        out_printf(o, "scaler %s = ", item->train.scalers.at[i].name);
        print_call(&item->train.scalers.at[i].call, o);
        out_text(o, ";\n");
    }
    for (int i = 0; i < item->train.checkpoints.n; i++)
        print_checkpoint(&item->train.checkpoints.at[i], o);
    if (item->train.step) {
        out_text(o, "step ");
        print_block(item->train.step, o);
        out_text(o, "\n");
    }
    close_brace(o);
}

static void print_eval(const Item *item, Out *o)
{
    out_printf(o, "eval %s", item->name);
    print_signature(&item->eval.signature, o);
    print_on(&item->eval.on, o);
    if (item->eval.batch)
        print_around(" batch ", item->eval.batch, "", o);
    out_text(o, " ");
    print_block(&item->eval.body, o);
}

static void print_instance(const Item *item, Out *o)
{
    out_printf(o, "instance %s = ", item->name);
    print_call(&item->instance.call, o);
    print_text(" from ", item->instance.weights, o);
    out_text(o, item->instance.frozen ? " frozen;" : ";");
}

static void print_item(const Item *item, Out *o)
{
    switch (item->kind) {
    case ITEM_IMPORT:
        print_text("import ", item->import.path, o);
        if (item->name)
            out_printf(o, " as %s", item->name);
        out_text(o, ";");
        break;
    case ITEM_CONST:
    case ITEM_OPTION:
        out_printf(o, "%s ", item_words[item->kind]);
        print_value_decl(&item->value, o);
        print_text(" ", item->value.help, o);
        out_text(o, ";");
        break;
    case ITEM_STRUCT:
        print_struct(item, o);
        break;
    case ITEM_DEF:
    case ITEM_MODEL:
    case ITEM_INFER:
        print_function(item, o);
        break;
    case ITEM_INSTANCE:
        print_instance(item, o);
        break;
    case ITEM_EXTERN_OP:
        print_op(item, o);
        break;
    case ITEM_POLICY:
        out_printf(o, "policy %s: ", policies[item->policy.policy]);
        print_names(&item->policy.ops, o);
        out_text(o, ";");
        break;
    case ITEM_PROPS:
        out_text(o, "amp ");
        open_brace(o);
        for (int i = 0; i < item->props.settings.n; i++)
            print_setting(&item->props.settings.at[i], o);
        close_brace(o);
        break;
    case ITEM_DATASET:
        print_dataset(item, o);
        break;
    case ITEM_TRAIN:
        print_train(item, o);
        break;
    case ITEM_EVAL:
        print_eval(item, o);
        break;
    }
    out_text(o, "\n");
}

static void print_doc(const char *doc, Out *o)
{
    while (doc && *doc) {
        size_t length = strcspn(doc, "\n");
        out_printf(o, "///%s%.*s\n", length ? " " : "", (int)length, doc);
        doc += length + (doc[length] == '\n');
    }
}

void ast_print(const Ast *ast, Out *o)
{
    if (ast->version)
        out_printf(o, "ampc %d;\n", ast->version);
    for (int i = 0; i < ast->items.n; i++) {
        const Item *item = ast->items.at[i];
        int is_row =
            i > 0 && item->kind == ast->items.at[i - 1]->kind && !item->doc &&
            (item->kind == ITEM_IMPORT || item->kind == ITEM_CONST || item->kind == ITEM_OPTION ||
             item->kind == ITEM_INSTANCE || item->kind == ITEM_POLICY);
        if (!is_row && o->size)
            out_text(o, "\n"); /* an empty line between items, but not in a row of short ones */
        print_doc(item->doc, o);
        print_item(item, o);
    }
}

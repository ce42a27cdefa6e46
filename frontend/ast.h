/* The program as it was written: what the parser makes and the elaborator walks. Nothing here is
 * looked up or checked beyond the grammar; names are still names.
 *
 * The rules that hold everywhere:
 *   - every node has `span`, its whole text; what has a name also has `name_span`;
 *   - names are interned; a qualified name is one name with its dots: "d.Mlp", "digits.train";
 *   - lists are Vecs in the order written: for (int i = 0; i < call->args.n; i++) call->args.at[i];
 *   - what may be left out is NULL (a Text: .text NULL) when it was;
 *   - a kind says which fields hold; the others are zero;
 *   - if the parser reported an error, the tree is incomplete and should not be elaborated.
 */
#ifndef AMPC_FRONTEND_AST_H
#define AMPC_FRONTEND_AST_H
#include "ir/op.h"
#include "support/out.h"
#include "support/source.h"
#include "support/vec.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct TypeExpr TypeExpr;

/* A name that is used, and where. */
typedef struct NameRef {
    Str name;
    Span span;
} NameRef;
typedef Vec(NameRef) NameRefs;

/* A string literal, its escapes resolved. Never holds a NUL. */
typedef struct Text {
    const char *text;
    Span span;
} Text;

/* [name =] value. Arguments, and everything else of the form name = value: properties, settings of
 * a train, parts of a split, settings of a group. */
typedef struct Arg {
    Str name; /* NULL: positional */
    Span name_span;
    Expr *value;
    Span span;
} Arg;
typedef Vec(Arg) Args;

/* kind(args): what stands after the = of instance, layer, dataset, optimizer and scaler. */
typedef struct Call {
    Str name; /* qualified */
    Span name_span;
    Args args;
    Span span;
} Call;

/* --- expressions --- */

typedef enum ElementType { /* spelled as written, see scalar_spelling */
                           SCALAR_NONE,
                           SCALAR_FLOAT, /* the level decides */
                           SCALAR_HALF,
                           SCALAR_F16,
                           SCALAR_BF16,
                           SCALAR_F32,
                           SCALAR_F64,
                           SCALAR_I8,
                           SCALAR_U8,
                           SCALAR_I16,
                           SCALAR_I32,
                           SCALAR_I64,
                           SCALAR_BOOL
} ElementType;

typedef enum Operator {
    OPERATOR_NONE,
    OPERATOR_NEG,
    OPERATOR_NOT,
    OPERATOR_MUL,
    OPERATOR_DIV,
    OPERATOR_MOD,
    OPERATOR_MATMUL,
    OPERATOR_ADD,
    OPERATOR_SUB,
    OPERATOR_EQ,
    OPERATOR_NE,
    OPERATOR_LT,
    OPERATOR_LE,
    OPERATOR_GT,
    OPERATOR_GE,
    OPERATOR_AND,
    OPERATOR_OR
} Operator;

typedef enum ExprKind {
    EXPR_INT,    /* integer */
    EXPR_REAL,   /* real */
    EXPR_STRING, /* text */
    EXPR_NAME,   /* name; also true, false, training, pi */
    EXPR_SCALAR, /* scalar: f32(x) is a call whose callee is this; half = f16 has it as a value */
    EXPR_CALL,   /* a = callee, args */
    EXPR_INDEX,  /* a = what is indexed, indices */
    EXPR_MEMBER, /* a.name */
    EXPR_UNARY,  /* operator a */
    EXPR_BINARY, /* a operator b */
    EXPR_PIPE,   /* a |> b: b is a call (then a becomes its first argument) or names what to call */
    EXPR_TUPLE,  /* (items), two or more */
    EXPR_LIST    /* [items] */
} ExprKind;

/* One part of x[…]. x[i]: begin only. x[b : e], x[:e], x[b:], x[:]: is_slice. */
typedef struct Index {
    Expr *begin, *end;
    int is_slice;
    Span span;
} Index;

/* The parser refuses what nests deeper, or is a longer row of operators. */
enum { NESTING_MAX = 256, EXPR_HEIGHT_MAX = 1000 };

struct Expr {
    ExprKind kind;
    Span span; /* with its parentheses, if it has some */
    Str name;
    Span name_span; /* MEMBER: of the part after the dot */
    int64_t integer;
    double real;
    const char *text;
    ElementType scalar;
    Operator operator;
    Span operator_span; /* of the operator's or |>'s own characters */
    Expr *a, *b;
    int height; /* of the tree: at most EXPR_HEIGHT_MAX, so that walking it by recursion is safe */
    Args args;
    Vec(Index) indices;
    Vec(Expr *) items;
};

/* low .. high (both ends included), or { values }. */
typedef struct Range {
    Expr *low, *high;
    Vec(Expr *) values; /* a set, when low is NULL */
    Span span;
} Range;

/* --- types and signatures --- */

/* A dim is an expression, or ..S: any number of dims, called S (a bare .. has no name). */
typedef struct DimExpr {
    Expr *size; /* NULL: this is ..S */
    Str rest;
    Span rest_span;
    Span span;
} DimExpr;

/* name: type. Parameters, struct fields, and the parts of a tuple type. */
typedef struct ParamDecl {
    Str name; /* NULL in a tuple type, unless it names a result of infer */
    Span name_span;
    TypeExpr *type; /* NULL: opaque */
    Text opaque;    /* struct fields only: the C type as text */
    Span span;
} ParamDecl;
typedef Vec(ParamDecl) Params;

typedef enum TypeKind {
    TYPE_EXPR_TENSOR, /* scalar, dims (none: rank 0) */
    TYPE_EXPR_STRUCT, /* name */
    TYPE_EXPR_TUPLE   /* parts */
} TypeKind;

struct TypeExpr {
    TypeKind kind;
    Span span;
    ElementType scalar;
    Span scalar_span; /* of the scalar's or the structure's name */
    Vec(DimExpr) dims;
    Str name; /* qualified */
    Params parts;
};

typedef enum ValueType { VALUE_INT, VALUE_REAL, VALUE_BOOL, VALUE_STRING } ValueType;

/* name: stype [= value] [in range]: a const, an option, or an attribute of a signature. */
typedef struct ValueDecl {
    Str name;
    Span name_span;
    ValueType type;
    Span type_span;
    Expr *value; /* NULL (attributes only): it has no default */
    Range *range;
    Text help; /* const and option only */
    Span span;
} ValueDecl;

/* (data ; attributes) */
typedef struct Signature {
    Params data;
    Vec(ValueDecl) attributes;
    Span span;
} Signature;

/* --- statements --- */

typedef struct Block {
    Vec(Stmt *) stmts;
    Span span;
} Block;

typedef enum StmtKind {
    STMT_PARAM,     /* param name: type = value [frozen]; */
    STMT_BUFFER,    /* buffer name: type = value; */
    STMT_LAYER,     /* layer name[count] = call; */
    STMT_REPEAT,    /* repeat name in low .. high body        (high excluded) */
    STMT_PRECISION, /* precision scalar body                  (off: SCALAR_NONE) */
    STMT_IF,        /* if value body [else otherwise] */
    STMT_ASSERT,    /* assert value [, text]; */
    STMT_REPORT,    /* report args; */
    STMT_RETURN,    /* return value; */
    STMT_ASSIGN,    /* names = value;  (names) = value;  names := value; */
    STMT_BACKWARD,  /* backward value into names [scaler scaler] [delay_unscale]; */
    STMT_CLIP,      /* clip norm|value value of names; */
    STMT_UPDATE,    /* update names [if value]; */
    STMT_ZERO,      /* zero names; */
    STMT_ACCUMULATE /* accumulate value body */
} StmtKind;

struct Stmt {
    StmtKind kind;
    Span span;
    Span word_span; /* of the first word: `backward`, `if` … */
    Str name;
    Span name_span;
    NameRefs names; /* targets of an assignment; optimizers */
    TypeExpr *type;
    Expr *value;
    Expr *count; /* LAYER: NULL unless it is an array */
    Expr *low, *high;
    Call call;
    Args args;
    Text text;
    ElementType scalar;
    Span scalar_span;
    NameRef scaler; /* BACKWARD: .name NULL without one */
    Block body;
    Block *otherwise; /* IF: NULL without else; `else stmt` is a block of one statement */
    int frozen, delay_unscale;
    int is_tuple;  /* ASSIGN: targets stand in parentheses */
    int to_buffer; /* ASSIGN: := */
    int by_value;  /* CLIP: value, not norm */
};

/* --- items --- */

typedef enum ClauseKind {
    CLAUSE_POLICY,   /* policy pol [text]; */
    CLAUSE_FORWARD,  /* forward cpu|cuda "header" call|inline "function"; */
    CLAUSE_BACKWARD, /* likewise */
    CLAUSE_SAVES,    /* saves names; */
    CLAUSE_CHECK     /* check name in range, …; */
} ClauseKind;

typedef struct Clause {
    ClauseKind kind;
    Span span;
    Policy policy;
    Text text;
    int is_cuda, is_inline;
    Text header, function;
    NameRefs names;      /* SAVES, CHECK */
    Vec(Range *) ranges; /* CHECK: one a name */
} Clause;

/* group "pattern", … : name = value, …; */
typedef struct GroupDecl {
    Vec(Text) patterns;
    Args settings;
    Span span;
} GroupDecl;

typedef struct OptimizerDecl {
    Str name;
    Span name_span;
    Call call;
    Vec(GroupDecl) groups;
    Span span;
} OptimizerDecl;

typedef struct ScalerDecl {
    Str name;
    Span name_span;
    Call call;
    Span span;
} ScalerDecl;

/* checkpoint "path" every value steps|epochs [keep keep]; */
typedef struct CheckpointDecl {
    Text path;
    Expr *every, *keep;
    int in_epochs;
    Span span;
} CheckpointDecl;

/* name: type = value; of a dataset */
typedef struct DataField {
    Str name;
    Span name_span;
    TypeExpr *type;
    Expr *value;
    Span span;
} DataField;

typedef enum ItemKind {
    ITEM_IMPORT,
    ITEM_CONST,
    ITEM_OPTION,
    ITEM_STRUCT,
    ITEM_DEF,
    ITEM_MODEL,
    ITEM_INFER,
    ITEM_INSTANCE,
    ITEM_EXTERN_OP,
    ITEM_POLICY,
    ITEM_PROPS,
    ITEM_DATASET,
    ITEM_TRAIN,
    ITEM_EVAL
} ItemKind;

typedef struct Item {
    ItemKind kind;
    Span span;
    Span word_span; /* of the first word: `model`, `train` … */
    Str name;       /* NULL: policy, props, import without `as` */
    Span name_span;
    const char *doc; /* the text of the /// lines before it, joined by newlines; or NULL */
    union {
        struct {
            Text path; /* the item's name is the prefix */
        } import;
        ValueDecl value; /* CONST, OPTION */
        struct {
            int is_extern;
            Text header, cast;
            Params fields;
        } structure;
        struct {
            Signature signature;
            TypeExpr *result;
            Block body;
        } function; /* DEF, MODEL, INFER */
        struct {
            Call call;
            Text weights; /* from "…" */
            int frozen;
        } instance;
        struct {
            Signature signature;
            TypeExpr *result;
            Vec(Clause) clauses;
        } op;
        struct {
            Policy policy;
            NameRefs ops;
        } policy;
        struct {
            Args settings;
        } props;
        struct {
            Call call;
            Vec(DataField) fields;
            Vec(Args) splits; /* one a split statement */
        } dataset;
        struct {
            Signature signature;
            NameRef on; /* "digits.train"; .name NULL: the C host hands batches over */
            Args settings;
            Vec(OptimizerDecl) optimizers;
            Vec(ScalerDecl) scalers;
            Vec(CheckpointDecl) checkpoints;
            Block *step; /* NULL: none was written */
            Span step_span;
        } train;
        struct {
            Signature signature;
            NameRef on;
            Expr *batch;
            Block body;
        } eval;
    };
} Item;

typedef struct Ast {
    const Source *source;
    int version; /* of `ampc 1;`, 0 if it was left out */
    Span version_span;
    Vec(Item *) items;
} Ast;

const char *scalar_spelling(ElementType scalar);
const char *operator_spelling(Operator operator);
const char *value_type_spelling(ValueType type);
const char *item_word(ItemKind kind); /* "model", "extern op", "amp" … */

/* Writes the program in canonical form: what it prints parses to the same tree, and prints the
 * same. */
void ast_print(const Ast *ast, Out *o);
/* An expression or a type alone, as it would be written. */
void expr_print(const Expr *e, Out *o);
void type_expr_print(const TypeExpr *type, Out *o);
#endif

/* What the parts of the elaborator share; private to frontend/elab*.c.
 *
 * Expressions are evaluated to a Value: a number known now, a number known when the emitted program
 * starts, a tensor (a node of the open graph), a layer, or several of these. Wrong input is
 * reported once and becomes VAL_ERROR, which everything accepts silently.
 */
#ifndef AMPC_FRONTEND_ELAB_CORE_H
#define AMPC_FRONTEND_ELAB_CORE_H
#include "frontend/elab.h"
#include <stdbool.h>

typedef struct Elab Elab;
typedef struct Value Value;
typedef struct Layer Layer;
typedef struct Module Module;
typedef struct Decl Decl;

typedef enum ValueKind {
    VAL_NONE, /* absent */
    VAL_ERROR,
    VAL_INT,
    VAL_REAL,
    VAL_BOOL,
    VAL_STRING,
    VAL_DIM,     /* an integer known only at run time: a polynomial in the entry's symbols */
    VAL_RUNTIME, /* a number or text computed when the emitted program starts: options */
    VAL_TENSOR,
    VAL_TUPLE,
    VAL_LIST,
    VAL_DIMS,  /* ..S of a signature */
    VAL_LAYER, /* also an instance */
    VAL_LAYERS /* layer h[n] */
} ValueKind;

struct Value {
    ValueKind kind;
    OptionKind runtime_kind; /* RUNTIME */
    union {
        int64_t i; /* INT, BOOL */
        double r;
        Str s;
        const Dim *dim;
        Scalar *tree;
        Node *node;
        Layer *layer;
        struct {
            int n;
            union {
                Value *at;        /* TUPLE, LIST */
                Layer **layers;   /* LAYERS */
                const Dim **dims; /* DIMS */
            };
        };
    };
};

/* A name and what it stands for in the body being elaborated. */
typedef struct Binding {
    Str name;
    Value value;
    Span span;        /* where it was declared */
    bool is_declared; /* by layer, param, buffer or the signature: cannot be assigned */
    Param *param;     /* a buffer or parameter: read anew at each use */
} Binding;

typedef enum ScopeKind { SCOPE_CALL, SCOPE_BLOCK, SCOPE_REPEAT } ScopeKind;
typedef struct Scope {
    ScopeKind kind;
    struct Scope *up; /* NULL above a call: bodies see only themselves and the file */
    Vec(Binding) bindings;
} Scope;

/* A body being elaborated: a model, def, train, eval or infer. */
typedef struct Frame {
    struct Frame *caller;
    Decl *decl;
    Layer *layer; /* whose parameters and layers it declares; NULL: none */
    Module *module;
    bool returned;
    Value result;
    Span result_span;
    Span call_span;
} Frame;

/* An item of a file. */
struct Decl {
    Str name; /* as the file calls it */
    Str full; /* with the prefix of its import: unique in the program */
    Item *item;
    Module *module;
    enum { DECL_FRESH, DECL_BUSY, DECL_DONE } state; /* of value, layer, dataset */
    Value value;                                     /* CONST, OPTION, INSTANCE */
    Dataset *dataset;
    bool used, active, broken; /* active: being inlined; broken: has had its errors reported */
};

typedef struct Import {
    Str prefix; /* NULL: none */
    Module *module;
} Import;

struct Module {
    Ast *ast;
    const char *path;
    Str prefix;
    Vec(Decl *) decls;
    Vec(Import) imports;
    bool busy;
};

/* Layers that are built in. */
typedef enum LayerKind { LAYER_MODEL, LAYER_LINEAR, LAYER_EMBEDDING } LayerKind;

/* An initialiser as written; it becomes an Init once the shape is known. */
typedef enum InitRuleKind {
    RULE_ZEROS,
    RULE_ONES,
    RULE_CONSTANT,
    RULE_UNIFORM,
    RULE_NORMAL,
    RULE_HE,
    RULE_XAVIER,
    RULE_ORTHOGONAL,
    RULE_EYE
} InitRuleKind;
typedef struct InitRule {
    InitRuleKind kind;
    double a, b;
    Span span;
} InitRule;

/* A declared layer of an instance. Its parameters are made by its first call. */
struct Layer {
    LayerKind kind;
    Str name; /* as declared: "fc1"; of an array's element "h.0" */
    Str path; /* "net.h.0.fc1" */
    Instance *instance;
    Layer *parent;
    Decl *model;
    const Call *call;
    Span span;
    Span first_call;
    Value *attrs; /* in the order of the model's signature or of the layer's attributes */
    Vec(Layer *) children;
    int next_child; /* that the call being elaborated declares, if it goes like the one before */
    Vec(Param *) params;
    int64_t in; /* LINEAR: fixed by the first call; 0: not yet. EMBEDDING: rows */
    int64_t out;
    bool bias, in_out;
    InitRule *init;        /* NULL: the default */
    bool called, complete; /* complete: the first call has ended */
};

/* What is known about an optimizer while a step is elaborated. */
typedef struct OptimizerState {
    Optimizer *optimizer;
    const OptimizerDecl *decl;
    Span backward, clip, update; /* .file 0: none since the last update (update: none at all) */
    Vec(Param *) reached;        /* by the backwards since the last update */
    Vec(bool) is_reached;        /* by parameter: is it among them? */
    int updates;
} OptimizerState;

typedef struct ScalerState {
    Scaler *scaler;
    Str local; /* as the train calls it; NULL: the program's own */
    bool used;
} ScalerState;

typedef struct DrawState {
    Str base; /* "net.dropout" */
    int count;
} DrawState;

/* The entry being elaborated. */
typedef struct Run {
    Entry *entry;
    Vec(OptimizerState) optimizers;
    Vec(ScalerState) scalers;
    Vec(int)
        version; /* by parameter index: updates and stores so far; may be shorter than the parameters */
    Vec(DrawState) draws;
    bool order_unknown; /* something of the step is not supported: no complaints about its order */
} Run;

struct Elab {
    Arena *arena;
    Names *names;
    Diags *diags;
    Program *program;
    TypeTable *types;
    const ElabOptions *options;
    Vec(Module *) modules; /* imports first, the main file last */
    Module *module;
    Scope *scope;
    Frame *frame;
    Run *run;
    Vec(Layer *) roots; /* instances */
    Vec(OptimizerState) all_optimizers;
    Context context;    /* of the nodes made now; its span changes all the time */
    Node *nicknamed;    /* the last one called after its layer or function: the user's name wins */
    int64_t eval_batch; /* the largest batch of any train */
    bool *define_used;
    int depth;
    bool has_train;
    bool stopped; /* a limit was passed */
    int work;     /* statements and blocks run so far */
};

/* --- diagnostics (elab_value.c) --- */

/* Like error_at, but one place gets one error of a kind: bodies are elaborated once a call. */
Diag *elab_error(Elab *e, Code code, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
Value unsupported(Elab *e, Span span, const char *what); /* "not supported yet: what" */
/* An unknown name, with the nearest of the candidates. */
typedef Vec(const char *) Candidates;
void unknown_name(Elab *e, Code code, Span span, const char *text, const char *name,
                  const Candidates *candidates);
const char *a_word(Elab *e, ItemKind kind);    /* "a model", "an option" */
const char *expr_text(Elab *e, const Expr *x); /* as the user would write it */
const char *type_expr_text(Elab *e, const TypeExpr *t);
const char *value_text(Elab *e, const Value *v); /* "the integer 3", "float[N, 64]" */
const char *tensor_text(Elab *e, const Node *n);

/* --- values (elab_value.c) --- */

Value value_error(void);
Value value_int(int64_t i);
Value value_real(double r);
Value value_bool(bool b);
Value value_string(Str s);
Value value_dim(const Dim *d); /* INT when it is one */
Value value_node(Node *n);     /* ERROR for the error node */
Value value_runtime(Scalar *tree, OptionKind kind);
static inline bool is_error(Value v)
{
    return v.kind == VAL_ERROR;
}
static inline bool is_number(Value v)
{
    return v.kind == VAL_INT || v.kind == VAL_REAL || v.kind == VAL_BOOL;
}
Node *as_tensor(Elab *e, Value v, Span span,
                DType peer); /* numbers become constants of peer's type */
const Dim *as_dim(Elab *e, Value v, Span span, const char *what); /* NULL: reported */
/* Each reports and gives 0 when the value is something else; `what` names it: "'keep' of 'sum'". */
bool want_int(Elab *e, Value v, Span span, const char *what, int64_t *out);
bool want_real(Elab *e, Value v, Span span, const char *what, double *out);
bool want_bool(Elab *e, Value v, Span span, const char *what, bool *out);
bool want_string(Elab *e, Value v, Span span, const char *what, Str *out);
Scalar *want_scalar(Elab *e, Value v, Span span, const char *what); /* a number, or options */
Scalar *scalar_int(Elab *e, int64_t i);
Scalar *scalar_real(Elab *e, double r);

/* --- arithmetic on numbers (elab_scalar.c) --- */

Value fold_unary(Elab *e, const Expr *x, Value a);
Value fold_binary(Elab *e, const Expr *x, Value a, Value b);
Value fold_function(Elab *e, const char *name, Span span, const Value *in, int n, bool *known);
bool check_range(Elab *e, const Range *range, Value v, Span span, const char *what, Span declared);
Value convert_value(Elab *e, Value v, ValueType type, Span span, const char *what);

/* --- files and names (elab_module.c) --- */

Module *module_load(Elab *e, Ast *ast, Str prefix);
Decl *find_decl(Module *m, const char *name); /* NULL if there is none */
void add_decl_names(const Module *m, Candidates *out, const char *prefix, Arena *arena);
Value decl_value(Elab *e, Decl *d, Span use); /* of a const or option */
void defines_check(Elab *e);
Binding *find_binding(Elab *e, Str name);
Binding *bind_name(Elab *e, Str name, Value value, Span span);
Scope *scope_push(Elab *e, ScopeKind kind);
void scope_pop(Elab *e, Scope *former);
Str qualified_text(Elab *e, const Expr *x); /* a.b.c as one name; NULL: not of this form */

/* --- types and signatures (elab_shape.c) --- */
#define MAX_BYTES                                                                                  \
    ((int64_t)1 << 46) /* of a tensor, and of all parameters with their optimizer's state */
bool fits_limits(Elab *e, const Type *type, Span span);

DType element_type(ElementType t); /* DT_NONE: not supported */
bool resolve_element(Elab *e, const TypeExpr *t, DType *out);
const Type *resolve_type(Elab *e, const TypeExpr *t,
                         const char *what); /* all dims known; NULL: reported */
/* Binds the dimension names of the signature to the arguments, checks shapes and types, and gives
 * the arguments as the body sees them. `who` is the callee: "net". */
typedef struct Given {
    Value value;
    Span span;         /* where an error about it stands */
    Span mark;         /* underlined as well; .file 0: nothing */
    const char *giver; /* whose result it is, for "but 'fc1' gives"; or NULL */
} Given;
bool bind_signature(Elab *e, const Signature *s, const Given *given, const char *who);
Value bind_result(Elab *e, const TypeExpr *t, Value v, Span span, const char *who);
Node *fit_dtype(Elab *e, Node *n, DType want, bool *ok); /* to a declared type */
const Dim *signature_dim(Elab *e, const DimExpr *d, bool *is_new);

/* --- arguments (elab_args.c) --- */

enum { MAX_SLOTS = 24 };
typedef struct Slot {
    const char *name;
    const Expr *expr;
    Value value; /* VAL_NONE until it is evaluated */
    Span span;
    bool given;
} Slot;
typedef struct Site { /* a call being bound */
    const char *what; /* "sum" */
    Span span, name_span;
    Slot slot[MAX_SLOTS];
    int slots;
    int positional; /* the first slots, which cannot be given by name */
} Site;
void site_open(Site *s, const char *what, Span span, Span name_span);
void site_slot(Site *s, const char *name);            /* an attribute */
void site_slots(Elab *e, Site *s, const char *names); /* "axes,axis,keep" */
bool site_bind(Elab *e, Site *s, const Args *args, const Value *piped, Span piped_span);
Slot *site_find(Site *s, const char *name);
Value slot_value(Elab *e, Slot *slot);
const char *slot_what(Elab *e, const Site *s, const Slot *slot);
/* The attribute's value, or the fallback when it is absent; *ok becomes false when it is wrong. */
int64_t site_int(Elab *e, Site *s, const char *name, int64_t fallback, bool *ok);
double site_real(Elab *e, Site *s, const char *name, double fallback, bool *ok);
bool site_bool(Elab *e, Site *s, const char *name, bool fallback, bool *ok);
Str site_string(Elab *e, Site *s, const char *name, const char *fallback, bool *ok);
bool site_need(Elab *e, Site *s, const char *name);

/* --- expressions (elab_expr.c, elab_call.c, elab_builtin.c, elab_loss.c) --- */

Value eval(Elab *e, const Expr *x);
void set_span(Elab *e, Span span);
typedef struct CallSite { /* f(args), or piped |> f(args) */
    const Expr *callee;
    const Args *args;   /* NULL: none were written */
    const Value *piped; /* NULL: not a pipe */
    Span piped_span;
    const char *giver; /* whose result is piped */
    Span span;
} CallSite;
Value call_expr(Elab *e, const CallSite *c);
Value call_builtin(Elab *e, const char *name, const CallSite *c);
/* Binds data by position and attributes by name; gives the data. Slot i of the site is parameter
 * i. */
bool bind_call(Elab *e, const Signature *s, const CallSite *c, const char *who, Site *site,
               Given *given);
bool is_builtin(const char *name);
bool is_later_work(const char *name); /* known, but not supported yet */
void add_builtin_names(Candidates *out, Arena *arena);
const char *builtin_attributes(Elab *e, const char *name); /* "axes,axis,keep"; NULL: no builtin */
int64_t dim_least(Elab *e, const Dim *d);                  /* within the bounds of the symbols */
void unify(Node **a, Node **b);
Node *like(double value, const Node *peer); /* a constant of peer's type */
Node *mark_pinned(Node *n);
/* After nodes were built on operands: an error that came since then is told where they are from. */
void note_operands(Elab *e, int errors, Node *const *in, int n);
const char *giver_of(const Expr *x); /* the name of what gives the value: "fc1" */
Node *site_tensor(Elab *e, Site *s, int i, DType peer); /* the i-th positional argument */
Node *one_hot_mask(Elab *e, Node *index, const Dim *classes);
void limit_classes(Elab *e, const Node *index, const Dim *classes);
Node *to_real(Node *x);

/* --- statements (elab_stmt.c) --- */

void note_calls(Elab *e, Diag *d); /* "'net' is called here" */
void exec_block(Elab *e, const Block *block);
void step_statement(Elab *e, const Stmt *s); /* elab_step.c: backward, clip, update … */

/* --- layers and models (elab_layer.c, elab_init.c) --- */

Layer *layer_make(Elab *e, Str name, Layer *parent, Instance *instance, const Call *call,
                  Span span);
bool is_layer_kind(const char *name);
const char *layer_attributes(const char *name); /* NULL: no such layer */
Value call_layer(Elab *e, Layer *layer, const CallSite *c);
Value call_def(Elab *e, Decl *d, const CallSite *c);
Value layer_member(Elab *e, Layer *layer, Str name, Span span);
Param *param_make(Elab *e, Layer *layer, Str name, const Type *type, Init init, Span span);
Node *param_read(Elab *e, Param *p);
Value instance_value(Elab *e, Decl *d);
int param_next_version(Elab *e, Param *p); /* what an update or store makes */
bool parse_init(Elab *e, const Expr *x, InitRule *out);
Init init_of(Elab *e, const InitRule *rule, const Type *type, bool in_out);

/* --- data and entries (elab_data.c, elab_entry.c, elab_train.c, elab_amp.c, elab_check.c) --- */

Dataset *dataset_of(Elab *e, Decl *d);
void find_batches(Elab *e);
void entry_make(Elab *e, Decl *d);
void train_settings(Elab *e, const Item *item, Entry *entry);
void train_optimizers(Elab *e, const Item *item);
void train_finish(Elab *e, const Item *item);
void optimizers_finish(Elab *e);
bool read_loss_scale(Elab *e, Str name, Span name_span, const Args *args, Span span, Scaler *out);
Scaler *scaler_default(Elab *e);
void scaler_add(Elab *e, Scaler *s);
AmpBlock *amp_block(Elab *e, const Item *item);
void check_uncalled(Elab *e, Decl *d);
#endif

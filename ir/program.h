/* A whole program as the passes and code generators see it: parameters, optimizers, data, and the
 * entries (train, eval, infer), each a list of segments, each one DAG. */
#ifndef AMPC_IR_PROGRAM_H
#define AMPC_IR_PROGRAM_H
#include "ir/graph.h"
#include "support/vec.h"

/* A number, bool or string that the emitted program computes at start: literals, options,
 * arithmetic. The elaborator folds what is constant. */
typedef enum ScalarKind {
    S_INT,
    S_REAL,
    S_BOOL,
    S_STRING,
    S_OPTION,
    S_UNARY,
    S_BINARY,
    S_COLUMN,
    S_CALL
} ScalarKind;
typedef struct Scalar Scalar;
struct Scalar {
    ScalarKind kind;
    Span span;
    union {
        int64_t i; /* INT, BOOL; OPTION: index of the option */
        double r;
    };
    Str s; /* STRING; UNARY, BINARY: the operator as in C; COLUMN: name of the source's field; CALL: function */
    int64_t from, to; /* COLUMN of a csv: half-open range of columns */
    Scalar *a, *b;    /* operands */
};

typedef enum OptionKind { OPTION_INT, OPTION_REAL, OPTION_BOOL, OPTION_STRING } OptionKind;
typedef struct Option {
    Str name, doc; /* doc may be NULL */
    OptionKind kind;
    Scalar *value;      /* default, constant */
    Scalar *low, *high; /* NULL: no range */
    Scalar **set;       /* values of a set range */
    int set_count;
    Span span;
} Option;

/* How a parameter starts. */
typedef enum InitKind {
    INIT_ZEROS,
    INIT_ONES,
    INIT_CONSTANT,   /* a */
    INIT_UNIFORM,    /* [a, b) */
    INIT_NORMAL,     /* mean a, standard deviation b */
    INIT_ORTHOGONAL, /* gain a */
    INIT_EYE
} InitKind;
typedef struct Init {
    InitKind kind;
    double a,
        b; /* he_normal, xavier_uniform and linear's default are worked out by the elaborator */
} Init;

typedef struct Instance {
    Str name, model; /* "net", "Mlp" */
    Str weights;     /* `from` file; NULL: none */
    int frozen;
    Span span;
} Instance;

typedef struct Optimizer Optimizer;
struct Param {
    Str name;  /* "net.fc1.weight" */
    Str local; /* "fc1.weight": as in a state_dict */
    Instance *instance;
    const Type *type; /* declared: float, or pinned; all dimensions are integers */
    Init init;
    Span span;
    int is_buffer, frozen,
        is_norm; /* is_norm: of a normalisation layer, kept f32 under keep_batchnorm_fp32 */
    int index;   /* in Program.params */
    /* set by pass master */
    DType master;         /* type of the weights that the optimizer steps on: f32, or half at O3 */
    DType copy;           /* type of the low-precision copy; DT_NONE: none */
    Optimizer *optimizer; /* NULL: no optimizer owns it */
    int group;            /* index in the optimizer's groups; -1: none */
    int has_gradient;     /* some loss reaches it */
    int versions;         /* 1 + number of updates in the train entry that is looked at */
};

enum { MAX_HYPERS = 12 };
typedef struct Schedule {
    Str kind; /* "constant", "step", "linear", "cosine" */
    Scalar *peak, *warmup, *floor, *every, *factor,
        *total; /* NULL where the kind has none; total NULL: the train's steps */
} Schedule;

typedef struct ParamGroup {
    Vec(Str) globs;
    Scalar *hyper[MAX_HYPERS]; /* NULL: the optimizer's */
    Schedule *lr;
    Span span;
} ParamGroup;

struct Optimizer {
    Str name; /* "opt" */
    int kind; /* row of optim.def */
    Instance **instances;
    int instance_count;
    Scalar *hyper[MAX_HYPERS]; /* in the order of the row; filled with defaults */
    Schedule *lr;
    Vec(ParamGroup *) groups; /* the last one holds everything that no glob matches */
    Vec(Param *) params;
    struct Entry *entry;
    int index;
    Span span;
    /* set by pass step */
    Str clip_kind; /* "norm", "value", or NULL */
    double clip_limit;
    int checks; /* is there a non-finite test */
};

typedef struct Scaler {
    Str name;
    int dynamic;
    Str mode; /* "ampc", "apex", … */
    double init, factor, low, high;
    int64_t window, hysteresis;
    int is_default; /* the program's own, named "scaler" */
    int index;
    Span span;
} Scaler;

typedef struct Field {
    Str name;
    const Type *type; /* of one row: f32[64]; scalars have rank 0. dtype float is f32 */
    Scalar *value;
    Span span;
} Field;

typedef enum DataKind { DATA_CSV, DATA_IDX, DATA_NPY, DATA_MEMORY } DataKind;
typedef struct Split {
    Str name;
    double share; /* of the rows; loaders with files of their own: 0 */
} Split;
typedef struct Dataset {
    Str name;
    DataKind kind;
    Scalar *path;   /* file, or folder of IDX files */
    Scalar *header; /* csv: lines to skip; NULL: none */
    int64_t seed;
    Vec(Field) fields;
    Vec(Split) splits;
    int index;
    Span span;
} Dataset;

typedef enum EntryKind { ENTRY_TRAIN, ENTRY_EVAL, ENTRY_INFER } EntryKind;
typedef struct EntryInput {
    Str name;
    const Type *type; /* with the entry's symbols; dtype float: boundary type is f32 */
    int field;        /* of the dataset; -1: handed in by the host */
    int64_t
        classes; /* an integer input used as class or row index: values must be in [0, classes); 0: free */
    Span span;
} EntryInput;

typedef struct Entry {
    EntryKind kind;
    Str name, doc;
    Vec(EntryInput) inputs;
    Vec(Str) reports;
    Vec(Str) results;
    int batch_symbol; /* symbol of the leading dimension; -1: none */
    Graph **segment;
    int segments;
    Dataset *dataset; /* NULL: the host hands batches in */
    int split;        /* index in the dataset's splits */
    /* train */
    Scalar *epochs, *steps, *seed; /* NULL: not given */
    int64_t batch;
    int shuffle, drop_last;
    Vec(Optimizer *) optimizers;
    Vec(Scaler *) scalers;
    Str checkpoint; /* NULL: none */
    Scalar *checkpoint_every, *checkpoint_keep;
    int checkpoint_in_epochs;
    int index;
    Span span;
} Entry;

typedef enum Stage {
    PARSED,
    TYPED,
    CASTED,
    DIFFERENTIATED,
    CLEANED,
    MASTERED,
    STEPPED,
    EXPANDED,
    FUSED,
    PLANNED
} Stage;

typedef enum Tristate { UNSET = -1, OFF = 0, ON = 1 } Tristate;
/* The resolved properties of Apex (levels.def, then amp { }, then the command line). */
typedef struct Properties {
    int resolved;       /* the fields below hold */
    int level;          /* row of levels.def */
    DType half;         /* F16 or BF16 */
    int torch_policy;   /* --policy=torch */
    int strict;         /* --rounding=strict */
    int cast_by_policy; /* casts around functions (O1) */
    DType model_type;   /* cast_model_type; DT_NONE: none */
    Tristate keep_norm_f32;
    Tristate master_weights;
    int dynamic_scale;
    double static_scale; /* when not dynamic */
    Str scaler_mode;
} Properties;

/* What `amp { }` of the main file says, unresolved. A setting that was not given has span.file
 * 0. */
typedef struct AmpSetting {
    Str word; /* O2, bf16, f32 … as written; "true", "false"; "dynamic"; NULL: a number */
    double number;
    Span span;
} AmpSetting;
typedef struct AmpBlock {
    AmpSetting level, half, cast_model_type, keep_batchnorm_fp32, master_weights, loss_scale,
        policy, rounding;
    struct Scaler *scaler; /* loss_scale = dynamic(…) or static(…): its numbers; else NULL */
    Span span;
} AmpBlock;

enum { ATTR_TABLE = 8192 };

struct Program {
    Arena *arena;
    Names *names;
    Diags *diags;
    TypeTable types;
    Attrs *attr_table[ATTR_TABLE];
    Stage stage;
    Properties props;
    AmpBlock *amp;   /* NULL: the file has none */
    Str source_name; /* "digits.amp" */
    Vec(Option *) options;
    Vec(Instance *) instances;
    Vec(Param *) params;
    Vec(Dataset *) datasets;
    Vec(Optimizer *) optimizers;
    Vec(Scaler *) scalers;
    Vec(Entry *) entries;
    int64_t expanded_nodes;
    uint64_t
        graph_hash; /* XXH64 of the IR text before `cast`, without spans: who owns a checkpoint */
};

Program *program_make(Arena *arena, Names *names, Diags *diags);
/* By name; NULL when there is none, as for "". */
Optimizer *program_optimizer(const Program *p, Str name);
Scaler *program_scaler(const Program *p, Str name);
/* The type in which the graph reads a parameter at this level. */
DType param_read_type(const Properties *props, const Param *param);
#endif

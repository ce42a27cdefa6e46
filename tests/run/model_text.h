/* Random valid models, as .amp text. Every op states what it asks of its operands: kind, shape, and
 * the range of values in which it is finite and well conditioned; the generator picks operands that
 * fit or makes them fit. A model is a list of statements, each of which gives one value; values
 * that no other statement reads are the results, and each real one feeds a loss of the train entry.
 *
 *     ModelText *m = model_random(&arena, seed);
 *     const char *text = model_text(m, &arena);
 *
 * A model shrinks by `cut` (a value becomes a constant of its shape) and `dropped` (a result that
 * is not read any more); what nothing needs then is not printed. Names of values are not part of a
 * model's meaning, nor is the order of its declarations: `renamed` prints the same model with
 * others.
 */
#ifndef AMPC_TESTS_MODEL_TEXT_H
#define AMPC_TESTS_MODEL_TEXT_H
#include "support/out.h"

enum { MAX_VALUES = 200, MAX_SHAPE = 4, MAX_READS = 4 };

typedef enum ValueKind { REAL, INTEGER, TRUTH } ValueKind;
typedef struct Size {
    int64_t rows, count; /* rows * N, or count when rows is 0 */
} Size;
typedef struct Shape {
    int rank;
    Size size[MAX_SHAPE];
} Shape;

typedef struct ModelValue {
    ValueKind kind;
    Shape shape;
    double low, high;           /* of its elements, at the first weights */
    const char *declared;       /* layers and parameters, printed before all statements; or NULL */
    const char *statement;      /* gives vI; NULL: an input of the model */
    const char *input;          /* name of the input */
    int read[MAX_READS], reads; /* values that the statement reads */
    int uses;
    int by_row; /* row i depends on row i of the inputs alone */
    int cut, dropped;
} ModelValue;

typedef struct ModelText {
    uint64_t seed, random;
    int64_t batch, prime, classes, rows_of_table;
    ModelValue value[MAX_VALUES];
    int values, statements, inputs;
    int trains; /* number of weights declared so far */
    int uses_block, uses_def;
    const char *optimizer, *clip, *scaler, *first_weight;
    Arena *arena;
    int renamed;
} ModelText;

ModelText *model_random(Arena *arena, uint64_t seed);
const char *model_text(const ModelText *m, Arena *arena);
/* Is value v a result of the model (read by no statement that is printed)? */
int model_is_result(const ModelText *m, int v);
#endif

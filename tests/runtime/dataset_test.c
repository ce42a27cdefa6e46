/* rt_dataset.h: fields hold what their expressions say and refuse values that do not fit; splits
 * and epochs take every row once, in an order that depends on nothing but their seeds; a run
 * resumed at any step sees the same batches. */
#include "rt_dataset.h"
#include "check.h"

enum { ROWS = 103, WIDTH = 5 };

static double numbers[ROWS * WIDTH];
static RtSource table;

static void make_table(void)
{
    for (int i = 0; i < ROWS * WIDTH; i++)
        numbers[i] = i;
    table.data = numbers;
    table.kind = RT_KIND_F64;
    table.rank = 2;
    table.rows = table.shape[0] = ROWS;
    table.columns = table.shape[1] = WIDTH;
}

/* x = columns(1, 4) / 7 */
static double field_x(const RtSource *from, int64_t row, int64_t i)
{
    return (float)rt_source_value(from, row, 1 + i) / 7.0f;
}

/* y = column(0) / 5, the row's number */
static double field_y(const RtSource *from, int64_t row, int64_t i)
{
    return (float)rt_source_value(from, row, i) / 5.0f;
}

static double special; /* what field_special gives in row 2, element 1; all else is 1 */

static double field_special(const RtSource *from, int64_t row, int64_t i)
{
    (void)from;
    return row == 2 && i == 1 ? special : 1;
}

static RtDataset make_dataset(void)
{
    RtDataset d;
    rt_dataset_start(&d, "d", ROWS);
    CHECK_EQ(rt_dataset_field(&d, "x", RT_KIND_F32, 3, field_x, &table), 0);
    CHECK_EQ(rt_dataset_field(&d, "y", RT_KIND_I32, 1, field_y, &table), 0);
    return d;
}

static void check_fields(void)
{
    RtDataset d = make_dataset();
    CHECK_EQ(d.fields, 2);
    for (int64_t row = 0; row < ROWS; row++) {
        for (int i = 0; i < 3; i++)
            CHECK(((float *)d.field[0].data)[row * 3 + i] == (float)(row * WIDTH + 1 + i) / 7.0f);
        CHECK_EQ(((int32_t *)d.field[1].data)[row], row);
    }
    CHECK_EQ(rt_dataset_check_classes(&d, 1, ROWS), 0);
    CHECK_EQ(rt_dataset_check_classes(&d, 1, 10), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(),
                  "dataset d, field y, row 10: label 10 is not one of the 10 classes 0 to 9"));
    rt_dataset_free(&d);
}

/* A field of this kind takes the value as it is or, with a text, refuses it. */
static void check_value(RtKind kind, double x, const char *text)
{
    char wanted[200];
    RtDataset d;
    RtSource s = table;
    rt_dataset_start(&d, "d", 4);
    special = x;
    int status = rt_dataset_field(&d, "f", kind, 2, field_special, &table);
    CHECK_EQ(status, text ? RT_BAD_DATA : RT_OK);
    if (text) {
        snprintf(wanted, sizeof wanted, "dataset d, field f, row 2, element 1: %s", text);
        CHECK(!strcmp(rt_error_text(), wanted));
        CHECK_EQ(d.fields, 0);
        return;
    }
    s.data = d.field[0].data;
    s.kind = kind;
    s.columns = 2;
    CHECK(rt_source_value(&s, 2, 1) == (kind == RT_KIND_F32 ? (double)(float)x : x));
    CHECK(rt_source_value(&s, 3, 1) == 1);
    rt_dataset_free(&d);
}

static void check_values(void)
{
    check_value(RT_KIND_BOOL, 0, NULL);
    check_value(RT_KIND_BOOL, 2, "2 does not fit bool");
    check_value(RT_KIND_U8, 255, NULL);
    check_value(RT_KIND_U8, 256, "256 does not fit u8");
    check_value(RT_KIND_U8, -1, "-1 does not fit u8");
    check_value(RT_KIND_I8, -128, NULL);
    check_value(RT_KIND_I8, 128, "128 does not fit i8");
    check_value(RT_KIND_I16, -32768, NULL);
    check_value(RT_KIND_I16, 32768, "32768 does not fit i16");
    check_value(RT_KIND_I32, 2147483647, NULL);
    check_value(RT_KIND_I32, -2147483648.0, NULL);
    check_value(RT_KIND_I32, 2147483648.0, "2.14748365e+09 does not fit i32");
    check_value(RT_KIND_I32, 2.5, "2.5 is not an integer, wanted i32");
    check_value(RT_KIND_I32, NAN, "nan is not an integer, wanted i32");
    check_value(RT_KIND_I32, -INFINITY, "-inf does not fit i32");
    check_value(RT_KIND_I64, 9007199254740992.0, NULL);
    check_value(RT_KIND_I64, 1e16, "1e+16 does not fit i64");
    check_value(RT_KIND_F32, 0.1, NULL);
    check_value(RT_KIND_F32, 3.4e38, NULL);
    check_value(RT_KIND_F32, 3.5e38, "3.5e+38 is not a finite f32");
    check_value(RT_KIND_F32, NAN, "nan is not a finite f32");
    check_value(RT_KIND_F64, 3.5e38, NULL);
    check_value(RT_KIND_F64, INFINITY, "inf is not a finite f64");
}

/* Together the parts hold every row once. */
static void check_whole(const RtPart *part, int parts)
{
    int seen[ROWS] = {0};
    for (int p = 0; p < parts; p++)
        for (int64_t i = 0; i < part[p].rows; i++)
            if (part[p].row[i] >= 0 && part[p].row[i] < ROWS)
                seen[part[p].row[i]]++;
    for (int row = 0; row < ROWS; row++)
        CHECK_EQ(seen[row], 1);
}

/* Rows stand in the order of (key, row); epoch 0 is that of splits. */
static void check_order(const int64_t *row, int64_t rows, uint64_t seed, uint64_t epoch)
{
    for (int64_t i = 1; i < rows; i++) {
        uint64_t before = rt_shuffle_key(seed, epoch, (uint64_t)row[i - 1]);
        uint64_t key = rt_shuffle_key(seed, epoch, (uint64_t)row[i]);
        CHECK(before < key || (before == key && row[i - 1] < row[i]));
    }
}

static void free_parts(RtPart *part, int parts)
{
    for (int i = 0; i < parts; i++)
        rt_part_free(&part[i]);
}

static void check_parts(void)
{
    static const char *const name[] = {"train", "val", "test"};
    static const double share[] = {0.7, 0.1, 0.2}, most[] = {0.9, 0.2, 0.2}, zero[] = {1, 0};
    static const double tiny[] = {0.5, 0.001, 0.4};
    static const int64_t sizes[] = {60, 43}, many[] = {60, 44};
    RtDataset d = make_dataset();
    RtPart part[3], again[3];
    CHECK_EQ(rt_dataset_split(&d, 0, 3, share, name, part), 0);
    CHECK(part[0].rows == 72 && part[1].rows == 10 && part[2].rows == 21);
    check_whole(part, 3);
    check_order(part[0].row, 72, 0, 0);
    check_order(part[2].row, 21, 0, 0);
    int moved = 0, differ = 0;
    for (int64_t i = 0; i < 72; i++)
        moved += part[0].row[i] != i;
    CHECK(moved > 60);
    CHECK_EQ(rt_dataset_split(&d, 0, 3, share, name, again), 0);
    for (int p = 0; p < 3; p++)
        CHECK(!memcmp(part[p].row, again[p].row, (size_t)part[p].rows * sizeof(int64_t)));
    free_parts(again, 3);
    CHECK_EQ(rt_dataset_split(&d, 1, 3, share, name, again), 0);
    check_whole(again, 3);
    for (int64_t i = 0; i < 72; i++)
        differ += part[0].row[i] != again[0].row[i];
    CHECK(differ > 60);
    free_parts(again, 3);
    free_parts(part, 3);

    CHECK_EQ(rt_share_rows(1797, 0.8), 1437);
    CHECK_EQ(rt_share_rows(100, 0.29), 29); /* in doubles the product is 28.999999999999996 */
    CHECK_EQ(rt_share_rows(1000000000, 0.999999999), 999999999);
    CHECK_EQ(rt_share_rows(10, 0.99), 9);

    CHECK_EQ(rt_dataset_split(&d, 0, 3, most, name, part), RT_USAGE);
    CHECK(!strcmp(rt_error_text(), "dataset d: the shares of its parts add up to 1.3"));
    CHECK_EQ(rt_dataset_split(&d, 0, 2, zero, name, part), RT_USAGE);
    CHECK(!strcmp(rt_error_text(), "dataset d: share 0 of part val is not between 0 and 1"));
    CHECK_EQ(rt_dataset_split(&d, 0, 3, tiny, name, part), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), "dataset d: no rows in part val of 103 rows"));

    CHECK_EQ(rt_dataset_cut(&d, 2, sizes, name, part), 0);
    check_whole(part, 2);
    CHECK(part[0].row[59] == 59 && part[1].row[0] == 60 && part[1].row[42] == 102);
    free_parts(part, 2);
    CHECK_EQ(rt_dataset_cut(&d, 2, many, name, part), RT_INTERNAL);
    rt_dataset_free(&d);
}

/* The rows that one epoch takes, as the batches' y says; x must belong to them. */
static int64_t walk_epoch(RtBatches *b, int64_t *seen)
{
    float x[32 * 3];
    int32_t y[32];
    int64_t epoch = b->epoch, taken = 0, n;
    while (b->epoch == epoch) {
        CHECK_EQ(rt_batches_next(b, &n), 0);
        CHECK(n >= 1 && n <= b->step_rows);
        rt_batches_gather(b, 0, x);
        rt_batches_gather(b, 1, y);
        for (int64_t i = 0; i < n; i++) {
            CHECK(x[3 * i + 2] == (float)(y[i] * WIDTH + 3) / 7.0f);
            seen[taken++] = y[i];
        }
    }
    CHECK(b->epoch == epoch + 1 && b->row == 0);
    return taken;
}

static void check_batches(void)
{
    static const char *const name[] = {"all"};
    static const int64_t rows[] = {ROWS};
    RtDataset d = make_dataset();
    RtPart all;
    RtBatches b;
    int64_t first[ROWS], second[ROWS], n;
    CHECK_EQ(rt_dataset_cut(&d, 1, rows, name, &all), 0);

    CHECK_EQ(rt_batches_open(&b, &all, 32, 0, 0), 0); /* as eval does: every row, in order */
    CHECK_EQ(b.steps, 4);
    CHECK_EQ(walk_epoch(&b, first), ROWS);
    for (int i = 0; i < ROWS; i++)
        CHECK_EQ(first[i], i);
    rt_batches_close(&b);

    CHECK_EQ(rt_batches_open(&b, &all, 32, RT_DROP_LAST, 0), 0);
    CHECK_EQ(b.steps, 3);
    CHECK_EQ(walk_epoch(&b, first), 96);
    rt_batches_close(&b);

    CHECK_EQ(rt_batches_open(&b, &all, 32, RT_SHUFFLE, 7), 0); /* each epoch its own order */
    CHECK_EQ(walk_epoch(&b, first), ROWS);
    CHECK_EQ(walk_epoch(&b, second), ROWS);
    check_order(first, ROWS, 7, 1);
    check_order(second, ROWS, 7, 2);
    int seen[ROWS] = {0}, differ = 0, moved = 0;
    for (int i = 0; i < ROWS; i++) {
        seen[first[i]]++;
        differ += first[i] != second[i];
        moved += first[i] != i;
    }
    for (int i = 0; i < ROWS; i++)
        CHECK_EQ(seen[i], 1);
    CHECK(differ > 80 && moved > 80);
    rt_batches_close(&b);

    CHECK_EQ(rt_batches_open(&b, &all, 104, RT_DROP_LAST, 0), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), "d.all has 103 rows, fewer than the 104 of a step"));
    CHECK_EQ(rt_batches_open(&b, &all, 104, 0, 0), 0); /* one short step */
    CHECK_EQ(b.steps, 1);
    CHECK_EQ(rt_batches_next(&b, &n), 0);
    CHECK_EQ(n, ROWS);
    CHECK_EQ(b.epoch, 1);
    rt_batches_close(&b);
    rt_part_free(&all);
    rt_dataset_free(&d);
}

/* Whatever step a run stops after, another that starts from its cursor goes on the same way. */
static void check_resume(void)
{
    static const char *const name[] = {"train", "test"};
    static const double share[] = {0.8, 0.2};
    enum { STEPS = 13, BATCH = 16 };
    RtDataset d = make_dataset();
    RtPart part[2];
    RtBatches b;
    int32_t whole[STEPS][BATCH], y[BATCH];
    int64_t cursor[STEPS][2], n;
    CHECK_EQ(rt_dataset_split(&d, 0, 2, share, name, part), 0);
    CHECK_EQ(rt_batches_open(&b, &part[0], BATCH, RT_SHUFFLE | RT_DROP_LAST, 3), 0);
    CHECK_EQ(b.steps, 5);
    for (int step = 0; step < STEPS; step++) {
        cursor[step][0] = b.epoch;
        cursor[step][1] = b.row;
        CHECK_EQ(rt_batches_next(&b, &n), 0);
        CHECK_EQ(n, BATCH);
        rt_batches_gather(&b, 1, whole[step]);
    }
    rt_batches_close(&b);
    for (int from = 0; from < STEPS; from++) {
        CHECK_EQ(rt_batches_open(&b, &part[0], BATCH, RT_SHUFFLE | RT_DROP_LAST, 3), 0);
        CHECK_EQ(rt_batches_seek(&b, cursor[from][0], cursor[from][1]), 0);
        for (int step = from; step < STEPS; step++) {
            CHECK_EQ(rt_batches_next(&b, &n), 0);
            rt_batches_gather(&b, 1, y);
            CHECK(!memcmp(y, whole[step], sizeof y));
        }
        rt_batches_close(&b);
    }
    static const int64_t bad[][2] = {{-1, 0}, {0, -16}, {0, 8}, {0, 80}, {UINT32_MAX, 0}};
    CHECK_EQ(rt_batches_open(&b, &part[0], BATCH, RT_SHUFFLE | RT_DROP_LAST, 3), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(rt_batches_seek(&b, bad[i][0], bad[i][1]), RT_BAD_DATA);
    CHECK_EQ(rt_batches_seek(&b, 2, 80), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), "d.train has no step at epoch 2, row 80"));
    rt_batches_close(&b);
    rt_part_free(&part[0]);
    rt_part_free(&part[1]);
    rt_dataset_free(&d);
}

int main(void)
{
    make_table();
    check_fields();
    check_values();
    check_parts();
    check_batches();
    check_resume();
    return check_done();
}

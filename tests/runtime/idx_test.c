/* rt_idx.h: every element type, plain and packed; a folder of four files; every fault has its text;
 * mutated files crash nothing and are taken only if their size is what they say. */
#include "rt_idx.h"
#include "check.h"
#include <zlib.h>

static char folder[] = "/tmp/ampc-idx-XXXXXX";

static void check_text(const char *bytes, size_t n, const char *wanted)
{
    RtSource s;
    CHECK_EQ(rt_idx_parse((const uint8_t *)bytes, n, "t.idx", &s), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!s.data && !s.rows);
    if (strcmp(rt_error_text(), wanted))
        fprintf(stderr, "found:  %s\nwanted: %s\n", rt_error_text(), wanted);
}

#define CHECK_TEXT(bytes, wanted) check_text(bytes, sizeof bytes - 1, wanted)

static void check_faults(void)
{
    CHECK_TEXT("", "t.idx: not an IDX file");
    CHECK_TEXT("\0\0\x08", "t.idx: not an IDX file");
    CHECK_TEXT("\0\1\x08\1\0\0\0\1x", "t.idx: not an IDX file");
    CHECK_TEXT("\0\0\x0a\1\0\0\0\1x", "t.idx: unknown element type 0x0a");
    CHECK_TEXT("\0\0\x08\0", "t.idx: 0 dimensions, wanted 1 to 16");
    CHECK_TEXT("\0\0\x08\x11\0\0\0\1", "t.idx: 17 dimensions, wanted 1 to 16");
    CHECK_TEXT("\0\0\x08\2\0\0\0\1\0\0\0", "t.idx: ends inside its header");
    CHECK_TEXT("\0\0\x08\1\0\0\0\0", "t.idx: dimension 0 is 0");
    CHECK_TEXT("\0\0\x08\2\0\0\0\1\0\0\0\0", "t.idx: dimension 1 is 0");
    CHECK_TEXT("\0\0\x08\1\0\0\0\2x", "t.idx: 9 bytes, its header says 10");
    CHECK_TEXT("\0\0\x08\1\0\0\0\2xyz", "t.idx: 11 bytes, its header says 10");
    CHECK_TEXT("\0\0\x0e\1\0\0\0\2xyz", "t.idx: 11 bytes, its header says 24");
    CHECK_TEXT("\0\0\x08\2\xff\xff\xff\xff\xff\xff\xff\xffx",
               "t.idx: its shape has too many elements");
    CHECK_TEXT("\0\0\x08\1\xff\xff\xff\xffx", "t.idx: 9 bytes, its header says 4294967303");
}

/* Two rows of one number each, of every type. */
static void check_types(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        RtKind kind;
        double first, second;
    } good[] = {
        {"\0\0\x08\1\0\0\0\2\x07\xff", 10, RT_KIND_U8, 7, 255},
        {"\0\0\x09\1\0\0\0\2\x07\xff", 10, RT_KIND_I8, 7, -1},
        {"\0\0\x0b\1\0\0\0\2\1\2\xff\xfe", 12, RT_KIND_I16, 258, -2},
        {"\0\0\x0c\1\0\0\0\2\1\2\3\4\xff\xff\xff\xfe", 16, RT_KIND_I32, 16909060, -2},
        {"\0\0\x0d\1\0\0\0\2\x3f\x80\0\0\xc0\x20\0\0", 16, RT_KIND_F32, 1, -2.5},
        {"\0\0\x0e\1\0\0\0\2\x3f\xf0\0\0\0\0\0\0\xc0\4\0\0\0\0\0\0", 24, RT_KIND_F64, 1, -2.5}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        RtSource s;
        CHECK_EQ(rt_idx_parse((const uint8_t *)good[i].bytes, good[i].n, "t.idx", &s), 0);
        CHECK(s.kind == good[i].kind && s.rank == 1 && s.rows == 2 && s.columns == 1);
        CHECK(rt_source_value(&s, 0, 0) == good[i].first);
        CHECK(rt_source_value(&s, 1, 0) == good[i].second);
        rt_source_free(&s);
    }
}

/* Writes an IDX file of bytes that count up from start, packed or plain. */
static void write_idx(const char *name, int packed, int rank, const int *shape, int start)
{
    uint8_t bytes[1024] = {0, 0, 8, (uint8_t)rank};
    size_t n = 4, elements = 1;
    char path[300];
    for (int i = 0; i < rank; i++, n += 4) {
        bytes[n + 3] = (uint8_t)shape[i];
        elements *= (size_t)shape[i];
    }
    for (size_t i = 0; i < elements; i++)
        bytes[n++] = (uint8_t)(start + (int)i);
    snprintf(path, sizeof path, "%s/%s%s", folder, name, packed ? ".gz" : "");
    if (!packed) {
        CHECK_EQ(rt_file_write(path, bytes, n), 0);
        return;
    }
    gzFile z = gzopen(path, "wb");
    CHECK_EQ(gzwrite(z, bytes, (unsigned)n), n);
    gzclose(z);
}

static void check_folder_text(const char *text)
{
    RtIdxFolder f;
    char wanted[400];
    snprintf(wanted, sizeof wanted, "%s%s", folder, text);
    CHECK_EQ(rt_idx_folder(folder, &f), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!f.image.data && !f.label.data && !f.train_rows && !f.test_rows);
    if (strcmp(rt_error_text(), wanted))
        fprintf(stderr, "found:  %s\nwanted: %s\n", rt_error_text(), wanted);
}

static void remove_file(const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(!unlink(path));
}

static void check_folder(void)
{
    static const int images[] = {3, 2, 2}, tests[] = {2, 2, 2}, wide[] = {2, 2, 3}, labels[] = {3};
    static const int rows[] = {2};
    RtIdxFolder f;
    CHECK(mkdtemp(folder));
    CHECK_EQ(rt_idx_folder(folder, &f), RT_SYSTEM);
    write_idx("train-labels-idx1-ubyte", 1, 1, labels, 4);
    write_idx("t10k-labels-idx1-ubyte", 0, 1, rows, 1);
    write_idx("train-images-idx3-ubyte", 1, 3, images, 10);
    write_idx("t10k-images-idx3-ubyte", 1, 3, tests, 50);
    CHECK_EQ(rt_idx_folder(folder, &f), 0);
    CHECK_EQ(f.train_rows, 3);
    CHECK_EQ(f.test_rows, 2);
    CHECK(f.image.rows == 5 && f.image.columns == 4 && f.image.rank == 3 && f.image.shape[0] == 5);
    CHECK(f.label.rows == 5 && f.label.columns == 1);
    CHECK(rt_source_value(&f.image, 2, 3) == 21 && rt_source_value(&f.image, 3, 0) == 50);
    CHECK(rt_source_value(&f.label, 2, 0) == 6 && rt_source_value(&f.label, 4, 0) == 2);
    CHECK_EQ(rt_source_has_width(&f.image, "image", 4), 0);
    CHECK_EQ(rt_source_has_width(&f.image, "image", 784), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), "image: rows have 4 elements, the program wants 784"));
    rt_idx_folder_free(&f);

    write_idx("t10k-images-idx3-ubyte", 1, 3, wide, 50);
    check_folder_text(": training and test files differ in type or shape");
    write_idx("t10k-images-idx3-ubyte", 1, 3, images, 50);
    check_folder_text(": 3 + 3 images but 3 + 2 labels");
    write_idx("train-labels-idx1-ubyte", 1, 3, images, 0);
    write_idx("t10k-labels-idx1-ubyte", 0, 3, images, 0);
    check_folder_text(": labels have 3 dimensions, wanted 1");

    char path[300]; /* more comes out than the header promises, or less */
    gzFile z;
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte.gz", folder);
    z = gzopen(path, "wb");
    gzwrite(z, "\0\0\x08\1\0\0\0\2xyz", 11);
    gzclose(z);
    check_folder_text("/train-labels-idx1-ubyte.gz: more data than expected comes out of it");
    z = gzopen(path, "wb");
    gzwrite(z, "\0\0\x08\1\0\0\0\2x", 9);
    gzclose(z);
    check_folder_text("/train-labels-idx1-ubyte.gz: 9 bytes, its header says 10");
    CHECK(!truncate(path, 12));
    check_folder_text("/train-labels-idx1-ubyte.gz: compressed data ends early");
    remove_file("train-labels-idx1-ubyte.gz");
    remove_file("t10k-labels-idx1-ubyte");
    remove_file("train-images-idx3-ubyte.gz");
    remove_file("t10k-images-idx3-ubyte.gz");
    CHECK(!rmdir(folder));
}

static void check_mutations(void)
{
    static const uint8_t good[] = {0, 0, 0x0c, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0,
                                   0, 1, 0,    0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4};
    uint32_t state = 1;
    int taken = 0;
    for (int i = 0; i < 50000; i++) {
        uint8_t bytes[sizeof good];
        RtSource s;
        size_t n = sizeof good;
        memcpy(bytes, good, n);
        for (int changes = i % 4; changes >= 0; changes--) {
            state = state * 1664525u + 1013904223u;
            bytes[(state >> 8) % (i & 1 ? 12 : n)] = (uint8_t)(i & 2 ? state >> 24 : state >> 28);
        }
        if (i % 8 == 0)
            n = (state >> 16) % (n + 1);
        uint8_t *exact = (uint8_t *)malloc(n + 1);
        memcpy(exact + 1, bytes, n);
        int status = rt_idx_parse(exact + 1, n, "t.idx", &s);
        CHECK(status == RT_OK || (status == RT_BAD_DATA && !s.data));
        CHECK(status ||
              n == 4 + 4 * (size_t)s.rank + (size_t)(s.rows * s.columns) * rt_kind_bytes(s.kind));
        taken += !status;
        free(exact);
        rt_source_free(&s);
    }
    CHECK(taken > 1000 && taken < 40000);
}

/* Fashion-MNIST, where installed: sizes, classes, and the pixels that zlib unpacks. */
static void check_fashion(void)
{
    const char *path = "/usr/share/datasets/fashion-mnist";
    RtIdxFolder f;
    int64_t of_class[10] = {0};
    if (access(path, R_OK))
        return;
    CHECK_EQ(rt_idx_folder(path, &f), 0);
    CHECK(f.train_rows == 60000 && f.test_rows == 10000 && f.image.columns == 784);
    for (int64_t row = 0; row < f.label.rows; row++)
        of_class[(int)rt_source_value(&f.label, row, 0) % 10]++;
    for (int i = 0; i < 10; i++)
        CHECK_EQ(of_class[i], 7000);
    gzFile z = gzopen("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz", "rb");
    uint8_t *wanted = (uint8_t *)malloc(7840016);
    CHECK_EQ(gzread(z, wanted, 7840016), 7840016);
    CHECK(!memcmp((const uint8_t *)f.image.data + 60000 * 784, wanted + 16, 7840000));
    gzclose(z);
    free(wanted);
    rt_idx_folder_free(&f);
}

int main(void)
{
    check_types();
    check_faults();
    check_folder();
    check_mutations();
    check_fashion();
    return check_done();
}

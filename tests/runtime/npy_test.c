/* rt_npy.h: every type in both byte orders, three versions, what NumPy and others write; what we
 * write is read back; every fault has its text; mutated files crash nothing. */
#include "rt_npy.h"
#include "check.h"
#include <math.h>

/* Builds a file: version, header text padded as it should be, elements. Returns its size. */
static size_t build(uint8_t *to, int version, const char *header, const char *elements,
                    size_t bytes)
{
    size_t start = version == 1 ? 10 : 12, n = strlen(header), padded = n + 1;
    while ((start + padded) % 16)
        padded++;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (uint8_t)version;
    to[7] = 0;
    for (size_t i = 8; i < start; i++)
        to[i] = (uint8_t)(padded >> 8 * (i - 8));
    memset(to + start, ' ', padded);
    memcpy(to + start, header, n);
    to[start + padded - 1] = '\n';
    memcpy(to + start + padded, elements, bytes);
    return start + padded + bytes;
}

#define HEADER(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }"

static void check_types(void)
{
    static const struct {
        const char *header, *elements;
        size_t bytes;
        RtKind kind;
        double first, second;
    } good[] = {
        {HEADER("|b1", "(2,)"), "\1\0", 2, RT_KIND_BOOL, 1, 0},
        {HEADER("|u1", "(2,)"), "\7\xff", 2, RT_KIND_U8, 7, 255},
        {HEADER("|i1", "(2,)"), "\7\xff", 2, RT_KIND_I8, 7, -1},
        {HEADER("<i1", "(2,)"), "\7\xff", 2, RT_KIND_I8, 7, -1},
        {HEADER("<i2", "(2,)"), "\1\2\xfe\xff", 4, RT_KIND_I16, 513, -2},
        {HEADER(">i2", "(2,)"), "\1\2\xff\xfe", 4, RT_KIND_I16, 258, -2},
        {HEADER("<i4", "(2,)"), "\1\0\0\0\xfe\xff\xff\xff", 8, RT_KIND_I32, 1, -2},
        {HEADER(">i4", "(2,)"), "\0\0\0\1\xff\xff\xff\xfe", 8, RT_KIND_I32, 1, -2},
        {HEADER("<i8", "(2,)"), "\0\0\0\0\0\0\x20\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16,
         RT_KIND_I64, 9007199254740992.0, -2},
        {HEADER(">i8", "(2,)"), "\0\0\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff\xff\xfe", 16, RT_KIND_I64,
         1, -2},
        {HEADER("<f2", "(2,)"), "\0\x3c\0\xc1", 4, RT_KIND_F32, 1, -2.5},
        {HEADER(">f2", "(2,)"), "\x3c\0\xc1\0", 4, RT_KIND_F32, 1, -2.5},
        {HEADER("<f4", "(2,)"), "\0\0\x80\x3f\0\0\x20\xc0", 8, RT_KIND_F32, 1, -2.5},
        {HEADER(">f4", "(2,)"), "\x3f\x80\0\0\xc0\x20\0\0", 8, RT_KIND_F32, 1, -2.5},
        {HEADER("<f8", "(2,)"), "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\4\xc0", 16, RT_KIND_F64, 1, -2.5},
        {HEADER(">f8", "(2,)"), "\x3f\xf0\0\0\0\0\0\0\xc0\4\0\0\0\0\0\0", 16, RT_KIND_F64, 1, -2.5},
        {HEADER("|u1", "(2, 1)"), "\7\xff", 2, RT_KIND_U8, 7, 255},
        {"{'descr':'|u1','fortran_order':True,'shape':(2,)}", "\7\xff", 2, RT_KIND_U8, 7, 255},
        {"{\"shape\": (2,1,1), \"descr\": \"|u1\", \"fortran_order\": False}", "\7\xff", 2,
         RT_KIND_U8, 7, 255}};
    uint8_t file[512];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        for (int version = 1; version <= 3; version++) {
            RtSource s;
            size_t n = build(file, version, good[i].header, good[i].elements, good[i].bytes);
            CHECK_EQ(rt_npy_parse(file, n, "t.npy", &s), 0);
            CHECK(s.kind == good[i].kind && s.rows == 2 && s.columns == 1);
            CHECK(rt_source_value(&s, 0, 0) == good[i].first);
            CHECK(rt_source_value(&s, 1, 0) == good[i].second);
            rt_source_free(&s);
        }
}

static void check_bytes(const uint8_t *file, size_t n, const char *wanted)
{
    RtSource s;
    CHECK_EQ(rt_npy_parse(file, n, "t.npy", &s), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!s.data && !s.rows);
    if (strcmp(rt_error_text(), wanted))
        fprintf(stderr, "found:  %s\nwanted: %s\n", rt_error_text(), wanted);
}

static void check_text(const char *header, size_t bytes, const char *wanted)
{
    uint8_t file[1024];
    check_bytes(file, build(file, 1, header, "\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2", bytes), wanted);
}

static void check_faults(void)
{
    static const char *const malformed[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'shape': (4,)}",
        "{'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (4,)}",
        "{'descr': '<f4\", 'fortran_order': False, 'shape': (4,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 4}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-4,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4 1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4)}"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        check_text(malformed[i], 16, "t.npy: the npy header is malformed");
    check_text(HEADER("|O", "(4,)"), 16, "t.npy: elements of type '|O' cannot be read");
    check_text(HEADER("<c8", "(2,)"), 16, "t.npy: elements of type '<c8' cannot be read");
    check_text(HEADER("|f4", "(4,)"), 16, "t.npy: elements of type '|f4' cannot be read");
    check_text(HEADER("<f44", "(4,)"), 16, "t.npy: elements of type '<f44' cannot be read");
    check_text(HEADER("<", "(4,)"), 16, "t.npy: elements of type '<' cannot be read");
    check_text("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16,
               "t.npy: is in Fortran order; save it with numpy.ascontiguousarray");
    check_text(HEADER("<f4", "()"), 4, "t.npy: 0 dimensions, wanted 1 to 16");
    check_text(HEADER("<f4", "(0, 4)"), 0, "t.npy: dimension 0 is 0");
    check_text(HEADER("<f4", "(4, 0)"), 0, "t.npy: dimension 1 is 0");
    check_text(HEADER("<f4", "(1000000, 1000000, 1000000, 1000000)"), 16,
               "t.npy: its shape has too many elements");
    check_text(HEADER("<f4", "(4,)"), 15, "t.npy: 15 bytes of elements, its shape needs 16");
    check_text(HEADER("<f4", "(3,)"), 16, "t.npy: 16 bytes of elements, its shape needs 12");
    check_text(HEADER("<f2", "(4,)"), 16, "t.npy: 16 bytes of elements, its shape needs 8");
    check_text(HEADER("|b1", "(4,)"), 4, "t.npy: row 0: 2 is not a bool");
    check_text(HEADER("<i8", "(2,)"), 16, "t.npy: row 0: 144680345676153346 is beyond 2^53");

    uint8_t file[128] = "\x93NUMPY\1\0";
    check_bytes(file, 11, "t.npy: not an npy file");
    check_bytes((const uint8_t *)"\x93NUMPX\1\0\0\0\0\0", 12, "t.npy: not an npy file");
    check_bytes((const uint8_t *)"\x93NUMPY\4\0\0\0\0\0", 12, "t.npy: npy version 4.0 is unknown");
    check_bytes((const uint8_t *)"\x93NUMPY\1\1\0\0\0\0", 12, "t.npy: npy version 1.1 is unknown");
    check_bytes((const uint8_t *)"\x93NUMPY\1\0\3\0\0\0", 12, "t.npy: ends inside its header");
    check_bytes((const uint8_t *)"\x93NUMPY\2\0\1\0\1\0", 12,
                "t.npy: its header has 65537 bytes, more than 65536");
}

static void check_files(void)
{
    static const int64_t shapes[][3] = {{6, 0, 0}, {2, 3, 0}, {1, 2, 3}};
    static const float wanted[6] = {1.5f, -0.0f, 1e-40f, 3.4e38f, 0.1f, 7.0f};
    char path[] = "/tmp/ampc-npy-XXXXXX";
    RtSource s;
    close(mkstemp(path));
    for (int rank = 1; rank <= 3; rank++) {
        CHECK_EQ(rt_npy_write(path, wanted, rank, shapes[rank - 1]), 0);
        CHECK_EQ(rt_npy_read(path, &s), 0);
        CHECK(s.kind == RT_KIND_F32 && s.rank == rank);
        for (int i = 0; i < rank; i++)
            CHECK_EQ(s.shape[i], shapes[rank - 1][i]);
        CHECK(!memcmp(s.data, wanted, sizeof wanted));
        rt_source_free(&s);
    }
    CHECK_EQ(rt_npy_write(path, wanted, 0, NULL), 0); /* a lone number is a file, but no rows */
    CHECK_EQ(rt_npy_read(path, &s), RT_BAD_DATA);
    int64_t many[16];
    for (int i = 0; i < 16; i++)
        many[i] = i == 7 ? 6 : 1;
    CHECK_EQ(rt_npy_write(path, wanted, 16, many), 0);
    CHECK_EQ(rt_npy_read(path, &s), 0);
    CHECK(s.rank == 16 && s.columns == 6);
    rt_source_free(&s);
    unlink(path);
    CHECK_EQ(rt_npy_read(path, &s), RT_SYSTEM);
}

static void check_mutations(void)
{
    static const char pieces[] = "'{}(),: \n0123456789<>|fiubTrueFals\\\xff";
    uint8_t good[512];
    size_t size = build(good, 1, HEADER("<i2", "(2, 3)"), "\1\0\2\0\3\0\4\0\5\0\6\0", 12);
    uint32_t state = 1;
    int taken = 0;
    for (int i = 0; i < 60000; i++) {
        uint8_t *file = (uint8_t *)malloc(size + 1);
        RtSource s;
        size_t n = size;
        memcpy(file + 1, good, size);
        for (int changes = i % 3; changes >= 0; changes--) {
            state = state * 1664525u + 1013904223u;
            size_t at = (state >> 8) % size;
            if (i & 1)
                at = at % 70;
            file[1 + at] = i & 2 ? (uint8_t)(state >> 24)
                                 : (uint8_t)pieces[(state >> 24) % (sizeof pieces - 1)];
        }
        if (i % 8 == 0)
            n = (state >> 16) % (size + 1);
        file = (uint8_t *)realloc(file, n + 1);
        int status = rt_npy_parse(file + 1, n, "t.npy", &s);
        CHECK(status == RT_OK || (status == RT_BAD_DATA && !s.data));
        for (int64_t k = 0; !status && k < s.rows * s.columns; k++)
            CHECK(rt_source_value(&s, k / s.columns, k % s.columns) > -1e300);
        taken += !status;
        free(file);
        rt_source_free(&s);
    }
    CHECK(taken > 1000 && taken < 40000);
}

/* scikit-image's faces, where installed: 200 pictures of 25 x 25 from 0 to 1. */
static void check_faces(void)
{
    const char *path = "/usr/lib/python3/dist-packages/skimage/data/lfw_subset.npy";
    RtSource s;
    if (access(path, R_OK))
        return;
    CHECK_EQ(rt_npy_read(path, &s), 0);
    CHECK(s.rows == 200 && s.columns == 625);
    for (int64_t i = 0; i < 200 * 625; i++)
        CHECK(rt_source_value(&s, i / 625, i % 625) >= 0 &&
              rt_source_value(&s, i / 625, i % 625) <= 1);
    rt_source_free(&s);
}

int main(void)
{
    check_types();
    check_faults();
    check_files();
    check_mutations();
    check_faces();
    return check_done();
}

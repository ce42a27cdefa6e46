/* The safetensors reader refuses every kind of malformed file with a message that says why, and
 * converts values with one rounding; the writer's bytes are what the format's description says,
 * checked by a parser that shares nothing with the reader. */
#include "rt_safetensors.h"

#include "check.h"

static const char *const path = "safetensors_test.tmp";

static void put_file(const void *header, size_t length, uint64_t claimed, const void *data,
                     size_t bytes)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    fwrite(&claimed, 8, 1, file);
    fwrite(header, 1, length, file);
    fwrite(data, 1, bytes, file);
    fclose(file);
}

/* Is the file refused, with this text behind its name? */
static void check_refused(const char *header, size_t bytes, const char *message)
{
    static const char data[4096];
    RtTensors f;
    put_file(header, strlen(header), strlen(header), data, bytes);
    CHECK_EQ(rt_tensors_open(&f, path), RT_BAD_DATA);
    const char *text = rt_error_text();
    bool same = !strncmp(text, path, strlen(path)) && !strcmp(text + strlen(path), message);
    if (!same)
        fprintf(stderr, "%.200s\n  %s\n", header, text);
    CHECK(same);
    CHECK(f.file.data == NULL && f.tensor == NULL);
}

static void check_accepted(const char *header, size_t bytes, int tensors)
{
    static const char data[64];
    RtTensors f;
    put_file(header, strlen(header), strlen(header), data, bytes);
    int status = rt_tensors_open(&f, path);
    if (status)
        fprintf(stderr, "%s\n  %s\n", header, rt_error_text());
    CHECK_EQ(status, RT_OK);
    CHECK_EQ(f.count, tensors);
    rt_tensors_close(&f);
}

#define T(shape, begin, end)                                                                       \
    "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void malformed(void)
{
    check_refused("{\"a\":" T("[2]", 0, 8) ",\"a\":" T("[2]", 8, 16) "}", 16,
                  ": tensor 'a' comes twice");
    check_refused("{\"a\":" T("[2]", 0, 8) ",\"\\u0061\":" T("[2]", 0, 8) "}", 8,
                  ": tensor 'a' comes twice");
    check_refused("{\"a\":" T("[2]", 0, 8) ",\"b\":" T("[2]", 12, 20) "}", 20,
                  ": tensor 'b' begins at byte 12, leaving a hole from byte 8");
    check_refused("{\"a\":" T("[2]", 4, 12) "}", 12,
                  ": tensor 'a' begins at byte 4, leaving a hole from byte 0");
    check_refused("{\"a\":" T("[2]", 0, 8) ",\"b\":" T("[2]", 4, 12) "}", 12,
                  ": tensor 'b' begins at byte 4, but the one before ends at byte 8");
    check_refused("{\"a\":" T("[2]", 0, 8) ",\"b\":" T("[0]", 4, 4) "}", 8,
                  ": tensor 'b' begins at byte 4, but the one before ends at byte 8");
    check_refused("{\"a\":" T("[2]", 0, 8) "}", 9, ": 1 bytes behind the last tensor");
    check_refused("{}", 1, ": 1 bytes behind the last tensor");
    check_refused("{\"a\":" T("[2]", 0, 8) "}", 7,
                  ": truncated: 7 bytes of data, but the header promises 8");
    check_refused("{\"a\":" T("[3]", 0, 8) "}", 8,
                  ": tensor 'a' needs 12 bytes, but its offsets are 0..8");
    check_refused("{\"a\":" T("[2]", 8, 0) "}", 8,
                  ": tensor 'a' needs 8 bytes, but its offsets are 8..0");
    check_refused("{\"a\":" T("[4611686018427387904,4]", 0, 0) "}", 0, ": tensor 'a' is too large");
    check_refused("{\"a\":" T("[4294967296,4294967296,0]", 0, 0) "}", 0,
                  ": tensor 'a' is too large");
    check_refused("{\"a\":" T("[70368744177664]", 0, 281474976710656) "}", 0,
                  ": tensor 'a' is too large");
    check_refused("{\"a\":" T("[-2,-1]", 0, 8) "}", 8,
                  ": tensor 'a' has a negative size or offset");
    check_refused("{\"a\":" T("[2]", -8, 0) "}", 8, ": tensor 'a' has a negative size or offset");
    check_refused("{\"a\":" T("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4,
                  ": tensor 'a' has more than 16 dimensions");
    check_refused("{\"a\":" T("[2.0]", 0, 8) "}", 8, ": JSON byte 30: expected a whole number");
    check_refused("{\"a\":" T("[99999999999999999999]", 0, 8) "}", 8,
                  ": JSON byte 47: number does not fit 64 bits");
    check_refused("{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
                  ": tensor 'a' has dtype 'F33', which is not known");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
                  ": tensor 'a' has an unknown key 'x'");
    check_refused(
        "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
        ": tensor 'a' has 'dtype' twice");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8,
                  ": tensor 'a' needs dtype, shape and two data_offsets");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
                  ": tensor 'a' needs dtype, shape and two data_offsets");
    check_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8,
                  ": tensor 'a' has more than 2 offsets");
    check_refused("{\"\":" T("[2]", 0, 8) "}", 8,
                  ": a tensor's name is empty or has control characters");
    check_refused("{\"a\\u001b[2J\":" T("[2]", 0, 8) "}", 8,
                  ": a tensor's name is empty or has control characters");
    check_refused("{\"a\\u0000\":" T("[2]", 0, 8) "}", 8,
                  ": JSON byte 9: NUL character in a string");
    check_refused("{\"a\":" T("[2]", 0, 8) "}\t", 8,
                  ": JSON byte 54: only spaces may follow the header");
    check_refused("{\"a\":" T("[2]", 0, 8) "} {}", 8,
                  ": JSON byte 55: only spaces may follow the header");
    check_refused(" {}", 0, ": not a safetensors file: the header is not an object");
    check_refused("[]", 0, ": not a safetensors file: the header is not an object");
    check_refused("{\"__metadata__\":{\"k\":1}}", 0, ": JSON byte 21: expected a string");
    check_refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, ": metadata 'k' comes twice");
    check_refused("{\"__metadata__\":{},\"__metadata__\":{}}", 0, ": '__metadata__' comes twice");
    check_refused("{\"a\":[[[[[[[[[[[[[[[[[[[[", 0, ": JSON byte 5: expected an object");

    char header[1200] = "{\"";
    memset(header + 2, 'n', 513);
    strcpy(header + 515, "\":" T("[2]", 0, 8) "}");
    check_refused(header, 8, ": JSON byte 515: string is too long");
    check_accepted("{\"__metadata__\":{}}", 0, 0);
    check_accepted("{}", 0, 0);
    check_accepted("{\"s\":" T("[]", 0, 4) "}      ", 4, 1);
    /* Zero-size tensors share an offset; the order of the header is free. */
    check_accepted("{\"b\":" T("[1]", 0, 4) ",\"a\":" T("[0]", 4, 4) ",\"c\":" T("[9,0]", 0, 0) "}",
                   4, 3);
    check_accepted("{\"b\":" T("[1]", 4, 8) ",\"a\":" T("[1]", 0, 4) "}", 8, 2);
    strcpy(header + 514, "\":" T("[2]", 0, 8) "}"); /* a name of 512 bytes */
    check_accepted(header, 8, 1);
}

/* The length field, and files that end early. */
static void lengths(void)
{
    static const uint64_t claimed[] = {0, 1, 3, 33554433, 100000000, UINT64_MAX, UINT64_MAX - 7};
    static const char *const message[] = {
        "not a safetensors file: the header is not an object",
        "JSON byte 1: expected a string",
        "truncated: the header ends behind the file",
        "not a safetensors file: a header of 33554433 bytes",
        "not a safetensors file: a header of 100000000 bytes",
        "not a safetensors file: a header of 18446744073709551615 bytes",
        "not a safetensors file: a header of 18446744073709551608 bytes"};
    RtTensors f;
    for (size_t k = 0; k < sizeof claimed / sizeof *claimed; k++) {
        put_file("{}", 2, claimed[k], "", 0);
        CHECK_EQ(rt_tensors_open(&f, path), RT_BAD_DATA);
        CHECK(strstr(rt_error_text(), message[k]) != NULL);
    }
    for (size_t size = 0; size < 8; size++) {
        FILE *file = fopen(path, "wb");
        fwrite("\2\0\0\0\0\0\0", 1, size, file);
        fclose(file);
        CHECK_EQ(rt_tensors_open(&f, path), RT_BAD_DATA);
        CHECK(strstr(rt_error_text(), "shorter than 8 bytes") != NULL);
    }
    CHECK_EQ(rt_tensors_open(&f, "no/such/file"), RT_SYSTEM);
    CHECK(strstr(rt_error_text(), "no/such/file") != NULL);
}

/* As many tensors as there may be, and one more. */
static void bomb(void)
{
    size_t room = 80 * 65538, used = 1;
    char *header = malloc(room);
    strcpy(header, "{");
    for (int k = 0; k < 65537; k++) {
        if (k == 65536) {
            strcpy(header + used, "}");
            check_accepted(header, 0, 65536);
        }
        used += (size_t)snprintf(header + used, room - used, "%s\"%d\":" T("[0]", 0, 0),
                                 k ? "," : "", k);
    }
    strcpy(header + used, "}");
    check_refused(header, 0, ": more than 65536 tensors");
    free(header);
}

/* One entry per type and layout, its bytes computed by hand. */
static void bytes_written(void)
{
    static const int64_t shape[] = {2, 3}, three[] = {3};
    float weight[6] = {1, 2, 3, 4, 5, 6}, moment = 0.5f;
    double power = 0.25;
    int64_t step = 1440;
    int32_t growth = 7;
    uint16_t half[3] = {0x3C00, 0xC000, 0x7BFF};
    const RtEntry entry[] = {
        {"w", RT_ST_F32, RT_ST_F32, 2, shape, weight, NULL, NULL, NULL},
        {"m", RT_ST_F32, RT_ST_F32, 0, NULL, &moment, NULL, NULL, NULL},
        {"h", RT_ST_F16, RT_ST_F16, 1, three, half, NULL, NULL, NULL},
        {"s\"\n", RT_ST_I64, RT_ST_I64, 0, NULL, &step, NULL, NULL, NULL},
        {"p", RT_ST_F64, RT_ST_F64, 0, NULL, &power, NULL, NULL, NULL},
        {"g", RT_ST_I32, RT_ST_I32, 0, NULL, &growth, NULL, NULL, NULL},
    };
    static const RtPair pair[] = {{"format", "x\\y"}, {"ampc.data", "0000000000000000"}};
    static const char wanted[] =
        "{\"__metadata__\":{\"format\":\"x\\\\y\",\"ampc.data\":\"0000000000000000\"},"
        "\"p\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"s\\\"\\u000a\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[8,16]},"
        "\"g\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[16,20]},"
        "\"m\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[20,24]},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[48,54]}}";
    uint8_t data[54], file_bytes[1024];
    char digits[17];
    memcpy(data, &power, 8);
    memcpy(data + 8, &step, 8);
    memcpy(data + 16, &growth, 4);
    memcpy(data + 20, &moment, 4);
    memcpy(data + 24, weight, 24);
    memcpy(data + 48, half, 6);
    CHECK_EQ(rt_entries_write(path, entry, 6, pair, 2, true), RT_OK);
    FILE *file = fopen(path, "rb");
    size_t size = fread(file_bytes, 1, sizeof file_bytes, file);
    fclose(file);
    uint64_t length = 0;
    memcpy(&length, file_bytes, 8);
    CHECK_EQ(length, (sizeof wanted - 1 + 7) / 8 * 8);
    CHECK_EQ(size, 8 + length + 54);
    char header[1024];
    memcpy(header, file_bytes + 8, (size_t)length);
    header[length] = '\0';
    char *hash = strstr(header, "\"ampc.data\":\"") + 13;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)rt_hash64(data, 54, 0));
    CHECK(!memcmp(hash, digits, 16));
    memset(hash, '0', 16);
    CHECK(!strncmp(header, wanted, sizeof wanted - 1));
    for (size_t k = sizeof wanted - 1; k < length; k++)
        CHECK_EQ(header[k], ' ');
    CHECK(!memcmp(file_bytes + 8 + length, data, 54));
}

static void find_and_read(void)
{
    static const int64_t n[] = {4};
    double wide[4] = {1, -65520, 1.0 / 3, 1e-8}, back[4];
    int64_t whole[4] = {0, -1, INT32_MAX, INT32_MIN}, beyond[4] = {0, 1, 2, 2147483648};
    const RtEntry entry[] = {{"wide", RT_ST_F64, RT_ST_F64, 1, n, wide, NULL, NULL, NULL},
                             {"half", RT_ST_F64, RT_ST_F16, 1, n, wide, NULL, NULL, NULL},
                             {"whole", RT_ST_I64, RT_ST_I64, 1, n, whole, NULL, NULL, NULL},
                             {"beyond", RT_ST_I64, RT_ST_I64, 1, n, beyond, NULL, NULL, NULL}};
    float single[4];
    int32_t narrow[4];
    RtTensors f;
    CHECK_EQ(rt_entries_write(path, entry, 4, NULL, 0, false), RT_OK);
    CHECK_EQ(rt_tensors_open(&f, path), RT_OK);
    CHECK(!rt_tensors_find(&f, "wid") && !rt_tensors_find(&f, "widen") && !rt_tensors_find(&f, ""));
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "wide"), RT_ST_F64, back), RT_OK);
    CHECK(!memcmp(back, wide, sizeof wide));
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "wide"), RT_ST_F32, single), RT_OK);
    for (int k = 0; k < 4; k++)
        CHECK(single[k] == (float)wide[k]);
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "half"), RT_ST_F32, single), RT_OK);
    CHECK(single[0] == 1 && isinf(single[1]) && single[2] == 0x1.554p-2f && single[3] == 0);
    CHECK_EQ(rt_tensor_nonfinite(&f, rt_tensors_find(&f, "half")), 1);
    CHECK_EQ(rt_tensor_nonfinite(&f, rt_tensors_find(&f, "wide")), 0);
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "whole"), RT_ST_I32, narrow), RT_OK);
    CHECK(narrow[1] == -1 && narrow[2] == INT32_MAX && narrow[3] == INT32_MIN);
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "beyond"), RT_ST_I32, narrow), RT_BAD_DATA);
    CHECK(strstr(rt_error_text(), "tensor 'beyond': element 3 does not fit I32") != NULL);
    CHECK_EQ(rt_tensor_read(&f, rt_tensors_find(&f, "whole"), RT_ST_F32, single), RT_BAD_DATA);
    CHECK(strstr(rt_error_text(), "tensor 'whole' has dtype I64, needed is F32") != NULL);
    rt_tensors_close(&f);
}

/* Every half value survives f64 and back; values between two halves go to the nearer one, also
 * where a rounding to f32 first would make a tie of what is none. */
static void one_rounding(void)
{
    for (int type = RT_ST_F16; type <= RT_ST_BF16; type++)
        for (int bits = 0; bits < 65536; bits++) {
            uint16_t half = (uint16_t)bits, back = 0;
            double wide = 0;
            rt_st_convert(RT_ST_F64, &wide, (RtStType)type, &half, 1);
            rt_st_convert((RtStType)type, &back, RT_ST_F64, &wide, 1);
            CHECK(back == half || isnan(wide));
        }
    struct {
        double x;
        uint16_t f16, bf16;
    } const row[] = {{1 + 0x1p-11, 0x3C00, 0x3F80},
                     {1 + 0x1p-11 + 0x1p-40, 0x3C01, 0x3F80},
                     {1 + 3 * 0x1p-11 - 0x1p-40, 0x3C01, 0x3F80},
                     {-(1 + 0x1p-8 + 0x1p-50), 0xBC04, 0xBF81},
                     {65520 - 0x1p-30, 0x7BFF, 0x4780},
                     {65520, 0x7C00, 0x4780},
                     {0x1p-25 + 0x1p-70, 0x0001, 0x3300},
                     {0x1p-25, 0x0000, 0x3300},
                     {1e300, 0x7C00, 0x7F80},
                     {-1e-300, 0x8000, 0x8000}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        uint16_t found[2];
        rt_st_convert(RT_ST_F16, &found[0], RT_ST_F64, &row[k].x, 1);
        rt_st_convert(RT_ST_BF16, &found[1], RT_ST_F64, &row[k].x, 1);
        CHECK_EQ(found[0], row[k].f16);
        CHECK_EQ(found[1], row[k].bf16);
    }
}

/* A valid file with bytes of its header changed at random: the reader says ok or bad data, and what
 * it accepts lies inside the file. */
static void mutations(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},\"a\":" T("[2,1]", 0, 8) ",\"b\":" //
        T("[0]", 8, 8) ",\"c\":{\"shape\":[2],\"dtype\":\"I64\",\"data_offsets\":[8,24]}}";
    static const char noise[] = "0123456789{}[]\",:ab \\u-.e";
    uint8_t file[8 + sizeof header - 1 + 24] = {0};
    uint32_t random = 7;
    int accepted = 0;
    for (int round = 0; round < 30000; round++) {
        RtTensors f;
        uint64_t length = sizeof header - 1;
        memcpy(file, &length, 8);
        memcpy(file + 8, header, sizeof header - 1);
        for (int edit = 0; edit <= round % 3; edit++) {
            random = random * 1664525u + 1013904223u;
            file[8 + (random >> 8) % (sizeof header - 1)] =
                round % 2 ? (uint8_t)noise[(random >> 24) % (sizeof noise - 1)]
                          : (uint8_t)(random >> 24);
        }
        memset(&f, 0, sizeof f);
        f.path = "mutant";
        f.file.bytes = sizeof file - (random >> 16 & 63 ? 0 : 1);
        f.file.data = malloc(f.file.bytes);
        memcpy(f.file.data, file, f.file.bytes);
        int status = rt_tensors_parse(&f);
        CHECK(status == RT_OK || status == RT_BAD_DATA);
        for (int k = 0; !status && k < f.count; k++)
            CHECK(f.tensor[k].begin >= 0 && f.tensor[k].end <= f.data_bytes);
        accepted += !status;
        rt_tensors_close(&f);
    }
    CHECK(accepted > 100 && accepted < 15000); /* both ways were taken */
}

static void full_disk(void)
{
    static float zeros[65536];
    static const int64_t n[] = {65536};
    const RtEntry entry = {"z", RT_ST_F32, RT_ST_F32, 1, n, zeros, NULL, NULL, NULL};
    RtHeaderText h;
    const RtEntry *one = &entry;
    RtWriter w;
    memset(&h, 0, sizeof h);
    CHECK_EQ(rt_entries_header(&h, &one, 1, NULL, 0), RT_OK);
    char full[] = "/dev/full";
    w.fd = open(full, O_WRONLY);
    w.path = full;
    w.temporary = NULL;
    CHECK(w.fd >= 0);
    CHECK_EQ(rt_entries_stream(&w, &h, &one, 1, -1), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), "cannot write /dev/full: No space left on device"));
    close(w.fd);
    free(h.text);
    CHECK_EQ(rt_entries_write("no/such/dir/x", &entry, 1, NULL, 0, false), RT_SYSTEM);
}

int main(void)
{
    malformed();
    lengths();
    bomb();
    bytes_written();
    find_and_read();
    one_rounding();
    mutations();
    full_disk();
    remove(path);
    return check_done();
}

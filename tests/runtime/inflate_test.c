/* rt_inflate.h says the same as zlib: the same bytes for whatever zlib packed, at every level and
 * strategy, and for damaged data the same verdict, over many thousand deterministic mutations.
 * Each kind of fault has its text. */
#include "rt_inflate.h"
#include "check.h"
#include <zlib.h>

static uint32_t random_state = 1;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * below >> 24);
}

/* Text of a certain kind: 0 all equal, 1 noise, 2 words, 3 few symbols, 4 long repeats. */
static void fill(uint8_t *p, size_t n, int kind)
{
    static const char words[] =
        "the gradient of the loss with respect to the weights of the layer ";
    for (size_t i = 0; i < n; i++)
        switch (kind) {
        case 0:
            p[i] = 'a';
            break;
        case 1:
            p[i] = (uint8_t)draw(256);
            break;
        case 2:
            p[i] = draw(9) ? (uint8_t)words[i % (sizeof words - 1)] : (uint8_t)('a' + draw(26));
            break;
        case 3:
            p[i] = (uint8_t)(draw(4) * draw(4) * draw(20));
            break;
        default:
            p[i] = i > 20000 && draw(100) ? p[i - 20000] : (uint8_t)draw(256);
        }
}

/* Packs with zlib; window is 31 for gzip, -15 for raw deflate. Returns the size. */
static size_t pack(const uint8_t *text, size_t n, int level, int strategy, int window, int header,
                   uint8_t *to, size_t room)
{
    z_stream z;
    gz_header about;
    memset(&z, 0, sizeof z);
    memset(&about, 0, sizeof about);
    CHECK_EQ(deflateInit2(&z, level, Z_DEFLATED, window, 9, strategy), Z_OK);
    if (header) {
        about.extra = (Bytef *)"extra";
        about.extra_len = 5;
        about.name = (Bytef *)"name";
        about.comment = (Bytef *)"comment";
        about.hcrc = 1;
        CHECK_EQ(deflateSetHeader(&z, &about), Z_OK);
    }
    z.next_in = (Bytef *)text;
    z.avail_in = (uInt)n;
    z.next_out = to;
    z.avail_out = (uInt)room;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* What zlib makes of it, all members: the number of bytes, or -1 if it is wrong or too long. */
static long unpack_zlib(const uint8_t *data, size_t n, int window, uint8_t *to, size_t limit)
{
    z_stream z;
    memset(&z, 0, sizeof z);
    inflateInit2(&z, window);
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)n;
    z.next_out = to;
    z.avail_out = (uInt)limit;
    int status = inflate(&z, Z_FINISH);
    while (status == Z_STREAM_END && z.avail_in && window > 0) {
        inflateReset(&z);
        status = inflate(&z, Z_FINISH);
    }
    long bytes = status == Z_STREAM_END && !z.avail_in ? (long)(z.next_out - to) : -1;
    inflateEnd(&z);
    return bytes;
}

/* Ours and zlib's answers are the same; true if both took it. */
static int check_same(const uint8_t *data, size_t n, int gzip, size_t limit)
{
    static uint8_t wanted[1 << 17];
    RtBytes out;
    const char *why = rt_unpack(data, n, limit, gzip, 0, &out);
    long size = unpack_zlib(data, n, gzip ? 31 : -15, wanted, limit);
    CHECK((size < 0) == (why != NULL));
    CHECK(!why == !!out.data && (why || (long)out.bytes == size));
    CHECK(why || size < 0 || !memcmp(out.data, wanted, out.bytes));
    rt_bytes_free(&out);
    return !why;
}

static void check_levels(void)
{
    static uint8_t text[100000], packed[120000];
    static const size_t sizes[] = {0, 1, 2, 257, 258, 259, 5000, 65535, 65536, sizeof text};
    for (int kind = 0; kind < 5; kind++)
        for (int level = 0; level <= 9; level += 3)
            for (int strategy = Z_DEFAULT_STRATEGY; strategy <= Z_FIXED; strategy++)
                for (int i = 0; i < 10; i++) {
                    size_t n = sizes[i], bytes;
                    fill(text, n, kind);
                    bytes = pack(text, n, level, strategy, 31, kind == 3, packed, sizeof packed);
                    CHECK(check_same(packed, bytes, 1, n));
                    CHECK(!n || !check_same(packed, bytes, 1, n - 1));
                    bytes = pack(text, n, level, strategy, -15, 0, packed, sizeof packed);
                    CHECK(check_same(packed, bytes, 0, n));
                }
}

/* Every truncation and thousands of mutations of small packed texts. */
static void check_mutations(void)
{
    static uint8_t text[3000], packed[8000], bad[8000];
    int taken = 0;
    for (int round = 0; round < 40; round++) {
        int gzip = round & 1;
        size_t n = draw(sizeof text), bytes;
        fill(text, n, round % 5);
        bytes = pack(text, n, round % 10, round % 5, gzip ? 31 : -15, gzip && round % 3 == 0,
                     packed, sizeof packed);
        for (size_t cut = 0; cut < bytes; cut += 1 + cut / 64)
            CHECK(!check_same(packed, cut, gzip, sizeof text));
        for (int m = 0; m < 1000; m++) {
            size_t size = bytes;
            memcpy(bad, packed, bytes);
            for (uint32_t changes = 1 + draw(3); changes; changes--) {
                uint32_t at = draw(draw(2) && bytes > 80 ? 80 : (uint32_t)bytes);
                if (draw(2))
                    bad[at] ^= (uint8_t)(1 << draw(8));
                else
                    bad[at] = (uint8_t)draw(256);
            }
            if (!draw(8))
                size = draw((uint32_t)bytes + 1);
            taken += check_same(bad, size, gzip, 1 << 17);
        }
    }
    CHECK(taken > 100 && taken < 20000); /* both answers were seen often */
}

static void check_text(const char *data, size_t n, int gzip, size_t limit, const char *wanted)
{
    RtBytes out;
    const char *why = rt_unpack(data, n, limit, gzip, 0, &out);
    CHECK(why && !strcmp(why, wanted));
    CHECK(!out.data && !out.bytes);
    if (why && strcmp(why, wanted))
        fprintf(stderr, "found: %s\nwanted: %s\n", why, wanted);
}

#define CHECK_RAW(bytes, text) check_text(bytes, sizeof bytes - 1, 0, 1000, text)
#define CHECK_GZIP(bytes, text) check_text(bytes, sizeof bytes - 1, 1, 1000, text)
#define HEAD "\x1f\x8b\x08\0\0\0\0\0\0\0"

static void check_texts(void)
{
    RtBytes out;
    CHECK(!rt_inflate("\x03\x00", 2, 0, &out) && !out.bytes); /* the shortest stream */
    rt_bytes_free(&out);
    CHECK_RAW("", "compressed data ends early");
    CHECK_RAW("\x03", "compressed data ends early");
    CHECK_RAW("\x07\x00", "compressed data has a block of unknown kind");
    CHECK_RAW("\x01\x01\x00\x01\x00x", "compressed data has a block of contradictory size");
    CHECK_RAW("\x01\x02\x00\xfd\xffx", "compressed data ends early");
    CHECK_RAW("\x03\x00x", "something follows the compressed data");
    CHECK_RAW("\x03\x02", "compressed data reaches back before its start");
    CHECK_RAW("\x03\x7e", "compressed data has a distance that means nothing");
    CHECK_RAW("\x1b\x03", "compressed data has a length that means nothing");
    CHECK_RAW("\xfd\x00\x00", "compressed data has an impossible code");
    check_text("\x01\x02\x00\xfd\xffxy", 7, 0, 1, "more data than expected comes out of it");
    CHECK_GZIP("", "gzip data ends early");
    CHECK_GZIP("1,2\n", "not gzip data");
    CHECK_GZIP("\x1f\x8b\x08", "gzip data ends early");
    CHECK_GZIP("\x1f\x8b\x07\0\0\0\0\0\0\0", "gzip data of an unknown kind");
    CHECK_GZIP("\x1f\x8b\x08\x20\0\0\0\0\0\0", "gzip data of an unknown kind");
    CHECK_GZIP("\x1f\x8b\x08\x02\0\0\0\0\0\0\x01\x02", "gzip data has a damaged header");
    CHECK_GZIP("\x1f\x8b\x08\x08\0\0\0\0\0\0name", "gzip data ends early");
    CHECK_GZIP("\x1f\x8b\x08\x04\0\0\0\0\0\0\x05\x00"
               "1234",
               "gzip data ends early");
    CHECK_GZIP(HEAD "\x03\x00\0\0\0\0\0\0\0", "gzip data ends early");
    CHECK_GZIP(HEAD "\x03\x00\1\0\0\0\0\0\0\0", "gzip data has a wrong checksum");
    CHECK_GZIP(HEAD "\x03\x00\0\0\0\0\1\0\0\0", "gzip data has a wrong size at its end");
    CHECK_GZIP(HEAD "\x03\x00\0\0\0\0\0\0\0\0tail", "not gzip data");
}

/* Members add up; a distance does not reach into the member before; a prefix stops where asked. */
static void check_members(void)
{
    static uint8_t text[9000], packed[20000];
    RtBytes out;
    fill(text, sizeof text, 2);
    size_t n = pack(text, 4000, 6, 0, 31, 0, packed, sizeof packed);
    n += pack(text + 4000, 0, 6, 0, 31, 0, packed + n, sizeof packed - n);
    n += pack(text + 4000, 5000, 1, 0, 31, 1, packed + n, sizeof packed - n);
    CHECK(!rt_gunzip(packed, n, sizeof text, &out));
    CHECK(out.bytes == sizeof text && !memcmp(out.data, text, sizeof text));
    rt_bytes_free(&out);
    for (size_t want = 0; want < 5000; want += 37) {
        CHECK(!rt_gunzip_prefix(packed, n, want, &out));
        CHECK(out.bytes == want && !memcmp(out.data, text, want));
        rt_bytes_free(&out);
    }
    CHECK(!rt_gunzip_prefix(packed, n, 100000, &out) && out.bytes == sizeof text);
    rt_bytes_free(&out);

    uint8_t two[64]; /* "a" and then a match that only the first member could feed */
    n = pack((const uint8_t *)"a", 1, 9, 0, 31, 0, two, sizeof two);
    memcpy(two + n, HEAD "\x03\x02\x00", 13);
    CHECK(!check_same(two, n + 13, 1, 100));
}

/* A thousand to one: a small file that would become large is stopped at the limit. */
static void check_bomb(void)
{
    size_t n = (size_t)4 << 20;
    uint8_t *zeros = (uint8_t *)calloc(1, n), packed[8192];
    RtBytes out;
    size_t bytes = pack(zeros, n, 9, 0, 31, 0, packed, sizeof packed);
    const char *why = rt_gunzip(packed, bytes, 1 << 20, &out);
    CHECK(why && !strcmp(why, "more data than expected comes out of it"));
    CHECK(!rt_gunzip(packed, bytes, n, &out) && out.bytes == n && !memcmp(out.data, zeros, n));
    rt_bytes_free(&out);
    free(zeros);
}

/* A file that the distribution ships, if it is installed: size and checksum as zlib finds them. */
static void check_file(const char *path, size_t size)
{
    RtBytes file, text;
    if (access(path, R_OK))
        return;
    CHECK_EQ(rt_file_read(path, &file), 0);
    CHECK(!rt_gunzip(file.data, file.bytes, size, &text));
    gzFile z = gzopen(path, "rb");
    uint8_t *wanted = (uint8_t *)malloc(size + 1);
    CHECK_EQ(gzread(z, wanted, (unsigned)size + 1), size);
    CHECK(text.bytes == size && crc32(0, text.data, (uInt)size) == crc32(0, wanted, (uInt)size));
    gzclose(z);
    free(wanted);
    rt_bytes_free(&text);
    rt_bytes_free(&file);
}

int main(void)
{
    check_levels();
    check_mutations();
    check_texts();
    check_members();
    check_bomb();
    check_file("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", 47040016);
    check_file("/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz", 10008);
    return check_done();
}

/* rt_hash.h agrees with libxxhash for every length up to 300 bytes, for a long input, for several
 * seeds, and however the input is cut into pieces. */
#include "rt_hash.h"
#include "check.h"
#include <xxhash.h>

static uint8_t text[100000];

int main(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 2654435761u >> 13);
    const uint64_t seeds[] = {0, 1, 0x9E3779B185EBCA8Du};
    for (int s = 0; s < 3; s++) {
        for (size_t n = 0; n <= 300; n++)
            CHECK(rt_hash64(text + n % 7, n, seeds[s]) == XXH64(text + n % 7, n, seeds[s]));
        CHECK(rt_hash64(text, sizeof text, seeds[s]) == XXH64(text, sizeof text, seeds[s]));
    }
    for (size_t piece = 1; piece < 100; piece++) {
        RtHash h;
        rt_hash_start(&h, 7);
        for (size_t at = 0; at < 1000; at += piece) {
            CHECK(rt_hash_value(&h) == XXH64(text, at, 7)); /* may be asked for in between */
            rt_hash_add(&h, text + at, piece);
        }
        CHECK(rt_hash_value(&h) == XXH64(text, (1000 + piece - 1) / piece * piece, 7));
    }
    return check_done();
}

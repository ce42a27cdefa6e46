/* The JSON reader takes what RFC 8259 allows, refuses everything else with the byte where it saw
 * it, and never reads outside the text, however damaged. */
#include "rt_json.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

/* Walks any value of objects, arrays, strings and integers; returns the status. */
static int walk(RtJson *j)
{
    char text[64];
    bool more = false;
    int64_t number;
    int status, c = rt_json_peek(j);
    if (c == '"')
        return rt_json_string(j, text, sizeof text);
    if (c != '{' && c != '[')
        return rt_json_int(j, &number);
    status = rt_json_begin(j, (char)c);
    while (!status && !(status = rt_json_more(j, &more)) && more) {
        if (c == '{')
            status = rt_json_name(j, text, sizeof text);
        if (!status)
            status = walk(j);
    }
    return status;
}

/* Reads text from a block of exactly its size, so that a sanitizer sees a read beyond it. */
static int read_whole(const char *text, size_t size)
{
    char *copy = malloc(size ? size : 1);
    RtJson j;
    memcpy(copy, text, size);
    rt_json_open(&j, "t", copy, (int64_t)size);
    int status = walk(&j);
    if (!status)
        status = rt_json_end(&j);
    free(copy);
    return status;
}

static void check_refused(const char *text, const char *message)
{
    CHECK_EQ(read_whole(text, strlen(text)), RT_BAD_DATA);
    if (strcmp(rt_error_text(), message))
        fprintf(stderr, "%s: '%s', wanted '%s'\n", text, rt_error_text(), message);
    CHECK(!strcmp(rt_error_text(), message));
}

static void check_string(const char *json, const char *wanted)
{
    char out[32];
    RtJson j;
    rt_json_open(&j, "t", json, (int64_t)strlen(json));
    CHECK_EQ(rt_json_string(&j, out, sizeof out), RT_OK);
    CHECK(!strcmp(out, wanted));
    CHECK_EQ(rt_json_end(&j), RT_OK);
}

static void check_int(const char *json, int64_t wanted)
{
    int64_t value = 0;
    RtJson j;
    rt_json_open(&j, "t", json, (int64_t)strlen(json));
    CHECK_EQ(rt_json_int(&j, &value), RT_OK);
    CHECK_EQ(value, wanted);
}

static void refusals(void)
{
    check_refused("", "t: JSON byte 0: expected a whole number");
    check_refused("{\"a\":1,}", "t: JSON byte 7: expected a string");
    check_refused("[1,]", "t: JSON byte 3: expected a whole number");
    check_refused("[,1]", "t: JSON byte 1: expected a whole number");
    check_refused("[1 2]", "t: JSON byte 3: expected ',' or ']'");
    check_refused("[1}", "t: JSON byte 2: expected ',' or ']'");
    check_refused("{\"a\" 1}", "t: JSON byte 5: expected ':'");
    check_refused("{1:2}", "t: JSON byte 1: expected a string");
    check_refused("{\"a\":1", "t: JSON byte 6: expected ',' or '}'");
    check_refused("{\"a", "t: JSON byte 3: string without an end");
    check_refused("\"a\nb\"", "t: JSON byte 2: control character in a string");
    check_refused("\"\\x\"", "t: JSON byte 3: unknown escape in a string");
    check_refused("\"\\u12g4\"", "t: JSON byte 5: \\u needs four hexadecimal digits");
    check_refused("\"\\u0000\"", "t: JSON byte 7: NUL character in a string");
    check_refused("\"\\ud800\"", "t: JSON byte 7: half of a surrogate pair");
    check_refused("\"\\ud800\\u0041\"", "t: JSON byte 13: half of a surrogate pair");
    check_refused("\"\\udc00\"", "t: JSON byte 7: half of a surrogate pair");
    check_refused("\"\xc0\x80\"", "t: JSON byte 1: not UTF-8");         /* overlong */
    check_refused("\"\xe0\x80\x80\"", "t: JSON byte 1: not UTF-8");     /* overlong */
    check_refused("\"\xed\xa0\x80\"", "t: JSON byte 1: not UTF-8");     /* surrogate */
    check_refused("\"\xf4\x90\x80\x80\"", "t: JSON byte 1: not UTF-8"); /* beyond U+10FFFF */
    check_refused("\"\xff\"", "t: JSON byte 1: not UTF-8");
    check_refused("\"\xc3\"", "t: JSON byte 1: not UTF-8"); /* cut short */
    check_refused("01", "t: JSON byte 2: number with a leading zero");
    check_refused("-", "t: JSON byte 1: expected a whole number");
    check_refused("+1", "t: JSON byte 0: expected a whole number");
    check_refused("1.0", "t: JSON byte 1: expected a whole number");
    check_refused("1e3", "t: JSON byte 1: expected a whole number");
    check_refused("9223372036854775808", "t: JSON byte 18: number does not fit 64 bits");
    check_refused("-9223372036854775809", "t: JSON byte 19: number does not fit 64 bits");
    check_refused("nan", "t: JSON byte 0: expected a whole number");
    check_refused("1 2", "t: JSON byte 2: text behind the end");
    check_refused("[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "t: JSON byte 16: nested too deeply");
    check_refused("\"0123456789012345678901234567890123456789012345678901234567890123\"",
                  "t: JSON byte 65: string is too long");
}

/* Each byte of a valid text replaced by each value, each prefix, and random edits: the reader
 * stops with ok or bad data. */
static void mutations(void)
{
    static const char valid[] =
        "{\"w\\u00e9\":{\"shape\":[2,-3, 40],\"k\":\"\\ud83d\\ude00\"},\"e\":[]}";
    size_t size = sizeof valid - 1;
    char text[sizeof valid];
    uint32_t random = 1;
    CHECK_EQ(read_whole(valid, size), RT_OK);
    for (size_t cut = 0; cut < size; cut++)
        CHECK_EQ(read_whole(valid, cut), RT_BAD_DATA);
    for (size_t at = 0; at < size; at++)
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, valid, sizeof valid);
            text[at] = (char)byte;
            int status = read_whole(text, size);
            CHECK(status == RT_OK || status == RT_BAD_DATA);
        }
    for (int round = 0; round < 20000; round++) {
        memcpy(text, valid, sizeof valid);
        for (int edit = 0; edit < 4; edit++) {
            random = random * 1664525u + 1013904223u;
            text[(random >> 8) % size] = valid[(random >> 20) % size];
        }
        int status = read_whole(text, size);
        CHECK(status == RT_OK || status == RT_BAD_DATA);
    }
}

int main(void)
{
    check_string("\"\"", "");
    check_string("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t");
    check_string("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
                 "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    check_string(" \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\" \n",
                 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    check_int("0", 0);
    check_int("-0", 0);
    check_int("9223372036854775807", INT64_MAX);
    check_int("-9223372036854775808", INT64_MIN);
    check_int("9007199254740993", 9007199254740993); /* 2^53 + 1: not a double */
    CHECK_EQ(read_whole(" [ ] ", 5), RT_OK);
    CHECK_EQ(read_whole("[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", 32), RT_OK); /* 16 deep */
    refusals();
    mutations();
    return check_done();
}

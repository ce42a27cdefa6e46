/* SPDX-License-Identifier: 0BSD */
/* Reads JSON as strictly as RFC 8259 allows, from memory, without allocating: the caller pulls one
 * value after the other and so says what it expects. A message names the source and the byte.
 * Nesting is bounded; names of an object come in file order, so refusing a repeated one is up to
 * the caller, who knows which names there are.
 *
 *     rt_json_open(&j, "w.safetensors", text, size);          {"shape": [2, 3]}
 *     rt_json_begin(&j, '{');
 *     while (!(status = rt_json_more(&j, &more)) && more)
 *         rt_json_name(&j, name, sizeof name) ... rt_json_int(&j, &value) ...
 *     rt_json_end(&j);
 */
#ifndef AMPC_RT_JSON_H
#define AMPC_RT_JSON_H
#include "rt_base.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { RT_JSON_DEPTH = 16 };

typedef struct RtJson {
    const char *source; /* for messages */
    const char *text;
    int64_t size, at;
    int depth;
    char open[RT_JSON_DEPTH]; /* the bracket of each level */
    bool fresh;               /* directly behind an opening bracket */
} RtJson;

RT_COLD void rt_json_open(RtJson *j, const char *source, const char *text, int64_t size)
{
    memset(j, 0, sizeof *j);
    j->source = source;
    j->text = text;
    j->size = size;
}

RT_COLD int rt_json_refuse(const RtJson *j, const char *why)
{
    return rt_fail(RT_BAD_DATA, "%s: JSON byte %lld: %s", j->source, (long long)j->at, why);
}

/* The next byte that is not white space, or -1 at the end. */
RT_COLD int rt_json_peek(RtJson *j)
{
    while (j->at < j->size && strchr(" \t\r\n", j->text[j->at]) && j->text[j->at])
        j->at++;
    return j->at < j->size ? (unsigned char)j->text[j->at] : -1;
}

/* Enters an object '{' or an array '['. */
RT_COLD int rt_json_begin(RtJson *j, char bracket)
{
    if (rt_json_peek(j) != bracket)
        return rt_json_refuse(j, bracket == '{' ? "expected an object" : "expected an array");
    if (j->depth == RT_JSON_DEPTH)
        return rt_json_refuse(j, "nested too deeply");
    j->open[j->depth++] = bracket;
    j->at++;
    j->fresh = true;
    return RT_OK;
}

/* Is there another item in the innermost object or array? Steps over the comma, or out of it. */
RT_COLD int rt_json_more(RtJson *j, bool *more)
{
    bool object = j->open[j->depth - 1] == '{';
    int c = rt_json_peek(j);
    *more = false;
    if (c == (object ? '}' : ']')) {
        j->at++;
        j->depth--;
        j->fresh = false;
        return RT_OK;
    }
    if (!j->fresh && c != ',')
        return rt_json_refuse(j, object ? "expected ',' or '}'" : "expected ',' or ']'");
    if (!j->fresh)
        j->at++;
    j->fresh = false;
    *more = true;
    return RT_OK;
}

/* Reads the four hexadecimal digits of a \u escape, or gives -1. */
RT_COLD int rt_json_hex4(RtJson *j)
{
    int value = 0;
    for (int k = 0; k < 4; k++, j->at++) {
        int c = j->at < j->size ? j->text[j->at] : 0;
        if (c >= '0' && c <= '9')
            value = value * 16 + c - '0';
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            value = value * 16 + (c | 32) - 'a' + 10;
        else
            return -1;
    }
    return value;
}

/* Reads what follows a backslash; code becomes the character it stands for. */
RT_COLD int rt_json_escape(RtJson *j, uint32_t *code)
{
    static const char spelled[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = j->at < j->size ? j->text[j->at++] : '\0';
    const char *found = c ? strchr(spelled, c) : NULL;
    if (found) {
        *code = (uint32_t)meant[found - spelled];
        return RT_OK;
    }
    if (c != 'u')
        return rt_json_refuse(j, "unknown escape in a string");
    int high = rt_json_hex4(j);
    if (high < 0)
        return rt_json_refuse(j, "\\u needs four hexadecimal digits");
    *code = (uint32_t)high;
    if (high < 0xD800 || high > 0xDFFF)
        return RT_OK;
    if (high > 0xDBFF || j->size - j->at < 6 || j->text[j->at] != '\\' || j->text[j->at + 1] != 'u')
        return rt_json_refuse(j, "half of a surrogate pair");
    j->at += 2;
    int low = rt_json_hex4(j);
    if (low < 0xDC00 || low > 0xDFFF)
        return rt_json_refuse(j, "half of a surrogate pair");
    *code = 0x10000u + (((uint32_t)high - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u);
    return RT_OK;
}

/* Writes a code point as UTF-8; returns its length. */
RT_COLD int rt_json_utf8(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (char)((0xFF00 >> (more + 1) & 0xFF) | (code >> 6 * more));
    for (int k = 1; k <= more; k++)
        out[k] = (char)(0x80 | (code >> 6 * (more - k) & 0x3F));
    return more + 1;
}

/* The length of the well-formed UTF-8 sequence at the cursor (Unicode, table 3-7), or 0. */
RT_COLD int rt_json_sequence(const RtJson *j)
{
    const unsigned char *s = (const unsigned char *)j->text + j->at;
    int length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (!length || s[0] > 0xF4 || j->size - j->at < length)
        return 0;
    for (int k = 1; k < length; k++)
        if ((s[k] & 0xC0) != 0x80)
            return 0;
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xED && s[1] > 0x9F;
    bool beyond = s[0] == 0xF4 && s[1] > 0x8F;
    return overlong || surrogate || beyond ? 0 : length;
}

/* Reads a string into out (size bytes with the final NUL). A NUL character inside is refused: it
 * would make two names look alike. */
RT_COLD int rt_json_string(RtJson *j, char *out, int64_t size)
{
    int64_t length = 0;
    if (rt_json_peek(j) != '"')
        return rt_json_refuse(j, "expected a string");
    j->at++;
    for (;;) {
        char piece[4];
        int bytes;
        if (j->at >= j->size)
            return rt_json_refuse(j, "string without an end");
        unsigned char c = (unsigned char)j->text[j->at];
        if (c == '"')
            break;
        if (c < 0x20)
            return rt_json_refuse(j, "control character in a string");
        if (c == '\\') {
            uint32_t code = 0;
            j->at++;
            int status = rt_json_escape(j, &code);
            if (status)
                return status;
            if (!code)
                return rt_json_refuse(j, "NUL character in a string");
            bytes = rt_json_utf8(piece, code);
        } else {
            bytes = rt_json_sequence(j);
            if (!bytes)
                return rt_json_refuse(j, "not UTF-8");
            memcpy(piece, j->text + j->at, (size_t)bytes);
            j->at += bytes;
        }
        if (length + bytes >= size)
            return rt_json_refuse(j, "string is too long");
        memcpy(out + length, piece, (size_t)bytes);
        length += bytes;
    }
    j->at++;
    out[length] = '\0';
    return RT_OK;
}

/* Reads a member's name and the colon behind it. */
RT_COLD int rt_json_name(RtJson *j, char *out, int64_t size)
{
    int status = rt_json_string(j, out, size);
    if (status)
        return status;
    if (rt_json_peek(j) != ':')
        return rt_json_refuse(j, "expected ':'");
    j->at++;
    return RT_OK;
}

/* Reads a whole number: no fraction, no exponent, within 64 bits (so exact, unlike a double). */
RT_COLD int rt_json_int(RtJson *j, int64_t *value)
{
    bool negative = rt_json_peek(j) == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0), magnitude = 0;
    if (negative)
        j->at++;
    int64_t first = j->at;
    for (; j->at < j->size && j->text[j->at] >= '0' && j->text[j->at] <= '9'; j->at++) {
        uint64_t digit = (uint64_t)(j->text[j->at] - '0');
        if (magnitude > (limit - digit) / 10)
            return rt_json_refuse(j, "number does not fit 64 bits");
        magnitude = magnitude * 10 + digit;
    }
    if (j->at == first)
        return rt_json_refuse(j, "expected a whole number");
    if (j->text[first] == '0' && j->at - first > 1)
        return rt_json_refuse(j, "number with a leading zero");
    if (j->at < j->size && j->text[j->at] && strchr(".eE", j->text[j->at]))
        return rt_json_refuse(j, "expected a whole number");
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return RT_OK;
}

/* Nothing may follow but white space. */
RT_COLD int rt_json_end(RtJson *j)
{
    return rt_json_peek(j) < 0 ? RT_OK : rt_json_refuse(j, "text behind the end");
}
#endif

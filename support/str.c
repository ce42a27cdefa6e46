/* Interned names, and what is asked about the text of a name. */
#include "support/str.h"
#include <ctype.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

void names_init(Names *names, Arena *arena)
{
    *names = (Names){.arena = arena, .size = 256};
    names->slots = new_array(arena, Str, names->size);
    names->number = new_array(arena, int, names->size);
}

static uint64_t fnv1a(const char *text, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

/* The slot that holds the text, or the free one where it belongs. */
static size_t find_slot(const Names *names, const char *text, size_t bytes)
{
    size_t i = fnv1a(text, bytes) & (names->size - 1);
    while (names->slots[i] &&
           (strncmp(names->slots[i], text, bytes) != 0 || names->slots[i][bytes] != '\0'))
        i = (i + 1) & (names->size - 1);
    return i;
}

static void grow(Names *names)
{
    Names larger = {.arena = names->arena, .size = 2 * names->size, .count = names->count};
    larger.slots = new_array(names->arena, Str, larger.size);
    larger.number = new_array(names->arena, int, larger.size);
    for (size_t i = 0; i < names->size; i++)
        if (names->slots[i]) {
            size_t to = find_slot(&larger, names->slots[i], strlen(names->slots[i]));
            larger.slots[to] = names->slots[i];
            larger.number[to] = names->number[i];
        }
    *names = larger;
}

/* The slot of the text, which is there afterwards. */
static size_t add(Names *names, const char *text, size_t bytes)
{
    if (2 * names->count >= names->size)
        grow(names);
    size_t i = find_slot(names, text, bytes);
    if (!names->slots[i]) {
        names->slots[i] = arena_copy(names->arena, text, bytes);
        names->count++;
    }
    return i;
}

Str intern_n(Names *names, const char *text, size_t bytes)
{
    size_t i = add(names, text, bytes); /* may replace the slots */
    return names->slots[i];
}

Str intern(Names *names, const char *text)
{
    return intern_n(names, text, strlen(text));
}

Str intern_printf(Names *names, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Str name = intern(names, arena_vprintf(names->arena, format, args));
    va_end(args);
    return name;
}

int names_hold(const Names *names, const char *text)
{
    return names->slots[find_slot(names, text, strlen(text))] != NULL;
}

Str take_name(Names *taken, Names *names, Str base, const char *between)
{
    size_t count = taken->count, slot = add(taken, base, strlen(base));
    Str name = base;
    int i = taken->number[slot] < 2 ? 2 : taken->number[slot];
    while (taken->count == count) {
        name = intern_printf(names, "%s%s%d", base, between, i++);
        intern(taken, name);
    }
    taken->number[find_slot(taken, base, strlen(base))] = i; /* the table may have grown */
    return name;
}

int utf8_decode(const char *text, size_t bytes, uint32_t *code_point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (bytes == 0)
        return 0;
    int length = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length == 0 || s[0] > 0xf4 || bytes < (size_t)length)
        return 0;
    uint32_t c = length == 1 ? s[0] : s[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < smallest[length] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *code_point = c;
    return length;
}

double read_double(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = strtod_l(text, NULL, plain);
    freelocale(plain);
    return value;
}

float read_float(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    float value = strtof_l(text, NULL, plain);
    freelocale(plain);
    return value;
}

enum { LONGEST = 64, EDIT = 4, CASE = 1 }; /* costs: a change of case is the smallest mistake */

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance in which two swapped neighbours count as one edit. */
static int distance(const char *a, int na, const char *b, int nb)
{
    int rows[3][LONGEST + 1];
    int *before = rows[0], *last = rows[1], *now = rows[2];
    for (int j = 0; j <= nb; j++)
        last[j] = j * EDIT;
    for (int i = 1; i <= na; i++) {
        now[0] = i * EDIT;
        for (int j = 1; j <= nb; j++) {
            int x = (unsigned char)a[i - 1], y = (unsigned char)b[j - 1];
            int change = x == y ? 0 : tolower(x) == tolower(y) ? CASE : EDIT;
            now[j] = min3(last[j] + EDIT, now[j - 1] + EDIT, last[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + EDIT < now[j])
                now[j] = before[j - 2] + EDIT;
        }
        int *oldest = before;
        before = last, last = now, now = oldest;
    }
    return last[nb];
}

const char *nearest_name(const char *wrong, const char *const *list, int count)
{
    int length = (int)strnlen(wrong, LONGEST + 1);
    if (length > LONGEST)
        return NULL;
    int limit = length < 2 ? EDIT - 1 : length < 6 ? EDIT : length / 3 * EDIT;
    const char *best = NULL;
    for (int i = 0; i < count; i++) {
        int other = list[i] ? (int)strnlen(list[i], LONGEST + 1) : LONGEST + 1;
        if (other > LONGEST || abs(other - length) * EDIT > limit)
            continue;
        int d = distance(wrong, length, list[i], other);
        if (d <= limit) {
            best = list[i];
            limit = d - 1; /* the first of equals wins */
        }
    }
    return best;
}

int glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            retry = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++retry;
        } else {
            return 0;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

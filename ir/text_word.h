/* What counts as a bare word of IR text. */
#ifndef AMPC_IR_TEXT_WORD_H
#define AMPC_IR_TEXT_WORD_H
#include <stddef.h>
#include <string.h>

static inline int is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Length of the word at the beginning: letters, digits and dots that stand between them. */
static inline size_t word_length(const char *s)
{
    size_t n = 0;
    if (!is_letter(*s))
        return 0;
    while (is_letter(s[n]) || is_digit(s[n]) ||
           (s[n] == '.' && (is_letter(s[n + 1]) || is_digit(s[n + 1]))))
        n++;
    return n;
}

static inline int is_word(const char *s)
{
    size_t n = word_length(s);
    return n && !s[n];
}

/* Length without a trailing _NUMBER. */
static inline size_t base_length(const char *s)
{
    size_t n = strlen(s), i = n;
    while (i > 0 && is_digit(s[i - 1]))
        i--;
    return i < n && i > 1 && s[i - 1] == '_' ? i - 1 : n;
}
#endif

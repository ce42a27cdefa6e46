/* The runtime is pasted piece by piece: what a program names, what that needs, and nothing else. */
#include "check.h"
#include "codegen/runtime.h"
#include <string.h>

static Arena arena;
static Out includes, text;

static void paste(const char *program)
{
    out_init(&includes, &arena);
    out_init(&text, &arena);
    runtime_paste(&arena, program, &includes, &text);
}

static int has(const char *what)
{
    return strstr(text.text, what) != NULL;
}

static int count(const char *haystack, const char *what)
{
    int n = 0;
    for (const char *c = haystack; (c = strstr(c, what)); c++)
        n++;
    return n;
}

static void names_reach_pieces(void)
{
    paste("uint16_t h = rt_bf16_from_f32(x);");
    CHECK(has("rt_bf16_from_f32(float x)"));
    CHECK(has("rt_bits_from_f32(float x)")); /* which it calls */
    CHECK(has("#define RT_INLINE"));         /* which it is declared with */
    CHECK(!has("rt_f32_from_f16(uint16_t"));
    CHECK(!has("rt_gemm"));
    CHECK(has("---- rt_half.h ----"));
    CHECK(!has("---- rt_rng.h ----"));
}

static void words_in_comments_and_strings_do_not(void)
{
    paste("/* rt_bf16_from_f32 */ // rt_f16_from_f32\nconst char *c = \"rt_gunzip\";");
    CHECK(!has("rt_bf16_from_f32"));
    CHECK(!has("rt_f16_from_f32"));
    CHECK(!has("rt_gunzip"));
}

static void other_targets_are_resolved(void)
{
    paste("rt_philox(0, 0, 0, 0, w); rt_alloc_pages(1); RT_FOR(lo, hi, 4, 1, f(lo, hi));");
    CHECK(!has("__CUDACC"));
    CHECK(!has("__cplusplus"));
    CHECK(!has("#include \"rt_"));
    CHECK(!has("AMPC_RT_"));
    CHECK(!has("SPDX"));
    CHECK(has("#ifdef _OPENMP")); /* this one is the C compiler's to decide */
    CHECK_EQ(count(text.text, "\n#if"), count(text.text, "\n#endif"));
}

static void functions_made_by_macros_are_found(void)
{
    paste("rt_gemm(RT_BF16, RT_FUSED, 1, 1, 1, a, b, f, 0, s);");
    CHECK(has("rt_512_chain,") || has("rt_512_chain("));
    CHECK(has("_Pragma"));
}

static void headers_come_once_and_sorted(void)
{
    paste("rt_csv_read(path, ',', 0, out); rt_signal_install();");
    CHECK_EQ(count(includes.text, "<signal.h>"), 1);
    CHECK_EQ(count(includes.text, "<stdint.h>"), 1);
    CHECK_EQ(count(includes.text, "<dirent.h>"), 0); /* of checkpoints, which nothing names */
    CHECK(strstr(includes.text, "<math.h>") < strstr(includes.text, "<stdint.h>"));
}

static void a_part_comes_after_what_it_includes(void)
{
    paste("rt_dataset_start(d, n, r); rt_dataset_split(d, s, n, a, b, c);");
    CHECK(strstr(text.text, "rt_base.h ----") < strstr(text.text, "rt_source.h ----"));
    CHECK(strstr(text.text, "rt_rng.h ----") < strstr(text.text, "rt_dataset.h ----"));
}

int main(void)
{
    names_reach_pieces();
    words_in_comments_and_strings_do_not();
    other_targets_are_resolved();
    functions_made_by_macros_are_found();
    headers_come_once_and_sorted();
    a_part_comes_after_what_it_includes();
    arena_free(&arena);
    return check_done();
}

/* rt_csv.h: tables in, exact doubles out, in any locale; every fault has its line, column and text;
 * tens of thousands of mutated tables crash nothing. */
#include "rt_csv.h"
#include "check.h"
#include <locale.h>
#include <zlib.h>

static int parse(const char *text, RtSource *out)
{
    return rt_csv_parse(text, strlen(text), "t.csv", ',', 0, out);
}

/* The table has these shape and values. */
static void check_table(const char *text, char separator, int64_t skip, int64_t rows,
                        int64_t columns, const double *wanted)
{
    RtSource s;
    CHECK_EQ(rt_csv_parse(text, strlen(text), "t.csv", separator, skip, &s), 0);
    CHECK_EQ(s.rows, rows);
    CHECK_EQ(s.columns, columns);
    for (int64_t i = 0; i < s.rows * s.columns; i++)
        CHECK(rt_source_value(&s, i / columns, i % columns) == wanted[i]);
    rt_source_free(&s);
}

static void check_tables(void)
{
    const double six[] = {1, -2.5, 3, 4e5, 0.125, 6};
    check_table("1,-2.5,3\n4e5,.125,6.\n", ',', 0, 2, 3, six);
    check_table("1,-2.5,3\n4e5,.125,6.", ',', 0, 2, 3, six);
    check_table("1,-2.5,3\r\n4E+5,+0.125,0600e-2\r\n", ',', 0, 2, 3, six);
    check_table(" 1 ,\t-2.5,3\n400000, 125e-3 ,6", ',', 0, 2, 3, six);
    check_table("1\t-2.5 \t3\n4e5\t.125\t6\n", '\t', 0, 2, 3, six);
    check_table("a,b,c\n1;-2.5;3\n4e5;.125;6\n", ';', 1, 2, 3, six);
    check_table("1\n", ',', 0, 1, 1, six);
}

/* Decimal numbers become the nearest double: strtod in the C locale is the judge, also for ties,
 * subnormal numbers and more digits than any table should have. */
static void check_numbers(void)
{
    static const char *const text[] = {
        "0",
        "-0",
        "0.0000e99",
        "9007199254740993",
        "9007199254740992.9999999999999999",
        "123456789012345678901234567890",
        "0.1",
        "1e22",
        "1e23",
        "8.5e22",
        "123456789012345e22",
        "123456789012345e-22",
        "1e-22",
        "1e-23",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "2.2250738585072011e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "0.000000000000000000000000000000000000000000000000000000000000000000001e69"};
    RtSource s;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        double wanted = strtod(text[i], NULL), found;
        CHECK_EQ(parse(text[i], &s), 0);
        found = rt_source_value(&s, 0, 0);
        CHECK(!memcmp(&found, &wanted, sizeof found));
        rt_source_free(&s);
    }
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) { /* doubles of every size, printed with 1 to 20 digits */
        char number[64];
        double x, wanted, found;
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&x, &state, sizeof x);
        if (!isfinite(x))
            continue;
        snprintf(number, sizeof number, "%.*g", 1 + i % 20,
                 i & 1 ? x : ldexp(x / fabs(x), i % 60) / 7);
        wanted = strtod(number, NULL);
        if (!isfinite(wanted))
            continue;
        CHECK_EQ(parse(number, &s), 0);
        found = rt_source_value(&s, 0, 0);
        CHECK(found == wanted);
        rt_source_free(&s);
    }
}

static void check_text(const char *text, size_t bytes, const char *wanted)
{
    RtSource s;
    CHECK_EQ(rt_csv_parse(text, bytes, "t.csv", ',', 0, &s), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!s.data && !s.rows);
    if (strcmp(rt_error_text(), wanted))
        fprintf(stderr, "found:  %s\nwanted: %s\n", rt_error_text(), wanted);
}

#define CHECK_TEXT(text, wanted) check_text(text, sizeof text - 1, wanted)

static void check_faults(void)
{
    CHECK_TEXT("", "t.csv: no rows");
    CHECK_TEXT("\n", "t.csv: line 1, column 1: empty field");
    CHECK_TEXT("1,2\n\n3,4\n", "t.csv: line 2, column 1: empty field");
    CHECK_TEXT("1,2\n3,4\n\n", "t.csv: line 3, column 1: empty field");
    CHECK_TEXT("1,2\n3,\n", "t.csv: line 2, column 2: empty field");
    CHECK_TEXT("1,  ,2\n", "t.csv: line 1, column 2: empty field");
    CHECK_TEXT("1,2\n3\n", "t.csv: line 2 has 1 columns, line 1 has 2");
    CHECK_TEXT("1,2\n3,4,5\n", "t.csv: line 2 has 3 columns, line 1 has 2");
    CHECK_TEXT("x,y\n1,2\n", "t.csv: line 1, column 1: \"x\" is not a number");
    CHECK_TEXT("1,nan\n", "t.csv: line 1, column 2: \"nan\" is not a number");
    CHECK_TEXT("1,-inf\n", "t.csv: line 1, column 2: \"-inf\" is not a number");
    CHECK_TEXT("1,1e309\n", "t.csv: line 1, column 2: \"1e309\" is too large for a number");
    CHECK_TEXT("1,1e99999999999999999999\n",
               "t.csv: line 1, column 2: \"1e99999999999999999999\" is too large for a number");
    CHECK_TEXT("0x10", "t.csv: line 1, column 1: \"0x10\" is not a number");
    CHECK_TEXT("\"1\"", "t.csv: line 1, column 1: \"\"1\"\" is not a number");
    CHECK_TEXT("1.5.2", "t.csv: line 1, column 1: \"1.5.2\" is not a number");
    CHECK_TEXT("1 2", "t.csv: line 1, column 1: \"1 2\" is not a number");
    CHECK_TEXT(".", "t.csv: line 1, column 1: \".\" is not a number");
    CHECK_TEXT("-", "t.csv: line 1, column 1: \"-\" is not a number");
    CHECK_TEXT("--1", "t.csv: line 1, column 1: \"--1\" is not a number");
    CHECK_TEXT("1e", "t.csv: line 1, column 1: \"1e\" is not a number");
    CHECK_TEXT("1e+", "t.csv: line 1, column 1: \"1e+\" is not a number");
    CHECK_TEXT("e5", "t.csv: line 1, column 1: \"e5\" is not a number");
    CHECK_TEXT("1\r2\n", "t.csv: line 1, column 1: \"1?2\" is not a number");
    CHECK_TEXT("1\0,2\n", "t.csv: line 1, column 1: \"1?\" is not a number");
    CHECK_TEXT("\xef\xbb\xbf"
               "1\n",
               "t.csv: line 1, column 1: \"???1\" is not a number");
    CHECK_TEXT("abcdefghijklmnopqrstuvwxyz",
               "t.csv: line 1, column 1: \"abcdefghijklmnopqrstuvwx...\" is not a number");
    char text[400];
    memset(text, '1', sizeof text);
    check_text(text, 256,
               "t.csv: line 1, column 1: \"111111111111111111111111...\" is too long for a number");
    RtSource s;
    CHECK_EQ(rt_csv_parse(text, 255, "t.csv", ',', 0, &s), 0);
    rt_source_free(&s);
    CHECK_EQ(rt_csv_parse("a,b\n", 4, "t.csv", ',', 1, &s), RT_BAD_DATA); /* a heading alone */
    CHECK(!strcmp(rt_error_text(), "t.csv: no rows"));
}

/* A host program may have set a locale with a decimal comma. */
static void check_locale(void)
{
    RtSource s;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        return;
    CHECK_EQ(parse("0.12345678901234567890", &s), 0);
    CHECK(rt_source_value(&s, 0, 0) == 0.12345678901234567890);
    rt_source_free(&s);
    setlocale(LC_NUMERIC, "C");
}

/* Mutated tables are read or refused; whatever is read is finite. */
static void check_mutations(void)
{
    static const char good[] = "1,2.5,-3e2\r\n4,5,6\n.5,7.,1e-9\n12345678901234567890,0,1\n";
    static const char pieces[] = ",,\n\n\r0123456789.eE+-x \t\"";
    uint32_t state = 1;
    int taken = 0;
    for (int i = 0; i < 50000; i++) {
        char text[sizeof good];
        RtSource s;
        memcpy(text, good, sizeof good);
        state = state * 1664525u + 1013904223u;
        for (uint32_t n = 1 + (state >> 30); n; n--) {
            state = state * 1664525u + 1013904223u;
            text[(state >> 8) % (sizeof good - 1)] = pieces[(state >> 20) % (sizeof pieces - 1)];
        }
        size_t bytes = state & 1 ? sizeof good - 1 : (state >> 12) % sizeof good;
        char *exact = (char *)malloc(bytes + 1); /* so that a sanitizer sees any step outside */
        memcpy(exact + 1, text, bytes);
        int status = rt_csv_parse(exact + 1, bytes, "t.csv", ',', state >> 9 & 1, &s);
        CHECK(status == RT_OK || status == RT_BAD_DATA);
        for (int64_t k = 0; !status && k < s.rows * s.columns; k++)
            CHECK(isfinite(rt_source_value(&s, k / s.columns, k % s.columns)));
        taken += !status;
        free(exact);
        rt_source_free(&s);
    }
    CHECK(taken > 1000 && taken < 40000);
}

/* Plain and packed files are told apart by content, not by name. */
static void check_files(void)
{
    char plain[] = "/tmp/ampc-csv-XXXXXX", packed[] = "/tmp/ampc-csv-XXXXXX";
    RtSource s;
    close(mkstemp(plain));
    close(mkstemp(packed));
    CHECK_EQ(rt_file_write(plain, "1,2\n", 4), 0);
    CHECK_EQ(rt_csv_read(plain, ',', 0, &s), 0);
    CHECK(s.rows == 1 && s.columns == 2);
    rt_source_free(&s);
    gzFile z = gzopen(packed, "wb");
    CHECK_EQ(gzwrite(z, "1,2\n3,4\n", 8), 8);
    gzclose(z);
    CHECK_EQ(rt_csv_read(packed, ',', 0, &s), 0);
    CHECK(s.rows == 2 && rt_source_value(&s, 1, 0) == 3);
    CHECK_EQ(rt_source_has_columns(&s, "t.csv", 2), 0);
    CHECK_EQ(rt_source_has_columns(&s, "t.csv", 65), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), "t.csv: rows have 2 columns, the program reads 65"));
    rt_source_free(&s);
    CHECK_EQ(truncate(packed, 15), 0);
    char wanted[200];
    snprintf(wanted, sizeof wanted, "%s: compressed data ends early", packed);
    CHECK_EQ(rt_csv_read(packed, ',', 0, &s), RT_BAD_DATA);
    CHECK(!strcmp(rt_error_text(), wanted));
    unlink(plain);
    unlink(packed);
    snprintf(wanted, sizeof wanted, "cannot open %s: No such file or directory", plain);
    CHECK_EQ(rt_csv_read(plain, ',', 0, &s), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), wanted));
}

/* scikit-learn's digits, where installed: 1 797 rows of 64 grey values 0 to 16 and a label. */
static void check_digits(void)
{
    const char *path = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
    RtSource s;
    double pixels = 0, labels = 0;
    if (access(path, R_OK))
        return;
    CHECK_EQ(rt_csv_read(path, ',', 0, &s), 0);
    CHECK_EQ(s.rows, 1797);
    CHECK_EQ(s.columns, 65);
    for (int64_t row = 0; row < s.rows; row++) {
        for (int64_t i = 0; i < 64; i++)
            pixels += rt_source_value(&s, row, i);
        labels += rt_source_value(&s, row, 64);
    }
    CHECK_EQ(pixels, 561718); /* the sums that zcat and awk find */
    CHECK_EQ(labels, 8070);
    rt_source_free(&s);
}

int main(void)
{
    check_tables();
    check_numbers();
    check_faults();
    check_locale();
    check_mutations();
    check_files();
    check_digits();
    return check_done();
}

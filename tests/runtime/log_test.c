/* The log's text, exactly: both formats, absent cells, numbers that are not finite; going on with
 * an old log; a full disk is reported. */
#include "rt_log.h"

#include "check.h"

static const char *const path = "log_test.tmp";
static const char *const name[] = {"step", "entry", "scaler", "loss"};

static void check_file(const char *wanted)
{
    char text[1024] = "";
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    if (strcmp(text, wanted))
        fprintf(stderr, "found:\n%swanted:\n%s", text, wanted);
    CHECK(!strcmp(text, wanted));
}

static void put_file(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
    fclose(file);
}

static void write_row(RtLog *log, int64_t step, const char *entry, double scale, double loss)
{
    rt_log_int(log, 0, step);
    rt_log_text(log, 1, entry);
    if (scale > 0)
        rt_log_real(log, 2, scale);
    rt_log_real(log, 3, loss);
    CHECK_EQ(rt_log_row(log), RT_OK);
}

static void write_log(RtLogFormat format)
{
    RtLog log;
    CHECK_EQ(rt_log_open(&log, path, format, name, 4, false), RT_OK);
    write_row(&log, 1, "fit", 65536, 0.1f);
    write_row(&log, 9007199254740993, "t\"e\\s\tt", 0, -INFINITY);
    write_row(&log, 3, "fit", INFINITY, -NAN);
    CHECK_EQ(rt_log_row(&log), RT_OK); /* all cells absent: rows leave nothing behind */
    CHECK_EQ(rt_log_close(&log), RT_OK);
}

static void append(void)
{
    RtLog log;
    put_file("step\tentry\tscaler\tloss\n7\tfit\t\t1\n8\tfi"); /* killed in the middle of a row */
    CHECK_EQ(rt_log_open(&log, path, RT_LOG_TSV, name, 4, true), RT_OK);
    write_row(&log, 8, "fit", 0, 2);
    CHECK_EQ(rt_log_close(&log), RT_OK);
    check_file("step\tentry\tscaler\tloss\n7\tfit\t\t1\n8\tfi\n8\tfit\t\t2\n");
    static const char *const other[] = {"step\tentry\tloss\n", "step\tentry\tscaler\tloss\tx\n",
                                        "step\tentry\tscaler\n", "step\tentry\tscaler\tloss"};
    for (int k = 0; k < 4; k++) {
        put_file(other[k]);
        CHECK_EQ(rt_log_open(&log, path, RT_LOG_TSV, name, 4, true), RT_USAGE);
        CHECK(!strcmp(rt_error_text(), "log_test.tmp has other columns than this program logs"));
        check_file(other[k]);
    }
    put_file("");
    CHECK_EQ(rt_log_open(&log, path, RT_LOG_TSV, name, 4, true), RT_OK);
    CHECK_EQ(rt_log_close(&log), RT_OK);
    check_file("step\tentry\tscaler\tloss\n");
    put_file("{\"step\":1}\n");
    CHECK_EQ(rt_log_open(&log, path, RT_LOG_JSONL, name, 4, true), RT_OK);
    write_row(&log, 2, "fit", 0, 0.5);
    CHECK_EQ(rt_log_close(&log), RT_OK);
    check_file("{\"step\":1}\n{\"step\":2,\"entry\":\"fit\",\"loss\":0.5}\n");
    remove(path);
    CHECK_EQ(rt_log_open(&log, path, RT_LOG_TSV, name, 4, true), RT_OK);
    CHECK_EQ(rt_log_close(&log), RT_OK);
    check_file("step\tentry\tscaler\tloss\n");
}

static void failures(void)
{
    RtLog log;
    CHECK_EQ(rt_log_open(&log, "/dev/full", RT_LOG_TSV, name, 4, false), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), "cannot write /dev/full: No space left on device"));
    CHECK(log.file == NULL);
    CHECK_EQ(rt_log_open(&log, "/dev/full", RT_LOG_JSONL, name, 4, false), RT_OK);
    rt_log_int(&log, 0, 1);
    CHECK_EQ(rt_log_row(&log), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), "cannot write /dev/full: No space left on device"));
    rt_log_close(&log);
    CHECK_EQ(rt_log_open(&log, "/dev/full", RT_LOG_JSONL, name, 4, false), RT_OK);
    log.buffered = true;
    rt_log_int(&log, 0, 1);
    CHECK_EQ(rt_log_row(&log), RT_OK);
    CHECK_EQ(rt_log_close(&log), RT_SYSTEM); /* at the latest */
    CHECK_EQ(rt_log_open(&log, "no/such/log", RT_LOG_TSV, name, 4, false), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), "cannot open no/such/log: No such file or directory"));
    memset(&log, 0, sizeof log); /* no log was asked for */
    rt_log_int(&log, 0, 1);
    rt_log_real(&log, 1, 1);
    rt_log_text(&log, 2, "x");
    CHECK_EQ(rt_log_row(&log), RT_OK);
    CHECK_EQ(rt_log_close(&log), RT_OK);
}

int main(void)
{
    write_log(RT_LOG_TSV);
    check_file("step\tentry\tscaler\tloss\n"
               "1\tfit\t65536\t0.100000001\n"
               "9007199254740993\tt\"e\\s t\t\t-inf\n"
               "3\tfit\tinf\tnan\n"
               "\t\t\t\n");
    write_log(RT_LOG_JSONL);
    check_file("{\"step\":1,\"entry\":\"fit\",\"scaler\":65536,\"loss\":0.100000001}\n"
               "{\"step\":9007199254740993,\"entry\":\"t\\\"e\\\\s\\u0009t\",\"loss\":\"-inf\"}\n"
               "{\"step\":3,\"entry\":\"fit\",\"scaler\":\"inf\",\"loss\":\"nan\"}\n"
               "{}\n");
    append();
    failures();
    remove(path);
    return check_done();
}

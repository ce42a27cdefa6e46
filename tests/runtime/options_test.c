/* The command line: every kind of value and its limits, each error with its text, the configuration
 * file and its printing, and the help exactly as it looks. */
#include "rt_options.h"

#include "check.h"

static const char *const path = "options_test.tmp";

static int64_t epochs, batch;
static double lr;
static int shuffle, eval, help;
static const char *data, *format, *resume, *config;

static RtOption option[] = {
    {"options of digits.amp", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL, 0},
    {"lr", RT_OPTION_REAL, &lr, "0 .. 1", NULL, "0.002", "peak learning rate", 0},
    {"batch_rows", RT_OPTION_INT, &batch, "8|16|32", NULL, "16", "rows of a batch", 0},
    {"data", RT_OPTION_STRING, &data, NULL, "FILE", NULL,
     "file of the digits, which may be compressed and is read strictly, so that a damaged one is "
     "refused",
     0},
    {"shuffle", RT_OPTION_BOOL, &shuffle, NULL, NULL, "true", "visit the rows in another order", 0},
    {"training", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL, 0},
    {"epochs", RT_OPTION_INT, &epochs, "1..", "N", "60", "passes over the data", 0},
    {"log-format", RT_OPTION_STRING, &format, "tsv|jsonl", NULL, "tsv", "form of the log", 0},
    {"resume", RT_OPTION_MAYBE, &resume, NULL, "FILE", NULL, "go on from a checkpoint", 0},
    {"eval", RT_OPTION_FLAG, &eval, NULL, NULL, NULL, "only evaluate", 0},
    {"config", RT_OPTION_STRING, &config, NULL, "FILE", NULL, "read options from a file", 0},
    {"help", RT_OPTION_ACTION, &help, NULL, NULL, NULL, "print this", 0}};
enum { OPTIONS = sizeof option / sizeof *option };

static RtOptions options;

static void reset(void)
{
    rt_options_free(&options);
    epochs = 60;
    batch = 16;
    lr = 0.002;
    shuffle = 1;
    eval = help = 0;
    data = format = resume = config = NULL;
    for (int k = 0; k < OPTIONS; k++)
        option[k].given = 0;
    options.option = option;
    options.count = OPTIONS;
    options.program = "digits";
    options.about = "Trains digits.amp at O2.";
}

/* Parses a command line whose words are separated by one space. */
static int parse(const char *line)
{
    static char words[512];
    char *argv[32] = {NULL};
    int argc = 0;
    reset();
    snprintf(words, sizeof words, "digits %s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return rt_options_parse(&options, argc, argv);
}

static void check_refused(const char *line, const char *message)
{
    CHECK_EQ(parse(line), RT_USAGE);
    if (strcmp(rt_error_text(), message))
        fprintf(stderr, "%s: found '%s', wanted '%s'\n", line, rt_error_text(), message);
    CHECK(!strcmp(rt_error_text(), message));
}

static void put_config(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
    fclose(file);
}

static void accepted(void)
{
    CHECK_EQ(parse(""), RT_OK);
    CHECK(epochs == 60 && lr == 0.002 && !option[1].given);
    CHECK_EQ(parse("--lr 1e-3 --epochs=7 --batch-rows 32 --eval --shuffle false"), RT_OK);
    CHECK(lr == 1e-3 && epochs == 7 && batch == 32 && eval == 1 && shuffle == 0);
    CHECK(option[1].given && option[6].given && !option[7].given);
    CHECK_EQ(parse("--batch_rows=8 --log_format jsonl --data x=y --data a b"), RT_USAGE);
    CHECK_EQ(parse("--batch_rows=8 --log_format jsonl --data x=y --data=--z"), RT_OK);
    CHECK(batch == 8 && !strcmp(format, "jsonl") && !strcmp(data, "--z"));
    CHECK_EQ(parse("--resume --epochs 9"), RT_OK);
    CHECK(resume && !strcmp(resume, "") && epochs == 9);
    CHECK_EQ(parse("--resume=a.ckpt"), RT_OK);
    CHECK(!strcmp(resume, "a.ckpt"));
    CHECK_EQ(parse("-h"), RT_OK);
    CHECK_EQ(help, 1);
    CHECK_EQ(parse("--epochs 9223372036854775807 --lr 1"), RT_OK);
    CHECK(epochs == INT64_MAX && lr == 1);
    CHECK_EQ(parse("--lr .5"), RT_OK);
    CHECK(lr == 0.5);
    CHECK_EQ(parse("--lr -0"), RT_OK);
    CHECK_EQ(parse("--data"), RT_USAGE);
}

static void refused(void)
{
    check_refused("--epoch 3", "unknown option '--epoch'; did you mean '--epochs'?");
    check_refused("--epcohs=3", "unknown option '--epcohs'; did you mean '--epochs'?");
    check_refused("--log jsonl", "unknown option '--log'; did you mean '--log-format'?");
    check_refused("--log-f jsonl", "unknown option '--log-f'; did you mean '--log-format'?");
    check_refused("--zzzzzz", "unknown option '--zzzzzz'; --help lists all");
    check_refused("--training", "unknown option '--training'; --help lists all");
    check_refused("digits.csv", "unexpected argument 'digits.csv'; options begin with two dashes");
    check_refused("-lr 1", "unexpected argument '-lr'; options begin with two dashes");
    check_refused("--", "unexpected argument '--'; options begin with two dashes");
    check_refused("--epochs", "option '--epochs' needs a value");
    check_refused("--data --eval", "option '--data' needs a value");
    check_refused("--eval=1", "option '--eval' takes no value");
    check_refused("--help=1", "option '--help' takes no value");
    check_refused("--epochs ten", "option '--epochs': 'ten' is not a whole number");
    check_refused("--epochs 7x", "option '--epochs': '7x' is not a whole number");
    check_refused("--epochs 7.0", "option '--epochs': '7.0' is not a whole number");
    check_refused("--epochs=", "option '--epochs': '' is not a whole number");
    check_refused("--epochs +7", "option '--epochs': '+7' is not a whole number");
    check_refused("--epochs 0x7", "option '--epochs': '0x7' is not a whole number");
    check_refused("--epochs 9223372036854775808",
                  "option '--epochs': '9223372036854775808' is not a whole number");
    check_refused("--epochs 0", "option '--epochs': '0' is not in 1..");
    check_refused("--epochs -5", "option '--epochs': '-5' is not in 1..");
    check_refused("--batch-rows 9", "option '--batch_rows': '9' is not in 8|16|32");
    check_refused("--lr 1.5", "option '--lr': '1.5' is not in 0 .. 1");
    check_refused("--lr -1e-300", "option '--lr': '-1e-300' is not in 0 .. 1");
    static const char *const numbers[] = {"nan", "inf", "-inf", "0x1p-3", "1e", "1e+", ".",
                                          "-",   "1,5", "1.5f", "--1",    "e5", "1_0"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        char line[64], message[128];
        snprintf(line, sizeof line, "--lr=%s", numbers[k]);
        snprintf(message, sizeof message, "option '--lr': '%s' is not a finite number", numbers[k]);
        check_refused(line, message);
    }
    check_refused("--lr 1e400", "option '--lr': '1e400' is too large or too small");
    check_refused("--lr 1e-400", "option '--lr': '1e-400' is too large or too small");
    check_refused("--lr 9007199254740993",
                  "option '--lr': '9007199254740993' is beyond 2^53, where "
                  "real numbers skip integers");
    check_refused("--lr 9007199254740992", "option '--lr': '9007199254740992' is not in 0 .. 1");
    check_refused("--shuffle yes", "option '--shuffle': 'yes' is neither true nor false");
    check_refused("--log-format xml", "option '--log-format': 'xml' is not in tsv|jsonl");
    check_refused("--log-format tsv|jsonl",
                  "option '--log-format': 'tsv|jsonl' is not in tsv|jsonl");
    CHECK_EQ(parse("--config no/such/file"), RT_SYSTEM);
}

static void check_config_refused(const char *text, const char *message)
{
    put_config(text);
    check_refused("--config options_test.tmp", message);
}

static void config_file(void)
{
    put_config("# tried on Monday\r\n\n  lr = 0.25\r\nlog_format=jsonl\n"
               "data = \" a = b \"\n eval = true\nresume = \"\"\nepochs = 3");
    CHECK_EQ(parse("--epochs 5 --config=options_test.tmp"), RT_OK);
    CHECK(lr == 0.25 && !strcmp(format, "jsonl") && !strcmp(data, " a = b ") && eval == 1);
    CHECK(epochs == 5 && !strcmp(resume, "") && batch == 16);

    /* What is printed sets the same when it is read. */
    char *printed = NULL;
    size_t bytes;
    lr = 0.1 + 0.2;
    FILE *out = open_memstream(&printed, &bytes);
    rt_options_print(&options, out);
    fclose(out);
    CHECK(!strcmp(printed, "# options of digits.amp\nlr = 0.30000000000000004\nbatch_rows = 16\n"
                           "data = \" a = b \"\nshuffle = true\n\n# training\nepochs = 5\n"
                           "log-format = \"jsonl\"\nresume = \"\"\neval = true\n"));
    put_config(printed);
    free(printed);
    CHECK_EQ(parse("--config options_test.tmp"), RT_OK);
    CHECK(lr == 0.1 + 0.2 && epochs == 5 && !strcmp(data, " a = b ") && shuffle && eval);

    check_config_refused("lr = 2\n", "options_test.tmp:1: option '--lr': '2' is not in 0 .. 1");
    check_config_refused("\nepoch = 2\n",
                         "options_test.tmp:2: unknown option '--epoch'; did you mean "
                         "'--epochs'?");
    check_config_refused("epochs 2", "options_test.tmp:1: expected 'name = value'");
    check_config_refused("lr=1\nlr=1", "options_test.tmp:2: option '--lr' comes twice");
    check_config_refused("help = true",
                         "options_test.tmp:1: option '--help' belongs on the command line");
    check_config_refused("config = x",
                         "options_test.tmp:1: option '--config' belongs on the command line");
    check_config_refused("eval = 1", "options_test.tmp:1: option '--eval': '1' is neither true nor "
                                     "false");
    FILE *file = fopen(path, "w");
    fwrite("lr\0=1", 1, 5, file);
    fclose(file);
    check_refused("--config options_test.tmp", "options_test.tmp: not a text file");
}

static void help_text(void)
{
    static const char wanted[] =
        "usage: digits [options]\n"
        "\n"
        "Trains digits.amp at O2.\n"
        "\n"
        "options of digits.amp\n"
        "  --lr X                      peak learning rate (0 .. 1, default 0.002)\n"
        "  --batch_rows 8|16|32        rows of a batch (default 16)\n"
        "  --data FILE                 file of the digits, which may be compressed and\n"
        "                              is read strictly, so that a damaged one is\n"
        "                              refused\n"
        "  --shuffle true|false        visit the rows in another order (default true)\n"
        "\n"
        "training\n"
        "  --epochs N                  passes over the data (1.., default 60)\n"
        "  --log-format tsv|jsonl      form of the log (default tsv)\n"
        "  --resume[=FILE]             go on from a checkpoint\n"
        "  --eval                      only evaluate\n"
        "  --config FILE               read options from a file\n"
        "  --help                      print this\n";
    char *printed = NULL;
    size_t bytes;
    reset();
    FILE *out = open_memstream(&printed, &bytes);
    rt_options_help(&options, out);
    fclose(out);
    if (strcmp(printed, wanted))
        fprintf(stderr, "%s", printed);
    CHECK(!strcmp(printed, wanted));
    free(printed);
}

int main(void)
{
    accepted();
    refused();
    config_file();
    help_text();
    remove(path);
    rt_options_free(&options);
    return check_done();
}

/* Build tool: writes runtime parts as C arrays of lines, so that the compiler carries them with it.
 * Lines, not one string: C promises only 4095 characters a literal.
 *
 *     embed runtime_text.c runtime/rt_base.h runtime/rt_half.h
 */
#include <stdio.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Writes one line as a string literal; trigraphs cannot form, because every '?' is escaped. */
static void write_line(FILE *out, const char *line)
{
    fputs("    \"", out);
    for (const char *c = line; *c && *c != '\n'; c++) {
        if (*c == '"' || *c == '\\' || *c == '?')
            fputc('\\', out);
        if (*c == '\t')
            fputs("\\t", out);
        else
            fputc(*c, out);
    }
    fputs("\",\n", out);
}

static int write_part(FILE *out, const char *path, int index)
{
    char line[4096];
    FILE *in = fopen(path, "r");
    if (!in) {
        perror(path);
        return 1;
    }
    fprintf(out, "static const char *const part_%d[] = { /* %s */\n", index, base_name(path));
    while (fgets(line, sizeof line, in))
        write_line(out, line);
    fputs("    0};\n\n", out);
    return fclose(in) != 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: embed OUTPUT PART...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) {
        perror(argv[1]);
        return 3;
    }
    fputs("/* Made by codegen/embed.c from runtime/. */\n#include \"codegen/runtime.h\"\n\n", out);
    for (int i = 2; i < argc; i++)
        if (write_part(out, argv[i], i))
            return 3;
    fputs("const RuntimePart runtime_part[] = {\n", out);
    for (int i = 2; i < argc; i++)
        fprintf(out, "    {\"%s\", part_%d},\n", base_name(argv[i]), i);
    fprintf(out, "    {0, 0}};\n");
    return fclose(out) ? 3 : 0;
}

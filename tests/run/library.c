#include "library.h"
#include "codegen/emit.h"
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "passes/levels.h"
#include <ctype.h>
#include <dlfcn.h>
#include <string.h>

static const char *const parts[] = {
    "rt_base.h",     "rt_block.h",  "rt_checkpoint.h", "rt_cpu.h",         "rt_dataset.h",
    "rt_file.h",     "rt_gemm.h",   "rt_half.h",       "rt_hash.h",        "rt_json.h",
    "rt_math.h",     "rt_param.h",  "rt_rng.h",        "rt_safetensors.h", "rt_scaler.h",
    "rt_schedule.h", "rt_source.h", "rt_sum.h",        "rt_train.h",
};

int library_open(Library *l, const char *path, int clones)
{
    char name[220];
    memset(l, 0, sizeof *l);
    snprintf(l->path, sizeof l->path, "%s", path);
    snprintf(name, sizeof name, "%s.c", path);
    l->file = fopen(name, "w");
    if (!l->file)
        return 0;
    fputs("#define _GNU_SOURCE\n", l->file);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        fprintf(l->file, "#include \"%s\"\n", parts[i]);
    if (!clones) /* one of them is enough here: they are compiled from the same text */
        fputs("#undef RT_LEAF\n#define RT_LEAF RT_FN\n", l->file);
    fputs("typedef struct Shim {\n    int (*create)(void **);\n    void (*destroy)(void *);\n"
          "    const char *(*error)(const void *);\n"
          "    int (*infer)(void *, int64_t, void **);\n"
          "    int (*train)(void *, int64_t, void **, float *);\n"
          "    int (*eval)(void *, int64_t, void **, float *);\n"
          "    int (*get)(void *, const char *, float *, int64_t);\n"
          "    int (*set)(void *, const char *, const float *, int64_t);\n} Shim;\n",
          l->file);
    return 1;
}

/* ---- names of file scope ---- */

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_space(const char *c)
{
    return c + strspn(c, " \n\t");
}

/* Past a comment, string or preprocessor line that begins here; c itself if none does. */
static const char *skip_quiet(const char *start, const char *c)
{
    if (c[0] == '/' && c[1] == '*')
        return strstr(c, "*/") + 2;
    if (c[0] == '/' && c[1] == '/')
        return c + strcspn(c, "\n");
    if (*c == '#' && (c == start || c[-1] == '\n')) {
        while (*c && *c != '\n')
            c += c[0] == '\\' && c[1] == '\n' ? 2 : 1;
        return c;
    }
    if (*c == '"') {
        for (c++; *c != '"'; c++)
            c += *c == '\\';
        return c + 1;
    }
    return c;
}

/* Is this identifier, outside of braces and parentheses, one that is declared here? What follows
 * tells. */
static int declares(const char *after)
{
    after = skip_space(after);
    return *after == '(' || *after == '[' || *after == '=' || *after == ';' || *after == '{';
}

static int is_ours(const char *word, size_t n, const char *prefix)
{
    static const char *const foreign[] = {"static", "const",  "struct", "enum",
                                          "int",    "void",   "char",   "float",
                                          "double", "return", "bool",   "__attribute__"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (strlen(foreign[i]) == n && !memcmp(foreign[i], word, n))
            return 0;
    size_t p = strlen(prefix);
    if (n >= p && !memcmp(word, prefix, p) && (n == p || word[p] == '_'))
        return 0;
    return !isdigit((unsigned char)*word) && strncmp(word, "rt_", 3) != 0 &&
           strncmp(word, "RT_", 3) != 0 && strncmp(word, "Rt", 2) != 0;
}

/* Writes a line for each name that the text declares at file scope, enumerators included: `#define
 * NAME PREFIX__NAME`, or its #undef. */
static void write_renames(FILE *file, const char *text, const char *prefix, int undo)
{
    int braces = 0, round = 0, in_enum = 0;
    for (const char *c = text; *c;) {
        const char *next = skip_quiet(text, c);
        if (next != c) {
            c = next;
            continue;
        }
        if (!is_word(*c)) {
            braces += (*c == '{') - (*c == '}');
            round += (*c == '(') - (*c == ')');
            in_enum &= braces > 0 || *c != ';';
            c++;
            continue;
        }
        size_t n = 1;
        while (is_word(c[n]))
            n++;
        if (n == 4 && !memcmp(c, "enum", 4) && !braces)
            in_enum = 1;
        int enumerator = in_enum && braces == 1 && !round && isupper((unsigned char)*c) &&
                         strchr("=,}\n", *skip_space(c + n)) != NULL;
        if (((!braces && !round && declares(c + n)) || enumerator) && is_ours(c, n, prefix)) {
            if (undo)
                fprintf(file, "#undef %.*s\n", (int)n, c);
            else
                fprintf(file, "#define %.*s %s__%.*s\n", (int)n, c, prefix, (int)n, c);
        }
        c += n;
    }
}

/* ---- a library ---- */

/* What follows the includes and the pasted runtime. */
static const char *model_part(const char *text)
{
    const char *state = strstr(text, "\n/* ---- State ---- */");
    return state ? state : text;
}

static void write_arguments(FILE *file, int count)
{
    for (int i = 0; i < count; i++)
        fprintf(file, ", a[%d]", i);
}

static void write_shim(FILE *file, const Program *p, const char *prefix, const char *header)
{
    const char *x = prefix;
    const char *has_norm = strstr(header, "grad_norm["), *has_scale = strstr(header, "scale[");
    for (int i = 0; i < p->entries.n; i++) {
        const Entry *e = p->entries.at[i];
        int infer = e->kind == ENTRY_INFER;
        fprintf(file, "static int %s_shim_%s(void *d, int64_t N, void **a%s)\n{\n", x,
                infer                    ? "infer"
                : e->kind == ENTRY_TRAIN ? "train"
                                         : "eval",
                infer ? "" : ", float *r");
        if (!infer)
            fprintf(file,
                    "    %s_%s_report q;\n    memset(&q, 0, sizeof q);\n    q.struct_size = sizeof "
                    "q;\n",
                    x, e->name);
        fprintf(file, "    int status = %s_%s%s((%s *)d, N", x, e->name, infer ? "" : "_step", x);
        write_arguments(file, e->inputs.n + (infer ? e->results.n : 0));
        fprintf(file, "%s);\n", infer ? "" : ", &q");
        if (e->kind == ENTRY_TRAIN)
            fprintf(file,
                    "    r[0] = q.loss; r[1] = (float)q.skipped; r[2] = %s; r[3] = q.lr[0]; r[4] = "
                    "%s;\n",
                    has_scale ? "q.scale[0]" : "1", has_norm ? "q.grad_norm[0]" : "0");
        for (int k = 0; e->kind == ENTRY_EVAL && k < e->reports.n; k++)
            fprintf(file, "    r[%d] = q.%s;\n", k, e->reports.at[k]);
        fprintf(file, "    return status;\n}\n");
    }
    fprintf(file,
            "static int %s_shim_create(void **out) { return %s_create((%s **)out, NULL); }\n"
            "static void %s_shim_destroy(void *d) { %s_destroy((%s *)d); }\n"
            "static const char *%s_shim_error(const void *d) { return %s_error((const %s *)d); }\n"
            "static int %s_shim_get(void *d, const char *t, float *v, int64_t n) { return "
            "%s_get((%s *)d, t, v, n); }\n"
            "static int %s_shim_set(void *d, const char *t, const float *v, int64_t n) { return "
            "%s_set((%s *)d, t, v, n); }\n",
            x, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
    fprintf(file,
            "const Shim %s_shim = {%s_shim_create, %s_shim_destroy, %s_shim_error, %s_shim_infer, "
            "%s_shim_train, %s_shim_eval, %s_shim_get, %s_shim_set};\n",
            x, x, x, x, x, x, x, x, x);
}

static int compile(Unit *u, const char *text, const char *prefix, Sources *sources, Out *c,
                   Out *header)
{
    ElabOptions options = {0};
    Source *source = source_add(sources, "model.amp", text, strlen(text));
    Ast *ast = parse(source, u->diags, u->names, u->arena);
    if (!u->diags->errors)
        u->program = elaborate(ast, &options, u->diags, u->names, u->arena);
    if (!u->diags->errors)
        resolve_properties(u);
    if (!u->diags->errors)
        passes_run(u, NULL, NULL);
    if (!u->diags->errors)
        emit_lib(u, prefix, c, header);
    return !u->diags->errors;
}

int library_add(Library *l, const char *prefix, const char *text, const Settings *settings,
                char *message, size_t room)
{
    Arena arena = {0}, scratch = {0};
    Names names;
    Sources sources;
    Diags diags;
    Out c, header, said;
    names_init(&names, &arena);
    sources_init(&sources, &arena);
    diags_init(&diags, &arena, &sources);
    out_init(&c, &arena);
    out_init(&header, &arena);
    out_init(&said, &arena);
    Unit u = {.arena = &arena,
              .scratch = &scratch,
              .names = &names,
              .diags = &diags,
              .settings = settings};
    int done = compile(&u, text, prefix, &sources, &c, &header);
    if (done) {
        const char *model = model_part(c.text);
        fprintf(l->file, "\n/* ==== %s ==== */\n%s", prefix, header.text);
        write_renames(l->file, model, prefix, 0);
        fputs(model, l->file);
        write_renames(l->file, model, prefix, 1);
        write_shim(l->file, u.program, prefix, header.text);
    } else {
        diags_print(&diags, &said, 0);
        snprintf(message, room, "%s", said.text);
    }
    arena_free(&scratch);
    arena_free(&arena);
    return done;
}

void library_command(const Library *l, const char *compiler, const char *runtime, char *command,
                     size_t room)
{
    snprintf(command, room, "%s -std=c11 -shared -fPIC -I%s %s.c -lm -o %s.so", compiler, runtime,
             l->path, l->path);
}

int library_load(Library *l)
{
    char name[220];
    snprintf(name, sizeof name, "%s.so", l->path);
    l->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!l->handle)
        fprintf(stderr, "%s\n", dlerror());
    return l->handle != NULL;
}

const Shim *library_shim(const Library *l, const char *prefix)
{
    char name[80];
    snprintf(name, sizeof name, "%s_shim", prefix);
    return dlsym(l->handle, name);
}

void library_close(Library *l)
{
    if (l->handle)
        dlclose(l->handle);
    l->handle = NULL;
}

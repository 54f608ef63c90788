/* describe FOLDER CONFIG.MD: writes the manual pages and completions into the folder. It is part of
 * the build and is not installed. */
#include "describe.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum describe_value describe_value_of(const char *arg, const char **ret_words)
{
    static const struct {
        const char *arg, *words;
    } known[] = {{"LEVEL", "error warn info debug"}, {"FILE", NULL}, {"new|show FILE", NULL}};
    *ret_words = NULL;
    for (size_t i = 0; arg && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(arg, known[i].arg) != 0)
            continue;
        *ret_words = known[i].words;
        return known[i].words ? DESCRIBE_WORDS : DESCRIBE_FILE;
    }
    return DESCRIBE_ANY;
}

static FILE *open_in(const char *folder, const char *name)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        fprintf(stderr, "describe: %s: %m\n", path);
        exit(1);
    }
    free(path);
    return f;
}

static void close_written(FILE *f)
{
    if (ferror(f) || fclose(f)) {
        fprintf(stderr, "describe: %m\n");
        exit(1);
    }
}

static void write_one(const char *folder, const char *name, void (*write)(FILE *out))
{
    FILE *f = open_in(folder, name);
    write(f);
    close_written(f);
}

int main(int argc, char **argv)
{
    FILE *page = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (!page) {
        fprintf(stderr, "usage: describe FOLDER CONFIG.MD\n");
        return 2;
    }
    write_one(argv[1], "txrelay.1", describe_manual);
    for (const struct command *const *c = commands; *c; c++) {
        char *name = xasprintf("txrelay-%s.1", (*c)->name);
        FILE *f = open_in(argv[1], name);
        describe_manual_of(f, *c);
        close_written(f);
        free(name);
    }
    FILE *config = open_in(argv[1], "txrelay.yaml.5");
    describe_manual_config(config, page);
    close_written(config);
    fclose(page);
    write_one(argv[1], "txrelay.bash", describe_bash);
    write_one(argv[1], "_txrelay", describe_zsh);
    write_one(argv[1], "txrelay.fish", describe_fish);
    return 0;
}

/* txrelay migrate: install or update the schema. */
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "store/migrate.h"

struct migrating {
    struct migrate m;
    int from, to;
    struct err err;
};

static void migrated(struct migrate *m)
{
    struct migrating *x = (struct migrating *)(void *)m;
    x->err = m->err;
    x->from = m->from;
    x->to = m->to;
}

int cmd_migrate(int argc, char **argv)
{
    static const struct command command = {
        .doc = "Install or update the schema. Several at once are safe; a schema that is "
               "newer than this program is refused."};
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command, argc, argv, &a, true, &config);
    if (rc)
        return rc;
    struct migrating x = {0};
    struct loop *l = loop_new();
    migrate_start(l, &x.m, config.file->database.url, migrated);
    loop_run(l);
    loop_free(l);
    config_done(&config);
    if (x.err.code)
        return cli_fail(&x.err);
    if (x.from == x.to)
        printf("schema version %d: nothing to do\n", x.to);
    else
        printf("schema version %d -> %d\n", x.from, x.to);
    return EXIT_OK;
}

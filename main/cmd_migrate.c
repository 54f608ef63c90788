/* txrelay migrate: install or update the schema. */
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "store/migrate.h"

struct migrating {
    struct migrate m;
    int from, to;
    bool applied;
    int64_t ids_behind;
    struct err err;
};

static void migrated(struct migrate *m)
{
    struct migrating *x = (struct migrating *)(void *)m;
    x->err = m->err;
    x->from = m->from;
    x->to = m->to;
    x->applied = m->applied;
    x->ids_behind = m->ids_behind;
}

static int run_migrate(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    int rc = command_start(&command_migrate, argc, argv, &a, true, &config);
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
    if (x.from == x.to && x.applied)
        printf("schema version %d: functions, views, triggers and rights applied again\n", x.to);
    else if (x.from == x.to)
        printf("schema version %d: nothing to do\n", x.to);
    else
        printf("schema version %d -> %d\n", x.from, x.to);
    if (x.ids_behind)
        printf("ids: the sequence was %lld behind the records, as after a copy: moved on\n",
               (long long)x.ids_behind);
    return EXIT_OK;
}

const struct command command_migrate = {
    .name = "migrate",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_migrate,
    .what = "install or update the database schema",
    .doc = "Install or upgrade the schema, and restore functions, views, triggers and rights "
           "that were changed by hand. Several at once are safe. A schema that is newer than "
           "this program, or was installed from another build's migrations, is refused."};

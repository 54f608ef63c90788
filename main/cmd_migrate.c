/* txrelay migrate: install or update the schema. */
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "schema/schema.h"
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

struct migrate_args {
    struct arguments args;
    bool dry_run;
};

enum { OPT_DRY_RUN = 1000 };

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    (void)arg;
    (void)state;
    if (key != OPT_DRY_RUN)
        return ARGP_ERR_UNKNOWN;
    ((struct migrate_args *)a)->dry_run = true;
    return 0;
}

static const struct argp_option options[] = {
    {"dry-run", OPT_DRY_RUN, NULL, 0, "change nothing: print what would be applied", 0}, {0}};

static void print_plan(const struct migrating *x)
{
    for (int i = x->from; i < x->to; i++)
        printf("would apply migrations/%s\n", schema_set()->migrations[i].name);
    if (x->applied)
        puts("would apply all functions, views, triggers and rights");
    else
        printf("schema version %d: nothing to do\n", x->to);
}

static int run_migrate(int argc, char **argv)
{
    struct migrate_args a = {0};
    struct config config;
    int rc = command_start(&command_migrate, argc, argv, &a.args, true, &config);
    if (rc)
        return rc;
    struct migrating x = {0};
    struct loop *l = loop_new();
    if (a.dry_run)
        migrate_dry_run(l, &x.m, config.file->database.url, migrated);
    else
        migrate_start(l, &x.m, config.file->database.url, migrated);
    loop_run(l);
    loop_free(l);
    config_done(&config);
    if (x.err.code)
        return cli_fail(&x.err);
    if (a.dry_run) {
        print_plan(&x);
        return EXIT_OK;
    }
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
    .options = options,
    .option = option,
    .doc = "Install or upgrade the schema, and restore functions, views, triggers and rights "
           "that were changed by hand. Several at once are safe. A schema that is newer than "
           "this program, or was installed from another build's migrations, is refused."};

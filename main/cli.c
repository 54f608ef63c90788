/* What the commands share: how they end, and the configuration. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/log.h"
#include "command.h"
#include "store/conn_info.h"

static struct {
    const struct command *command;
    char user[64], database[64]; /* of the connection; "": none is configured */
} running;

void cli_begin(const struct command *c)
{
    running.command = c;
}

static void note_login(const char *dsn)
{
    struct conn_info info;
    if (!dsn)
        return;
    conn_info_read(dsn, &info);
    snprintf(running.user, sizeof(running.user), "%s", info.user);
    snprintf(running.database, sizeof(running.database), "%s", info.database);
    conn_info_done(&info);
}

static bool is_one_of(const char *sqlstate, const char *list)
{
    return sqlstate[0] && strstr(list, sqlstate);
}

/* What to do about an error that is the server's or libpq's own. */
static void put_way_out(struct buf *out, const struct err *err)
{
    const char *role =
        running.command && running.command->role ? running.command->role : "txrelay_follower";
    if (is_one_of(err->sqlstate, "3F000 42P01 42883 42703")) /* schema, table, function, column */
        buf_printf(out,
                   ": database %s has no txrelay schema, or one of another version: run txrelay "
                   "migrate",
                   running.database);
    else if (!strcmp(err->sqlstate, "42501") && running.command == &command_migrate)
        buf_printf(out,
                   ": user %s must own the schema, or have the right to make it; an administrator "
                   "runs: GRANT CREATE ON DATABASE %s TO %s",
                   running.user, running.database, running.user);
    else if (!strcmp(err->sqlstate, "42501") && strstr(err->text, "(SQLSTATE"))
        buf_printf(out,
                   ": user %s needs the role %s; its owner or an administrator runs: GRANT %s "
                   "TO %s",
                   running.user, role, role, running.user);
    else if (!strcmp(err->sqlstate, "3D000"))
        buf_puts(out, ": create it (createdb), or correct --database, TXRELAY_DATABASE or "
                      "database.url");
    else if (is_one_of(err->sqlstate, "28P01 28000"))
        buf_printf(out,
                   ": correct the user or its password (~/.pgpass, a service file, or database.url "
                   "in a config file), or the server's pg_hba.conf");
    else if (err->code == ERR_NET && !strncmp(err->text, "ws", 2))
        buf_puts(out, ": start the node, or correct --node, --endpoint, TXRELAY_ENDPOINTS or "
                      "chain.endpoints");
    else if (err->code == ERR_DB_UNAVAILABLE && !err->sqlstate[0])
        buf_puts(out, ": start the server, or correct --database, TXRELAY_DATABASE or "
                      "database.url");
}

void cli_put_err(struct buf *out, const struct err *err)
{
    const char *text = err->text[0] ? err->text : err_text(err->code);
    buf_put_plain(out, text, strlen(text)); /* it may quote a node, a server or a file */
    put_way_out(out, err);
}

int cli_fail(const struct err *err)
{
    struct buf plain = {0};
    cli_put_err(&plain, err);
    fflush(stdout); /* what it refers to comes first, also in a file that gets both */
    fprintf(stderr, "txrelay: %s\n", buf_str(&plain));
    buf_done(&plain);
    return err->code == ERR_CONFIG ? EXIT_USAGE : EXIT_FAILED;
}

int cli_fail_value(const struct err *err, const struct cli_value *values, size_t count)
{
    bool of_a_value = !strncmp(err->sqlstate, "22", 2);
    for (size_t i = 0; of_a_value && i < count; i++) {
        if (!values[i].text || !strstr(err->text, values[i].text))
            continue;
        struct err named;
        err_set(&named, ERR_ARGUMENT, "%s is '%.60s'; it must be a %s", values[i].flag,
                values[i].text, values[i].must);
        cli_fail(&named);
        return EXIT_USAGE;
    }
    return cli_fail(err);
}

int cli_load(const struct config_flags *flags, bool need_database, struct config *ret)
{
    struct err err = {0};
    if (config_load(flags, ret, &err)) {
        cli_fail(&err);
        return EXIT_USAGE;
    }
    if (need_database && !ret->file->database.url) {
        config_done(ret);
        fputs("txrelay: no database is given: use --database, TXRELAY_DATABASE or database.url in "
              "the config file\n",
              stderr);
        return EXIT_USAGE;
    }
    note_login(ret->file->database.url);
    return 0;
}

void cli_follow_state(const char *command, bool live, uint64_t age_ms, const struct err *err)
{
    char event[32];
    snprintf(event, sizeof(event), "%s.%s", command, live ? "live" : "stale");
    if (live)
        log_info(event, "text=\"caught up with the database\"");
    else
        log_error(event, "role=follower age_s=%llu code=%s text=\"%s\"",
                  (unsigned long long)(age_ms / 1000), err_name(err->code), err->text);
}

void cli_harden(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

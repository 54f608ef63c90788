/* txrelay check: explain the configuration and try every connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "check.h"
#include "cli.h"
#include "command.h"
#include "feed/serve.h"
#include "hook/serve.h"
#include "http/serve.h"
#include "schema/schema.h"
#include "site/serve.h"
#include "store/schema_check.h"
#include "warnings.h"

enum { CLOCK_BACK_S = 5 };

static int bad; /* findings that stop a relay */
static bool as_json;

void check_as_json(void)
{
    as_json = true;
}

bool check_is_json(void)
{
    return as_json;
}

void check_json(json_t *line)
{
    char *text = json_dumps(line, JSON_COMPACT);
    printf("%s\n", text);
    free(text);
    json_decref(line);
}

void check_good(const char *what, const char *text)
{
    check_line("ok", what, text);
}

/* The text may quote a node, a server or the file. */
void check_line(const char *mark, const char *what, const char *text)
{
    struct buf plain = {0};
    buf_put_plain(&plain, text, strlen(text));
    if (as_json)
        check_json(
            json_pack("{s:s, s:s, s:s}", "mark", mark, "what", what, "text", buf_str(&plain)));
    else
        printf("  %-5s %-12s %s\n", mark, what, buf_str(&plain));
    buf_done(&plain);
}

void check_caution(void *arg, const char *what, const char *text)
{
    (void)arg;
    check_line("warn", what, text);
}

void check_wrong(const char *what, const char *text)
{
    bad++;
    check_line("BAD", what, text);
}

/* ---- database ---- */

enum { LOGIN_SIZE = 64, ASKED_MAY_END = 11, ASKED_OWNER };

static bool truth(const struct conn_result *r, int col)
{
    int len;
    return !conn_result_is_null(r, 0, col) && *conn_result_get(r, 0, col, &len) == 't';
}

/* arg: room for the login, which the rest of the check names. */
static void on_rights(void *arg, const struct conn_result *r)
{
    char text[200], *login = arg;
    int len;
    snprintf(login, LOGIN_SIZE, "%s", conn_result_get(r, 0, 0, &len));
    snprintf(text, sizeof(text), "connected as %s, server %s", conn_result_get(r, 0, 0, &len),
             conn_result_get(r, 0, 1, &len));
    check_good("database", text);
    if (truth(r, 2))
        check_wrong("database", "this server is a standby: give the primary, or several hosts");
    if (conn_result_is_null(r, 0, 3))
        check_wrong("schema",
                    truth(r, 4)
                        ? "this server lacks the role txrelay_relay (the schema was restored "
                          "from a dump?): run txrelay migrate as the schema's owner, then "
                          "GRANT the roles to the logins again"
                        : "the txrelay schema is not installed: run txrelay migrate");
    else if (truth(r, 3))
        check_good("rights", "the login may lead (role txrelay_relay)");
    else {
        snprintf(text, sizeof(text), "login %s may not lead: GRANT txrelay_relay TO %s", login,
                 login);
        check_wrong("rights", text);
    }
}

static void on_schema(void *arg, const struct conn_result *r)
{
    char text[200];
    struct schema_found found = {0};
    struct err err = {0};
    (void)arg;
    for (int col = 0; col < SCHEMA_COLUMNS; col++)
        if (!conn_result_is_null(r, 0, col))
            found.text[col] = conn_result_get(r, 0, col, NULL);
    snprintf(text, sizeof(text), "schema version %d, functions %.16s: as this program has them",
             schema_installed(&found),
             found.text[SCHEMA_COL_FUNCTIONS] ? found.text[SCHEMA_COL_FUNCTIONS] : "none");
    if (schema_check(schema_set(), &found, &err) == SCHEMA_FITS)
        check_good("schema", text);
    else
        check_wrong("schema", err.text);
}

/* A relay that uses no locks needs no such right: it passes over a lock in the way. */
static void look_at_owner(const struct conn_result *r, bool use_lock)
{
    char text[400];
    if (!use_lock || truth(r, ASKED_MAY_END))
        return;
    const char *owner = conn_result_get(r, 0, ASKED_OWNER, NULL);
    snprintf(text, sizeof(text),
             "the schema's owner %.63s may not end sessions: any login can keep an account's lock, "
             "and no relay leads it until an administrator ends that session. Run: "
             "GRANT pg_signal_backend, pg_read_all_stats TO %.63s",
             owner, owner);
    check_caution(NULL, "rights", text);
}

static void on_asked(void *arg, const struct conn_result *r)
{
    look_at_owner(r, config_use_lock(arg));
    if (!truth(r, 0))
        check_caution(
            NULL, "timeline",
            "the server keeps pg_walfile_name and pg_current_wal_lsn for itself: each of its "
            "restarts counts as a failover that may have lost commits "
            "(leadership.lost_commits)");
    char text[200];
    long long behind = strtoll(conn_result_get(r, 0, 1, NULL), NULL, 10);
    long long back_s = strtoll(conn_result_get(r, 0, 2, NULL), NULL, 10);
    if (behind) {
        snprintf(text, sizeof(text),
                 "the sequence is %lld behind the records, as after a copy of the tables: run "
                 "txrelay migrate before applications enqueue",
                 behind);
        check_wrong("ids", text);
    }
    if (back_s >= CLOCK_BACK_S) {
        snprintf(text, sizeof(text),
                 "the server's clock is %lld s behind the times in the database; leases and "
                 "positions go on from those",
                 back_s);
        check_caution(NULL, "clock", text);
    }
}

static void on_work(void *arg, const struct conn_result *r)
{
    char text[300];
    (void)arg;
    if (truth(r, 0)) {
        snprintf(text, sizeof(text),
                 "transactions are %s there, and behind a pooler the relay cannot change that: "
                 "commits of applications would fail. Run: ALTER ROLE (the relay's) SET "
                 "default_transaction_isolation = 'read committed'",
                 conn_result_get(r, 0, 1, NULL));
        check_wrong("work_url", text);
    }
    if (truth(r, 2)) {
        snprintf(text, sizeof(text),
                 "statement_timeout is %s there, and behind a pooler the relay cannot change that: "
                 "ALTER ROLE (the relay's) SET statement_timeout = 0",
                 conn_result_get(r, 0, 3, NULL));
        check_caution(NULL, "work_url", text);
    }
}

static void check_database(const struct config_file *f)
{
    struct err err = {0};
    char login[LOGIN_SIZE] = "";
    if (!f->database.url) {
        check_good("database", "none is configured: the relay will be standalone");
        return;
    }
    if (cli_query(f->database.url, cli_sql("check_rights.sql"), 0, NULL, on_rights, login, &err)) {
        check_wrong("database", err.text);
        return;
    }
    if (bad)
        return;
    if (cli_query(f->database.url, schema_check_sql(), 0, NULL, on_schema, NULL, &err)) {
        schema_check_failed(&err, login);
        check_wrong(err.code == ERR_DB_DENIED ? "rights" : "schema", err.text);
    } else if (!bad && cli_query(f->database.url, cli_sql("check_asks.sql"), 0, NULL, on_asked,
                                 (void *)f, &err)) {
        check_wrong("database", err.text);
    }
    if (f->database.work_url &&
        cli_query(f->database.work_url, cli_sql("check_work.sql"), 0, NULL, on_work, NULL, &err))
        check_wrong("work_url", err.text);
}

static void check_keys(const struct service_config *c)
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct service_account *a = &c->accounts[i];
        size_t len = a->id_len;
        const uint8_t *id = a->key ? keypair_account_id(a->key, &len) : a->id;
        char text[200];
        snprintf(text, sizeof(text), "%s: %s%s, account id %s", a->alias,
                 key_scheme_name(a->scheme),
                 a->key ? " key" : ", no key (presigned transactions only)", hex_log(id, len));
        check_good("key", text);
    }
}

static void caution(void *arg, const char *text)
{
    const char *const *what = arg;
    check_caution(NULL, *what, text);
}

typedef int check_part(const struct config_file *f, struct buf *out,
                       void (*caution)(void *arg, const char *text), void *arg, struct err *err);

/* Clears `shown`. */
static void report_part(const char *what, int rc, struct buf *shown, const struct err *err)
{
    if (rc)
        check_wrong(what, err->text);
    else if (shown->len)
        check_line("ok", what, buf_str(shown));
    buf_done(shown);
}

static void check_served(const struct config_file *f, const char *what, check_part *check)
{
    struct buf shown = {0};
    struct err err = {0};
    int rc = check(f, &shown, caution, &what, &err);
    report_part(what, rc, &shown, &err);
}

static void check_sites(const struct config_file *f, const struct service_config *c)
{
    const char *what = "sites";
    struct buf shown = {0};
    struct err err = {0};
    int rc = site_serve_check(f, c, &shown, caution, &what, &err);
    report_part(what, rc, &shown, &err);
}

static int run_check(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct service_config service;
    struct err err = {0};
    command_parse(&command_check, argc, argv, &a);
    if (a.json)
        check_as_json();
    int rc = cli_load(&a.flags, false, &config);
    if (rc)
        return rc;
    if (!a.flags.log_level)
        log_set_level(LOG_LEVEL_ERROR); /* what a relay would log stands in the report */
    check_values(&config);
    if (!a.json)
        printf("connections\n");
    check_database(config.file);
    if (cli_service_config(&config, &service, &err)) {
        check_wrong("config", err.text);
    } else {
        check_keys(&service);
        warnings_each(config.file, &service, check_caution, NULL);
        check_served(config.file, "feeds", feed_serve_check);
        check_served(config.file, "http", http_serve_check);
        check_served(config.file, "webhooks", hook_serve_check);
        check_sites(config.file, &service);
        check_entries(config.file);
        check_chain(&service);
        cli_service_config_done(&service);
    }
    config_done(&config);
    if (a.json)
        check_json(json_pack("{s:b}", "ready", !bad));
    else
        printf("%s\n", bad ? "not ready: fix the lines marked BAD" : "ready");
    return bad ? EXIT_FAILED : EXIT_OK;
}

static const struct argp_option options[] = {COMMAND_OPTION_JSON, {0}};

const struct command command_check = {
    .name = "check",
    .role = "txrelay_relay",
    .run = run_check,
    .options = options,
    .what = "explain the configuration and try every connection",
    .doc = "Explain every value of the configuration and try every connection. Each endpoint is "
           "measured: what it answers, how far back, how fast."};

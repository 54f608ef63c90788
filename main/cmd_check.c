/* txrelay check: explain the configuration and try every connection. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/host.h"
#include "chain/codec/extrinsic.h"
#include "chain/node/node.h"
#include "cli.h"
#include "command.h"
#include "schema/schema.h"
#include "store/conn_info.h"
#include "store/schema_check.h"
#include "warnings.h"

enum { NODE_TIMEOUT_MS = 10000, CLOCK_BACK_S = 5 };

static int bad; /* findings that stop a relay */

static void good(const char *what, const char *text)
{
    printf("  ok    %-12s %s\n", what, text);
}

/* The text may quote a node, a server or the file. */
static void line(const char *mark, const char *what, const char *text)
{
    struct buf plain = {0};
    buf_put_plain(&plain, text, strlen(text));
    printf("  %-5s %-12s %s\n", mark, what, buf_str(&plain));
    buf_done(&plain);
}

static void caution(void *arg, const char *what, const char *text)
{
    (void)arg;
    line("warn", what, text);
}

static void wrong(const char *what, const char *text)
{
    bad++;
    line("BAD", what, text);
}

/* ---- values ---- */

static void value(const char *key, const char *text, const char *from)
{
    printf("  %-24s %-40s %s\n", key, text ? text : "(not set)", from);
}

static void number(const char *key, uint32_t n, uint32_t standard)
{
    char text[32];
    snprintf(text, sizeof(text), "%u", n ? n : standard);
    value(key, text, n ? "file" : "default");
}

/* A connection string may contain a password, so only other parts of it are printed. */
static void connection(const char *key, const char *dsn, const char *from)
{
    struct conn_info info;
    conn_info_read(dsn, &info);
    buf_printf(&info.text, "%s", info.has_password ? " password=****" : "");
    value(key, buf_str(&info.text), from);
    conn_info_done(&info);
}

static void explain(const struct config *c)
{
    const struct config_file *f = c->file;
    printf("configuration (%s)\n", c->path ? c->path : "no file");
    value("name", f->name ? f->name : "(host name)", c->from_name);
    value("log_level", f->log_level ? f->log_level : "info", c->from_log_level);
    value("control", f->control, f->control ? "" : "no control endpoint");
    value("metrics", f->metrics, f->metrics ? "" : "no metrics endpoint");
    if (f->database.url)
        connection("database.url", f->database.url, c->from_database);
    else
        value("database.url", "(none: standalone)", c->from_database);
    if (f->database.work_url)
        connection("database.work_url", f->database.work_url, "file");
    if (f->database.listen_url)
        connection("database.listen_url", f->database.listen_url, "file");
    value("database.use_lock", config_use_lock(f) ? "true" : "false",
          f->database.use_lock ? "file" : "default");
    for (uint32_t i = 0; i < f->chain.endpoints_count; i++) {
        char *shown = host_url_shown(f->chain.endpoints[i]);
        value("chain.endpoints", shown, c->from_endpoints);
        free(shown);
    }
    value("chain.genesis", f->chain.genesis ? f->chain.genesis : "(any)",
          f->chain.genesis ? "file" : "default");
    value("chain.verify_blocks", config_verify_blocks(f) ? "true" : "false",
          f->chain.verify_blocks ? "file" : "default");
    number("chain.quorum", f->chain.quorum, 1);
    number("leadership.heartbeat_ms", f->leadership.heartbeat_ms, 1000);
    number("leadership.expiry_1_ms", f->leadership.expiry_1_ms, 5000);
    number("leadership.expiry_2_ms", f->leadership.expiry_2_ms, 20000);
    value("leadership.lost_commits", config_lost_search(f) ? "search" : "wait",
          f->leadership.lost_commits ? "file" : "default");
    number("manager.window", f->manager.window, 256);
    number("manager.batch", f->manager.batch, 128);
    number("manager.era_period", config_era_period(f), 0);
    number("retention.keep_days", f->retention.keep_days, 30);
    number("retention.interval_ms", f->retention.interval_ms, 3600000);
}

/* ---- database ---- */

static bool truth(const struct conn_result *r, int col)
{
    int len;
    return !conn_result_is_null(r, 0, col) && *conn_result_get(r, 0, col, &len) == 't';
}

static void on_rights(void *arg, const struct conn_result *r)
{
    char text[200];
    int len;
    (void)arg;
    snprintf(text, sizeof(text), "connected as %s, server %s", conn_result_get(r, 0, 0, &len),
             conn_result_get(r, 0, 1, &len));
    good("database", text);
    if (truth(r, 2))
        wrong("database", "this server is a standby: give the primary, or several hosts");
    if (conn_result_is_null(r, 0, 3))
        wrong("schema", truth(r, 4)
                            ? "this server lacks the role txrelay_relay (the schema was restored "
                              "from a dump?): run txrelay migrate as the schema's owner, then "
                              "GRANT the roles to the logins again"
                            : "the txrelay schema is not installed: run txrelay migrate");
    else if (truth(r, 3))
        good("rights", "the login may lead (role txrelay_relay)");
    else
        wrong("rights", "the login may not lead: GRANT txrelay_relay TO it");
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
        good("schema", text);
    else
        wrong("schema", err.text);
}

static void on_asked(void *arg, const struct conn_result *r)
{
    (void)arg;
    if (!truth(r, 0))
        caution(NULL, "timeline",
                "the server keeps pg_walfile_name and pg_current_wal_lsn for itself: each of its "
                "restarts counts as a failover that may have lost commits "
                "(leadership.lost_commits)");
    char text[200];
    long long behind = strtoll(conn_result_get(r, 0, 1, NULL), NULL, 10);
    long long back_s = strtoll(conn_result_get(r, 0, 2, NULL), NULL, 10);
    if (behind) {
        snprintf(text, sizeof(text),
                 "the sequence is %lld behind the records, as after a copy of the tables: run "
                 "txrelay migrate before anybody enqueues",
                 behind);
        wrong("ids", text);
    }
    if (back_s >= CLOCK_BACK_S) {
        snprintf(text, sizeof(text),
                 "the server's clock is %lld s behind the times in the database; leases and "
                 "positions go on from those",
                 back_s);
        caution(NULL, "clock", text);
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
        wrong("work_url", text);
    }
    if (truth(r, 2)) {
        snprintf(text, sizeof(text),
                 "statement_timeout is %s there, and behind a pooler the relay cannot change that: "
                 "ALTER ROLE (the relay's) SET statement_timeout = 0",
                 conn_result_get(r, 0, 3, NULL));
        caution(NULL, "work_url", text);
    }
}

static void check_database(const struct config_file *f)
{
    struct err err = {0};
    if (!f->database.url) {
        good("database", "none is configured: the relay will be standalone");
        return;
    }
    if (cli_query(f->database.url, cli_sql("check_rights.sql"), 0, NULL, on_rights, NULL, &err)) {
        wrong("database", err.text);
        return;
    }
    if (bad)
        return;
    if (cli_query(f->database.url, schema_check_sql(), 0, NULL, on_schema, NULL, &err)) {
        schema_check_failed(&err);
        wrong(err.code == ERR_DB_DENIED ? "rights" : "schema", err.text);
    } else if (!bad && cli_query(f->database.url, cli_sql("check_asks.sql"), 0, NULL, on_asked,
                                 NULL, &err)) {
        wrong("database", err.text);
    }
    if (f->database.work_url &&
        cli_query(f->database.work_url, cli_sql("check_work.sql"), 0, NULL, on_work, NULL, &err))
        wrong("work_url", err.text);
}

/* ---- chain: each endpoint by itself ---- */

enum { KEPT_BLOCKS = 200 }; /* what a relay may need after an outage of as many blocks */

struct probe {
    struct loop *loop;
    struct node *node;
    struct loop_timer *timer;
    struct node_ask ask;
    struct buf hashes;
    uint64_t height; /* of the old block */
    bool done, ready;
    uint8_t genesis[32];
    struct err why;
    const struct service_config *config;
};

/* Does the chain take what the relay signs for each account? */
static void check_signing(const struct service_config *c, const struct metadata *md)
{
    for (size_t i = 0; i < c->account_count; i++) {
        const struct service_account *a = &c->accounts[i];
        size_t len;
        struct extrinsic_signer signer = {a->scheme,
                                          a->key ? keypair_account_id(a->key, &len) : a->id};
        struct err err = {0};
        char text[400];
        if (!extrinsic_check_signer(md, &signer, &err))
            continue;
        snprintf(text, sizeof(text), "%s: %s", a->alias, err.text);
        wrong("key", text);
    }
}

static void node_closed(void *arg)
{
    (void)arg;
}

static void end_probe(struct probe *p)
{
    if (p->done)
        return;
    p->done = true;
    p->timer = loop_timer_close(p->timer);
    node_close(p->node, node_closed, p);
}

/* The oldest block that was asked for. */
static void on_finalized(void *arg, const struct node_block *block)
{
    struct probe *p = arg;
    char text[200];
    if (p->done)
        return;
    bool state = block->nonce_count && block->nonces[0] != UINT64_MAX;
    snprintf(text, sizeof(text), "block %llu, %llu blocks ago: its body is %s, its state is %s",
             (unsigned long long)block->head.number,
             (unsigned long long)(node_info(p->node)->finalized_number - block->head.number),
             block->unread ? "gone" : "there", state ? "there" : "gone");
    line(block->unread || !state ? "warn" : "ok", "keeps", text);
    end_probe(p);
}

static void on_pool(struct node_ask *ask)
{
    struct probe *p = CONTAINER_OF(ask, struct probe, ask);
    static const uint8_t nobody[32] = {1};
    if (p->done)
        return;
    if (ask->err.code)
        line("warn", "pool", ask->err.text);
    else
        good("pool", "it tells its pool");
    node_watch_account(p->node, nobody, sizeof(nobody));
    node_follow(p->node, p->height);
}

static void on_ready(void *arg, const struct node_info *info)
{
    struct probe *p = arg;
    char text[300];
    struct err err = {0};
    if (p->ready)
        return;
    p->ready = true;
    memcpy(p->genesis, info->genesis, sizeof(p->genesis));
    snprintf(text, sizeof(text), "%s/%u, best %llu, finalized %llu, genesis %s", info->spec_name,
             info->spec_version, (unsigned long long)info->best_number,
             (unsigned long long)info->finalized_number, hex_log(info->genesis, 32));
    good("chain", text);
    if (extrinsic_supported(info->metadata, &err)) {
        wrong("chain", err.text);
    } else {
        struct buf more = {0};
        buf_printf(&more, "every signed extension of this chain is supported");
        size_t len = more.len;
        buf_put(&more, "; ", 2);
        extrinsic_extensions_text(info->metadata, &more);
        if (more.len == len + 2)
            more.len = len;
        line("ok", "extensions", buf_str(&more));
        buf_done(&more);
        check_signing(p->config, info->metadata);
    }
    uint64_t last = info->finalized_number;
    p->height = last > KEPT_BLOCKS ? last - KEPT_BLOCKS : 1;
    if (last == 0)
        end_probe(p);
    else
        node_ask_pending(p->node, &p->ask, &p->hashes, NULL, on_pool);
}

static void on_down(void *arg, const struct err *err)
{
    struct probe *p = arg;
    if (!p->done)
        p->why = *err;
    end_probe(p);
}

static void on_late(void *arg)
{
    struct probe *p = arg;
    err_set(&p->why, ERR_TIMEOUT, "no answer within 10 s");
    end_probe(p);
}

/* True: a relay can use it. */
static bool check_endpoint(const struct service_config *c, const char *const *url, uint8_t *genesis,
                           bool *genesis_known)
{
    struct probe p = {.loop = loop_new(), .config = c};
    struct node_config config = {.urls = url,
                                 .url_count = 1,
                                 .ca_file = c->ca_file,
                                 .insecure = c->chain_insecure,
                                 .genesis = *genesis_known ? genesis : NULL,
                                 .verify_blocks = c->verify_blocks,
                                 .allow_chopsticks = c->allow_chopsticks,
                                 .extensions = c->extensions,
                                 .extension_count = c->extension_count,
                                 .on_ready = on_ready,
                                 .on_down = on_down,
                                 .on_finalized = on_finalized,
                                 .arg = &p};
    p.node = node_new(p.loop, &config, &p.why);
    if (p.node) {
        line("", "endpoint", node_endpoint(p.node));
        p.timer = loop_timer_new(p.loop, on_late, &p);
        loop_timer_at(p.timer, loop_now_ms(p.loop) + NODE_TIMEOUT_MS);
        node_open(p.node);
        loop_run(p.loop);
    }
    if (p.why.code)
        line(p.ready ? "warn" : "down", "chain", p.why.text);
    if (p.ready && !*genesis_known) {
        memcpy(genesis, p.genesis, sizeof(p.genesis));
        *genesis_known = true;
    }
    buf_done(&p.hashes);
    loop_free(p.loop);
    return p.ready;
}

static void check_chain(const struct service_config *c)
{
    uint8_t genesis[32];
    bool known = c->has_genesis;
    size_t usable = 0;
    if (known)
        memcpy(genesis, c->genesis, sizeof(genesis));
    for (size_t i = 0; i < c->endpoint_count; i++)
        usable += check_endpoint(c, &c->endpoints[i], genesis, &known);
    if (!usable)
        wrong("chain", "no endpoint is usable");
    else if (usable < c->endpoint_count)
        caution(NULL, "chain", "not every endpoint is usable: a relay passes over the others");
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
        good("key", text);
    }
}

static int run_check(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct service_config service;
    struct err err = {0};
    command_parse(&command_check, argc, argv, &a);
    cli_harden();
    if (!a.flags.log_level)
        a.flags.log_level = "error";
    int rc = cli_load(&a.flags, false, &config);
    if (rc)
        return rc;
    explain(&config);
    printf("connections\n");
    check_database(config.file);
    if (cli_service_config(&config, &service, &err)) {
        wrong("config", err.text);
    } else {
        check_keys(&service);
        warnings_each(config.file, &service, caution, NULL);
        check_chain(&service);
        cli_service_config_done(&service);
    }
    config_done(&config);
    printf("%s\n", bad ? "not ready: fix the lines marked BAD" : "ready");
    return bad ? EXIT_FAILED : EXIT_OK;
}

const struct command command_check = {
    .name = "check",
    .role = "txrelay_relay",
    .run = run_check,
    .what = "explain the configuration and try every connection",
    .doc = "Explain every value of the configuration and try every connection."};

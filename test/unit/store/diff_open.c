/* The two sides: a server with three relays' stores, a memory database with their sessions. */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t now_us(void *arg)
{
    return diff_now_us(arg);
}

static void on_session_end(void *arg, struct mem_session *s)
{
    struct diff *d = arg;
    for (size_t i = 0; i < RELAYS; i++)
        if (d->relays[i].mem == s)
            d->relays[i].mem = NULL;
}

static struct conn *connect_admin(struct diff *d)
{
    struct conn *c = conn_new(d->l, &(struct conn_config){.dsn = d->server.dsn,
                                                          .name = "diff",
                                                          .backoff_base_ms = 10,
                                                          .on_notify = diff_hear,
                                                          .arg = d});
    conn_open(c);
    WAIT_FOR(d->l, conn_is_up(c));
    return c;
}

void diff_open(struct diff *d)
{
    static char dsn[300];
    fx_pg_start(&d->server, "");
    fx_migrate(d->server.dsn);
    free(fx_pg_sql(&d->server, "CREATE ROLE relay LOGIN IN ROLE txrelay_relay"));
    free(fx_pg_sql(&d->server, "GRANT pg_signal_backend, pg_read_all_stats TO postgres"));
    snprintf(dsn, sizeof(dsn), "host=%s port=5432 user=relay dbname=postgres", d->server.dir);
    d->l = loop_new();
    for (size_t i = 0; i < RELAYS; i++) {
        struct side *r = &d->relays[i];
        struct store_pg_config config = {.control_dsn = dsn, .use_lock = i != 2};
        r->use_lock = config.use_lock;
        snprintf(r->holder, sizeof(r->holder), "relay-%zu", i);
        fx_store_pg(&r->pg, d->l, &config);
    }
    for (size_t i = 0; i < RELAYS; i++)
        WAIT_FOR(d->l, d->relays[i].pg.ups == 1);
    for (size_t i = 0; i < DIFF_CONNS; i++)
        d->conns[i] = connect_admin(d);
    diff_listen(d);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void close_conn(struct diff *d, struct conn *c)
{
    bool closed = false;
    conn_close(c, on_closed, &closed);
    WAIT_FOR(d->l, closed);
}

void diff_close(struct diff *d)
{
    d->db = mem_db_free(d->db);
    for (size_t i = 0; i < RELAYS; i++)
        fx_store_close(&d->relays[i].pg);
    for (size_t i = 0; i < DIFF_CONNS; i++)
        close_conn(d, d->conns[i]);
    diff_notices_clear(d);
    loop_free(d->l);
    buf_done(&d->said);
    buf_done(&d->why);
    fx_pg_stop(&d->server);
}

static void open_memory(struct diff *d)
{
    d->db = mem_db_free(d->db);
    d->db = mem_db_new(&(struct mem_db_config){
        .now_us = now_us, .on_notice = diff_notice, .on_session_end = on_session_end, .arg = d});
    for (size_t i = 0; i < RELAYS; i++)
        d->relays[i].mem = mem_session_new(d->db, &d->relays[i], d->relays[i].use_lock);
    d->mem_app = mem_session_new(d->db, NULL, true);
    d->mem_admin = mem_session_new(d->db, NULL, true);
    d->mem_holder = mem_session_new(d->db, NULL, true);
    mem_session_listen(d->mem_admin, MEM_LISTEN_SIGNALS | MEM_LISTEN_ROWS);
}

/* The sessions of Postgres stay: they give their locks back by requests. */
static void drop_locks(struct diff *d)
{
    for (size_t i = 0; i < RELAYS; i++)
        for (size_t k = 0; d->db && k < mem_account_count(d->db); k++) {
            const struct mem_account *a = mem_account_at(d->db, (int32_t)k + 1);
            struct store_lock lock = {.lock_key = a->lead.lock_key};
            struct store_doorbell bell = {.account = a->number};
            RUN_OK(&d->relays[i].pg, unlock, &lock);
            RUN_OK(&d->relays[i].pg, doorbell_disarm, &bell);
        }
}

void diff_reset(struct diff *d)
{
    drop_locks(d);
    free(diff_admin(d, "SET session_replication_role = replica"));
    free(diff_admin(
        d, "TRUNCATE txrelay.leadership, txrelay.accounts, txrelay.relay_leases, txrelay.outbox, "
           "txrelay.outbox_presigned, txrelay.idempotency_keys, txrelay.pending_transactions, "
           "txrelay.cancellations, txrelay.bumps, txrelay.attempts, txrelay.refusals, "
           "txrelay.finished_transactions, txrelay.members, txrelay.obstacles, txrelay.retries "
           "RESTART IDENTITY"));
    free(diff_admin(d, "SET session_replication_role = origin"));
    free(diff_admin(d, "SELECT setval('txrelay.transaction_id', 1, false)"));
    free(diff_admin(d, "UPDATE txrelay.high_water SET highest_id = 0"));
    d->shift_us = 0;
    d->began_us = diff_real_us();
    d->last_hash = d->last_id = 0;
    d->call = 0;
    d->open = d->differs = false;
    open_memory(d);
    diff_notices_compare(d); /* what is left of the seed before */
    d->differs = false;
    for (size_t i = 0; i < RELAYS; i++)
        memset(d->relays[i].epochs, 0, sizeof(d->relays[i].epochs));
    for (size_t i = 0; i < ACCOUNTS; i++)
        d->pg_fingerprints[i] = d->mem_fingerprints[i] = -1;
}

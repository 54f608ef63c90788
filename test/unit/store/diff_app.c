/* What has no request: SQL of applications and operators, open transactions, time that passes,
 * timelines. */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"

/* Both succeeded, or both failed with the same SQLSTATE. */
static void compare_end(struct diff *d, const char state[6], const struct err *err)
{
    if (strcmp(state, err->sqlstate) != 0)
        diff_found(d, "errors differ", state, *err->sqlstate ? err->sqlstate : "success");
}

/* ---- enqueue_signed ---- */

enum { SIGNED_LEN = 104 };

/* Format v4, MultiAddress::Id; the end is what makes it one of its own. */
static void make_extrinsic(struct diff *d, const struct mem_account *a, uint8_t out[SIGNED_LEN])
{
    size_t body = SIGNED_LEN - 2;
    memset(out, 0, SIGNED_LEN);
    out[0] = (uint8_t)(body << 2 | 1);
    out[1] = (uint8_t)(body >> 6);
    out[2] = 0x84;
    memcpy(out + 4, a->account_id.data, 32);
    out[SIGNED_LEN - 1] = (uint8_t)diff_below(d, 20);
    if (diff_chance(d, 5))
        out[diff_below(d, 8)] ^= 1;
}

void diff_enqueue_signed(struct diff *d)
{
    uint8_t bytes[SIGNED_LEN];
    const struct mem_account *a = diff_account(d, diff_below(d, ACCOUNTS));
    const struct mem_account *b = diff_account(d, diff_below(d, ACCOUNTS));
    char state[6];
    struct buf hex = {0};
    struct err err;
    make_extrinsic(d, a, bytes);
    hex_put(&hex, bytes, sizeof(bytes));
    struct mem_signed_call call = {
        .extrinsic = {bytes, diff_chance(d, 3) ? 50 : sizeof(bytes)},
        .key =
            !d->open && diff_chance(d, 20) ? diff_text(d, "key %d", (int)diff_below(d, 15)) : NULL,
        .account = diff_chance(d, 30) ? (diff_chance(d, 80) ? a : b)->alias : NULL,
        .creator = "signer"};
    char *cell = diff_sql(
        d, d->open ? DIFF_APP : DIFF_ADMIN, state,
        "SELECT txrelay.enqueue_signed(substr('\\x%s'::bytea, 1, %zu), %s%s%s, 'signer', %s%s%s)",
        buf_str(&hex), call.extrinsic.len, call.key ? "'" : "", call.key ? call.key : "NULL",
        call.key ? "'" : "", call.account ? "'" : "", call.account ? call.account : "NULL",
        call.account ? "'" : "");
    int64_t id = *cell ? strtoll(cell, NULL, 10) : 0, mem_id;
    if (id > d->db->t.last_id)
        d->db->t.last_id = id - 1;
    int rc = mem_enqueue_signed(d->open ? d->mem_app : d->mem_admin, &call, &mem_id, &err);
    compare_end(d, state, &err);
    if (!rc && mem_id != id)
        diff_found(d, "ids of enqueue_signed differ", cell,
                   diff_text(d, "%lld", (long long)mem_id));
    if (rc && d->open)
        diff_close_transaction(d); /* Postgres has aborted it */
    free(cell);
    buf_done(&hex);
}

/* ---- an open transaction: its doorbells, and rows that nobody sees yet ---- */

static void open_enqueue(struct diff *d)
{
    char state[6];
    const struct mem_account *a = diff_account(d, diff_below(d, ACCOUNTS));
    const char *call = diff_text(d, "open %d", (int)diff_below(d, 9));
    union any_request u = {.enqueue = {.account = a->alias,
                                       .call = {(const uint8_t *)call, strlen(call)},
                                       .creator = "open"}};
    if (a->watch_only || a->policy.strict)
        return; /* it would abort the transaction; others would wait for it */
    char *cell = diff_sql(d, DIFF_APP, state,
                          "SELECT txrelay.enqueue('%s', '%s', creator => 'open')", a->alias, call);
    d->db->t.last_id = strtoll(cell, NULL, 10) - 1;
    mem_session_run(d->mem_app, MEM_REQUEST_enqueue, &u.req);
    compare_end(d, state, &u.req.err);
    free(cell);
}

static void open_transaction(struct diff *d)
{
    char state[6];
    if (!d->open) {
        free(diff_sql(d, DIFF_APP, state, "BEGIN"));
        mem_begin(d->mem_app);
        d->open = true;
        open_enqueue(d);
        return;
    }
    if (diff_chance(d, 40)) {
        open_enqueue(d);
        return;
    }
    bool commit = diff_chance(d, 70);
    free(diff_sql(d, DIFF_APP, state, "%s", commit ? "COMMIT" : "ROLLBACK"));
    if (commit) {
        mem_commit(d->mem_app);
        mem_release(d->mem_app);
    } else {
        mem_rollback(d->mem_app);
    }
    d->open = false;
}

void diff_close_transaction(struct diff *d)
{
    char state[6];
    if (!d->open)
        return;
    free(diff_sql(d, DIFF_APP, state, "ROLLBACK"));
    mem_rollback(d->mem_app);
    d->open = false;
}

/* ---- a row that an open transaction has cancelled ---- */

/* Requests of leaders alone: everybody else would wait for it, and so would this test. */
void diff_beside_held_row(struct diff *d)
{
    size_t account = diff_below(d, ACCOUNTS);
    const struct mem_account *a = diff_account(d, account);
    int64_t id = diff_waiting(d, diff_chance(d, 70) ? &a->outbox : &a->signed_rows);
    char state[6];
    bool sure = a->reconcile_from < 0 && a->lead.timeline == d->db->timeline;
    if (!sure || !mem_lock_row(d->mem_holder, id))
        return; /* after a failover cancel locks no row */
    free(diff_sql(d, DIFF_HOLDER, state, "BEGIN"));
    free(diff_sql(d, DIFF_HOLDER, state, "SELECT txrelay.cancel(%lld)", (long long)id));
    bool lost = !strcmp(state, "TR011"); /* signed elsewhere, and lost commits may have sent it */
    assert_true(lost || !*state);
    for (size_t i = 0; i < 4 && !lost && !d->differs; i++) {
        d->text_count = 0;
        if (diff_chance(d, 50))
            diff_read(d, diff_leader(d, account), account);
        else
            diff_write(d);
    }
    free(diff_sql(d, DIFF_HOLDER, state, "ROLLBACK"));
    mem_unlock_row(d->mem_holder);
}

/* ---- operators ---- */

static void pause_account(struct diff *d, const struct mem_account *a)
{
    char state[6];
    struct err err;
    free(diff_sql(d, DIFF_ADMIN, state, "SELECT txrelay.account_pause('%s', 'maintenance')",
                  a->alias));
    mem_account_pause(d->mem_admin, a->alias, "maintenance", &err);
    compare_end(d, state, &err);
}

static struct mem_policy some_policy(struct diff *d)
{
    struct mem_policy p = {.tip_start = diff_below(d, 30),
                           .tip_step = diff_below(d, 10),
                           .tip_cap = diff_below(d, 90),
                           .has_tip_cap = diff_chance(d, 60),
                           .tip_step_percent = (uint32_t)diff_below(d, 60),
                           .tip_after_blocks = (uint32_t)diff_below(d, 3),
                           .skip_after_blocks = (uint32_t)diff_below(d, 3),
                           .requeue_usurped = diff_chance(d, 50),
                           .strict = diff_chance(d, 10)};
    return p;
}

/* All keys each time: the memory database has the whole policy. */
void diff_policy(struct diff *d, const struct mem_account *a, const struct mem_policy *p)
{
    char state[6], cap[40] = "null";
    struct err err;
    if (p->has_tip_cap)
        snprintf(cap, sizeof(cap), "%llu", (unsigned long long)p->tip_cap);
    free(diff_sql(d, false, state,
                  "SELECT txrelay.account_policy('%s', '{\"tip_start\": %llu, \"tip_step\": %llu, "
                  "\"tip_cap\": %s, \"tip_step_percent\": %u, \"tip_after_blocks\": %u, "
                  "\"skip_after_blocks\": %u, \"usurped\": \"%s\", \"order\": \"%s\"}')",
                  a->alias, (unsigned long long)p->tip_start, (unsigned long long)p->tip_step, cap,
                  p->tip_step_percent, p->tip_after_blocks, p->skip_after_blocks,
                  p->requeue_usurped ? "requeue" : "fail", p->strict ? "strict" : "any"));
    mem_account_policy(d->mem_admin, a->alias, p, &err);
    compare_end(d, state, &err);
}

static void reconcile(struct diff *d, const struct mem_account *a)
{
    char state[6];
    struct err err;
    int64_t block = (int64_t)diff_below(d, 40) - 1;
    if (block < 0)
        free(diff_sql(d, DIFF_ADMIN, state, "SELECT txrelay.account_reconcile('%s')", a->alias));
    else
        free(diff_sql(d, DIFF_ADMIN, state, "SELECT txrelay.account_reconcile('%s', %lld)",
                      a->alias, (long long)block));
    mem_account_reconcile(d->mem_admin, a->alias, block, &err);
    compare_end(d, state, &err);
}

static void rewind_account(struct diff *d, const struct mem_account *a)
{
    char state[6];
    struct err err;
    free(diff_sql(d, DIFF_ADMIN, state, "SELECT txrelay.account_rewind('%s')", a->alias));
    mem_account_rewind(d->mem_admin, a->alias, &err);
    compare_end(d, state, &err);
}

/* ---- the world ---- */

/* The options of what has ended. A record never changes, so its triggers are switched off. */
static void pass_options(struct diff *d, const char *by)
{
    char text[500];
    snprintf(text, sizeof(text),
             "UPDATE txrelay.finished_transactions SET options = options || "
             "jsonb_strip_nulls(jsonb_build_object('not_before', (options ->> "
             "'not_before')::timestamptz - %s, 'deadline', (options ->> 'deadline')::timestamptz "
             "- %s)) WHERE options ?| '{not_before,deadline}'",
             by, by);
    free(diff_admin(d, "SET session_replication_role = replica"));
    free(diff_admin(d, text));
    free(diff_admin(d, "SET session_replication_role = origin"));
}

/* Rows of an open transaction are not seen, and have no times. */
static void pass_time(struct diff *d)
{
    char text[1500], by[40];
    int steps = 1 + (int)diff_below(d, 2);
    snprintf(by, sizeof(by), "interval '%d s'", steps * STEP_S);
    snprintf(text, sizeof(text),
             "WITH a AS (UPDATE txrelay.leadership SET expiry_1 = expiry_1 - %s, expiry_2 = "
             "expiry_2 - %s WHERE holder IS NOT NULL), l AS (UPDATE txrelay.relay_leases SET "
             "expiry_1 = expiry_1 - %s, expiry_2 = expiry_2 - %s), m AS (UPDATE txrelay.members "
             "SET heartbeat = heartbeat - %s), o AS (UPDATE txrelay.outbox SET not_before = "
             "not_before - %s, deadline = deadline - %s) "
             "UPDATE txrelay.pending_transactions SET deadline = deadline - %s WHERE deadline IS "
             "NOT NULL",
             by, by, by, by, by, by, by, by);
    buf_printf(&d->said, " %d steps pass", steps);
    free(diff_admin(d, text));
    pass_options(d, by);
    d->shift_us += steps * STEP_US;
    LIST_EACH (p, &d->db->sessions) /* idle for no longer than before */
        CONTAINER_OF(p, struct mem_session, node)->changed_us += steps * STEP_US;
}

/* As after a failover: claims are of another timeline than the server is on. */
static void change_timeline(struct diff *d)
{
    buf_puts(&d->said, " another timeline");
    free(diff_admin(
        d, "UPDATE txrelay.leadership SET timeline = timeline - 1000 WHERE timeline IS NOT NULL"));
    d->db->timeline++;
}

void diff_application(struct diff *d)
{
    const struct mem_account *a = diff_account(d, diff_below(d, ACCOUNTS));
    struct mem_policy policy = some_policy(d);
    switch (diff_below(d, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        diff_enqueue_signed(d);
        return;
    case 5:
    case 6:
    case 7:
    case 8:
        open_transaction(d);
        return;
    case 9:
        pause_account(d, a);
        return;
    case 10:
    case 11:
        diff_policy(d, a, &policy);
        return;
    case 12:
        if (diff_chance(d, 30))
            reconcile(d, a);
        else if (diff_chance(d, 30))
            rewind_account(d, a);
        return;
    case 13:
        if (diff_chance(d, 25))
            change_timeline(d);
        return;
    default:
        if (diff_chance(d, 50))
            pass_time(d);
        return;
    }
}

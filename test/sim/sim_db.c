/* The database of the world: store/mem_db.h on the world's clock. What it tells its sessions
 * goes over their links; restarts and failovers, with commits that are lost, are events of the
 * world. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chain/codec/ss58.h"
#include "election/election.h"
#include "sim.h"
#include "sim_memory.h"

enum { NOBODY_PID = 0 }; /* of sessions that are no relay's: the serials of links begin at 1 */
static const int64_t FIRST_DAY_US =
    1767225600LL * 1000000; /* 2026-01-01: no seed lasts for a day */

int64_t db_now_us(const struct world *w)
{
    return (int64_t)w->now + w->db.offset_us + w->db.ahead_us;
}

static int64_t now_us(void *arg)
{
    return db_now_us(arg);
}

/* ---- what it tells ---- */

static void hex_of(char *out, const uint8_t *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * len] = 0;
}

static void time_text(char *out, size_t size, int64_t us)
{
    int64_t in_day = us - FIRST_DAY_US, second = in_day / 1000000;
    snprintf(out, size, "2026-01-01T%02d:%02d:%02d.%06dZ", (int)(second / 3600),
             (int)(second / 60 % 60), (int)(second % 60), (int)(in_day % 1000000));
}

struct text {
    char data[1024];
    size_t len;
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    t->len += (size_t)vsnprintf(t->data + t->len, sizeof(t->data) - t->len, fmt, ap);
    va_end(ap);
    INVARIANT(t->len < sizeof(t->data));
}

/* As change_text, removal_text and tell_leader of schema/ write them. */
static void payload_of(struct text *t, const struct mem_notice *n)
{
    char hex[65], at[40];
    if (n->channel == MEM_OUTBOX_WAKE) {
        put(t, "%d", n->account);
        return;
    }
    if (n->channel == MEM_LEADER_CHANGE) {
        put(t, "{\"account\":%d,\"holder\":\"%s\",\"address\":\"%s\",\"epoch\":%" PRId64 "}",
            n->account, n->holder ? n->holder : "", n->address ? n->address : "", n->epoch);
        return;
    }
    hex_of(hex, n->account_id.data, n->account_id.len);
    put(t, "{\"account_id\":\"0x%s\"", hex);
    if (n->nonce >= 0)
        put(t, ",\"nonce\":%" PRId64, n->nonce);
    if (n->id)
        put(t, ",\"id\":%" PRId64, n->id);
    if (n->outcome)
        put(t, ",\"outcome\":\"%s\"", n->outcome);
    if (n->channel != MEM_TX_REMOVED) {
        hex_of(hex, n->hash, 32);
        time_text(at, sizeof(at), n->updated_us);
        put(t, ",\"hash\":\"0x%s\",\"state\":\"%s\",\"updated_at\":\"%s\"", hex, n->state, at);
        if (n->block_hash) {
            hex_of(hex, n->block_hash, 32);
            put(t, ",\"block_hash\":\"0x%s\"", hex);
        }
    }
    put(t, "}");
}

static const char *channel_name(enum mem_channel c)
{
    return c == MEM_LEADER_CHANGE ? "leader_change"
           : c == MEM_OUTBOX_WAKE ? "outbox_wake"
           : c == MEM_TX_NEW      ? "pending_tx_new"
           : c == MEM_TX_UPDATE   ? "pending_tx_update"
                                  : "pending_tx_removed";
}

static struct session *session_of(struct world *w, struct mem_session *s)
{
    void *owner = mem_session_owner(s);
    struct session *first = w->db.sessions, *at = owner;
    return at >= first && at < first + SESSIONS ? at : NULL;
}

static void on_notice(void *arg, struct mem_session *to, const struct mem_notice *n)
{
    struct world *w = arg;
    struct session *s = session_of(w, to);
    struct text t = {.len = 0};
    if (!s) { /* the auditor's */
        audit_told(w, n);
        return;
    }
    payload_of(&t, n);
    session_notify(w, s, w->db.running ? (int)w->db.running->serial : NOBODY_PID,
                   channel_name(n->channel), t.data);
}

void db_forge(struct world *w, const struct mem_notice *n)
{
    struct text t = {.len = 0};
    payload_of(&t, n);
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s = &w->db.sessions[i];
        if (s->serial && s->process >= RELAYS)
            session_notify(w, s, NOBODY_PID, channel_name(n->channel), t.data);
    }
}

/* ---- sessions ---- */

struct mem_session *db_session(struct world *w, struct session *s, unsigned channels)
{
    struct memory *before = memory_use(NULL); /* a process connects: the session is the server's */
    struct mem_session *m = mem_session_new(w->db.mem, s, w->plan.use_lock);
    mem_session_listen(m, channels);
    memory_use(before);
    return m;
}

void db_session_end(struct world *w, struct session *s)
{
    (void)w;
    if (s->mem)
        mem_session_end(s->mem);
    s->mem = NULL;
}

void db_session_active(struct session *s)
{
    if (s->mem)
        mem_session_active(s->mem);
}

/* leader_evict, or the end of the server. */
static void on_session_end(void *arg, struct mem_session *m)
{
    struct world *w = arg;
    struct session *s = session_of(w, m);
    if (s) {
        s->mem = NULL;
        session_end(w, s, true, w->now + latency(w));
    } else {
        holder_ended(w, m);
    }
}

static bool lead_held(void *arg, const struct mem_session *s, int32_t account)
{
    return session_lead_held(arg, s, account - 1);
}

static void open_desk(struct world *w)
{
    w->db.desk = mem_session_new(w->db.mem, NULL, w->plan.use_lock);
    mem_session_listen(w->db.desk, MEM_TX_REMOVED); /* audit_told */
}

/* ---- the beginning ---- */

static void enroll(struct world *w, int account)
{
    uint8_t id[32], genesis[32];
    char address[SS58_TEXT_MAX + 8];
    struct err err;
    account_id(account, id);
    hash_of_block(0, genesis);
    ss58_encode(id, 42, address);
    struct store_enroll r = {.alias = account_alias(account),
                             .scheme = "sr25519",
                             .address = address,
                             .account_id = {id, 32},
                             .genesis = {genesis, 32},
                             .lock_key = election_lock_key(genesis, id, 32),
                             .watch_only = w->plan.keyless[account],
                             .era_longest = manager_era_longest(w->plan.era),
                             .era_immortal = !w->plan.era};
    mem_session_run(w->db.desk, MEM_REQUEST_enroll, &r.req);
    INVARIANT(!r.req.err.code && r.account == account + 1);
    const struct policy *p = &w->plan.policy[account];
    struct mem_policy policy = {.tip_start = p->tip_start,
                                .tip_step = p->tip_step,
                                .has_tip_cap = p->tip_cap >= 0,
                                .tip_cap = p->tip_cap >= 0 ? (u128)p->tip_cap : 0,
                                .has_low_balance = true,
                                .low_balance = 10,
                                .tip_step_percent = p->tip_step_percent,
                                .tip_after_blocks = p->tip_after_blocks,
                                .skip_after_blocks = p->skip_after_blocks,
                                .requeue_usurped = p->requeue_usurped};
    int rc = mem_account_policy(w->db.desk, account_alias(account), &policy, &err);
    INVARIANT(!rc);
}

void db_start(struct world *w)
{
    struct db *d = &w->db;
    memset(d, 0, sizeof(*d));
    d->up = true;
    d->offset_us = FIRST_DAY_US;
    d->ahead_us = 0;
    d->mem = mem_db_new(&(struct mem_db_config){.now_us = now_us,
                                                .on_notice = on_notice,
                                                .on_session_end = on_session_end,
                                                .lead_held = lead_held,
                                                .arg = w});
    open_desk(w);
    for (int a = 0; a < w->plan.accounts; a++)
        enroll(w, a);
}

void db_end(struct world *w)
{
    for (int i = 0; i < SESSIONS; i++)
        if (w->db.sessions[i].serial)
            session_end(w, &w->db.sessions[i], false, 0);
    w->db.standby = mem_copy_free(w->db.standby);
    w->db.mem = mem_db_free(w->db.mem);
    w->db.desk = NULL;
}

/* ---- restart, failover ---- */

static void db_back(struct world *w, struct event *e)
{
    if (w->db.starts == e->a)
        w->db.up = true;
}

static void end_sessions(struct world *w, uint64_t down)
{
    w->db.up = false;
    w->db.starts++;
    for (int i = 0; i < SESSIONS; i++)
        if (w->db.sessions[i].serial)
            session_end(w, &w->db.sessions[i], true,
                        w->now +
                            (chance(w, 80) ? latency(w) : between(w, 5 * SECOND, 35 * SECOND)));
    app_database_lost(w);
    later(w, down, "db is up", db_back)->a = w->db.starts;
}

void db_stop(struct world *w, uint64_t down)
{
    end_sessions(w, down);
    mem_db_restart(w->db.mem);
    open_desk(w);
}

struct standing {
    int stage;
    int64_t nonce;
    int outcome;
};

static struct standing standing_of(const struct world *w, int64_t id)
{
    const struct mem_row *r = mem_row_of(w->db.mem, id);
    const struct mem_finished *f = r ? NULL : mem_finished_of(w->db.mem, id);
    return (struct standing){.stage = r   ? 1 + (r->table == MEM_PENDING)
                                      : f ? 3
                                          : 0,
                             .nonce = r && r->table == MEM_PENDING ? r->nonce
                                      : f                          ? f->nonce
                                                                   : -1,
                             .outcome = f ? (int)f->outcome : 0};
}

/* The standby becomes the primary. With `lossy` it lacks what was committed since it fell
 * behind. */
void db_failover(struct world *w, bool lossy)
{
    static struct standing before[IDS];
    struct db *d = &w->db;
    bool loses = lossy && d->standby_behind;
    end_sessions(w, between(w, SECOND, 4 * SECOND));
    if (d->ahead_us != w->plan.step_us)
        d->stepped_at = w->now;
    d->ahead_us = w->plan.step_us;
    for (int64_t id = 1; id < w->next_id; id++)
        before[id] = standing_of(w, id);
    mem_db_promote(d->mem, loses ? d->standby : NULL);
    open_desk(w);
    if (!loses)
        return;
    for (int64_t id = 1; id < w->next_id; id++) {
        struct standing now = standing_of(w, id);
        if (!memcmp(&now, &before[id], sizeof(now)))
            continue;
        w->was_failed_over[id] = true;
        if (!now.stage) /* the application's commit itself is lost */
            w->must_end[id] = false;
    }
    d->lossy = true;
    d->standby = mem_copy_free(d->standby);
    d->standby_behind = false;
    note(w, "failover with loss");
}

void db_fall_behind(struct world *w)
{
    w->db.standby = mem_copy_new(w->db.mem); /* from now on it gets nothing */
    w->db.standby_behind = true;
}

/* ---- what stands in it ---- */

const struct mem_account *db_account(const struct world *w, int account)
{
    return mem_account_at(w->db.mem, account + 1);
}

/* Commits may be lost, and the account is not reconciled with the chain. */
bool db_doubtful(const struct world *w, int account)
{
    const struct mem_account *a = db_account(w, account);
    return a->reconcile_from >= 0 || a->lead.timeline != mem_db_timeline(w->db.mem);
}

/* What lost commits have sent may take effect beside a new attempt: bytes without an era, and where
 * no era is waited for. */
bool db_may_double(const struct world *w)
{
    return w->db.lossy && (!w->plan.era || w->plan.lost_search);
}

bool db_ended(const struct world *w, int64_t id)
{
    return mem_finished_of(w->db.mem, id) != NULL && !mem_row_of(w->db.mem, id);
}

uint32_t tx_of_row(const struct world *w, const struct mem_row *r)
{
    return r->at && r->at->count ? tx_of_hash(w, r->at->attempts[r->at->count - 1].hash) : 0;
}

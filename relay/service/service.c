/* Life of the service: parts come up in any order, accounts are registered once the store is up and the
 * chain's genesis is known, leadership begins; at the end everything is released and closed in order. */
#include "relay/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { HEALTH_MS = 10000 };

/* ---- accounts ---- */

struct account *service_account_by_row(struct service *s, int32_t store_account)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (s->accounts[i].store_account == store_account)
            return &s->accounts[i];
    return NULL;
}

struct account *service_account_by_name(struct service *s, const char *name)
{
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len;
    struct account *a = NULL;
    for (size_t i = 0; i < s->account_count; i++)
        if (!strcmp(s->accounts[i].alias, name))
            return &s->accounts[i];
    if (account_id_parse(name, id, &len))
        HASH_FIND(hh, s->by_id, id, (unsigned)len, a);
    return a;
}

void service_fail(struct service *s, const struct err *err)
{
    log_error("relay.failed", "code=%s text=\"%s\"", err_name(err->code), err->text);
    if (s->config.on_exit)
        s->config.on_exit(s->config.arg, err);
}

/* ---- registration ---- */

struct registering {
    struct store_enroll req;
    struct account *account;
};

static void start_leading(struct service *s)
{
    s->phase = SERVICE_RUNNING;
    log_info("relay.running", "relay=%s holder=%s accounts=%zu role=%s", s->name, s->holder, s->account_count,
             s->standalone ? "standalone" : "follower");
    if (s->standalone) {
        standalone_promote(s);
        return;
    }
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        int index = election_add(s->election, a->store_account, a->lock_key, a->alias);
        INVARIANT(index == a->index);
        const uint8_t *genesis = node_info(s->node)->genesis;
        election_place(s->election, index, (uint64_t)election_lock_key(genesis, a->id, a->id_len));
    }
    election_store_state(s->election, STORE_UP);
}

static void registered(struct store_req *req)
{
    struct registering *r = CONTAINER_OF(req, struct registering, req.req);
    struct account *a = r->account;
    struct service *s = a->service;
    struct err err = req->err;
    s->registering--;
    if (!err.code)
        a->store_account = r->req.account;
    store_req_done(req);
    free(r);
    service_op_done(s);
    if (err.code && err_class(err.code) != ERR_CLASS_RETRY && err_class(err.code) != ERR_CLASS_CANCELED)
        service_fail(s, &err);
    if (s->registering || s->phase != SERVICE_STARTING)
        return;
    for (size_t i = 0; i < s->account_count; i++)
        if (!s->accounts[i].store_account)
            return; /* tried again when the store comes back */
    start_leading(s);
}

void service_register(struct service *s)
{
    const struct node_info *info = node_info(s->node);
    if (s->phase != SERVICE_STARTING || !s->store_up || !info || s->registering)
        return;
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = &s->accounts[i];
        struct registering *r = xcalloc(1, sizeof(*r));
        if (a->id_len == 32)
            ss58_encode(a->id, info->ss58_prefix, a->address);
        else
            snprintf(a->address, sizeof(a->address), "%s", hex_log(a->id, a->id_len));
        if (!a->has_lock_key)
            a->lock_key = election_lock_key(info->genesis, a->id, a->id_len);
        r->account = a;
        r->req.alias = a->alias;
        r->req.scheme = key_scheme_name(a->scheme);
        r->req.address = a->address;
        r->req.account_id = (struct store_bytes){a->id, a->id_len};
        r->req.genesis = (struct store_bytes){info->genesis, 32};
        r->req.lock_key = a->lock_key;
        r->req.watch_only = !a->key;
        s->registering++;
        s->ops++;
        store_enroll_start(s->store, &r->req, registered);
    }
}

/* ---- the store's and the listener's news ---- */

static void stale_line(struct service *s)
{
    log_error("database.unreachable",
              "relay=%s role=follower sending=never view=stale since_s=%llu text=\"no transaction is sent "
              "until the "
              "database is back\"",
              s->name, (unsigned long long)((loop_now_ms(s->loop) - s->stale_since_ms) / 1000));
}

/* The store says what is new. At the start nothing was up before it; later a server that was away may be back
 * as a standby. */
static void tell_reason(struct service *s, const struct err *err)
{
    s->down_code = err->code;
    log_warn("database.down", "code=%s text=\"%s\"", err_name(err->code), err->text);
}

static void on_health(void *arg)
{
    struct service *s = arg;
    if (s->store_up)
        return;
    stale_line(s);
    loop_timer_at(s->health, loop_now_ms(s->loop) + HEALTH_MS);
}

static void on_store_state(void *arg, enum store_state state, const struct err *err)
{
    struct service *s = arg;
    bool up = state == STORE_UP;
    bool permanent = err && err_class(err->code) == ERR_CLASS_PERMANENT;
    if (up == s->store_up && !permanent) {
        if (!up && err && err->code != s->down_code)
            tell_reason(s, err);
        return;
    }
    s->store_up = up;
    s->down_code = 0;
    if (up) {
        s->was_up = true;
        log_info("database.up", "relay=%s", s->name);
        loop_timer_stop(s->health);
    } else {
        s->stale_since_ms = loop_now_ms(s->loop);
        if (err)
            tell_reason(s, err);
        stale_line(s);
        loop_timer_at(s->health, loop_now_ms(s->loop) + HEALTH_MS);
    }
    if (s->phase == SERVICE_RUNNING && s->election)
        election_store_state(s->election, state);
    /* Without locks an account is still led: its tenure outlives the sessions, and what is there now may be a
     * standby. With locks it was demoted with the control session. */
    bool lockless = !s->standalone && !s->config.elector.use_lock;
    for (size_t i = 0; up && lockless && i < s->account_count; i++)
        if (s->accounts[i].role == ACCOUNT_LEADER)
            account_event(&s->accounts[i], &(struct manager_event){.type = MANAGER_EV_STORE_BACK});
    /* A login, right or schema that is refused at the start will not mend itself. */
    if (permanent && !s->was_up && s->phase == SERVICE_STARTING) {
        service_fail(s, err);
        return;
    }
    service_register(s);
}

static void on_control_lost(void *arg)
{
    struct service *s = arg;
    for (size_t i = 0; i < s->account_count; i++)
        account_wake(&s->accounts[i], WAKE_EV_CONTROL_LOST);
    if (s->phase == SERVICE_RUNNING)
        election_control_lost(s->election);
}

static void on_wake(void *arg, int32_t store_account)
{
    struct account *a = service_account_by_row(arg, store_account);
    if (!a || a->role != ACCOUNT_LEADER)
        return;
    account_wake(a, WAKE_EV_RING);
    account_event(a, &(struct manager_event){.type = MANAGER_EV_LOOK}); /* it may be a cancellation */
}

static void on_leader_change(void *arg, const struct listen_leader *change)
{
    struct service *s = arg;
    if (s->phase == SERVICE_RUNNING)
        election_leader_change(s->election, change->account, change->holder, change->address, change->epoch);
}

static void on_promote(void *arg, int index, int64_t epoch)
{
    struct service *s = arg;
    account_promote(&s->accounts[index], epoch);
}

static void on_demote(void *arg, int index, const char *reason)
{
    struct service *s = arg;
    account_demote(&s->accounts[index], reason);
}

static void on_gate(void *arg, int index, bool open)
{
    struct service *s = arg;
    struct account *a = &s->accounts[index];
    log_info(open ? "gate.open" : "gate.shut", "account=%s epoch=%lld", a->alias, (long long)a->epoch);
    if (open && a->role == ACCOUNT_LEADER)
        account_event(a, &(struct manager_event){.type = MANAGER_EV_GATE_OPEN});
}

static void on_leave(void *arg, int index, const char *reason)
{
    struct service *s = arg;
    service_leave(s, &s->accounts[index], reason);
}

/* Another relay's node has it: this one's may be behind. */
static void on_others_best(void *arg, uint64_t block)
{
    struct service *s = arg;
    node_expect_height(s->node, block);
}

/* ---- construction ---- */

/* <network>-<relay>-<hostname>-<pid>-<uuid> (L01). The relay's name stands where the source has the account:
 * one statement renews all accounts of a relay, and the account is the row that the holder is stored in. */
static char *identity(struct loop *l, const char *name)
{
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    return xasprintf("txrelay-%s-%s-%ld-%08llx%08llx", name, host, (long)getpid(),
                     (unsigned long long)(loop_seed(l) & 0xffffffff),
                     (unsigned long long)(loop_seed(l) & 0xffffffff));
}

static int open_database(struct service *s)
{
    const struct service_config *c = &s->config;
    struct store_pg_config pg = {
        .control_dsn = c->control_dsn,
        .work_dsn = c->work_dsn,
        .application_name = s->holder,
        .use_lock = c->elector.use_lock,
        /* An answer that comes later is of no use to a claim, and a session that gives none cannot be led by.
         */
        .control_answer_ms = elector_config_defaults(&c->elector).expiry_1_ms,
        .on_state = on_store_state,
        .on_control_lost = on_control_lost,
        .arg = s,
    };
    struct election_config election = {
        .core = c->elector,
        .holder = s->holder,
        .address = s->control_address ? s->control_address : "",
        .on_promote = on_promote,
        .on_demote = on_demote,
        .on_gate = on_gate,
        .on_leave = on_leave,
        .on_best = on_others_best,
        .arg = s,
    };
    struct listen_config listen = {
        .dsn = c->listen_dsn ? c->listen_dsn : c->control_dsn,
        .name = s->holder,
        .signals_only = true,
        .on_wake = on_wake,
        .on_leader_change = on_leader_change,
        .arg = s,
    };
    s->store = store_pg_new(s->loop, &pg);
    s->election = election_new(s->loop, s->store, &election);
    s->listen = listen_new(s->loop, &listen);
    service_retention_new(s);
    service_rounds_new(s);
    service_polls_new(s);
    return 0;
}

struct service *service_new(struct loop *l, const struct service_config *config, struct err *err)
{
    struct service *s = xcalloc(1, sizeof(*s));
    char host[256] = "relay";
    gethostname(host, sizeof(host) - 1);
    s->loop = l;
    list_init(&s->sendings);
    s->config = *config;
    s->name = xstrdup(config->name ? config->name : host);
    s->holder = config->holder ? xstrdup(config->holder) : identity(l, s->name);
    s->standalone = config->control_dsn == NULL;
    s->stale_since_ms = loop_now_ms(l);
    s->health = loop_timer_new(l, on_health, s);
    service_handover_new(s);
    s->accounts = xcalloc(config->account_count, sizeof(*s->accounts));
    service_pool_new(s);
    for (size_t i = 0; i < config->account_count; i++)
        account_init(&s->accounts[i], s, (int)i, &config->accounts[i]);
    s->account_count = config->account_count;
    int rc = control_open(s, err);
    if (rc == 0)
        rc = service_chain_new(s, err);
    if (rc == 0 && s->standalone)
        standalone_new(s);
    else if (rc == 0)
        rc = open_database(s);
    if (rc == 0)
        return s;
    service_free(s);
    return NULL;
}

void service_open(struct service *s)
{
    if (s->standalone) {
        log_warn("relay.standalone",
                 "relay=%s text=\"no database is configured: no failover, nothing survives this "
                 "process\"",
                 s->name);
    } else {
        loop_timer_at(s->health, loop_now_ms(s->loop) + HEALTH_MS);
        listen_open(s->listen);
    }
    store_open(s->store);
    node_open(s->node);
}

/* ---- the end ---- */

void service_free(struct service *s)
{
    for (size_t i = 0; i < s->account_count; i++)
        account_done(&s->accounts[i]);
    s->control = loop_server_close(s->control);
    s->input = loop_stream_close(s->input);
    s->health = loop_timer_close(s->health);
    service_handover_free(s);
    service_retention_free(s);
    service_rounds_free(s);
    service_polls_free(s);
    service_pool_free(s);
    free(s->accounts);
    free(s->control_address);
    free(s->name);
    free(s->holder);
    free(s);
}

static void finish(struct service *s)
{
    if (s->closing || s->ops)
        return;
    void (*cb)(void *arg) = s->stop_cb;
    void *arg = s->stop_arg;
    service_free(s);
    cb(arg);
}

void service_op_done(struct service *s)
{
    INVARIANT(s->ops > 0);
    s->ops--;
    if (s->phase == SERVICE_CLOSING)
        finish(s);
}

static void part_closed(void *arg)
{
    struct service *s = arg;
    s->closing--;
    finish(s);
}

static void store_after_election(void *arg)
{
    struct service *s = arg;
    store_close(s->store, part_closed, s);
}

static void drained(void *arg)
{
    struct service *s = arg;
    s->phase = SERVICE_CLOSING;
    log_info("relay.released", "relay=%s", s->name);
    service_retention_stop(s);
    service_rounds_stop(s);
    service_polls_stop(s);
    for (size_t i = 0; i < s->account_count; i++) {
        account_demote(&s->accounts[i], "stopping");
        account_unwatch_all(&s->accounts[i]);
    }
    s->closing = 2; /* node; store, by way of the election */
    if (s->election)
        election_close(s->election, store_after_election, s);
    else
        store_close(s->store, part_closed, s);
    node_close(s->node, part_closed, s);
    if (s->listen) {
        s->closing++;
        listen_close(s->listen, part_closed, s);
    }
}

/* Draining goes on when no account is leaving any more, whether it settled or was lost. */
void service_settled(struct service *s)
{
    if (s->phase != SERVICE_DRAINING || s->released)
        return;
    s->released = true;
    election_drain(s->election, drained, s);
}

void service_stop(struct service *s, void (*cb)(void *arg), void *arg)
{
    PRE(s->phase != SERVICE_DRAINING && s->phase != SERVICE_CLOSING);
    bool running = s->phase == SERVICE_RUNNING;
    s->stop_cb = cb;
    s->stop_arg = arg;
    s->phase = SERVICE_DRAINING;
    if (!running || !s->election) {
        drained(s);
        return;
    }
    election_retire(s->election);
    loop_timer_at(s->settle, loop_now_ms(s->loop)); /* also when nothing is led */
}

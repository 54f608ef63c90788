#include "store_fixture.h"
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct store_req *fx_last_done;

void fx_on_done(struct store_req *req)
{
    assert_null(fx_last_done);
    fx_last_done = req;
}

static void on_state(void *arg, enum store_state state, const struct err *err)
{
    struct fx_store *x = arg;
    if (state == STORE_UP) {
        assert_null(err);
        x->ups++;
        return;
    }
    x->downs++;
    x->down_err = *err;
}

static void on_control_lost(void *arg)
{
    ((struct fx_store *)arg)->control_lost++;
}

static void on_event(void *arg, const char *kind, int32_t account, int64_t nonce, int64_t id,
                     const char *state, const uint8_t hash[32], const char *outcome,
                     const char *error)
{
    (void)account;
    (void)id;
    struct fx_store *x = arg;
    x->events++;
    snprintf(x->event, sizeof(x->event), "%s %d %s %02x%02x %s %s", kind, (int)nonce, state,
             hash[0], hash[1], outcome ? outcome : "-", error ? error : "-");
}

static void on_wake(void *arg, int32_t account)
{
    assert_true(account > 0);
    ((struct fx_store *)arg)->wakes++;
}

void fx_store_pg(struct fx_store *x, struct loop *l, struct store_pg_config *config)
{
    *x = (struct fx_store){.l = l, .is_pg = true};
    config->on_state = on_state;
    config->on_control_lost = on_control_lost;
    config->arg = x;
    if (!config->application_name)
        config->application_name = "txtest";
    x->s = store_pg_new(l, config);
    store_open(x->s);
}

void fx_store_mem(struct fx_store *x, struct loop *l)
{
    *x = (struct fx_store){.l = l};
    x->s = store_mem_new(
        l, &(struct store_mem_config){
               .on_state = on_state, .on_event = on_event, .on_wake = on_wake, .arg = x});
    store_open(x->s);
}

void fx_store_up(struct fx_store *x)
{
    assert_int_equal(store_state(x->s), STORE_DOWN);
    WAIT_FOR(x->l, x->ups == 1);
    assert_int_equal(store_state(x->s), STORE_UP);
}

static void on_closed(void *arg)
{
    ((struct fx_store *)arg)->closed = true;
}

void fx_store_close(struct fx_store *x)
{
    store_close(x->s, on_closed, x);
    assert_false(x->closed);
    WAIT_FOR(x->l, x->closed);
}

/* ---- migration ---- */

struct migration {
    struct migrate m;
    bool done;
};

static void on_migrated(struct migrate *m)
{
    CONTAINER_OF(m, struct migration, m)->done = true;
}

void fx_migrate(const char *dsn)
{
    struct loop *l = loop_new();
    struct migration x = {0};
    migrate_start(l, &x.m, dsn, on_migrated);
    WAIT_FOR(l, x.done);
    if (x.m.err.code)
        fail_msg("migrate: %s", x.m.err.text);
    loop_free(l);
}

/* ---- accounts and rows ---- */

void fx_hash(uint8_t out[32], int n)
{
    memset(out, 0x5a, 32);
    out[0] = (uint8_t)n;
    out[1] = (uint8_t)(n >> 8);
    out[2] = (uint8_t)(n >> 16);
}

void fx_account_new(struct fx_store *x, struct fx_account *a)
{
    static int count; /* other tests use the same database */
    uint8_t id[32] = {0}, genesis[32] = {7};
    int n = ++count;
    int pid = (int)getpid();
    memcpy(id, &n, sizeof(n));
    memcpy(id + 8, &pid, sizeof(pid));
    *a = (struct fx_account){.lock_key = (int64_t)pid << 20 | n};
    if (n % 2)
        a->lock_key = -a->lock_key; /* both signs of the key */
    snprintf(a->alias, sizeof(a->alias), "acc-%d-%d", pid, n);
    struct store_enroll r = {.alias = a->alias,
                             .scheme = "sr25519",
                             .address = "5Grw",
                             .account_id = {id, 32},
                             .genesis = {genesis, 32},
                             .lock_key = a->lock_key,
                             .era_longest = 4096,
                             .era_immortal = true};
    RUN_OK(x, enroll, &r);
    assert_true(r.account > 0);
    a->account = r.account;
}

void fx_account_claim(struct fx_store *x, struct fx_account *a, const char *holder)
{
    struct store_lock lock = {.lock_key = a->lock_key};
    RUN_OK(x, lock, &lock);
    assert_true(lock.got);
    struct store_claim r = {.account = a->account,
                            .holder = holder,
                            .address = "host:1",
                            .have_lock = true,
                            .expiry_1_ms = 60000,
                            .expiry_2_ms = 120000};
    RUN_OK(x, claim, &r);
    assert_true(r.granted);
    assert_string_equal(r.current_holder, holder);
    a->epoch = r.epoch;
    store_req_done(&r.req);
}

int64_t fx_enqueue(struct fx_store *x, const struct fx_account *a, const char *call,
                   int32_t priority)
{
    struct store_enqueue r = {.account = a->alias,
                              .call = {(const uint8_t *)call, strlen(call)},
                              .priority = priority,
                              .creator = "tester"};
    RUN_OK(x, enqueue, &r);
    assert_true(r.id > 0);
    return r.id;
}

void fx_admit(struct fx_store *x, struct fx_account *a, int64_t first, size_t n)
{
    struct store_attempt_row *rows = xcalloc(n, sizeof(*rows));
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct store_attempt_row){.id = fx_enqueue(x, a, "call", 0),
                                             .nonce = first + (int64_t)i,
                                             .extrinsic = {(const uint8_t *)"signed bytes", 12},
                                             .era_birth = 64,
                                             .era_death = 128};
        fx_hash(rows[i].hash, (int)rows[i].nonce);
    }
    struct store_attempts r = {.account = a->account,
                               .epoch = a->epoch,
                               .spec_version = 1003,
                               .transaction_version = 26,
                               .block = 77,
                               .count = n,
                               .rows = rows};
    RUN_OK(x, admit, &r);
    assert_int_equal(r.next_nonce, first + (int64_t)n);
    free(rows);
}

/* A relay's accounts over a table that changes, on virtual time, from a seed: applications enqueue
 * with the doorbell's rule or in silence, cancel and set deadlines; answers take time, fail or
 * never come; leaderships and sessions come and go. Checked at every step:
 *
 *   - one query of a kind for one account at a time, until it is given up
 *   - whatever is there to be found is found within its bound, wakeups within that of a round trip
 *   - an account that a sweep covers sends nothing because time has passed
 *   - the number of statements of accounts that have nothing to do has a bound
 *
 * TXRELAY_POLL_SEEDS: how many seeds; TXRELAY_POLL_SEED: that one alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"
#include "relay/core/poll/poll.h"

enum { MOST = 12, SECONDS = 40, SLOWEST_MS = 30, NEVER_ANSWERED = 2000 };
#define NEVER UINT64_MAX

struct query {
    struct poll_effect fx;
    uint64_t sent, at; /* when it is read, then when the answer comes; NEVER: lost */
    bool used, read, failed, found;
    size_t list[MOST];
    int64_t fingerprints[MOST];
    struct poll_found founds[MOST];
    size_t found_count;
    int64_t fingerprint, next_ms;
    unsigned rows, requests; /* that it read */
    uint64_t read_at;
    bool late;
};

struct account {
    bool led, loaded;
    uint64_t tenure, since, serial;
    bool bell;              /* the control session holds the doorbell */
    unsigned shared;        /* open transactions that hold it shared: no one is rung for */
    unsigned loud;          /* open ones that will notify */
    unsigned rows, request; /* that can be found */
    uint64_t rows_since, request_since; /* NEVER: there are none */
    uint64_t time;                      /* the next deadline in the table; NEVER: none */
    uint64_t facts, told, facts_since;
    uint64_t rings[8]; /* notifications on their way */
    size_t ring_count;
};

struct world {
    struct rng rng;
    struct poll *poll;
    struct poll_config config;
    uint64_t now, seed;
    struct account accounts[MOST];
    struct query queries[8 * MOST];
    uint64_t outages_until; /* answers may fail until then */
    uint64_t moved;
    unsigned statements;
};

static bool chance(struct world *w, uint64_t one_in)
{
    return rng_below(&w->rng, one_in) == 0;
}

static bool rough(const struct world *w)
{
    return w->now < w->outages_until;
}

/* ---- the relay's side ---- */

static void step(struct world *w, struct poll_event ev);

static void check_alone(struct world *w, const struct poll_effect *fx)
{
    for (size_t i = 0; i < ARRAY_LEN(w->queries); i++) {
        const struct query *q = &w->queries[i];
        bool same = q->used && q->fx.query == fx->query &&
                    (fx->accounts || (q->fx.account == fx->account && q->fx.tenure == fx->tenure));
        if (same && fx->query != POLL_QUERY_DISARM && w->now < q->sent + POLL_LOST_MS)
            fail_msg("seed %llu: at %llu two queries %s of account %zu are out",
                     (unsigned long long)w->seed, (unsigned long long)w->now,
                     poll_query_name(fx->query), fx->account);
    }
}

static void check_reason(struct world *w, const struct poll_effect *fx)
{
    if (fx->why == POLL_WHY_SLOW && poll_covered(w->poll, fx->account, w->now))
        assert_true(fx->query == POLL_QUERY_REQUESTS); /* its settings are not known */
}

static void send(struct world *w, const struct poll_effect *fx)
{
    size_t i = 0;
    check_alone(w, fx);
    check_reason(w, fx);
    while (w->queries[i].used)
        assert_true(++i < ARRAY_LEN(w->queries));
    struct query *q = &w->queries[i];
    *q = (struct query){.used = true, .fx = *fx, .sent = w->now};
    q->at = w->now + rng_below(&w->rng, SLOWEST_MS / 2);
    if (rough(w) && chance(w, NEVER_ANSWERED))
        q->at = NEVER;
    for (size_t k = 0; fx->accounts && k < fx->count; k++) {
        q->list[k] = fx->accounts[k];
        q->fingerprints[k] = fx->fingerprints[k];
    }
    w->statements++;
}

static void take(struct world *w)
{
    struct poll_effect fx;
    while (poll_take(w->poll, &fx)) {
        if (!fx.lost)
            send(w, &fx);
    }
    poll_check(w->poll);
}

static void step(struct world *w, struct poll_event ev)
{
    poll_step(w->poll, w->now, &ev);
    take(w);
}

static void lead(struct world *w, size_t i)
{
    struct account *a = &w->accounts[i];
    a->led = true;
    a->loaded = false;
    a->tenure++;
    a->since = w->now;
    step(w, (struct poll_event){.type = POLL_EV_LED, .account = i});
}

static void follow(struct world *w, size_t i)
{
    w->accounts[i].led = false;
    step(w, (struct poll_event){.type = POLL_EV_NOT_LED, .account = i});
}

static void load(struct world *w, size_t i)
{
    struct account *a = &w->accounts[i];
    a->loaded = true;
    a->since = w->now;
    step(w,
         (struct poll_event){.type = POLL_EV_WANT_REQUESTS, .account = i, .serial = ++a->serial});
    step(w, (struct poll_event){.type = POLL_EV_WANT_ROWS, .account = i, .limit = 4});
}

/* ---- the table ---- */

static void put_rows(struct world *w, struct account *a)
{
    a->rows++;
    if (a->rows_since == NEVER)
        a->rows_since = w->now;
}

static void put_request(struct world *w, struct account *a)
{
    a->request++;
    if (a->request_since == NEVER)
        a->request_since = w->now;
}

static void notify(struct world *w, struct account *a)
{
    if (a->ring_count < ARRAY_LEN(a->rings))
        a->rings[a->ring_count++] = w->now + rng_below(&w->rng, SLOWEST_MS / 2);
}

static int64_t next_of(const struct world *w, const struct account *a, uint64_t ahead)
{
    bool near = a->time != NEVER && a->time > w->now && (!ahead || a->time <= w->now + ahead);
    return near ? (int64_t)(a->time - w->now) : -1;
}

static bool late(const struct world *w, const struct account *a)
{
    return a->time <= w->now;
}

static void read_batch(struct world *w, struct query *q)
{
    for (size_t k = 0; k < q->fx.count; k++) {
        const struct account *a = &w->accounts[q->list[k]];
        bool changed = q->fingerprints[k] >= 0 && (uint64_t)q->fingerprints[k] != a->facts;
        struct poll_found f = {.index = k,
                               .has_requests = a->request || late(w, a) || changed,
                               .has_rows = a->rows > 0,
                               .next_ms = next_of(w, a, q->fx.ahead_ms ? q->fx.ahead_ms : 1)};
        if (f.has_requests || f.has_rows || f.next_ms >= 0)
            q->founds[q->found_count++] = f;
    }
}

/* The moment at which the server works on it. */
static void read(struct world *w, struct query *q)
{
    struct account *a = &w->accounts[q->fx.account];
    q->read = true;
    q->failed = rough(w) && q->fx.query != POLL_QUERY_DISARM && chance(w, 40);
    q->at = w->now + rng_below(&w->rng, SLOWEST_MS / 2);
    if (q->failed)
        return;
    q->rows = a->rows;
    q->requests = a->request;
    q->late = late(w, a);
    q->read_at = w->now;
    switch ((int)q->fx.query) {
    case POLL_QUERY_OUTBOX:
        q->found = a->rows > 0;
        return;
    case POLL_QUERY_REQUESTS:
        q->fingerprint = (int64_t)a->facts;
        q->next_ms = next_of(w, a, 0);
        return;
    case POLL_QUERY_ARM:
        q->found = a->bell || !a->shared;
        a->bell = q->found;
        return;
    case POLL_QUERY_DISARM:
        a->bell = false;
        return;
    default:
        read_batch(w, q);
        return;
    }
}

/* ---- answers ---- */

static struct poll_event answer_of(const struct query *q)
{
    static const enum poll_event_type types[POLL_QUERIES][2] = {
        [POLL_QUERY_OUTBOX] = {POLL_EV_NO_ROWS, POLL_EV_ROWS},
        [POLL_QUERY_REQUESTS] = {POLL_EV_REQUESTS, POLL_EV_REQUESTS},
        [POLL_QUERY_ARM] = {POLL_EV_NOT_ARMED, POLL_EV_ARMED},
        [POLL_QUERY_SWEEP] = {POLL_EV_SWEPT, POLL_EV_SWEPT},
        [POLL_QUERY_MERGED] = {POLL_EV_MERGED, POLL_EV_MERGED},
    };
    struct poll_event ev = {
        .type = types[q->fx.query][q->found], .account = q->fx.account, .question = q->fx.question};
    if (q->fx.query == POLL_QUERY_OUTBOX && q->failed)
        ev.type = POLL_EV_OUTBOX_FAILED;
    if (q->fx.query == POLL_QUERY_ARM && q->failed)
        ev.type = POLL_EV_ARM_FAILED;
    if (q->fx.accounts) {
        ev.swept.failed = q->failed;
        ev.swept.found = q->founds;
        ev.swept.count = q->found_count;
    } else if (q->fx.query == POLL_QUERY_REQUESTS) {
        ev.requests.fingerprint = q->fingerprint;
        ev.requests.next_ms = q->next_ms;
        if (q->failed)
            ev.type = POLL_EV_REQUESTS_FAILED;
    }
    return ev;
}

static void told(struct world *w, const struct query *q, bool waited)
{
    struct account *a = &w->accounts[q->fx.account];
    if (!waited || q->failed)
        return;
    if (q->fx.query == POLL_QUERY_REQUESTS) {
        a->request -= q->requests;
        a->request_since = a->request ? q->read_at : NEVER;
        a->told = (uint64_t)q->fingerprint;
        a->facts_since = a->told == a->facts ? NEVER : q->read_at;
        if (q->late)
            a->time = NEVER;
    } else if (q->fx.query == POLL_QUERY_OUTBOX && q->found) {
        a->rows -= q->rows;
        a->rows_since = a->rows ? q->read_at : NEVER;
        step(w,
             (struct poll_event){.type = POLL_EV_WANT_ROWS, .account = q->fx.account, .limit = 4});
    }
}

static void answer(struct world *w, struct query *of)
{
    struct query q = *of;
    of->used = false;
    if (q.fx.query == POLL_QUERY_DISARM)
        return;
    struct poll_event ev = answer_of(&q);
    bool waited = poll_step(w->poll, w->now, &ev);
    take(w);
    told(w, &q, waited);
}

static void queries(struct world *w)
{
    for (size_t i = 0; i < ARRAY_LEN(w->queries); i++) {
        struct query *q = &w->queries[i];
        if (!q->used || q->at > w->now)
            continue;
        if (!q->read)
            read(w, q);
        else
            answer(w, q);
    }
}

/* ---- what happens ---- */

/* Commits are seen before their locks go, and before who listens hears of them. */
static void application(struct world *w, struct account *a)
{
    switch (rng_below(&w->rng, 7)) {
    case 0:
        if (a->bell)
            a->loud++;
        else
            a->shared++;
        return;
    case 1:
        if (a->shared && a->shared--)
            put_rows(w, a);
        return;
    case 2:
        if (a->loud && a->loud--) {
            put_rows(w, a);
            notify(w, a);
        }
        return;
    case 3:
        if (!chance(w, 20))
            return;
        put_request(w, a);
        notify(w, a);
        return;
    case 4:
        if (chance(w, 60))
            put_rows(w, a); /* in silence */
        return;
    case 5:
        if (!chance(w, 60))
            return;
        a->facts++; /* nobody notifies */
        a->facts_since = a->facts_since == NEVER ? w->now : a->facts_since;
        return;
    default:
        if (a->time == NEVER && chance(w, 60))
            a->time = w->now + 2000 + rng_below(&w->rng, 20000);
        return;
    }
}

/* The session takes its locks with it, and what is asked of it fails. */
static void control_lost(struct world *w)
{
    for (size_t i = 0; i < w->config.accounts; i++)
        w->accounts[i].bell = false;
    for (size_t i = 0; i < ARRAY_LEN(w->queries); i++) {
        struct query *q = &w->queries[i];
        if (q->used && (q->fx.query == POLL_QUERY_ARM || q->fx.query == POLL_QUERY_DISARM)) {
            q->read = q->failed = true;
            q->found = false;
            q->at = w->now + rng_below(&w->rng, SLOWEST_MS / 2);
        }
    }
    step(w, (struct poll_event){.type = POLL_EV_CONTROL_LOST});
}

static void leaderships(struct world *w)
{
    size_t i = rng_below(&w->rng, w->config.accounts);
    struct account *a = &w->accounts[i];
    if (!a->led && chance(w, 50))
        lead(w, i);
    else if (a->led && !a->loaded && chance(w, 10))
        load(w, i);
    else if (a->led && rough(w) && chance(w, 20000))
        follow(w, i);
    if (rough(w) && chance(w, 8000))
        control_lost(w);
}

static void rings(struct world *w)
{
    for (size_t i = 0; i < w->config.accounts; i++) {
        struct account *a = &w->accounts[i];
        for (size_t k = 0; k < a->ring_count;) {
            if (a->rings[k] > w->now) {
                k++;
                continue;
            }
            a->rings[k] = a->rings[--a->ring_count];
            if (a->led)
                step(w, (struct poll_event){.type = POLL_EV_RANG, .account = i});
        }
    }
}

/* ---- what must hold ---- */

/* While the world is rough, and for the time that it takes to give up a query, only the end
 * counts. */
static uint64_t bound(const struct world *w)
{
    uint64_t own = POLL_SLOW_MS + POLL_COVER_MS + POLL_REST_MS;
    return w->now > w->outages_until + POLL_LOST_MS + own ? POLL_SWEEP_MS + 4 * SLOWEST_MS : NEVER;
}

static void nothing_waits(struct world *w, const struct account *a)
{
    uint64_t most = bound(w);
    uint64_t since[] = {a->rows_since, a->request_since, a->facts_since, a->time};
    for (size_t i = 0; a->led && a->loaded && most != NEVER && i < ARRAY_LEN(since); i++) {
        uint64_t from = since[i] > a->since ? since[i] : a->since;
        if (from != NEVER && w->now > from + most)
            fail_msg("seed %llu: at %llu something of kind %zu waits since %llu",
                     (unsigned long long)w->seed, (unsigned long long)w->now, i,
                     (unsigned long long)from);
    }
}

/* Where a leader sleeps, everything that nobody will notify of was seen. */
static void no_wakeup_is_lost(struct world *w, size_t i)
{
    const struct account *a = &w->accounts[i];
    if (poll_outbox_state(w->poll, i) == POLL_ASLEEP && a->bell && a->rows && !a->ring_count)
        fail_msg("seed %llu: at %llu account %zu sleeps on %u rows", (unsigned long long)w->seed,
                 (unsigned long long)w->now, i, a->rows);
}

static struct world *world_new(uint64_t seed)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->seed = w->rng.state = seed;
    w->config = (struct poll_config){.accounts = 1 + rng_below(&w->rng, MOST),
                                     .seed = rng_next(&w->rng),
                                     .doorbells = !chance(w, 4),
                                     .sweeps = !chance(w, 4)};
    w->now = 1 + rng_below(&w->rng, 1000000);
    w->poll = poll_new(&w->config, w->now);
    for (size_t i = 0; i < MOST; i++)
        w->accounts[i] = (struct account){
            .rows_since = NEVER, .request_since = NEVER, .time = NEVER, .facts_since = NEVER};
    step(w, (struct poll_event){.type = POLL_EV_STORE_UP});
    return w;
}

static void world_free(struct world *w)
{
    poll_free(w->poll);
    free(w);
}

static void millisecond(struct world *w, bool busy)
{
    w->now++;
    leaderships(w);
    if (busy)
        application(w, &w->accounts[rng_below(&w->rng, w->config.accounts)]);
    rings(w);
    queries(w);
    if (poll_deadline(w->poll) <= w->now)
        step(w, (struct poll_event){.type = POLL_EV_TICK});
    for (size_t i = 0; i < w->config.accounts; i++)
        nothing_waits(w, &w->accounts[i]);
}

static uint64_t first_seed(uint64_t *ret_count)
{
    const char *one = getenv("TXRELAY_POLL_SEED"), *many = getenv("TXRELAY_POLL_SEEDS");
    *ret_count = one ? 1 : many ? strtoull(many, NULL, 10) : 30;
    return one ? strtoull(one, NULL, 10) : 1;
}

/* A rough while, then time enough to give up what is lost, then a busy one in which bounds hold. */
static void everything_is_found(void **state)
{
    uint64_t count, first = first_seed(&count);
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct world *w = world_new(seed);
        w->outages_until = w->now + SECONDS * 1000;
        uint64_t quiet = w->outages_until + 2 * POLL_LOST_MS, end = quiet + SECONDS * 1000;
        while (w->now < end)
            millisecond(w, rough(w) || w->now > quiet);
        world_free(w);
    }
}

/* The same with nothing silent: while a leader sleeps, every row that is there was notified of. */
static void sleepers_miss_nothing(void **state)
{
    uint64_t count, first = first_seed(&count);
    (void)state;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct world *w = world_new(seed);
        for (uint64_t end = w->now + SECONDS * 1000; w->now < end; w->now++) {
            leaderships(w);
            struct account *a = &w->accounts[rng_below(&w->rng, w->config.accounts)];
            uint64_t what = rng_below(&w->rng, 3);
            if (what == 0) {
                *(a->bell ? &a->loud : &a->shared) += 1;
            } else if (what == 1 && a->shared) {
                a->shared--;
                put_rows(w, a);
            } else if (what == 2 && a->loud) {
                a->loud--;
                put_rows(w, a);
                notify(w, a);
            }
            rings(w);
            queries(w);
            if (poll_deadline(w->poll) <= w->now)
                step(w, (struct poll_event){.type = POLL_EV_TICK});
            for (size_t i = 0; i < w->config.accounts; i++)
                no_wakeup_is_lost(w, i);
        }
        world_free(w);
    }
}

/* What accounts that have nothing to do cost: one sweep a second with doorbells, and without them
 * one merged poll each twenty milliseconds, however many accounts there are. */
static void idle_accounts_cost_little(void **state)
{
    (void)state;
    for (int doorbells = 0; doorbells < 2; doorbells++)
        for (size_t accounts = 2; accounts <= MOST; accounts += 5) {
            struct world *w = world_new(accounts);
            poll_free(w->poll);
            w->config =
                (struct poll_config){.accounts = accounts, .doorbells = doorbells, .sweeps = true};
            w->poll = poll_new(&w->config, w->now);
            step(w, (struct poll_event){.type = POLL_EV_STORE_UP});
            for (size_t i = 0; i < accounts; i++) {
                lead(w, i);
                load(w, i);
            }
            uint64_t begun = w->now;
            while (w->now < begun + 3000)
                millisecond(w, false);
            w->statements = 0;
            while (w->now < begun + 13000)
                millisecond(w, false);
            assert_in_range(w->statements, 9,
                            11 + (doorbells ? 0 : 10 * 1000 / POLL_BACKOFF_MAX_MS));
            world_free(w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_found),
        cmocka_unit_test(sleepers_miss_nothing),
        cmocka_unit_test(idle_accounts_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

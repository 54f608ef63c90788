/* Every answer of the store is freed once, and stays whole while the elector reads it, whichever
 * request its effects start: all pairs of an answer and a request that follows it, of one account.
 * The core's step, the store's requests and store_req_done are this file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "election/core/elector.h"
#include "election/election.h"
#include "loop/loop.h"
#include "store/lead.h"

/* The requests that the adapter starts, in the order of their effects. */
#define REQUESTS(X) X(lock) X(unlock) X(claim) X(evict) X(release) X(renew) X(scan) X(member)

enum request {
#define X(name) REQUEST_##name,
    REQUESTS(X)
#undef X
        REQUEST_COUNT
};

static const enum elector_event_type replies[REQUEST_COUNT] = {
    [REQUEST_lock] = ELECTOR_EV_LOCK_REPLY,   [REQUEST_claim] = ELECTOR_EV_CLAIM_REPLY,
    [REQUEST_evict] = ELECTOR_EV_EVICT_REPLY, [REQUEST_release] = ELECTOR_EV_RELEASE_REPLY,
    [REQUEST_renew] = ELECTOR_EV_RENEW_REPLY, [REQUEST_scan] = ELECTOR_EV_SCAN_REPLY,
    [REQUEST_member] = ELECTOR_EV_MEMBERS,
};

/* An answer's memory, with all that may lie in it. */
struct answer {
    char holder[32], address[32];
    const char *names[1];
    struct store_lock_view seen[1];
};

static struct asked {
    struct store_req *req; /* NULL: none is in flight */
    enum request what;
} asked[4];
static size_t asked_count;
static int answers;                   /* not freed yet */
static enum elector_effect_type then; /* what the next step lists */
static int expected;                  /* the event of the next step; -1: none is expected */
static bool granted, stepped;

/* ---- the store ---- */

static void start(struct store_req *req, enum request what, store_cb cb)
{
    assert_null(req->arena);
    req->cb = cb;
    asked[asked_count++] = (struct asked){req, what};
}

#define START(name, type)                                                                          \
    void store_##name##_start(struct store *s, struct type *r, store_cb cb)                        \
    {                                                                                              \
        (void)s;                                                                                   \
        start(&r->req, REQUEST_##name, cb);                                                        \
    }
START(lock, store_lock)
START(unlock, store_lock)
START(claim, store_claim)
START(evict, store_evict)
START(release, store_release)
START(renew, store_renew)
START(scan, store_scan)
START(member, store_member)

void store_req_done(struct store_req *req)
{
    answers -= req->arena != NULL;
    free(req->arena);
    req->arena = NULL;
}

static void fill_in(struct store_req *req, enum request what, struct answer *x)
{
    struct store_claim *claim = CONTAINER_OF(req, struct store_claim, req);
    struct store_evict *evict = CONTAINER_OF(req, struct store_evict, req);
    struct store_scan *scan = CONTAINER_OF(req, struct store_scan, req);
    struct store_member *member = CONTAINER_OF(req, struct store_member, req);
    switch (what) {
    case REQUEST_claim:
        claim->granted = granted;
        claim->current_holder = x->holder;
        claim->current_address = x->address;
        break;
    case REQUEST_evict:
        evict->terminated = granted;
        evict->current_holder = x->holder;
        evict->current_address = x->address;
        evict->lock_holder = x->holder;
        break;
    case REQUEST_scan:
        scan->view_count = 1;
        scan->seen = x->seen;
        break;
    case REQUEST_member:
        member->count = 1;
        member->holders = x->names;
        member->best_known = -1;
        break;
    case REQUEST_lock:
    case REQUEST_unlock:
    case REQUEST_release:
    case REQUEST_renew:
    case REQUEST_COUNT:
        break;
    }
}

static void answer(struct asked *q)
{
    struct store_req *req = q->req;
    struct answer *x = xmalloc(sizeof(*x));
    *x = (struct answer){.holder = "another relay", .address = "its address"};
    x->names[0] = x->holder;
    x->seen[0] = (struct store_lock_view){.holder = x->holder, .address = x->address};
    req->arena = x;
    answers++;
    fill_in(req, q->what, x);
    q->req = NULL;
    req->cb(req);
}

/* ---- the core ---- */

void __wrap_elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                         const struct elector_effect **ret_effects, size_t *ret_count);
size_t __wrap_elector_renewing(const struct elector *e, const int **ret_accounts,
                               const int64_t **ret_epochs);
size_t __wrap_elector_scanning(const struct elector *e, const int **ret_accounts,
                               const int64_t **ret_epochs);

static void check_texts(const struct elector_event *ev)
{
    const char *holder;
    if (ev->type == ELECTOR_EV_SCAN_REPLY)
        holder = ev->scan.seen[0].holder;
    else if (ev->type == ELECTOR_EV_MEMBERS)
        holder = ev->members.names[0];
    else if (ev->type == ELECTOR_EV_CLAIM_REPLY)
        holder = ev->claim.holder;
    else if (ev->type == ELECTOR_EV_EVICT_REPLY)
        holder = ev->evict.holder;
    else
        return;
    bool own = ev->type == ELECTOR_EV_CLAIM_REPLY && granted;
    assert_string_equal(holder, own ? "this relay" : "another relay");
}

void __wrap_elector_step(struct elector *e, uint64_t now, const struct elector_event *ev,
                         const struct elector_effect **ret_effects, size_t *ret_count)
{
    static struct elector_effect fx;
    (void)e;
    (void)now;
    assert_int_equal(ev->type, expected);
    check_texts(ev);
    fx = (struct elector_effect){.type = then};
    *ret_effects = &fx;
    *ret_count = 1;
    stepped = true;
}

static size_t only_account(const int **ret_accounts, const int64_t **ret_epochs)
{
    static const int accounts[] = {0};
    static const int64_t epochs[] = {1};
    *ret_accounts = accounts;
    *ret_epochs = epochs;
    return 1;
}

size_t __wrap_elector_renewing(const struct elector *e, const int **ret_accounts,
                               const int64_t **ret_epochs)
{
    (void)e;
    return only_account(ret_accounts, ret_epochs);
}

size_t __wrap_elector_scanning(const struct elector *e, const int **ret_accounts,
                               const int64_t **ret_epochs)
{
    (void)e;
    return only_account(ret_accounts, ret_epochs);
}

/* ---- the test ---- */

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

/* The answer of `first` makes the adapter start `second`, whose answer comes while it closes. */
static void pair(struct loop *loop, enum request first, enum request second)
{
    bool closed = false;
    struct election *e =
        election_new(loop, NULL, &(struct election_config){.holder = "this relay"});
    election_add(e, 1, 7, "account");
    asked_count = 0;
    expected = ELECTOR_EV_ROTATE;
    then = (enum elector_effect_type)first;
    election_rotate(e, 0);
    assert_int_equal(asked_count, 1);
    assert_int_equal(asked[0].what, first);

    bool waits = first != REQUEST_unlock; /* for its answer */
    expected = (int)replies[first];
    then = (enum elector_effect_type)second;
    stepped = false;
    answer(&asked[0]);
    assert_int_equal(stepped, waits);
    assert_int_equal(answers, 0);
    assert_int_equal(asked_count, waits ? 2 : 1);

    election_close(e, on_closed, &closed);
    if (waits) {
        assert_int_equal(asked[1].what, second);
        answer(&asked[1]);
    }
    assert_int_equal(answers, 0);
    loop_run(loop);
    assert_true(closed);
}

static void every_pair(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    for (int grant = 0; grant < 2; grant++) {
        granted = grant;
        for (int first = 0; first < REQUEST_COUNT; first++)
            for (int second = 0; second < REQUEST_COUNT; second++)
                pair(loop, (enum request)first, (enum request)second);
    }
    loop_free(loop);
}

int main(void)
{
    /* the requests are numbered as their effects are, and no other effect is one */
    _Static_assert(
        (int)REQUEST_lock == ELECTOR_FX_LOCK && (int)REQUEST_unlock == ELECTOR_FX_UNLOCK &&
            (int)REQUEST_claim == ELECTOR_FX_CLAIM && (int)REQUEST_evict == ELECTOR_FX_EVICT &&
            (int)REQUEST_release == ELECTOR_FX_RELEASE && (int)REQUEST_renew == ELECTOR_FX_RENEW &&
            (int)REQUEST_scan == ELECTOR_FX_SCAN && (int)REQUEST_member == ELECTOR_FX_HEARTBEAT &&
            (int)REQUEST_COUNT == ELECTOR_FX_LEAVE,
        "one order");
    log_set_level(LOG_LEVEL_NONE);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Thousands of accounts and one relay, against a server that answers one request after the other:
 * locks at once, each claim by a commit of 5 ms. What is led must stay led while the rest is still
 * bid for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "election/core/elector.h"

enum { ACCOUNTS = 10000, QUEUE = 1 << 16, COMMIT_MS = 5 };

struct request {
    enum elector_effect_type type;
    int account;
};

struct server {
    struct elector *e;
    struct request queue[QUEUE]; /* of the control session */
    size_t head, tail;
    size_t bids, most_bids; /* locks and claims that are asked for */
    size_t led, lost;
    int64_t epoch;
    uint64_t now;
};

static void feed(struct server *s, struct elector_event ev)
{
    const struct elector_effect *fx;
    size_t count;
    elector_step(s->e, s->now, &ev, &fx, &count);
    for (size_t i = 0; i < count; i++) {
        bool bid = fx[i].type == ELECTOR_FX_LOCK || fx[i].type == ELECTOR_FX_CLAIM;
        s->bids += bid;
        s->led += fx[i].type == ELECTOR_FX_PROMOTE;
        s->lost += fx[i].type == ELECTOR_FX_DEMOTE;
        if (bid || fx[i].type == ELECTOR_FX_RENEW || fx[i].type == ELECTOR_FX_SCAN) {
            s->queue[s->tail++ % QUEUE] = (struct request){fx[i].type, fx[i].account};
            assert_true(s->tail - s->head < QUEUE);
        }
    }
    if (s->bids > s->most_bids)
        s->most_bids = s->bids;
}

static void answer_renewal(struct server *s)
{
    const int *accounts;
    const int64_t *epochs;
    size_t count = elector_renewing(s->e, &accounts, &epochs);
    bool *renewed = calloc(count, sizeof(*renewed));
    for (size_t i = 0; i < count; i++)
        renewed[i] = true;
    s->now += COMMIT_MS;
    feed(s, (struct elector_event){
                .type = ELECTOR_EV_RENEW_REPLY,
                .renew = {.accounts = accounts, .renewed = renewed, .count = count}});
    free(renewed);
}

/* Whoever asks is told that all of them are free. */
static void answer_scan(struct server *s)
{
    const int *accounts;
    const int64_t *epochs;
    size_t count = elector_scanning(s->e, &accounts, &epochs);
    struct elector_view *seen = calloc(count, sizeof(*seen));
    for (size_t i = 0; i < count; i++)
        seen[i] = (struct elector_view){.holder = "", .address = ""};
    feed(s, (struct elector_event){.type = ELECTOR_EV_SCAN_REPLY,
                                   .scan = {.accounts = accounts, .seen = seen, .count = count}});
    free(seen);
}

static void answer(struct server *s)
{
    struct request q = s->queue[s->head++ % QUEUE];
    if (q.type == ELECTOR_FX_RENEW) {
        answer_renewal(s);
    } else if (q.type == ELECTOR_FX_SCAN) {
        answer_scan(s);
    } else if (q.type == ELECTOR_FX_LOCK) {
        s->bids--;
        feed(s, (struct elector_event){
                    .type = ELECTOR_EV_LOCK_REPLY, .account = q.account, .lock = {.got = true}});
    } else {
        s->bids--;
        s->now += COMMIT_MS;
        feed(s, (struct elector_event){
                    .type = ELECTOR_EV_CLAIM_REPLY,
                    .account = q.account,
                    .claim = {
                        .granted = true, .epoch = ++s->epoch, .holder = "me", .address = "here"}});
    }
}

static void all_are_led_and_stay_so(void **state)
{
    bool use_lock = *state != NULL;
    struct server *s = calloc(1, sizeof(*s));
    struct elector_config config = {.use_lock = use_lock, .seed = 7};
    s->now = 1000;
    s->e = elector_new(&config);
    for (int i = 0; i < ACCOUNTS; i++)
        elector_add(s->e);
    feed(s, (struct elector_event){.type = ELECTOR_EV_STORE_UP});
    uint64_t end = s->now + (uint64_t)ACCOUNTS * COMMIT_MS * 3 / 2;
    while (s->led - s->lost < ACCOUNTS && s->now < end) {
        if (s->head != s->tail)
            answer(s);
        else
            s->now = elector_deadline(s->e);
        assert_int_equal(s->lost, 0);
        feed(s, (struct elector_event){.type = ELECTOR_EV_TICK});
    }
    assert_int_equal(s->led, ACCOUNTS);
    assert_in_range(s->most_bids, 50, 200);
    elector_free(s->e);
    free(s);
}

int main(void)
{
    static bool lock = true;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(all_are_led_and_stay_so, &lock),
                                       cmocka_unit_test_prestate(all_are_led_and_stay_so, NULL)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The core of webhooks against a model of the database and of receivers, in virtual time: whatever
 * fails, crashes or hangs, each account's ends arrive in order and none is lost; every move of the
 * table is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/rng.h"
#include "hook/core/hook.h"
#include "page.h"

enum { HOOKS = 3, ACCOUNTS = 5, ENDS = 30, EACH = 4, SLOTS = 64, SEEDS = 300, ATTEMPTS = 4 };

static const char *const names[HOOKS] = {"a", "b", "c"};

/* The model's database. */
struct row {
    uint64_t number;
    int hook, account, end;
    uint32_t attempts;
    uint64_t due_ms;
    bool there, dead;
};

struct under_way {
    enum { NOTHING, ASKED, SENT, REPORT } what;
    uint64_t at_ms, lane;
    struct row *row;
    uint64_t taken[EACH], failed, delay_ms;
    size_t taken_count;
    bool dead, lost;
};

struct world {
    struct rng rng;
    uint64_t now_ms;
    struct row rows[HOOKS * ACCOUNTS * ENDS];
    size_t row_count;
    struct under_way slots[SLOTS];
    struct hook_core *core;
    int received[HOOKS][ACCOUNTS]; /* the highest end that was taken */
    size_t dead, items;
    uint64_t until_ms; /* receivers and the database fail until then */
    uint32_t attempts_max;
};

static struct under_way *slot(struct world *w)
{
    for (size_t i = 0; i < SLOTS; i++)
        if (w->slots[i].what == NOTHING)
            return &w->slots[i];
    fail();
    return NULL;
}

static bool chance(struct world *w, unsigned percent)
{
    return rng_below(&w->rng, 100) < percent;
}

static void carry_out(struct world *w, const struct hook_effect *fx)
{
    struct under_way *u;
    if (fx->type == HOOK_FX_RELEASE) {
        assert_true(w->items > 0);
        w->items--;
        return;
    }
    u = slot(w);
    *u = (struct under_way){.at_ms = w->now_ms + rng_below(&w->rng, chance(w, 5) ? 20000 : 200),
                            .lane = fx->lane};
    switch (fx->type) {
    case HOOK_FX_ASK:
        u->what = ASKED;
        break;
    case HOOK_FX_SEND:
        u->what = SENT;
        u->row = fx->item;
        break;
    case HOOK_FX_REPORT:
        u->what = REPORT;
        assert_in_range(fx->taken_count, 0, EACH);
        memcpy(u->taken, fx->taken, fx->taken_count * sizeof(*fx->taken));
        u->taken_count = fx->taken_count;
        u->failed = fx->number;
        u->delay_ms = fx->delay_ms;
        u->dead = fx->dead;
        break;
    case HOOK_FX_RELEASE:
        break;
    }
}

static void step(struct world *w, const struct hook_event *ev)
{
    const struct hook_effect *fx;
    size_t count;
    hook_step(w->core, w->now_ms, ev, &fx, &count);
    assert_null(hook_check(w->core));
    for (size_t i = 0; i < count; i++)
        carry_out(w, &fx[i]);
}

/* As leader_webhooks. */
static void answer_rows(struct world *w)
{
    static struct hook_row rows[HOOKS * ACCOUNTS][EACH];
    struct hook_rows lanes[HOOKS * ACCOUNTS];
    struct hook_event ev = {.type = HOOK_EV_ROWS, .rows = {.lanes = lanes, .due_ms = -1}};
    ev.failed = w->now_ms < w->until_ms && chance(w, 30);
    for (int lane = 0; !ev.failed && lane < HOOKS * ACCOUNTS; lane++) {
        size_t n = 0;
        for (size_t i = 0; i < w->row_count && n < EACH; i++) {
            struct row *r = &w->rows[i];
            if (!r->there || r->dead || r->hook * ACCOUNTS + r->account != lane)
                continue;
            if (!n && r->due_ms > w->now_ms) {
                int64_t due = (int64_t)(r->due_ms - w->now_ms);
                if (ev.rows.due_ms < 0 || due < ev.rows.due_ms)
                    ev.rows.due_ms = due;
                break;
            }
            rows[lane][n++] =
                (struct hook_row){.item = r, .number = r->number, .attempts = r->attempts};
        }
        if (n) {
            lanes[ev.rows.count++] = (struct hook_rows){.webhook = names[lane / ACCOUNTS],
                                                        .account = lane % ACCOUNTS,
                                                        .rows = rows[lane],
                                                        .count = n};
            w->items += n;
        }
    }
    ev.rows.none = w->row_count == 0;
    step(w, &ev);
}

/* A receiver has it: in order, but for what was given up, and for repetitions. */
static void receive(struct world *w, const struct row *r)
{
    int *last = &w->received[r->hook][r->account];
    assert_in_range(r->end, 0, *last + 1 + (int)w->dead);
    for (size_t i = 0; i < w->row_count; i++) {
        const struct row *o = &w->rows[i];
        if (o->hook == r->hook && o->account == r->account && o->end < r->end && o->end > *last)
            assert_true(o->dead); /* nothing before it was skipped */
    }
    if (r->end > *last)
        *last = r->end;
}

static void answer(struct world *w, struct under_way *u)
{
    struct under_way now = *u;
    bool fails = w->now_ms < w->until_ms && chance(w, 40);
    struct hook_event ev = {.lane = now.lane, .failed = fails};
    u->what = NOTHING;
    switch (now.what) {
    case ASKED:
        answer_rows(w);
        return;
    case SENT:
        ev.type = HOOK_EV_ANSWER;
        if (!fails || chance(w, 30)) /* it may have it, and its answer be lost */
            receive(w, now.row);
        step(w, &ev);
        return;
    case REPORT:
        ev.type = HOOK_EV_REPORTED;
        for (size_t i = 0; i < w->row_count && (!fails || chance(w, 50)); i++) {
            struct row *r = &w->rows[i];
            for (size_t k = 0; k < now.taken_count; k++)
                r->there = r->there && r->number != now.taken[k];
            if (r->number == now.failed && !r->dead && !fails) {
                assert_true(now.dead || now.delay_ms > 0);
                r->attempts++;
                r->due_ms = w->now_ms + now.delay_ms;
                r->dead = now.dead;
                w->dead += now.dead;
            }
        }
        step(w, &ev);
        return;
    case NOTHING:
        break;
    }
    fail();
}

static void new_core(struct world *w)
{
    const struct hook_config config = {.sending_max = 6,
                                       .of_webhook = 3,
                                       .attempts_max = w->attempts_max,
                                       .base_ms = 100,
                                       .cap_ms = 5000,
                                       .seed = rng_next(&w->rng)};
    memset(w->slots, 0, sizeof(w->slots));
    w->items = 0;
    w->core = hook_core_new(&config);
}

static size_t left(const struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->row_count; i++)
        n += w->rows[i].there && !w->rows[i].dead;
    return n;
}

/* The next thing that happens: an answer, or the core's time. */
static void turn(struct world *w)
{
    struct under_way *next = NULL;
    uint64_t due = hook_due(w->core);
    for (size_t i = 0; i < SLOTS; i++) {
        struct under_way *u = &w->slots[i];
        if (u->what != NOTHING && (!next || u->at_ms < next->at_ms))
            next = u;
    }
    if (next && next->at_ms <= due) {
        w->now_ms = next->at_ms > w->now_ms ? next->at_ms : w->now_ms;
        answer(w, next);
        return;
    }
    assert_true(due != UINT64_MAX); /* it would stand still for ever */
    w->now_ms = due > w->now_ms ? due : w->now_ms;
    struct hook_event tick = {.type = HOOK_EV_TICK};
    step(w, &tick);
}

static void end_one(struct world *w, int end)
{
    int account = (int)rng_below(&w->rng, ACCOUNTS);
    (void)end;
    for (int h = 0; h < HOOKS; h++) {
        int n = 0;
        for (size_t i = 0; i < w->row_count; i++)
            n += w->rows[i].hook == h && w->rows[i].account == account;
        if (n == ENDS)
            return;
        w->rows[w->row_count] = (struct row){
            .number = w->row_count + 1, .hook = h, .account = account, .end = n, .there = true};
        w->row_count++;
    }
}

static uint64_t run(uint64_t seed, uint32_t attempts_max)
{
    struct world *w = calloc(1, sizeof(*w));
    w->rng.state = seed;
    w->attempts_max = attempts_max;
    w->until_ms = 60000;
    memset(w->received, -1, sizeof(w->received));
    new_core(w);
    for (int i = 0; i < 2000 || left(w); i++) {
        assert_in_range(i, 0, 200000);
        if (i < 1000 && chance(w, 10))
            end_one(w, i);
        if (w->now_ms < w->until_ms && chance(w, 1)) { /* the relay dies, and another one goes on */
            hook_core_free(w->core, NULL);
            new_core(w);
        }
        turn(w);
    }
    for (int h = 0; h < HOOKS; h++)
        for (int a = 0; a < ACCOUNTS; a++)
            for (size_t i = 0; i < w->row_count; i++)
                if (w->rows[i].hook == h && w->rows[i].account == a && !w->rows[i].dead)
                    assert_true(w->rows[i].end <= w->received[h][a]);
    struct hook_event drain = {.type = HOOK_EV_DRAIN};
    step(w, &drain);
    for (int i = 0; i < SLOTS * 4; i++)
        for (size_t k = 0; k < SLOTS; k++)
            if (w->slots[k].what != NOTHING)
                answer(w, &w->slots[k]);
    assert_int_equal(hook_sending(w->core), 0);
    uint64_t dead = w->dead;
    hook_core_free(w->core, NULL);
    free(w);
    return dead;
}

static void test_nothing_is_lost_and_all_is_in_order(void **state)
{
    uint64_t dead = 0;
    (void)state;
    uint64_t seeds = getenv("TXRELAY_VALGRIND") ? SEEDS / 10 : SEEDS; /* as ../net/h2_conn_test.c */
    for (uint64_t seed = 1; seed <= seeds; seed++)
        dead += run(seed, seed % 2 ? 1000000 : ATTEMPTS);
    assert_true(dead > 0);
}

/* ---- single rules ---- */

struct script {
    struct hook_core *core;
    struct hook_effect fx[16];
    uint64_t taken[16];
    size_t count;
};

static void play(struct script *s, uint64_t now, struct hook_event ev)
{
    const struct hook_effect *fx;
    hook_step(s->core, now, &ev, &fx, &s->count);
    assert_in_range(s->count, 0, 16);
    for (size_t i = 0; i < s->count; i++) {
        s->fx[i] = fx[i];
        if (fx[i].type == HOOK_FX_REPORT)
            memcpy(s->taken, fx[i].taken, fx[i].taken_count * sizeof(*fx[i].taken));
    }
    assert_null(hook_check(s->core));
}

static void test_every_move_is_made(void **state)
{
    struct script s = {.core = hook_core_new(
                           &(struct hook_config){.sending_max = 1, .attempts_max = 2, .seed = 7})};
    int a = 0, b = 0, c = 0;
    const struct hook_row one[] = {{&a, 1, 0}, {&b, 2, 0}}, two[] = {{&c, 3, 1}};
    const struct hook_rows lanes[] = {{"x", 1, one, 2}, {"y", 1, two, 1}};
    struct buf missing = {0};
    (void)state;
    play(&s, 1, (struct hook_event){.type = HOOK_EV_TICK});
    assert_int_equal(s.fx[0].type, HOOK_FX_ASK);
    assert_int_equal(hook_due(s.core), UINT64_MAX);
    play(&s, 2, (struct hook_event){.type = HOOK_EV_ROWS, .rows = {lanes, 2, -1, false}});
    assert_int_equal(s.count, 1); /* the second lane waits for its turn */
    assert_ptr_equal(s.fx[0].item, &a);
    uint64_t x = s.fx[0].lane;
    play(&s, 3, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = x});
    assert_ptr_equal(s.fx[1].item, &b);
    play(&s, 4, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = x, .failed = true});
    assert_int_equal(s.fx[1].type, HOOK_FX_REPORT);
    assert_int_equal(s.taken[0], 1);
    assert_int_equal(s.fx[1].number, 2);
    assert_in_range(s.fx[1].delay_ms, 4000, 6000);
    assert_ptr_equal(s.fx[2].item, &c); /* and the other lane has its turn */
    uint64_t y = s.fx[2].lane;
    play(&s, 5, (struct hook_event){.type = HOOK_EV_REPORTED, .lane = x, .failed = true});
    play(&s, 1005, (struct hook_event){.type = HOOK_EV_TICK});
    assert_int_equal(s.fx[0].type, HOOK_FX_REPORT);
    play(&s, 1006, (struct hook_event){.type = HOOK_EV_REPORTED, .lane = x});
    play(&s, 1007, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = y, .failed = true});
    assert_true(s.fx[1].dead); /* its second attempt */
    assert_int_equal(hook_counts_of(s.core).dead, 1);
    play(&s, 1008, (struct hook_event){.type = HOOK_EV_ROWS, .rows = {lanes, 1, -1, false}});
    play(&s, 1009, (struct hook_event){.type = HOOK_EV_REPORTED, .lane = y});
    hook_missing(s.core, &missing);
    assert_string_equal(buf_str(&missing), "READY --> [*]: the relay stops\n");
    buf_done(&missing);
    hook_core_free(s.core, NULL);

    s.core = hook_core_new(&(struct hook_config){.sending_max = 1, .seed = 7});
    play(&s, 1, (struct hook_event){.type = HOOK_EV_TICK});
    play(&s, 2, (struct hook_event){.type = HOOK_EV_ROWS, .rows = {lanes, 2, -1, false}});
    x = s.fx[0].lane;
    play(&s, 3, (struct hook_event){.type = HOOK_EV_DRAIN}); /* the lane that waits ends */
    assert_int_equal(s.count, 1);
    assert_ptr_equal(s.fx[0].item, &c);
    play(&s, 4, (struct hook_event){.type = HOOK_EV_ANSWER, .lane = x}); /* the other one reports */
    assert_int_equal(s.fx[1].type, HOOK_FX_REPORT);
    assert_int_equal(s.fx[1].number, 0);
    hook_core_free(s.core, NULL);
}

static void test_the_page_shows_the_table(void **state)
{
    struct buf table = {0};
    (void)state;
    buf_puts(&table, "```mermaid\n");
    hook_dump(&table);
    buf_puts(&table, "```\n");
    page_shows(HOOK_README, buf_str(&table));
    buf_done(&table);
}

static void test_questions_come_at_their_time(void **state)
{
    struct script s = {.core = hook_core_new(&(struct hook_config){.seed = 7})};
    (void)state;
    const struct {
        struct hook_event ev;
        uint64_t wait;
    } cases[] = {
        {{.type = HOOK_EV_ROWS, .rows = {.due_ms = -1}}, 500},
        {{.type = HOOK_EV_ROWS, .rows = {.due_ms = 20}}, 20},
        {{.type = HOOK_EV_ROWS, .rows = {.due_ms = 0}}, 1},
        {{.type = HOOK_EV_ROWS, .rows = {.due_ms = -1, .none = true}}, 5000},
        {{.type = HOOK_EV_ROWS, .failed = true}, 1000},
    };
    uint64_t now = 10;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        play(&s, now, (struct hook_event){.type = HOOK_EV_TICK});
        assert_int_equal(s.fx[0].type, HOOK_FX_ASK);
        play(&s, now, cases[i].ev);
        assert_int_equal(hook_due(s.core), now + cases[i].wait);
        now += cases[i].wait;
    }
    hook_core_free(s.core, NULL);
}

static void test_base64(void **state)
{
    char text[HOOK_BASE64_MAX];
    (void)state;
    const struct {
        const char *data, *text;
    } cases[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        hook_base64((const uint8_t *)cases[i].data, strlen(cases[i].data), text);
        assert_string_equal(text, cases[i].text);
    }
    assert_true(hook_taken(204) && !hook_taken(199) && !hook_taken(301) && !hook_taken(500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost_and_all_is_in_order),
        cmocka_unit_test(test_every_move_is_made),
        cmocka_unit_test(test_the_page_shows_the_table),
        cmocka_unit_test(test_questions_come_at_their_time),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

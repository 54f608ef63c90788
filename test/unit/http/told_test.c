/* The rows that a reader got from the tables: the ring does not lead it back. Against a table whose
 * notifications are late, each reader's rows go forward and end as the table's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "http/core/told.h"

static struct recent_event event(int64_t id, int64_t nonce, int64_t us)
{
    return (struct recent_event){.id = id, .account = 1, .nonce = nonce, .updated_us = us};
}

static bool passes(struct told *t, struct recent_event ev, bool removed, bool ended)
{
    ev.removed = removed;
    ev.ended = ended;
    return told_passes(t, &ev);
}

static void older_states_do_not_pass(void **state)
{
    struct told *t = told_new();
    (void)state;
    told_put(t, &(struct told_row){.id = 7, .nonce = 3, .updated_us = 200, .account = 1});
    told_put(t, &(struct told_row){.id = 5, .nonce = 2, .updated_us = 300, .account = 1});
    assert_false(passes(t, event(7, 3, 199), false, false));
    assert_true(passes(t, event(7, 3, 200), false, false));
    assert_true(passes(t, event(7, 3, 201), false, false));
    assert_false(passes(t, event(5, 2, 201), false, false));
    assert_true(passes(t, event(6, 9, 1), false, false)); /* it got no row of it */
    assert_true(passes(NULL, event(7, 3, 1), false, false));
    assert_true(passes(t, event(7, 3, 150), false, true)); /* an end comes from one of the two */
    told_free(t);
    assert_null(told_free(NULL));
}

static void who_leaves_its_nonce_begins_anew(void **state)
{
    struct told *t = told_new();
    (void)state;
    told_put(t, &(struct told_row){.id = 7, .nonce = 3, .updated_us = 200, .account = 1});
    assert_false(passes(t, event(7, 1, 150), true, false)); /* before it came to 3 */
    assert_false(passes(t, event(7, 3, 160), false, false));
    assert_true(passes(t, event(7, 3, 170), true, false)); /* its last state that was notified */
    assert_true(passes(t, event(7, 4, 180), false, false));
    assert_true(passes(t, event(7, 4, 180), true, false));
    told_free(t);
}

static void nothing_follows_an_end(void **state)
{
    struct told *t = told_new();
    (void)state;
    told_put(
        t, &(struct told_row){.id = 7, .nonce = 3, .updated_us = 200, .account = 1, .ended = true});
    told_put(t, &(struct told_row){.nonce = 4, .updated_us = 200, .account = 1, .ended = true});
    told_put(t, &(struct told_row){.nonce = 5, .updated_us = 100, .account = 1, .ended = true});
    told_put(t, &(struct told_row){.nonce = 5, .updated_us = 200, .account = 1});
    for (int ended = 0; ended < 2; ended++) {
        assert_false(passes(t, event(7, 3, 900), false, ended));
        assert_false(passes(t, event(0, 4, 200), false, ended)); /* a filler's nonce */
        assert_true(passes(t, event(0, 4, 201), false, ended));  /* may have another */
    }
    assert_false(passes(t, event(7, 3, 900), true, false));
    assert_false(passes(t, event(0, 5, 150), false, false)); /* the newer one counts */
    struct recent_event other = event(0, 4, 1);
    other.account = 2;
    assert_true(told_passes(t, &other));
    told_free(t);
}

static void the_newest_rows_are_kept(void **state)
{
    struct told *t = told_new();
    struct rng rng = {.state = 18};
    const int64_t rows = 50000, step = 7919; /* in no order */
    size_t kept = 0;
    (void)state;
    for (int64_t i = 0; i < rows; i++) {
        int64_t n = i * step % rows;
        told_put(t, &(struct told_row){.id = n + 1, .updated_us = n, .account = 1});
    }
    for (int i = 0; i < 2000; i++) {
        int64_t n = rows - 1 - (int64_t)rng_below(&rng, 1000);
        assert_false(passes(t, event(n + 1, 0, n - 1), false, false));
    }
    for (int64_t n = 1; n < rows; n++)
        kept += !passes(t, event(n + 1, 0, n - 1), false, false);
    assert_in_range(kept, TOLD_MAX / 2, TOLD_MAX); /* the others have made room */
    struct recent_event ev = event(99, 0, rows - 1 + 2000000);
    assert_false(told_is_over(t, &ev));
    ev.updated_us++;
    assert_true(told_is_over(t, &ev));
    told_free(t);
}

/* ---- a table, its late notifications, and a reader that comes at any time ---- */

enum { IDS = 30, CHANGES = 3000, ROWS_OF_PAGE = 4 };

struct row {
    int64_t us;
    bool ended;
};

struct world {
    struct rng rng;
    struct recent_event wire[CHANGES]; /* in the order of the commits */
    size_t changed, heard;
    struct row table[IDS], reader[IDS];
    int64_t now;
    struct told *told;
    bool sees_table;
};

static void change(struct world *w)
{
    size_t i = rng_below(&w->rng, IDS);
    struct row *row = &w->table[i];
    w->now += 1 + (int64_t)rng_below(&w->rng, 1000);
    if (row->ended)
        return;
    *row = (struct row){.us = w->now, .ended = rng_below(&w->rng, 40) == 0};
    w->wire[w->changed] = event((int64_t)i + 1, (int64_t)i, w->now);
    w->wire[w->changed++].ended = row->ended;
}

static void tell(struct world *w, size_t i, struct row row)
{
    struct row *had = &w->reader[i];
    if (had->ended)
        fail_msg("id %d: something follows its end", (int)i + 1);
    if (row.us < had->us)
        fail_msg("id %d goes back", (int)i + 1);
    *had = row;
}

static void hear(struct world *w)
{
    const struct recent_event *ev = &w->wire[w->heard++];
    if (w->sees_table && told_passes(w->told, ev))
        tell(w, (size_t)ev->id - 1, (struct row){.us = ev->updated_us, .ended = ev->ended});
    if (w->told && w->sees_table && told_is_over(w->told, ev))
        w->told = told_free(w->told);
}

/* The page of the table is of now; the ring has not heard of the last changes. */
static void read_page(struct world *w, size_t from, bool *late)
{
    for (size_t i = from; i < from + ROWS_OF_PAGE && i < IDS; i++) {
        const struct row *row = &w->table[i];
        if (!row->us)
            continue;
        *late |= w->heard < w->changed;
        tell(w, i, *row);
        told_put(w->told, &(struct told_row){.id = (int64_t)i + 1,
                                             .nonce = (int64_t)i,
                                             .account = 1,
                                             .updated_us = row->us,
                                             .ended = row->ended});
    }
}

static bool run(uint64_t seed)
{
    struct world w = {.rng.state = seed, .told = told_new()};
    bool late = false;
    size_t page = 0;
    uint64_t joins = rng_below(&w.rng, CHANGES / 2), held = 0;
    for (uint64_t i = 0; i < CHANGES; i++) {
        change(&w);
        /* It joins: what is heard from now on is kept for it until it has read the table. */
        if (i < joins && w.heard < w.changed)
            hear(&w);
        if (i >= joins && page < IDS && rng_below(&w.rng, 3) == 0) {
            read_page(&w, page, &late);
            page += ROWS_OF_PAGE;
        }
        w.sees_table = page >= IDS;
        held = w.sees_table ? rng_below(&w.rng, 20) : held;
        while (w.sees_table && w.heard + held < w.changed)
            hear(&w);
    }
    while (w.heard < w.changed)
        hear(&w);
    for (size_t i = 0; i < IDS; i++)
        if (w.reader[i].us != w.table[i].us || w.reader[i].ended != w.table[i].ended)
            fail_msg("seed %d: id %d is not as in the table", (int)seed, (int)i + 1);
    told_free(w.told);
    return late;
}

static void a_reader_goes_forward_and_arrives(void **state)
{
    size_t late = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        late += run(seed);
    assert_true(late > 250); /* else the ring led nobody back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_states_do_not_pass),
        cmocka_unit_test(who_leaves_its_nonce_begins_anew),
        cmocka_unit_test(nothing_follows_an_end),
        cmocka_unit_test(the_newest_rows_are_kept),
        cmocka_unit_test(a_reader_goes_forward_and_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

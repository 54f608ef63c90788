/* The listen cursor, one rule a test. Effects are compared as text: kind(id@nonce:state). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "listen/core/cursor.h"

struct rig {
    struct cursor *c;
    struct buf log;
};

/* Each event of a transaction has its trace, whatever it was made of; a filler has none. */
static const char *trace_of(int64_t id)
{
    static char traces[200][8];
    assert_in_range(id, 0, 199);
    snprintf(traces[id], sizeof(traces[id]), "t%lld", (long long)id);
    return id ? traces[id] : "";
}

static void put_effect(struct buf *b, const struct cursor_effect *fx)
{
    if (b->len)
        buf_puts(b, " ");
    switch (fx->type) {
    case CURSOR_FX_EVENT:
        assert_string_equal(fx->event.trace, trace_of(fx->event.id));
        buf_printf(b, "%s(%lld@%lld", listen_kind_name(fx->event.kind), (long long)fx->event.id,
                   (long long)fx->event.nonce);
        if (fx->event.kind == LISTEN_FINISHED)
            buf_printf(b, ":%s", fx->event.outcome);
        else if (fx->event.kind != LISTEN_REMOVED)
            buf_printf(b, ":%s", fx->event.state);
        buf_printf(b, "%s)", fx->event.from_scan ? ",scan" : "");
        return;
    case CURSOR_FX_SCAN_PENDING:
        buf_printf(b, "PENDING>%d,%lld", fx->after.account, (long long)fx->after.nonce);
        return;
    case CURSOR_FX_SCAN_FINISHED:
        buf_printf(b, "FINISHED>%lld,%d,%lld,%lld", (long long)fx->after.since_us,
                   fx->after.account, (long long)fx->after.nonce, (long long)fx->after.id);
        return;
    case CURSOR_FX_LOOK_UP:
        buf_puts(b, "LOOKUP");
        return;
    case CURSOR_FX_LIVE:
        buf_puts(b, "LIVE");
        return;
    case CURSOR_FX_DOUBT:
        buf_puts(b, "DOUBT");
        return;
    }
}

static void step(struct rig *r, struct cursor_event ev, const char *expected)
{
    const struct cursor_effect *fx;
    size_t count;
    buf_clear(&r->log);
    cursor_step(r->c, &ev, &fx, &count);
    for (size_t i = 0; i < count; i++)
        put_effect(&r->log, &fx[i]);
    assert_string_equal(buf_str(&r->log), expected);
}

static struct rig *rig_new(const struct cursor_config *config)
{
    struct rig *r = test_calloc(1, sizeof(*r));
    r->c = cursor_new(config ? config : &(struct cursor_config){.overlap_us = 100, .scan_rows = 2});
    return r;
}

static void rig_free(struct rig *r)
{
    cursor_free(r->c);
    buf_done(&r->log);
    test_free(r);
}

/* A row of account 1. */
static struct listen_event row(enum listen_kind kind, int64_t id, int64_t nonce, const char *state,
                               int64_t at)
{
    struct listen_event ev = {.kind = kind,
                              .account = 1,
                              .trace = trace_of(id),
                              .id = id,
                              .nonce = nonce,
                              .state = state,
                              .updated_at_us = at,
                              .has_hash = true,
                              .block_number = -1,
                              .alias = "",
                              .outcome = "",
                              .error = "",
                              .creator = ""};
    ev.hash[0] = (uint8_t)id;
    return ev;
}

static struct listen_event end(int64_t id, int64_t nonce, const char *outcome, int64_t at)
{
    struct listen_event ev = row(LISTEN_REMOVED, id, nonce, "finalized", at);
    ev.outcome = outcome;
    return ev;
}

static void notify(struct rig *r, struct listen_event ev, const char *expected)
{
    step(r,
         (struct cursor_event){.type = CURSOR_EV_NOTIFY, .notify = {.row = &ev, .believed = true}},
         expected);
}

/* The same from a session that is no relay's. */
static void hint(struct rig *r, struct listen_event ev, const char *expected)
{
    step(r, (struct cursor_event){.type = CURSOR_EV_NOTIFY, .notify = {.row = &ev}}, expected);
}

static void rows(struct rig *r, enum cursor_event_type type, bool last, size_t count,
                 const struct listen_event *list, const char *expected)
{
    step(
        r,
        (struct cursor_event){.type = type, .answer = {.rows = list, .count = count, .last = last}},
        expected);
}

static void begin(struct rig *r, int64_t now)
{
    step(r, (struct cursor_event){.type = CURSOR_EV_BEGIN, .begin_us = now}, "PENDING>0,-1");
}

/* Live with nothing pending, at 1000. */
static void go_live(struct rig *r)
{
    begin(r, 1000);
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
}

#define ROWS(...)                                                                                  \
    (const struct listen_event[])                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* I8: the first scan tells what is pending, in chunks; then what finished from the start on. */
static void first_scan(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    begin(r, 1000);
    rows(r, CURSOR_EV_PENDING, false, 2,
         ROWS(row(LISTEN_NEW, 7, 3, "ready", 10), row(LISTEN_NEW, 8, 4, "signed", 11)),
         "new(7@3:ready,scan) new(8@4:signed,scan) PENDING>1,4");
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 0, 5, "signed", 12)),
         "new(0@5:signed,scan) FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    assert_int_equal(cursor_known(r->c), 3);
    assert_int_equal(cursor_state(r->c), CURSOR_LIVE);
    rig_free(r);
}

static void notifications(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 5), ""); /* before BEGIN: the scan will tell */
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1020), "update(7@3:ready)");
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1020), "");  /* twice */
    notify(r, row(LISTEN_UPDATE, 7, 3, "signed", 1010), ""); /* older */
    notify(r, end(7, 3, "ok", 0), "LOOKUP");
    const struct cursor_lookup *asked;
    assert_int_equal(cursor_lookups(r->c, &asked), 1);
    assert_int_equal(asked[0].id, 7);
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(7, 3, "ok", 1030)), "finished(7@3:ok)");
    notify(r, end(7, 3, "ok", 0), "");
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1020), ""); /* after its end */
    assert_int_equal(cursor_known(r->c), 0);
    rig_free(r);
}

/* Nothing is lost: what vanished while nobody listened is looked up; what came and went is in the
 * scan. */
static void outage(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, row(LISTEN_NEW, 8, 4, "signed", 1011), "new(8@4:signed)");
    notify(r, row(LISTEN_NEW, 9, 5, "signed", 1012), "new(9@5:signed)");
    step(r, (struct cursor_event){.type = CURSOR_EV_DOWN}, "");
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1013), "");
    begin(r, 2000);
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 9, 5, "in_block", 1500)),
         "update(9@5:in_block,scan) FINISHED>1000,0,-1,0 LOOKUP");
    /* 10 was admitted and finished meanwhile; 7 is in this scan and in the lookup. */
    rows(r, CURSOR_EV_FINISHED, false, 2, ROWS(end(7, 3, "ok", 1600), end(10, 6, "failed", 1600)),
         "finished(7@3:ok,scan) finished(10@6:failed,scan) FINISHED>1600,1,6,10");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    /* 8 did not finish: it lost its nonce. */
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(7, 3, "ok", 1600)), "removed(8@4,scan)");
    assert_int_equal(cursor_known(r->c), 1);
    step(r, (struct cursor_event){.type = CURSOR_EV_DOWN}, "");
    begin(r, 3000);
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 9, 5, "in_block", 1500)),
         "FINISHED>1900,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    rig_free(r);
}

/* The end of the session in the middle of a question: it is asked again. */
static void lookup_interrupted(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, end(7, 3, "ok", 0), "LOOKUP");
    step(r, (struct cursor_event){.type = CURSOR_EV_DOWN}, "");
    step(r, (struct cursor_event){.type = CURSOR_EV_BEGIN, .begin_us = 1100},
         "PENDING>0,-1 LOOKUP");
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(7, 3, "ok", 1030)), "finished(7@3:ok)");
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 1, ROWS(end(7, 3, "ok", 1030)), "LIVE"); /* told already */
    rig_free(r);
}

/* --since: what finished before, once, from there on. */
static void since(void **state)
{
    (void)state;
    struct rig *r = rig_new(&(struct cursor_config){.since_us = 500, .overlap_us = 100});
    begin(r, 1000);
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>500,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 1, ROWS(end(7, 3, "ok", 600)), "finished(7@3:ok,scan) LIVE");
    rig_free(r);
}

/* A requeued transaction is removed at its nonce before it is new at another one. */
/* Where a reader goes on: never after an end that was not told, and never back. */
static void position(void **state)
{
    (void)state;
    struct rig *r = rig_new(&(struct cursor_config){.overlap_us = 100, .scan_rows = 2});
    assert_int_equal(cursor_position(r->c), 0);
    begin(r, 1000);
    assert_int_equal(cursor_position(r->c), 1000); /* before the first scan: from where it begins */
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    assert_int_equal(cursor_position(r->c), 1000);
    begin(r, 5000);
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    assert_int_equal(cursor_position(r->c), 1000); /* what ended until 5000 is not told yet */
    struct listen_event ended = end(7, 3, "ok", 4000);
    ended.kind = LISTEN_FINISHED;
    rows(r, CURSOR_EV_FINISHED, true, 1, &ended, "finished(7@3:ok,scan) LIVE");
    assert_int_equal(cursor_position(r->c), 4900);
    begin(r, 4950); /* an open transaction held it back */
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>4900,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    assert_int_equal(cursor_position(r->c), 4900);
    rig_free(r);

    r = rig_new(&(struct cursor_config){.since_us = 500});
    assert_int_equal(cursor_position(r->c), 500);
    rig_free(r);
}

static void moves_to_another_nonce(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    struct listen_event gone = row(LISTEN_REMOVED, 7, 3, "", 0);
    notify(r, gone, "removed(7@3)");
    notify(r, row(LISTEN_NEW, 7, 9, "signed", 1020), "new(7@9:signed)");
    notify(r, gone, ""); /* late: not at that nonce any more */
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1012), "");
    /* The removal was not heard: the new place tells. */
    notify(r, row(LISTEN_NEW, 7, 12, "signed", 1030), "removed(7@9) new(7@12:signed)");
    rig_free(r);
}

/* The same, seen by a scan after an outage, and by a notification while the old place is looked
 * up. */
static void moved_during_an_outage(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, row(LISTEN_NEW, 8, 4, "signed", 1011), "new(8@4:signed)");
    step(r, (struct cursor_event){.type = CURSOR_EV_DOWN}, "");
    begin(r, 2000);
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 7, 9, "signed", 1500)),
         "removed(7@3,scan) new(7@9:signed,scan) FINISHED>1000,0,-1,0 LOOKUP");
    notify(r, row(LISTEN_NEW, 8, 10, "signed", 2001), "removed(8@4) new(8@10:signed)");
    rows(r, CURSOR_EV_LOOKED_UP, true, 0, NULL, "");
    rig_free(r);
}

/* A filler takes the nonce of a transaction that ended: the transaction is looked up, the filler is
 * new. */
static void filler_takes_a_nonce(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, end(7, 3, "expired", 0), "LOOKUP");
    notify(r, row(LISTEN_NEW, 0, 3, "signed", 1020), "new(0@3:signed)");
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(7, 3, "expired", 1020)),
         "finished(7@3:expired)");
    notify(r, end(0, 3, "ok", 0), "LOOKUP");
    const struct cursor_lookup *asked;
    assert_int_equal(cursor_lookups(r->c, &asked), 1);
    assert_int_equal(asked[0].id, 0);
    assert_int_equal(asked[0].account, 1);
    assert_int_equal(asked[0].nonce, 3);
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(0, 3, "ok", 1030)), "finished(0@3:ok)");
    notify(r, row(LISTEN_NEW, 0, 3, "signed", 1020), ""); /* late */
    rig_free(r);
}

/* One that ends in the outbox has no nonce and was never new. */
static void cancelled_in_the_outbox(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, end(7, -1, "cancelled", 0), "LOOKUP");
    notify(r, end(8, -1, "cancelled", 0), ""); /* asked with the next one */
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(7, -1, "cancelled", 1020)),
         "finished(7@-1:cancelled) LOOKUP");
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(8, -1, "cancelled", 1021)),
         "finished(8@-1:cancelled)");
    rig_free(r);
}

/* Anybody may NOTIFY: an end that is not on record is not told, and the table is read again. */
static void false_end(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, end(7, 3, "ok", 0), "LOOKUP");
    rows(r, CURSOR_EV_LOOKED_UP, true, 0, NULL, "DOUBT");
    begin(r, 1100);
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 7, 3, "ready", 1050)),
         "update(7@3:ready,scan) FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    rig_free(r);
}

/* A scan is the table's word, also when the database's clock was set back in between. */
static void scan_is_believed(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 9000), "new(7@3:signed)");
    begin(r, 1200);
    rows(r, CURSOR_EV_PENDING, true, 1, ROWS(row(LISTEN_NEW, 7, 3, "in_block", 1100)),
         "update(7@3:in_block,scan) FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    notify(r, row(LISTEN_UPDATE, 7, 3, "retracted", 1300), "update(7@3:retracted)");
    rig_free(r);
}

static void filters(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    cursor_filter(r->c, 2, 0);
    step(r, (struct cursor_event){.type = CURSOR_EV_BEGIN, .begin_us = 1000}, "PENDING>2,-1");
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "");
    notify(r, end(7, 3, "ok", 0), "");
    rig_free(r);

    r = rig_new(NULL);
    cursor_filter(r->c, 0, 8);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "");
    notify(r, row(LISTEN_NEW, 8, 4, "signed", 1010), "new(8@4:signed)");
    rig_free(r);
}

/* Any login may notify: it changes nothing that the reader is told, and hides nothing. */
static void anybody_is_a_hint(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    hint(r, row(LISTEN_UPDATE, 7, 3, "in_block", 1020), "DOUBT");
    hint(r, row(LISTEN_NEW, 9, 4, "signed", 1020), "DOUBT");
    hint(r, row(LISTEN_REMOVED, 7, 3, "", 0), "DOUBT");
    hint(r, end(7, 3, "ok", 0), "LOOKUP");
    hint(r, end(7, 3, "failed", 0), "");
    notify(r, row(LISTEN_UPDATE, 7, 3, "ready", 1015), "update(7@3:ready)");
    rows(r, CURSOR_EV_LOOKED_UP, true, 0, NULL, "DOUBT");
    hint(r, end(8, -1, "cancelled", 0), "DOUBT"); /* one was false: a scan finds the others */
    notify(r, row(LISTEN_UPDATE, 7, 3, "broadcast", 1016), "update(7@3:broadcast)");
    assert_int_equal(cursor_known(r->c), 1);
    rig_free(r);
}

/* An application that cancels what waits in the outbox notifies the end itself. */
static void true_hints(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    hint(r, end(8, -1, "cancelled", 0), "LOOKUP");
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(8, -1, "cancelled", 1100)),
         "finished(8@-1:cancelled)");
    hint(r, end(8, -1, "cancelled", 0), "");
    hint(r, end(5, 2, "ok", 0), "LOOKUP"); /* it ended long before */
    rows(r, CURSOR_EV_LOOKED_UP, true, 1, ROWS(end(5, 2, "ok", 999)), "");
    hint(r, end(9, -1, "cancelled", 0), "DOUBT");
    begin(r, 1200);
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    hint(r, end(9, -1, "cancelled", 0), "LOOKUP");
    rig_free(r);
}

/* Looked up at a time: 100 ends that anybody may have made up. */
static void hints_have_a_bound(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    for (int id = 1; id <= 100; id++)
        hint(r, end(id, -1, "cancelled", 0), id == 1 ? "LOOKUP" : "");
    hint(r, end(101, -1, "cancelled", 0), "DOUBT");
    rig_free(r);
}

/* A hint about a row that a scan then misses: the row is reported at its own nonce. */
static void hint_and_then_a_scan(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    begin(r, 1200);
    hint(r, end(7, 12, "usurped", 0), "LOOKUP");
    rows(r, CURSOR_EV_PENDING, true, 0, NULL, "FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_LOOKED_UP, true, 0, NULL, "removed(7@3,scan)");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    rig_free(r);
}

/* A status from the future would hide those that follow. */
static void time_in_the_future(void **state)
{
    (void)state;
    struct rig *r = rig_new(NULL);
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, row(LISTEN_UPDATE, 7, 3, "finalized", 60 * 1000000LL + 1), "DOUBT");
    notify(r, row(LISTEN_UPDATE, 7, 3, "in_block", 1020), "update(7@3:in_block)");
    rig_free(r);
}

static void unconfirmed_rows_have_a_bound(void **state)
{
    (void)state;
    struct rig *r =
        rig_new(&(struct cursor_config){.overlap_us = 100, .scan_rows = 4, .unconfirmed_max = 2});
    go_live(r);
    notify(r, row(LISTEN_NEW, 7, 3, "signed", 1010), "new(7@3:signed)");
    notify(r, row(LISTEN_NEW, 8, 4, "signed", 1011), "new(8@4:signed)");
    notify(r, row(LISTEN_NEW, 9, 5, "signed", 1012), "DOUBT");
    notify(r, row(LISTEN_UPDATE, 8, 4, "ready", 1013), "update(8@4:ready)");
    begin(r, 1200);
    rows(r, CURSOR_EV_PENDING, true, 3,
         ROWS(row(LISTEN_NEW, 7, 3, "signed", 1010), row(LISTEN_NEW, 8, 4, "ready", 1013),
              row(LISTEN_NEW, 9, 5, "signed", 1012)),
         "new(9@5:signed,scan) FINISHED>1000,0,-1,0");
    rows(r, CURSOR_EV_FINISHED, true, 0, NULL, "LIVE");
    notify(r, row(LISTEN_NEW, 10, 6, "signed", 1210), "new(10@6:signed)");
    notify(r, row(LISTEN_NEW, 11, 7, "signed", 1211), "new(11@7:signed)");
    notify(r, row(LISTEN_NEW, 12, 8, "signed", 1212), "DOUBT");
    notify(r, row(LISTEN_REMOVED, 11, 7, "", 0), "removed(11@7)");
    notify(r, row(LISTEN_NEW, 12, 8, "signed", 1213), "new(12@8:signed)");
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_scan),
        cmocka_unit_test(notifications),
        cmocka_unit_test(outage),
        cmocka_unit_test(lookup_interrupted),
        cmocka_unit_test(since),
        cmocka_unit_test(position),
        cmocka_unit_test(moves_to_another_nonce),
        cmocka_unit_test(moved_during_an_outage),
        cmocka_unit_test(filler_takes_a_nonce),
        cmocka_unit_test(cancelled_in_the_outbox),
        cmocka_unit_test(false_end),
        cmocka_unit_test(scan_is_believed),
        cmocka_unit_test(filters),
        cmocka_unit_test(anybody_is_a_hint),
        cmocka_unit_test(true_hints),
        cmocka_unit_test(hints_have_a_bound),
        cmocka_unit_test(hint_and_then_a_scan),
        cmocka_unit_test(time_in_the_future),
        cmocka_unit_test(unconfirmed_rows_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The core of the sites, by single steps: four sites on a table, whose messages, databases and
 * nodes the test moves. The tests are named after the rows of the requirements (P..). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "design_page.h"
#include "site/core/site.h"

/* The worked example: the ranges of four blocks belong to A, B and D. */
enum { A, B, C, D, SITES, ROWS = 4, BYTES = 64, QUEUE = 512 };
static const unsigned places[] = {315, 45, 225, 135}, ranges[] = {310, 55, 120};

static uint64_t degrees(unsigned d)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)d << 64) / 360);
}

static uint64_t example_hash(const void *data, size_t len)
{
    const uint8_t *text = data;
    if (len < SELECTOR_ACCOUNT_BYTES)
        return degrees(places[text[0] - 'A']);
    return degrees(ranges[text[len - 1] % 3]);
}

struct post {
    struct site_message message;
    struct site_item items[8];
};

static struct site_config config;
static struct table {
    struct site_core *core;
    uint64_t height, tick_at;
    uint64_t rows[ROWS];
    struct site_bytes grants[ROWS][BYTES]; /* the database */
    size_t row_count, grant_count[ROWS];
    bool ended[ROWS];
    struct site_dispatch dispatches[BYTES];
    size_t dispatch_count;
    uint64_t final;
    unsigned noted;
    bool mute;  /* signs nothing: what it holds stays undispatched */
    bool stuck; /* commits nothing */
} site[SITES];
static bool away[SITES][SITES];
static struct post queue[QUEUE];
static size_t queue_first, queue_last;
static struct buf wire; /* every message, such as "C>A delegate 1, " */
static uint64_t now_ms, next_nonce, final_height, messages;
static struct site_bytes signed_bytes[BYTES];
static uint64_t signed_ids[BYTES], used_heights[BYTES];
static bool submitted[BYTES];
static size_t signed_count;
static uint64_t moved_machine;

static void step(unsigned who, const struct site_event *ev);

static size_t number_of(const struct site_bytes *b)
{
    uint32_t number;
    memcpy(&number, b->hash.bytes, sizeof(number));
    assert_in_range(number, 1, signed_count);
    return number - 1;
}

static void post(const struct site_message *m)
{
    messages++;
    if (m->type != SITE_MSG_HEARTBEAT) {
        buf_printf(&wire, "%c>%c %s", 'A' + (int)m->from, 'A' + (int)m->to,
                   site_message_name(m->type));
        for (size_t i = 0; i < m->count; i++)
            buf_printf(&wire, " %u", (unsigned)m->items[i].id);
        if (m->count && m->items[0].reason)
            buf_printf(&wire, " (%s)", site_reason_name(m->items[0].reason));
        buf_puts(&wire, ", ");
    }
    if (away[m->from][m->to])
        return;
    struct post *p = &queue[queue_last++ % QUEUE];
    assert_true(queue_last - queue_first < QUEUE && m->count <= 8);
    p->message = *m;
    for (size_t i = 0; i < m->count; i++) {
        p->items[i] = m->items[i];
        p->items[i].valid = m->items[i].has_bytes;
    }
}

static size_t row_at(const struct table *t, uint64_t id)
{
    for (size_t i = 0; i < t->row_count; i++)
        if (t->rows[i] == id)
            return i;
    fail_msg("no such row");
    return 0;
}

static void commit(struct table *t, const struct site_effect *fx)
{
    size_t i;
    switch (fx->type) {
    case SITE_FX_STORE_GRANT:
        i = row_at(t, fx->id);
        t->grants[i][t->grant_count[i]++] = fx->bytes;
        return;
    case SITE_FX_STORE_DISPATCH:
        t->dispatches[t->dispatch_count++] =
            (struct site_dispatch){.sender = fx->sender, .id = fx->id, .bytes = fx->bytes};
        return;
    case SITE_FX_STORE_DROP:
        for (i = 0; i < t->dispatch_count; i++)
            if (t->dispatches[i].id == fx->id)
                t->dispatches[i] = t->dispatches[--t->dispatch_count];
        return;
    case SITE_FX_STORE_END:
        t->ended[row_at(t, fx->id)] = true;
        return;
    case SITE_FX_STORE_FINAL:
        t->final = fx->height;
        return;
    case SITE_FX_STORE_NOTED:
        t->noted++;
        return;
    case SITE_FX_STORE_WAIT:
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        return;
    }
}

static void load(unsigned who, uint64_t number)
{
    struct table *t = &site[who];
    struct site_row rows[ROWS];
    const uint64_t nonces[SITES] = {final_height ? next_nonce : 0};
    struct site_event ev = {.type = SITE_EV_LOADED};
    for (size_t i = 0; i < t->row_count; i++)
        if (!t->ended[i])
            rows[ev.loaded.row_count++] = (struct site_row){
                .id = t->rows[i], .attempts = t->grants[i], .count = t->grant_count[i]};
    ev.loaded.load = number;
    ev.loaded.final = t->final;
    ev.loaded.next = nonces;
    ev.loaded.rows = rows;
    ev.loaded.dispatches = t->dispatches;
    ev.loaded.dispatch_count = t->dispatch_count;
    step(who, &ev);
}

static void sign(unsigned who, const struct site_effect *fx)
{
    uint32_t number = (uint32_t)signed_count + 1;
    struct site_item item = {.sender = fx->sender, .id = fx->id, .has_bytes = true, .valid = true};
    item.bytes = fx->bytes;
    item.bytes.death = fx->height;
    memcpy(item.bytes.hash.bytes, &number, sizeof(number));
    signed_bytes[signed_count] = item.bytes;
    signed_ids[signed_count++] = fx->id;
    step(who,
         &(struct site_event){.type = SITE_EV_SIGNED, .signed_ = {.items = &item, .count = 1}});
}

static void step(unsigned who, const struct site_event *ev)
{
    struct table *t = &site[who];
    const struct site_effect *effects;
    size_t count;
    site_step(t->core, now_ms, ev, &effects, &count);
    assert_null(site_core_check(t->core));
    struct site_effect *fx = xcalloc(count + 1, sizeof(*fx));
    memcpy(fx, effects, count * sizeof(*fx));
    uint64_t batch = 0;
    for (size_t i = 0; i < count; i++)
        if (fx[i].type == SITE_FX_SEND)
            post(&fx[i].message);
        else if (fx[i].type >= SITE_FX_STORE_GRANT)
            batch = fx[i].batch;
    for (size_t i = 0; i < count && !t->stuck; i++)
        if (fx[i].type >= SITE_FX_STORE_GRANT)
            commit(t, &fx[i]);
    if (batch && !t->stuck)
        step(who, &(struct site_event){.type = SITE_EV_STORED, .stored = {.batch = batch}});
    for (size_t i = 0; i < count; i++)
        if (fx[i].type == SITE_FX_LOAD)
            load(who, fx[i].batch);
        else if (fx[i].type == SITE_FX_SUBMIT)
            submitted[number_of(&fx[i].bytes)] = true;
        else if (fx[i].type == SITE_FX_SIGN && !t->mute)
            sign(who, &fx[i]);
    free(fx);
}

/* Delivers the next message. */
static void deliver(void)
{
    assert_true(queue_first < queue_last);
    struct post p = queue[queue_first++ % QUEUE];
    p.message.items = p.items;
    if (site[p.message.to].core)
        step(p.message.to, &(struct site_event){.type = SITE_EV_MESSAGE, .message = p.message});
}

/* Delivers everything that is on its way. */
static void settle(void)
{
    while (queue_first < queue_last)
        deliver();
}

static void see(unsigned who, uint64_t height)
{
    site[who].height = height;
    if (site[who].core)
        step(who, &(struct site_event){.type = SITE_EV_HEAD,
                                       .head = {.height = height, .next = next_nonce}});
}

static void wait_ms(uint64_t ms)
{
    for (uint64_t until = now_ms + ms; now_ms < until;) {
        now_ms += 50;
        for (unsigned i = 0; i < SITES; i++)
            if (site[i].core) {
                if (now_ms % 1000 == 0)
                    see(i, site[i].height); /* blocks go on, in the same range */
                step(i, &(struct site_event){.type = SITE_EV_TICK});
            }
        settle();
    }
}

static void start(unsigned who)
{
    static const char *const names[] = {"A", "B", "C", "D"};
    static uint64_t life;
    config.names = names;
    config.self = who;
    config.life = ++life;
    site[who].core = site_core_new(&config);
    step(who, &(struct site_event){.type = SITE_EV_LEAD});
    see(who, site[who].height);
}

static void crash(unsigned who)
{
    moved_machine |= site_core_moved(site[who].core)->machine;
    site[who].core = site_core_free(site[who].core);
}

static void restart(unsigned who)
{
    crash(who);
    start(who);
}

static void done(void)
{
    for (unsigned i = 0; i < SITES; i++)
        if (site[i].core)
            crash(i);
    buf_done(&wire);
}

/* `members` sites at height 1. */
static void begin(uint32_t members)
{
    done();
    memset(site, 0, sizeof(site));
    memset(away, 0, sizeof(away));
    memset(submitted, 0, sizeof(submitted));
    memset(used_heights, 0, sizeof(used_heights));
    queue_first = queue_last = signed_count = 0;
    now_ms = 1000;
    next_nonce = final_height = messages = 0;
    config = (struct site_config){.hash = example_hash,
                                  .account = {1},
                                  .members = members,
                                  .range_blocks = 4,
                                  .era_blocks = 1000,
                                  .own_send_ms = 3600000};
    for (unsigned i = 0; i < members; i++) {
        site[i].height = 1;
        start(i);
    }
    buf_clear(&wire);
}

static void enqueue(unsigned who, uint64_t id)
{
    site[who].rows[site[who].row_count++] = id;
    step(who, &(struct site_event){.type = SITE_EV_ROWS, .rows = {.ids = &id, .count = 1}});
}

/* A final block with what was submitted, by nonces. */
static void finalize(void)
{
    struct site_used used[BYTES];
    size_t count = 0;
    final_height++;
    for (bool any = true; any;) {
        any = false;
        for (size_t i = 0; i < signed_count; i++)
            if (submitted[i] && !used_heights[i] && signed_bytes[i].nonce == next_nonce) {
                used_heights[i] = final_height;
                used[count++] = (struct site_used){.bytes = signed_bytes[i], .id = signed_ids[i]};
                next_nonce++;
                any = true;
                break;
            }
    }
    const uint64_t nonces[SITES] = {next_nonce};
    for (unsigned i = 0; i < SITES; i++)
        if (site[i].core)
            step(i, &(struct site_event){
                        .type = SITE_EV_FINAL,
                        .final = {
                            .height = final_height, .next = nonces, .used = used, .count = count}});
    for (unsigned i = 0; i < SITES; i++)
        see(i, site[i].height);
    settle();
}

static unsigned effects_of(uint64_t id)
{
    unsigned n = 0;
    for (size_t i = 0; i < signed_count; i++)
        n += signed_ids[i] == id && used_heights[i];
    return n;
}

static enum site_state state_of(unsigned who)
{
    struct site_view view;
    site_core_view(site[who].core, &view);
    return view.state;
}

static bool told(const char *text)
{
    return strstr(buf_str(&wire), text) != NULL;
}

#define SAYS(text) assert_string_equal(buf_str(&wire), text)

/* ---- the way of a transaction ---- */

static void p103_p37_p75_p77_the_order_on_the_wire(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle();
    SAYS("C>A delegate 7, A>C accepted 7, A>C propose 7, C>A grant 7, A>C dispatched 7, "
         "C>A ack 7, ");
    assert_int_equal(site[C].grant_count[0], 1);
    assert_int_equal(site[A].dispatch_count, 1);
    assert_int_equal(site[C].noted, 1);
    assert_int_equal(state_of(A), SITE_ACTIVE);
    assert_int_equal(state_of(C), SITE_OBSERVING);
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
    assert_int_equal(site[A].dispatch_count, 0);
}

static void p36_issue17_a_committee_of_one_and_an_idle_account_send_nothing(void **state)
{
    (void)state;
    begin(1);
    enqueue(A, 7);
    wait_ms(20000);
    finalize();
    assert_true(site[A].ended[0] && messages == 0);
    begin(4);
    enqueue(C, 7);
    settle();
    finalize();
    wait_ms(10000); /* the last heartbeats */
    assert_int_equal(state_of(A), SITE_IDLE);
    messages = 0;
    wait_ms(10000);
    assert_int_equal(messages, 0);
}

static void p90_a_duplicate_delegation_changes_nothing(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true;
    enqueue(C, 7);
    settle();
    restart(C);
    settle();
    struct site_view view;
    site_core_view(site[A].core, &view);
    assert_int_equal(view.work, 1);
    assert_true(told("C>A delegate 7, A>C accepted 7, C>A delegate 7, A>C accepted 7, "));
}

static void p76_p97_the_former_delegate_gets_no_grant(void **state)
{
    (void)state;
    begin(4);
    site[C].stuck = false;
    enqueue(C, 7);
    away[A][C] = true; /* the proposal is lost */
    settle();
    see(C, 4);
    see(B, 4);
    settle();
    away[A][C] = false;
    wait_ms(1500); /* A proposes again */
    assert_true(told("C>A deny 7 (moved)"));
    assert_int_equal(site[A].dispatch_count, 0);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

/* ---- height skew ---- */

static void p60_p61_p62_p66_a_delegate_that_is_behind_is_asked_again(void **state)
{
    (void)state;
    begin(4);
    see(C, 4);
    enqueue(C, 7);
    settle();
    SAYS("C>B delegate 7, B>C refused 7 (not chosen), ");
    wait_ms(1050);
    assert_true(told("refused 7 (not chosen), C>B delegate 7, B>C refused 7 (not chosen), "));
    see(B, 4);
    wait_ms(1050);
    assert_true(told("C>B delegate 7, B>C accepted 7, "));
    assert_false(told("C>A"));
    finalize();
    assert_true(site[C].ended[0]);
}

static void p63_p69_a_sender_that_is_behind_waits_for_its_own_node(void **state)
{
    (void)state;
    begin(4);
    see(A, 4);
    see(B, 4);
    enqueue(C, 7);
    settle();
    wait_ms(3000);
    SAYS("C>A delegate 7, A>C refused 7 (not chosen), "); /* no blind trust, and no hurry */
    see(C, 5);                                            /* the range counts, not the height */
    settle();
    assert_true(told("C>B delegate 7, B>C accepted 7, "));
    finalize();
    assert_true(site[C].ended[0]);
}

static void p64_a_coordinator_goes_on_until_its_own_node_shows_the_boundary(void **state)
{
    (void)state;
    begin(4);
    see(B, 4);
    see(D, 4);
    enqueue(C, 7);
    settle();
    assert_int_equal(site[A].dispatch_count, 1);
    see(A, 4);
    settle();
    assert_int_equal(state_of(A), SITE_FLUSH);
    finalize();
    assert_int_equal(state_of(A), SITE_CLOSING);
}

static void p65_p51_p52_p53_p54_p83_a_switch_over_returns_what_is_not_dispatched(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle(); /* dispatched */
    site[A].mute = true;
    enqueue(C, 8);
    enqueue(D, 9);
    settle();
    buf_clear(&wire);
    see(A, 4);
    settle();
    assert_true(told("A>B handover 7, "));
    assert_true(told("A>C returned 8, "));
    assert_true(told("A>D returned 9, "));
    see(B, 4);
    see(C, 4);
    see(D, 4);
    wait_ms(1050);
    assert_true(told("C>B delegate 8, ") && told("D>B delegate 9, ") && !told("C>B delegate 7"));
    /* P55, P56: it prepares, and dispatches nothing before the former one's are final. */
    assert_int_equal(state_of(B), SITE_PREPARED);
    assert_int_equal(site[B].dispatch_count, 0);
    finalize();
    wait_ms(100);
    assert_int_equal(state_of(B), SITE_ACTIVE);
    finalize();
    assert_true(site[C].ended[0] && site[C].ended[1] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8) + effects_of(9), 3);
}

static void p70_an_old_coordinator_that_is_behind_is_denied(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true; /* it prepares for long */
    enqueue(C, 7);
    settle();
    see(C, 4);
    see(B, 4);
    wait_ms(11000); /* for a handover that does not come */
    assert_int_equal(site[B].dispatch_count, 1);
    site[A].mute = false;
    wait_ms(1000);
    assert_int_equal(site[A].dispatch_count, 0);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void p67_p68_a_coordinator_asks_the_others(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = 0; i < SITES; i++)
        crash(i);
    config.approvals = 2;
    for (unsigned i = 0; i < SITES; i++)
        start(i);
    see(B, 4);
    see(D, 4);
    enqueue(C, 7);
    settle();
    assert_true(told("B>A disapproved 7 (not chosen)") && told("D>A disapproved 7 (not chosen)"));
    assert_true(told("C>A approved 7") && !told("propose"));
    see(A, 4); /* behind: it waits for the boundary, and returns the transaction */
    see(C, 4);
    settle();
    wait_ms(1050);
    assert_true(told("A>C returned 7") || told("C>B delegate 7"));
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

/* Sender, old and new coordinator learn the height in any order, before or after a delegation. */
static void p102_six_orders_of_learning_a_height(void **state)
{
    (void)state;
    static const unsigned orders[6][3] = {{A, B, C}, {A, C, B}, {B, A, C},
                                          {B, C, A}, {C, A, B}, {C, B, A}};
    for (int o = 0; o < 6; o++)
        for (int when = 0; when < 4; when++) {
            begin(3);
            site[A].mute = when % 2;
            for (int i = 0; i < 3; i++) {
                if (when == i)
                    enqueue(C, 7);
                settle();
                see(orders[o][i], 4);
                settle();
                wait_ms(200);
            }
            if (when == 3)
                enqueue(C, 7);
            site[A].mute = false;
            for (int i = 0; i < 10 && !site[C].ended[0]; i++) {
                wait_ms(1000);
                finalize();
            }
            assert_true(site[C].ended[0]);
            assert_int_equal(effects_of(7), 1);
        }
}

/* ---- failures ---- */

static void p25_p31_p32_silence_a_probe_and_the_next_in_the_ranking(void **state)
{
    (void)state;
    begin(4);
    crash(A);
    enqueue(D, 7);
    wait_ms(4900);
    assert_false(told("probe"));
    wait_ms(200);
    assert_true(told("D>A probe, ") && !told("D>C"));
    wait_ms(2100);
    assert_true(told("D>C delegate 7, C>D accepted 7, "));
    finalize();
    assert_true(site[D].ended[0]);
}

static void p33_p38_p46_p82_a_preferred_site_returns(void **state)
{
    (void)state;
    begin(4);
    crash(A);
    enqueue(D, 7);
    wait_ms(7500);
    assert_int_equal(site[C].dispatch_count, 1);
    site[C].mute = true;
    enqueue(D, 8); /* held, not dispatched */
    enqueue(B, 9);
    wait_ms(8000);
    start(A); /* it hears C's heartbeat, and announces itself */
    wait_ms(2500);
    assert_true(told("C>D returned 8, ") || told("D>A delegate 8, "));
    assert_true(told("D>A delegate 8, ") && told("B>A delegate 9, "));
    assert_int_equal(state_of(C), SITE_FLUSH);
    finalize();
    wait_ms(1500);
    finalize();
    assert_true(site[D].ended[0] && site[D].ended[1] && site[B].ended[0]);
    wait_ms(6000);
    assert_int_equal(state_of(A), SITE_IDLE);
    assert_int_equal(state_of(C), SITE_IDLE);
}

static void p45_p46_p49_a_partition_of_two_and_two_heals_to_one_coordinator(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = 0; i < SITES; i++)
        for (unsigned j = 0; j < SITES; j++)
            away[i][j] = (i < C) != (j < C);
    enqueue(B, 7);
    enqueue(D, 8);
    wait_ms(8000);
    assert_int_equal(state_of(A), SITE_ACTIVE);
    assert_int_equal(state_of(C), SITE_ACTIVE);
    finalize(); /* both proposed nonce 0: one of the two gets in */
    wait_ms(1000);
    finalize();
    assert_true(site[B].ended[0] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8), 2);
    site[C].mute = true;
    enqueue(D, 9);
    wait_ms(500);
    memset(away, 0, sizeof(away));
    wait_ms(3000);
    assert_int_not_equal(state_of(C), SITE_ACTIVE);
    finalize();
    assert_true(site[D].ended[1]);
}

static void p81_p95_a_coordinator_that_forgot_is_asked_again(void **state)
{
    (void)state;
    begin(4);
    site[A].mute = true;
    enqueue(C, 7);
    enqueue(D, 8);
    settle();
    crash(A);
    site[A].mute = false;
    start(A);
    wait_ms(7000); /* nothing is there to beat for: the silence shows it */
    finalize();
    assert_true(site[C].ended[0] && site[D].ended[0]);
    assert_int_equal(effects_of(7) + effects_of(8), 2);
}

static void p96_p78_a_restarted_coordinator_goes_on_with_what_it_dispatched(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    settle();
    memset(submitted, 0, sizeof(submitted)); /* 2C: committed, and nothing left */
    restart(A);
    wait_ms(100);
    assert_true(submitted[0]);
    assert_int_equal(site[C].noted, 2); /* told again: it does not know that it was */
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void p91_1s_a_sender_dies_before_its_grant_is_committed(void **state)
{
    (void)state;
    begin(4);
    site[C].stuck = true;
    enqueue(C, 7);
    settle();
    assert_false(told("grant"));
    crash(C);
    site[C].stuck = false;
    start(C);
    wait_ms(2500);
    assert_int_equal(site[C].grant_count[0], 1);
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void p92_2s_a_sender_dies_before_its_grant_has_left(void **state)
{
    (void)state;
    begin(4);
    away[C][A] = true;
    enqueue(C, 7);
    away[C][A] = false;
    wait_ms(1050);
    assert_int_equal(site[C].grant_count[0], 1);
    begin(4);
    enqueue(C, 7);
    while (!told("C>A grant"))
        deliver();
    queue_last = queue_first; /* it does not arrive */
    restart(C);
    wait_ms(100);
    assert_true(told("C>A delegate 7, A>C accepted 7, A>C dispatched 7"));
    assert_int_equal(site[C].grant_count[0], 1); /* the same bytes */
    finalize();
    assert_int_equal(effects_of(7), 1);
}

static void p93_3s_a_notification_is_repeated_until_it_is_acknowledged(void **state)
{
    (void)state;
    begin(4);
    enqueue(C, 7);
    while (!told("A>C dispatched"))
        deliver();
    crash(C); /* it arrived nowhere */
    settle();
    start(C);
    wait_ms(1100);
    assert_true(site[C].noted >= 1);
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

static void p101_p12_a_sender_whose_coordinator_dies_after_the_grant_sends_itself(void **state)
{
    (void)state;
    begin(4);
    for (unsigned i = 0; i < SITES; i++)
        crash(i);
    config.own_send_ms = 30000;
    for (unsigned i = 0; i < SITES; i++)
        start(i);
    site[A].stuck = true;
    enqueue(C, 7);
    settle();
    assert_int_equal(site[C].grant_count[0], 1);
    crash(A);
    wait_ms(9000);
    assert_true(submitted[0]); /* the same bytes, without A */
    finalize();
    assert_true(site[C].ended[0] && effects_of(7) == 1);
}

static void the_design_page_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(site_state_dump);
    design_page_shows(site_tx_dump);
    design_page_shows(site_work_dump);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p103_p37_p75_p77_the_order_on_the_wire),
        cmocka_unit_test(p36_issue17_a_committee_of_one_and_an_idle_account_send_nothing),
        cmocka_unit_test(p90_a_duplicate_delegation_changes_nothing),
        cmocka_unit_test(p76_p97_the_former_delegate_gets_no_grant),
        cmocka_unit_test(p60_p61_p62_p66_a_delegate_that_is_behind_is_asked_again),
        cmocka_unit_test(p63_p69_a_sender_that_is_behind_waits_for_its_own_node),
        cmocka_unit_test(p64_a_coordinator_goes_on_until_its_own_node_shows_the_boundary),
        cmocka_unit_test(p65_p51_p52_p53_p54_p83_a_switch_over_returns_what_is_not_dispatched),
        cmocka_unit_test(p70_an_old_coordinator_that_is_behind_is_denied),
        cmocka_unit_test(p67_p68_a_coordinator_asks_the_others),
        cmocka_unit_test(p102_six_orders_of_learning_a_height),
        cmocka_unit_test(p25_p31_p32_silence_a_probe_and_the_next_in_the_ranking),
        cmocka_unit_test(p33_p38_p46_p82_a_preferred_site_returns),
        cmocka_unit_test(p45_p46_p49_a_partition_of_two_and_two_heals_to_one_coordinator),
        cmocka_unit_test(p81_p95_a_coordinator_that_forgot_is_asked_again),
        cmocka_unit_test(p96_p78_a_restarted_coordinator_goes_on_with_what_it_dispatched),
        cmocka_unit_test(p91_1s_a_sender_dies_before_its_grant_is_committed),
        cmocka_unit_test(p92_2s_a_sender_dies_before_its_grant_has_left),
        cmocka_unit_test(p93_3s_a_notification_is_repeated_until_it_is_acknowledged),
        cmocka_unit_test(p101_p12_a_sender_whose_coordinator_dies_after_the_grant_sends_itself),
        cmocka_unit_test(the_design_page_shows_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

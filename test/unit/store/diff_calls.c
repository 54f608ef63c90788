/* Random requests: what a leader reads, what applications ask for. Sensible ones mostly, by what
 * the memory database knows, and wrong ones now and then. */
#include "diff.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- choices ---- */

uint64_t diff_below(struct diff *d, uint64_t n)
{
    return rng_below(&d->rng, n);
}

bool diff_chance(struct diff *d, unsigned percent)
{
    return diff_below(d, 100) < percent;
}

const char *diff_text(struct diff *d, const char *fmt, ...)
{
    assert_true(d->text_count < TEXTS);
    char *out = d->texts[d->text_count++];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, sizeof(d->texts[0]), fmt, ap);
    va_end(ap);
    return out;
}

const struct mem_account *diff_account(const struct diff *d, size_t i)
{
    return mem_account_at(d->db, (int32_t)i + 1);
}

size_t diff_leader(struct diff *d, size_t account)
{
    const char *claimant = diff_account(d, account)->lead.holder;
    for (size_t i = 0; i < RELAYS && claimant && !diff_chance(d, 5); i++)
        if (!strcmp(claimant, d->relays[i].holder))
            return i;
    return diff_below(d, RELAYS);
}

int64_t diff_epoch(struct diff *d, size_t relay, size_t account)
{
    int64_t epoch = d->relays[relay].epochs[account];
    return diff_chance(d, 3) ? epoch + (int64_t)diff_below(d, 3) - 1 : epoch;
}

size_t diff_any_account(struct diff *d)
{
    return diff_below(d, ACCOUNTS);
}

int32_t diff_number(struct diff *d, size_t account)
{
    return diff_chance(d, 1) ? 99 : (int32_t)account + 1;
}

/* Of a transaction that there is, mostly. */
static int64_t any_id(struct diff *d)
{
    return 1 + (int64_t)diff_below(d, (uint64_t)mem_last_id(d->db) + 2);
}

/* ---- a leader's reads ---- */

static void read_due(struct diff *d, size_t relay)
{
    int32_t accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS], fingerprints[ACCOUNTS];
    union any_request u = {.due = {.count = ACCOUNTS,
                                   .accounts = accounts,
                                   .epochs = epochs,
                                   .fingerprints = fingerprints,
                                   .ahead_ms = STEP_S * 1000 * (uint32_t)diff_below(d, 4)}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        accounts[i] = (int32_t)i + 1;
        epochs[i] = diff_epoch(d, relay, i);
        fingerprints[i] = diff_chance(d, 70) ? d->pg_fingerprints[i] : -1;
    }
    diff_request(d, relay, MEM_REQUEST_due, &u);
}

void diff_read(struct diff *d, size_t relay, size_t account)
{
    const struct mem_account *a = diff_account(d, account);
    union any_request u;
    memset(&u, 0, sizeof(u));
    switch (diff_below(d, 4)) {
    case 0:
        u.snapshot.account = diff_number(d, account);
        u.snapshot.epoch = diff_epoch(d, relay, account);
        u.snapshot.after_nonce = diff_chance(d, 60) ? -1 : a->next_nonce - 2;
        u.snapshot.limit = 1 + (uint32_t)diff_below(d, 20);
        diff_request(d, relay, MEM_REQUEST_snapshot, &u);
        return;
    case 1:
        u.outbox.account = diff_number(d, account);
        u.outbox.epoch = diff_epoch(d, relay, account);
        u.outbox.limit = 1 + (uint32_t)diff_below(d, 20);
        u.outbox.next_nonce = a->next_nonce;
        u.outbox.block = (int64_t)diff_below(d, 80);
        diff_request(d, relay, MEM_REQUEST_outbox, &u);
        return;
    case 2:
        u.poll_requests.account = diff_number(d, account);
        u.poll_requests.epoch = diff_epoch(d, relay, account);
        diff_request(d, relay, MEM_REQUEST_poll_requests, &u);
        return;
    default:
        read_due(d, relay);
        return;
    }
}

/* ---- applications ---- */

static int64_t some_time(struct diff *d)
{
    int64_t steps = (int64_t)diff_below(d, 5) - (diff_chance(d, 10) ? 2 : 0);
    return (diff_now_us(d) - d->shift_us) / 1000 + steps * STEP_S * 1000 + STEP_S * 500;
}

static void enqueue(struct diff *d)
{
    size_t account =
        diff_below(d, diff_chance(d, 90) ? ACCOUNTS - 1 : ACCOUNTS); /* the last one has no key */
    const char *call = diff_text(d, "call %llu", (unsigned long long)diff_below(d, 12));
    union any_request u = {
        .enqueue = {
            .account = diff_account(d, account)->alias,
            .call = {(const uint8_t *)call, strlen(call)},
            .key = diff_chance(d, 20) ? diff_text(d, "key %d", (int)diff_below(d, 15)) : NULL,
            .priority = diff_chance(d, 15) ? (int32_t)diff_below(d, 5) - 2 : 0,
            .creator = diff_text(d, "app %d", (int)diff_below(d, 3)),
            .not_before_ms = diff_chance(d, 12) ? some_time(d) : 0,
            .deadline_ms = diff_chance(d, 15) ? some_time(d) : 0,
            .guard = diff_chance(d, 10) ? (uint32_t)diff_below(d, 5) : 0,
            .tip = diff_chance(d, 25) ? diff_text(d, "%d", (int)diff_below(d, 50)) : NULL,
            .max_tip = diff_chance(d, 20) ? diff_text(d, "%d", (int)diff_below(d, 90)) : NULL,
            .deadline_block = diff_chance(d, 10) ? (int64_t)diff_below(d, 60) - 2 : 0,
            .retries = diff_chance(d, 40) ? (uint32_t)diff_below(d, 4) : 0,
            .traceparent = diff_chance(d, 20)
                               ? diff_text(d, "00-%032d-%016d-%02d", (int)diff_below(d, 5),
                                           (int)diff_below(d, 5), (int)diff_below(d, 2))
                               : NULL}};
    if (diff_chance(d, 2))
        u.enqueue.account = diff_chance(d, 50) ? "nobody" : diff_account(d, account)->address;
    if (diff_chance(d, 2))
        u.enqueue.priority = 1001;
    if (diff_chance(d, 2))
        u.enqueue.retries = 101;
    if (diff_chance(d, 2))
        u.enqueue.key = "";
    if (diff_chance(d, 1))
        u.enqueue.call.len = 0;
    if (diff_chance(d, 1))
        u.enqueue.tip = "340282366920938463463374607431768211456";
    diff_request(d, diff_below(d, RELAYS), MEM_REQUEST_enqueue, &u);
}

static void ask(struct diff *d)
{
    union any_request u = {
        .cancel = {.id = any_id(d), .account = diff_account(d, diff_any_account(d))->alias}};
    if (diff_chance(d, 5))
        u.cancel.account = "nobody";
    if (diff_chance(d, 60))
        u.cancel.tip = diff_text(d, "%d", (int)diff_below(d, 120));
    uint64_t which = diff_below(d, 5);
    diff_request(d, diff_below(d, RELAYS),
                 which < 2   ? MEM_REQUEST_cancel
                 : which < 4 ? MEM_REQUEST_bump
                             : MEM_REQUEST_resume,
                 &u);
}

/* Of one that has ended, mostly. */
static void ask_again(struct diff *d)
{
    size_t ended = mem_finished_count(d->db);
    union any_request u = {.retry = {.id = any_id(d)}};
    if (ended && diff_chance(d, 90))
        u.retry.id = mem_finished_at(d->db, diff_below(d, ended))->id;
    if (diff_chance(d, 30))
        u.retry.deadline_ms = diff_chance(d, 50) ? STORE_ASK_NONE : some_time(d);
    if (diff_chance(d, 30))
        u.retry.deadline_block = diff_chance(d, 50) ? STORE_ASK_NONE : (int64_t)diff_below(d, 60);
    diff_request(d, diff_below(d, RELAYS), MEM_REQUEST_retry, &u);
}

void diff_any_call(struct diff *d)
{
    size_t account = diff_any_account(d);
    uint64_t which = diff_below(d, 100);
    d->text_count = 0;
    if (which < 16)
        diff_lead(d);
    else if (which < 32)
        diff_read(d, diff_leader(d, account), account);
    else if (which < 50)
        enqueue(d);
    else if (which < 54)
        ask(d);
    else if (which < 56)
        ask_again(d);
    else if (which < 64)
        diff_application(d);
    else if (which < 67)
        diff_beside_held_row(d);
    else
        diff_write(d);
}

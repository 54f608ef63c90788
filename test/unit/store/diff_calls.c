/* Random requests: who leads, what a leader reads, what applications ask for. Sensible ones mostly, by what the
 * memory database knows, and wrong ones now and then. */
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
    const char *claimant = diff_account(d, account)->claimant;
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

static size_t any_account(struct diff *d)
{
    return diff_below(d, ACCOUNTS);
}

static int32_t number_of(struct diff *d, size_t account)
{
    return diff_chance(d, 1) ? 99 : (int32_t)account + 1;
}

/* Of a transaction that there is, mostly. */
static int64_t any_id(struct diff *d)
{
    return 1 + (int64_t)diff_below(d, (uint64_t)mem_last_id(d->db) + 2);
}

/* ---- who leads ---- */

static void lock(struct diff *d, size_t relay, size_t account)
{
    union any_request u = {.lock = {.lock_key = diff_account(d, account)->lock_key}};
    diff_request(d, relay, diff_chance(d, 70) ? MEM_REQUEST_lock : MEM_REQUEST_unlock, &u);
}

static void claim(struct diff *d, size_t relay, size_t account)
{
    const struct mem_account *a = diff_account(d, account);
    bool have = mem_lock_owner(d->db, a->lock_key) == d->relays[relay].mem;
    uint32_t expiry = STEP_S * 500 + STEP_S * 1000 * (uint32_t)diff_below(d, 3);
    union any_request u = {.claim = {.account = number_of(d, account),
                                     .holder = d->relays[relay].holder,
                                     .address = diff_text(d, "host:%zu", relay),
                                     .have_lock = diff_chance(d, 10) ? !have : have,
                                     .expiry_1_ms = expiry,
                                     .expiry_2_ms = expiry + STEP_S * 1000 * (uint32_t)diff_below(d, 3)}};
    if (diff_chance(d, 3))
        u.claim.expiry_2_ms = diff_chance(d, 50) ? 1 : 86400001;
    diff_request(d, relay, MEM_REQUEST_claim, &u);
}

static void renew(struct diff *d, size_t relay)
{
    int32_t accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS], keys[ACCOUNTS];
    union any_request u = {.renew = {.holder = d->relays[relay].holder,
                                     .accounts = accounts,
                                     .epochs = epochs,
                                     .lock_keys = diff_chance(d, 60) ? keys : NULL,
                                     .expiry_1_ms = STEP_S * 500 + STEP_S * 1000 * (uint32_t)diff_below(d, 2),
                                     .expiry_2_ms = STEP_S * 2500,
                                     .block = (int64_t)diff_below(d, 60) - 1}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        if (diff_chance(d, 25))
            continue;
        accounts[u.renew.count] = (int32_t)i + 1;
        epochs[u.renew.count] = diff_epoch(d, relay, i);
        keys[u.renew.count++] = diff_account(d, i)->lock_key;
    }
    diff_request(d, relay, MEM_REQUEST_renew, &u);
}

static void release(struct diff *d, size_t relay, size_t account)
{
    union any_request u = {.release = {.account = number_of(d, account),
                                       .epoch = diff_epoch(d, relay, account),
                                       .holder = d->relays[relay].holder}};
    diff_request(d, relay, MEM_REQUEST_release, &u);
}

/* Whether a session with a lock that it never claimed with has been idle for 5 s is of the server's clock alone:
 * no seed that is older asks. */
static void evict(struct diff *d, size_t relay, size_t account)
{
    if (diff_real_us() > d->began_us + 4000000)
        return;
    union any_request u = {.evict = {.lock_key = diff_account(d, account)->lock_key}};
    if (diff_chance(d, 3))
        u.evict.lock_key ^= 1 << 20;
    diff_request(d, relay, MEM_REQUEST_evict, &u);
}

/* One of the epochs at least is not known: the store on Postgres would answer by a mark otherwise. */
static void scan(struct diff *d, size_t relay)
{
    int32_t accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS];
    union any_request u = {.scan = {.count = ACCOUNTS, .accounts = accounts, .epochs = epochs}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        accounts[i] = (int32_t)i + 1;
        epochs[i] = i && diff_chance(d, 70) ? diff_account(d, i)->epoch : -1;
    }
    diff_request(d, relay, MEM_REQUEST_scan, &u);
}

static void member(struct diff *d, size_t relay)
{
    union any_request u = {.member = {.holder = d->relays[relay].holder,
                                      .address = "host:1",
                                      .serves = (int64_t)diff_below(d, 2),
                                      .ttl_ms = STEP_S * 500 + STEP_S * 1000 * (uint32_t)diff_below(d, 3),
                                      .leave = diff_chance(d, 10),
                                      .best = (int64_t)diff_below(d, 100) - 1}};
    if (diff_chance(d, 2))
        u.member.ttl_ms = 0;
    diff_request(d, relay, MEM_REQUEST_member, &u);
}

static void doorbell(struct diff *d, size_t relay, size_t account)
{
    union any_request u = {.doorbell_arm = {.account = (int32_t)account + 1}};
    bool arm = diff_chance(d, 60);
    diff_request(d, relay, arm ? MEM_REQUEST_doorbell_arm : MEM_REQUEST_doorbell_disarm, &u);
}

static void enroll(struct diff *d)
{
    const struct mem_account *a = diff_account(d, any_account(d)), *b = diff_account(d, any_account(d));
    uint8_t short_id[31] = {0};
    union any_request u = {.enroll = {.alias = a->alias,
                                      .scheme = a->scheme,
                                      .address = diff_chance(d, 50) ? a->address : "5Other",
                                      .account_id = a->account_id,
                                      .genesis = a->genesis,
                                      .lock_key = a->lock_key,
                                      .watch_only = a->watch_only}};
    switch (diff_below(d, 7)) {
    case 0:
        u.enroll.alias = diff_chance(d, 50) ? b->alias : "0xnot";
        break;
    case 1:
        u.enroll.scheme = diff_chance(d, 50) ? "ed25519" : "rsa";
        break;
    case 2:
        u.enroll.account_id = diff_chance(d, 50) ? b->account_id : (struct store_bytes){short_id, 31};
        break;
    case 3:
        u.enroll.lock_key = b->lock_key;
        break;
    case 4:
        u.enroll.watch_only = !a->watch_only;
        break;
    default:
        break;
    }
    diff_request(d, diff_below(d, RELAYS), MEM_REQUEST_enroll, &u);
}

/* Most writes are to be those of a leader, to an account that takes some. */
void diff_take(struct diff *d, size_t account)
{
    const struct mem_account *a = diff_account(d, account);
    size_t relay = account % 2;
    union any_request lock = {.lock = {.lock_key = a->lock_key}}, resume = {.resume = {.account = a->alias}};
    union any_request claim = {.claim = {.account = a->number,
                                         .holder = d->relays[relay].holder,
                                         .address = "host:1",
                                         .have_lock = true,
                                         .expiry_1_ms = STEP_S * 1500,
                                         .expiry_2_ms = STEP_S * 2500}};
    if (a->paused && diff_chance(d, 30))
        diff_request(d, relay, MEM_REQUEST_resume, &resume);
    if (a->claimant && a->timeline == d->db->timeline)
        return;
    diff_request(d, relay, MEM_REQUEST_lock, &lock);
    diff_request(d, relay, MEM_REQUEST_claim, &claim);
}

void diff_lead(struct diff *d)
{
    size_t account = any_account(d), relay = diff_chance(d, 70) ? account % 2 : diff_below(d, RELAYS);
    switch (diff_below(d, 13)) {
    case 0:
    case 1:
    case 2:
        lock(d, relay, account);
        return;
    case 3:
    case 4:
    case 5:
        claim(d, relay, account);
        return;
    case 6:
        renew(d, relay);
        return;
    case 7:
        scan(d, relay);
        return;
    case 8:
        member(d, relay);
        return;
    case 9:
    case 10:
        doorbell(d, relay, account);
        return;
    case 11:
        if (diff_chance(d, 30))
            evict(d, relay, account);
        else if (diff_chance(d, 40))
            release(d, diff_leader(d, account), account);
        return;
    default:
        enroll(d);
        return;
    }
}

/* ---- a leader's reads ---- */

static void read_due(struct diff *d, size_t relay)
{
    int32_t accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS], marks[ACCOUNTS];
    union any_request u = {.due = {.count = ACCOUNTS,
                                   .accounts = accounts,
                                   .epochs = epochs,
                                   .marks = marks,
                                   .ahead_ms = STEP_S * 1000 * (uint32_t)diff_below(d, 4)}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        accounts[i] = (int32_t)i + 1;
        epochs[i] = diff_epoch(d, relay, i);
        marks[i] = diff_chance(d, 70) ? d->pg_marks[i] : -1;
    }
    diff_request(d, relay, MEM_REQUEST_due, &u);
}

static void read_rows(struct diff *d, size_t relay, size_t account)
{
    const struct mem_account *a = diff_account(d, account);
    union any_request u;
    memset(&u, 0, sizeof(u));
    switch (diff_below(d, 4)) {
    case 0:
        u.snapshot.account = number_of(d, account);
        u.snapshot.epoch = diff_epoch(d, relay, account);
        u.snapshot.after_nonce = diff_chance(d, 60) ? -1 : a->next_nonce - 2;
        u.snapshot.limit = 1 + (uint32_t)diff_below(d, 20);
        diff_request(d, relay, MEM_REQUEST_snapshot, &u);
        return;
    case 1:
        u.outbox.account = number_of(d, account);
        u.outbox.epoch = diff_epoch(d, relay, account);
        u.outbox.limit = 1 + (uint32_t)diff_below(d, 20);
        u.outbox.next_nonce = a->next_nonce;
        u.outbox.block = (int64_t)diff_below(d, 80);
        diff_request(d, relay, MEM_REQUEST_outbox, &u);
        return;
    case 2:
        u.look.account = number_of(d, account);
        u.look.epoch = diff_epoch(d, relay, account);
        diff_request(d, relay, MEM_REQUEST_look, &u);
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
        .enqueue = {.account = diff_account(d, account)->alias,
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
                    .retries = diff_chance(d, 40) ? (uint32_t)diff_below(d, 4) : 0}};
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
    union any_request u = {.cancel = {.id = any_id(d), .account = diff_account(d, any_account(d))->alias}};
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

void diff_any_call(struct diff *d)
{
    size_t account = any_account(d);
    uint64_t which = diff_below(d, 100);
    d->text_count = 0;
    if (which < 16)
        diff_lead(d);
    else if (which < 32)
        read_rows(d, diff_leader(d, account), account);
    else if (which < 50)
        enqueue(d);
    else if (which < 56)
        ask(d);
    else if (which < 64)
        diff_application(d);
    else
        diff_write(d);
}

/* Random requests: who leads. */
#include "diff.h"

#include <string.h>

static void lock(struct diff *d, size_t relay, size_t account)
{
    union any_request u = {.lock = {.lock_key = diff_account(d, account)->lead.lock_key}};
    diff_request(d, relay, diff_chance(d, 70) ? MEM_REQUEST_lock : MEM_REQUEST_unlock, &u);
}

static void claim(struct diff *d, size_t relay, size_t account)
{
    const struct mem_account *a = diff_account(d, account);
    bool have = mem_lock_owner(d->db, a->lead.lock_key) == d->relays[relay].mem;
    uint32_t expiry = STEP_S * 500 + STEP_S * 1000 * (uint32_t)diff_below(d, 3);
    union any_request u = {
        .claim = {.account = diff_number(d, account),
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
    union any_request u = {
        .renew = {.holder = d->relays[relay].holder,
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
        keys[u.renew.count++] = diff_account(d, i)->lead.lock_key;
    }
    diff_request(d, relay, MEM_REQUEST_renew, &u);
}

static void release(struct diff *d, size_t relay, size_t account)
{
    union any_request u = {.release = {.account = diff_number(d, account),
                                       .epoch = diff_epoch(d, relay, account),
                                       .holder = d->relays[relay].holder}};
    diff_request(d, relay, MEM_REQUEST_release, &u);
}

/* Whether a session with a lock that it never claimed with has been idle for 5 s is of the server's
 * clock alone: no seed that is older asks. */
static void evict(struct diff *d, size_t relay, size_t account)
{
    if (diff_real_us() > d->began_us + 4000000)
        return;
    union any_request u = {.evict = {.lock_key = diff_account(d, account)->lead.lock_key}};
    if (diff_chance(d, 3))
        u.evict.lock_key ^= 1 << 20;
    diff_request(d, relay, MEM_REQUEST_evict, &u);
}

/* One of the epochs at least is not known: the store on Postgres would answer by a fingerprint
 * otherwise. */
static void scan(struct diff *d, size_t relay)
{
    int32_t accounts[ACCOUNTS];
    int64_t epochs[ACCOUNTS];
    union any_request u = {.scan = {.count = ACCOUNTS, .accounts = accounts, .epochs = epochs}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        accounts[i] = (int32_t)i + 1;
        epochs[i] = i && diff_chance(d, 70) ? diff_account(d, i)->lead.epoch : -1;
    }
    diff_request(d, relay, MEM_REQUEST_scan, &u);
}

static void member(struct diff *d, size_t relay)
{
    union any_request u = {
        .member = {.holder = d->relays[relay].holder,
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
    const struct mem_account *a = diff_account(d, diff_any_account(d)),
                             *b = diff_account(d, diff_any_account(d));
    uint8_t short_id[31] = {0};
    union any_request u = {.enroll = {.alias = a->alias,
                                      .scheme = a->scheme,
                                      .address = diff_chance(d, 50) ? a->address : "5Other",
                                      .account_id = a->account_id,
                                      .genesis = a->genesis,
                                      .lock_key = a->lead.lock_key,
                                      .era_longest = a->era_longest,
                                      .era_immortal = a->era_immortal,
                                      .watch_only = a->watch_only}};
    switch (diff_below(d, 7)) {
    case 0:
        u.enroll.alias = diff_chance(d, 50) ? b->alias : "0xnot";
        break;
    case 1:
        u.enroll.scheme = diff_chance(d, 50) ? "ed25519" : "rsa";
        break;
    case 2:
        u.enroll.account_id =
            diff_chance(d, 50) ? b->account_id : (struct store_bytes){short_id, 31};
        break;
    case 3:
        u.enroll.lock_key = b->lead.lock_key;
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
    union any_request lock = {.lock = {.lock_key = a->lead.lock_key}},
                      resume = {.resume = {.account = a->alias}};
    union any_request claim = {.claim = {.account = a->number,
                                         .holder = d->relays[relay].holder,
                                         .address = "host:1",
                                         .have_lock = true,
                                         .expiry_1_ms = STEP_S * 1500,
                                         .expiry_2_ms = STEP_S * 2500}};
    if (a->paused && diff_chance(d, 30))
        diff_request(d, relay, MEM_REQUEST_resume, &resume);
    if (a->lead.holder && a->lead.timeline == d->db->timeline)
        return;
    diff_request(d, relay, MEM_REQUEST_lock, &lock);
    diff_request(d, relay, MEM_REQUEST_claim, &claim);
}

static void obstacles(struct diff *d, size_t relay)
{
    static const char *const codes[] = {NULL, "node", "finality"};
    struct store_obstacle rows[ACCOUNTS];
    union any_request u = {.obstacles = {.count = ACCOUNTS, .rows = rows}};
    for (size_t i = 0; i < ACCOUNTS; i++) {
        const char *code = codes[diff_below(d, 3)];
        rows[i] = (struct store_obstacle){.account = (int32_t)diff_below(d, ACCOUNTS) + 1,
                                          .code = code,
                                          .text = code ? "it waits" : NULL,
                                          .since_ms = (int64_t)diff_below(d, 9000)};
        rows[i].epoch = diff_epoch(d, relay, (size_t)rows[i].account - 1);
    }
    diff_request(d, relay, MEM_REQUEST_obstacles, &u);
}

static void relay_obstacle(struct diff *d, size_t relay)
{
    bool any = diff_chance(d, 60);
    union any_request u = {.relay_obstacle = {.holder = d->relays[diff_below(d, RELAYS)].holder,
                                              .code = any ? "listener" : NULL,
                                              .text = any ? "it is refused" : NULL,
                                              .since_ms = (int64_t)diff_below(d, 9000)}};
    diff_request(d, relay, MEM_REQUEST_relay_obstacle, &u);
}

void diff_lead(struct diff *d)
{
    size_t account = diff_any_account(d),
           relay = diff_chance(d, 70) ? account % 2 : diff_below(d, RELAYS);
    switch (diff_below(d, 15)) {
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
    case 12:
        obstacles(d, relay);
        return;
    case 13:
        relay_obstacle(d, relay);
        return;
    default:
        enroll(d);
        return;
    }
}

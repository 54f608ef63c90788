#include "sites_harness.h"

#include "base/log.h"

struct played played;
char did[2000], logged[600];
struct service service;
struct account account;
struct site_host host;
struct site_anchor anchors[ANCHORS];
static struct service_sites_room room;
static char alias[] = "alice", north[] = "north";
static struct sites_config config = {.self = north};
static struct sites_account configured = {.count = 2};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
    size_t used = strlen(did);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(did + used, sizeof(did) - used, fmt, ap);
    va_end(ap);
}

/* ---- what is played ---- */

#define WRAP(type, name, ...)                                                                      \
    type __wrap_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAP(const struct node_info *, node_info, const struct node *n)
{
    (void)n;
    return played.connected ? &played.info : NULL;
}

WRAP(bool, node_version_confirmed, const struct node *n)
{
    (void)n;
    return played.confirmed;
}

WRAP(void, node_ask_nonce, struct node *n, struct node_ask *a, const uint8_t *id, size_t len,
     void (*cb)(struct node_ask *a))
{
    (void)n, (void)id, (void)len;
    say("nonce? ");
    played.ask = a;
    played.on_ask = cb;
}

WRAP(void, node_ask_above, struct node *n, struct node_ask *a, uint64_t number,
     struct buf *ret_hashes, void (*each)(struct node_ask *a, const struct node_included *x),
     void (*cb)(struct node_ask *a))
{
    (void)n, (void)ret_hashes;
    say("above%llu? ", (unsigned long long)number);
    *a = (struct node_ask){.each = each};
    played.ask = a;
    played.on_ask = cb;
}

WRAP(void, service_follow, struct service *s, uint64_t number)
{
    (void)s;
    say("follow%llu ", (unsigned long long)number);
}

WRAP(bool, account_poll, struct account *a, struct poll_event ev)
{
    static const char *const names[POLL_EV_MERGED + 1] = {[POLL_EV_WANT_ROWS] = "want",
                                                          [POLL_EV_WANT_REQUESTS] = "ask",
                                                          [POLL_EV_ROWS] = "rows",
                                                          [POLL_EV_NO_ROWS] = "none",
                                                          [POLL_EV_OUTBOX_FAILED] = "norows",
                                                          [POLL_EV_REQUESTS] = "requests",
                                                          [POLL_EV_REQUESTS_FAILED] = "norequests"};
    const char *name = names[ev.type];
    (void)a;
    assert_non_null(name);
    say("%s%llu ", name, (unsigned long long)ev.question);
    if ((ev.type == POLL_EV_OUTBOX_FAILED || ev.type == POLL_EV_REQUESTS_FAILED) && ev.refused)
        say("refused ");
    return true;
}

WRAP(void, account_lost, struct account *a, int code)
{
    (void)a;
    say("lost%d ", code);
}

WRAP(void *, site_account_ctx, const struct site_account *a)
{
    (void)a;
    return &host;
}

WRAP(void, site_account_view, const struct site_account *a, struct site_account_view *ret)
{
    (void)a;
    *ret = played.view;
}

/* Hashes that begin with 'g' are granted here, with 'd' coordinated here, others are not known. */
WRAP(bool, site_account_has, const struct site_account *a, const uint8_t hash[32])
{
    (void)a;
    return hash[0] == 'g' || hash[0] == 'd';
}

WRAP(uint64_t, site_tables_id_of, const struct site_tables *t, const uint8_t hash[32])
{
    (void)t;
    return hash[0] == 'g' ? 50 : 0;
}

WRAP(void, site_account_head, struct site_account *a, uint64_t height, uint64_t next)
{
    (void)a;
    say("head%llu,%llu ", (unsigned long long)height, (unsigned long long)next);
}

WRAP(void, site_tables_final, struct site_tables *t, const struct site_tables_block *b)
{
    (void)t;
    say("final%llu,%llu", (unsigned long long)b->number, (unsigned long long)b->next[0]);
    for (size_t i = 0; i < b->count; i++)
        say("(%llu:%llu %s%s%s)", (unsigned long long)b->used[i].bytes.nonce,
            (unsigned long long)b->used[i].id, b->ends[i].outcome, b->ends[i].fee ? " for " : "",
            b->ends[i].fee ? b->ends[i].fee : "");
    say(" ");
}

WRAP(void, site_tables_review, struct site_tables *t, uint32_t spec, uint64_t final)
{
    (void)t;
    say("review%u,%llu ", spec, (unsigned long long) final);
}

WRAP(void, site_tables_lead, struct site_tables *t, int64_t epoch)
{
    (void)t;
    say("lead%lld ", (long long)epoch);
}

WRAP(void, site_tables_load, struct site_tables *t, uint64_t load)
{
    (void)t;
    say("load%llu ", (unsigned long long)load);
}

WRAP(bool, site_tables_poll, struct site_tables *t, uint32_t limit)
{
    (void)t, (void)limit;
    say("rows? ");
    return !played.no_poll;
}

WRAP(void, site_tables_best, struct site_tables *t, const struct site_tables_best *b)
{
    (void)t;
    say("best%llu:", (unsigned long long)b->first);
    for (size_t i = 0; i < b->count; i++)
        say("%c", b->hashes[i][0]);
    for (size_t i = 0; i < b->seen_count; i++)
        say("(%c in %llu%c)", b->seen[i].hash[0], (unsigned long long)b->seen[i].number,
            b->seen[i].block[0]);
    say(" ");
}

WRAP(bool, site_tables_best_has, const struct site_tables *t, const uint8_t hash[32])
{
    (void)t;
    return hash[0] == played.best_has;
}

WRAP(void, store_site_setup_start, struct store_sites *s, struct store_site_setup *r,
     void (*cb)(struct store_site_setup *r))
{
    (void)s;
    say("setup%lld,%lld,%u ", (long long)r->final, (long long)r->next[1], r->range_blocks);
    played.setup = r;
    played.on_setup = cb;
}

WRAP(void, store_site_note_start, struct store_sites *s, struct store_site_note *r,
     void (*cb)(struct store_site_note *r))
{
    (void)s;
    say("note:%s,%d ", r->state, r->coordinator);
    played.note = r;
    played.on_note = cb;
}

WRAP(void, store_site_match_start, struct store_sites *s, struct store_site_match *r,
     void (*cb)(struct store_site_match *r))
{
    (void)s;
    say("match%zu ", r->count);
    played.match = r;
    played.on_match = cb;
}

WRAP(void, loop_timer_at, struct loop_timer *t, uint64_t at)
{
    (void)t;
    say("timer%llu ", (unsigned long long)(at - played.now));
}

WRAP(void, loop_timer_stop, struct loop_timer *t)
{
    (void)t;
}

WRAP(uint64_t, loop_now_ms, const struct loop *l)
{
    (void)l;
    return played.now;
}

void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    va_list ap;
    (void)level;
    va_start(ap, fmt);
    vsnprintf(logged, sizeof(logged), fmt, ap);
    va_end(ap);
    say("log:%s ", event);
}

WRAP(void, site_tables_refused, struct site_tables *t, const struct site_tables_refusal *all,
     size_t count)
{
    (void)t;
    say("refused:");
    for (size_t i = 0; i < count; i++)
        say("%c", all[i].hash[0]);
    say(" ");
}

WRAP(void, account_send, struct account_send *t, const uint8_t *bytes, size_t len,
     const struct node_last *last, void (*on_reply)(struct node_submit *s),
     void (*on_status)(struct node_submit *s, enum tx_status status, const uint8_t *block_hash),
     void (*on_lost)(struct node_submit *s))
{
    (void)bytes, (void)len, (void)last, (void)on_status, (void)on_lost;
    played.submit = &t->node;
    played.on_reply = on_reply;
}

WRAP(void, node_submit_forget, struct node_submit *s)
{
    (void)s;
}

WRAP(void, service_submitted, struct service *s, const struct node_submit *submit)
{
    (void)s, (void)submit;
}

/* ---- the account ---- */

int begin(void **state)
{
    static struct store_site_member members[2];
    static int64_t setup_next[2];
    (void)state;
    memset(&played, 0, sizeof(played));
    memset(anchors, 0, sizeof(anchors));
    played.connected = played.confirmed = true;
    played.now = 100000;
    played.info =
        (struct node_info){.spec_version = 9, .finalized_number = READ, .best_number = READ};
    played.info.best_hash[0] = 'X';
    account = (struct account){.service = &service,
                               .alias = alias,
                               .id = {7},
                               .id_len = 32,
                               .node_index = 0,
                               .role = ACCOUNT_LEADER,
                               .site = &host};
    service = (struct service){.accounts = &account, .account_count = 1, .loop = loop_new()};
    room = (struct service_sites_room){
        .room = {.service = &service}, .config = &config, .hosts = &host, .host_count = 1};
    /* Never looked into: the tables, the room's account and the timer are played. */
    static char there;
    host = (struct site_host){.room = &room,
                              .account = &account,
                              .config = &configured,
                              .era_blocks = ERA,
                              .tables = (struct site_tables *)(void *)&there,
                              .again = (struct loop_timer *)(void *)&there,
                              .anchors = anchors,
                              .anchor_count = ANCHORS,
                              .members = members,
                              .setup_next = setup_next,
                              .phase = HOST_AWAY};
    host.last = &host.blocks;
    did[0] = 0;
    return 0;
}

int end(void **state)
{
    (void)state;
    sites_leave(&host);
    sites_best_free(&host);
    loop_free(service.loop);
    return 0;
}

/* It leads and has read block READ, after which its nonce is 5. */
void led(void)
{
    const uint64_t next = 5;
    host.phase = HOST_LED;
    host.epoch = EPOCH;
    host.seen_state = -1;
    for (uint64_t n = READ - ERA - ANCHOR_BEHIND; n <= READ; n++)
        anchors[n % ANCHORS] = (struct site_anchor){.known = true, .number = n};
    sites_chain_loaded(&host, READ, &next);
    host.seen_state = host.seen_chosen = 0;
    did[0] = 0;
}

struct node_included tx(char name, uint64_t nonce)
{
    struct node_included x = {.is_signed = true, .signer = {7}, .signer_len = 32};
    x.tx.hash[0] = (uint8_t)name;
    x.tx.nonce = nonce;
    x.tx.own_signer = true;
    x.tx.signature = TX_SIGNATURE_GOOD;
    x.tx.result.outcome = DISPATCH_OK;
    return x;
}

void block(uint64_t number, uint64_t nonce, const struct node_included *all, size_t count,
           bool unread)
{
    const struct node_block b = {.head = {.number = number},
                                 .unread = unread,
                                 .time_ms = 5,
                                 .included = all,
                                 .included_count = count,
                                 .nonces = &nonce,
                                 .nonce_count = 1};
    service_sites_block(&account, &b);
}

enum tx_doubt doubt(uint64_t number, uint64_t nonce, const struct node_included *all, size_t count)
{
    const struct node_block b = {.head = {.number = number},
                                 .included = all,
                                 .included_count = count,
                                 .nonces = &nonce,
                                 .nonce_count = 1};
    return service_sites_doubts(&account, &b);
}

void answer_setup(int code)
{
    played.setup->err = (struct err){.code = code};
    played.on_setup(played.setup);
}

const char *obstacle(void)
{
    static struct obstacle o;
    service_sites_obstacle(&account, &o);
    return o.code ? o.text : "";
}

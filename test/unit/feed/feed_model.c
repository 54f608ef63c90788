#include "feed_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/rng.h"
#include "feed/core/feed.h"

enum {
    PUBLISHERS_MAX = 6,
    RELAYS = 2,
    NUMBERS = 24, /* that the publishers produce */
    HEAL_MS = 120000,
    COPIES_MAX = 16,
    ITEM_BYTES = 100,
    STALE_MS = 3000,
    ACK_MS = 2000,
    RESEND_MS = 1000,
    ABANDONED_MAX = 2,
    BATCH_BYTES = 10 * ITEM_BYTES,
};

enum kind { HONEST, BAD_PROOF, BAD_CALL, STALLER, WRONG_NUMBERS, SCRAMBLER, KINDS };

/* A message from a publisher; the number and the kind of the content travel with each. */
enum verb { HEADER, ITEM, TRAILER, CLOSE, BROKEN };
struct message {
    enum verb verb;
    int64_t number;
    enum kind kind;
};

enum event_type {
    EV_ACT,     /* a publisher sends its next message, or connects */
    EV_ARRIVE,  /* a message at the relay */
    EV_DELIVER, /* a message at the publisher */
    EV_LOST,    /* the publisher notices that its stream is closed */
    EV_GONE,    /* the relay notices */
    EV_PRODUCE,
    EV_VERIFIED,
    EV_COMMIT, /* the statement at the database */
    EV_STORED,
    EV_LOADED,
    EV_TICK,
    EV_LEAD, /* a relay claims */
    EV_FAULT,
};

struct event {
    uint64_t at, order;
    enum event_type type;
    int who; /* publisher or relay */
    uint64_t session, copy, life;
    struct message message;
    enum feed_message told;
    enum feed_end end;
    int64_t number;
    enum feed_stored outcome;
    bool flag;
};

struct session {
    uint64_t id;
    int publisher, relay;
    uint64_t life;       /* of the relay */
    bool client, server; /* which side still has it */
    bool ended, held;
    bool broken;       /* its publisher sent a message that does not decode */
    int64_t acked;     /* by this stream */
    int64_t skipped;   /* the number that the relay told it to skip; -1: none */
    uint64_t up, down; /* nothing arrives before what was sent before it */
    struct message *queue;
    size_t queued, queue_cap;
};

struct copy {
    uint64_t id;
    int64_t number; /* of the content; -2: mixed */
    enum kind kind;
    uint64_t bytes;
    bool dropped, busy;
};

struct relay {
    struct feed_core *core;
    uint64_t life;
    int64_t epoch;
    bool alive, believes;
    struct copy copies[COPIES_MAX];
    uint64_t complete_at, complete; /* the copy that waits since then; 0: none */
    int64_t won;                    /* the number that these publishers have won */
    uint32_t winners, liars;        /* and whose copy of it was bad */
    uint64_t liar_at[PUBLISHERS_MAX];
    uint64_t tick_at;
};

struct publisher {
    enum kind kind;
    int key; /* of which publisher: two copies of a producer may share one */
    bool pipelines;
    uint64_t session; /* 0: none */
    int64_t produced, acked, sending;
    int64_t header; /* the number that it sends this one as */
    unsigned step, items;
    uint64_t turn; /* of EV_ACT: only the newest counts */
    uint32_t pace_ms, latency_ms;
};

struct model {
    struct rng rng;
    uint64_t now, order, life, turns;
    bool print, fenced, wild; /* wild: faults still happen */
    struct event *heap;
    size_t count, cap;
    struct session *sessions;
    size_t session_count, session_cap;
    struct publisher publishers[PUBLISHERS_MAX];
    int publisher_count;
    struct relay relays[RELAYS];
    int64_t last, epoch;
    struct feed_model_report *report;
};

static void violation(struct model *m, const char *text)
{
    if (m->report->violation)
        return;
    m->report->violation = text;
    m->report->at_ms = m->now;
}

/* ---- the queue ---- */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct model *m, struct event e)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 256;
        m->heap = xrealloc(m->heap, m->cap * sizeof(*m->heap));
    }
    e.order = ++m->order;
    size_t i = m->count++;
    for (; i && earlier(&e, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = e;
}

static struct event pop(struct model *m)
{
    struct event first = m->heap[0], last = m->heap[--m->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->count; i = child) {
        if (child + 1 < m->count && earlier(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!earlier(&m->heap[child], &last))
            break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = last;
    return first;
}

static bool chance(struct model *m, uint64_t per_mille)
{
    return rng_below(&m->rng, 1000) < per_mille;
}

/* A fault, while there are any. */
static bool wild(struct model *m, uint64_t per_mille)
{
    return m->wild && chance(m, per_mille);
}

static struct session *session_of(struct model *m, uint64_t id)
{
    return id ? &m->sessions[id - 1] : NULL; /* ids count from 1 and are never used again */
}

static int key_of(const struct model *m, const struct session *s)
{
    return m->publishers[s->publisher].key;
}

/* ---- the database ---- */

/* Takes the batch if the cursor is right; what it answers. */
static enum feed_stored commit(struct model *m, const struct event *e)
{
    if (m->fenced && e->message.number != m->epoch)
        return FEED_STORED_LOST;
    if (e->message.kind == BAD_CALL)
        return FEED_STORED_BAD;
    if (m->last != e->number - 1)
        return FEED_STORED;
    if (e->message.kind == BAD_PROOF || e->message.kind == SCRAMBLER)
        violation(m, "B03: a batch that is not valid is stored");
    if (!e->flag)
        violation(m, "B02: the content of another number is stored");
    m->last = e->number;
    m->report->batches++;
    return FEED_STORED;
}

/* ---- the relay's door ---- */

static struct copy *copy_of(struct relay *r, uint64_t id)
{
    for (size_t i = 0; i < COPIES_MAX; i++)
        if (r->copies[i].id == id)
            return &r->copies[i];
    return NULL;
}

static void free_copy(struct copy *c)
{
    if (c->dropped && !c->busy)
        *c = (struct copy){0};
}

static void step(struct model *m, int relay, const struct feed_event *ev);

static void to_client(struct model *m, struct session *s, enum event_type type,
                      const struct feed_effect *fx)
{
    struct publisher *p = &m->publishers[s->publisher];
    uint64_t at = m->now + p->latency_ms + rng_below(&m->rng, 3);
    s->down = at > s->down ? at : s->down;
    push(m, (struct event){.at = s->down,
                           .type = type,
                           .session = s->id,
                           .told = fx ? fx->send.message : 0,
                           .end = fx ? fx->send.end : 0,
                           .number = fx ? fx->number : 0});
}

static void tell(struct model *m, const struct feed_effect *fx)
{
    struct session *s = session_of(m, fx->session);
    if (!s->server || s->ended) {
        violation(m, "a message to a stream that is closed");
        return;
    }
    if (fx->send.message == FEED_MSG_ACK) {
        if (fx->number > m->last)
            violation(m, "B43: a number is acknowledged and not stored");
        s->acked = fx->number > s->acked ? fx->number : s->acked;
    } else if (fx->send.message == FEED_MSG_RESEND) {
        m->report->resends++;
        if (fx->number <= s->acked)
            violation(m, "BP10: a number is to be sent again after its acknowledgement");
    }
    s->skipped = fx->send.message == FEED_MSG_SKIP ? fx->number : -1;
    to_client(m, s, EV_DELIVER, fx);
    if (fx->send.message == FEED_MSG_END)
        s->ended = true;
}

static void close_stream(struct model *m, struct session *s, bool by_client);

static void keep(struct model *m, struct relay *r, const struct feed_effect *fx,
                 const struct message *message)
{
    struct copy *c = copy_of(r, fx->copy);
    PRE(c && message);
    c->bytes += ITEM_BYTES;
    if (message->number != c->number)
        c->number = -2;
    uint64_t bytes = 0, copies = 0;
    for (size_t i = 0; i < COPIES_MAX; i++) {
        bytes += r->copies[i].bytes;
        copies += r->copies[i].id != 0;
    }
    if (bytes > (uint64_t)(1 + ABANDONED_MAX) * BATCH_BYTES || copies > 1 + ABANDONED_MAX)
        violation(m, "B04: more is kept than is allowed");
}

/* A publisher whose copy was bad does not win that number again while one is there that had no
 * turn. */
static void won(struct model *m, int relay, const struct feed_effect *fx)
{
    struct relay *r = &m->relays[relay];
    int who = key_of(m, session_of(m, fx->session));
    uint32_t bit = UINT32_C(1) << who, fresh = 0;
    if (r->won != fx->number)
        r->winners = r->liars = 0;
    r->won = fx->number;
    for (size_t i = 0; i < m->session_count; i++) {
        const struct session *s = &m->sessions[i];
        /* One that sent no header yet counts as well. */
        if (s->relay == relay && s->server && !s->ended)
            fresh |= UINT32_C(1) << key_of(m, s);
    }
    if ((r->liars & bit) && (fresh & ~r->winners) && m->now < r->liar_at[who] + RESEND_MS)
        violation(m, "B26: a publisher whose copy was bad is picked again before the others");
    r->winners |= bit;
}

static void verify(struct model *m, int relay, const struct feed_effect *fx)
{
    struct relay *r = &m->relays[relay];
    struct copy *c = copy_of(r, fx->copy);
    c->busy = true;
    r->complete = c->id;
    r->complete_at = m->now;
    push(m, (struct event){.at = m->now + 1 + (wild(m, 20) ? ACK_MS * 2 : rng_below(&m->rng, 30)),
                           .type = EV_VERIFIED,
                           .who = relay,
                           .life = r->life,
                           .copy = c->id,
                           .flag = c->kind != BAD_PROOF && c->kind != SCRAMBLER});
}

static void store(struct model *m, int relay, const struct feed_effect *fx)
{
    struct relay *r = &m->relays[relay];
    struct copy *c = copy_of(r, fx->copy);
    c->busy = true;
    struct event e = {.type = EV_COMMIT,
                      .who = relay,
                      .life = r->life,
                      .copy = c->id,
                      .number = fx->number,
                      .message = {.number = r->epoch, .kind = c->kind},
                      .flag = c->number == fx->number};
    e.at = m->now + 1 + rng_below(&m->rng, 10);
    if (wild(m, 30)) { /* the statement is slow, as behind a lock */
        e.at += rng_below(&m->rng, 3 * ACK_MS);
    } else if (wild(m, 20)) { /* it never reaches the server */
        e.type = EV_STORED;
        e.outcome = FEED_STORED_UNKNOWN;
    }
    push(m, e);
}

static void effect(struct model *m, int relay, const struct feed_effect *fx,
                   const struct message *message)
{
    struct relay *r = &m->relays[relay];
    struct session *s = session_of(m, fx->session);
    switch (fx->type) {
    case FEED_FX_LOAD:
        push(m, (struct event){.at = m->now + 1 + rng_below(&m->rng, 20),
                               .type = EV_LOADED,
                               .who = relay,
                               .life = r->life,
                               .copy = fx->copy,
                               .flag = wild(m, 200)});
        return;
    case FEED_FX_SEND:
        tell(m, fx);
        return;
    case FEED_FX_HOLD:
        s->held = true;
        return;
    case FEED_FX_RELEASE:
        s->held = false;
        return;
    case FEED_FX_BEGIN: {
        won(m, relay, fx);
        struct copy *c = copy_of(r, 0);
        PRE(c);
        *c = (struct copy){.id = fx->copy, .number = message->number, .kind = message->kind};
        return;
    }
    case FEED_FX_KEEP:
        keep(m, r, fx, message);
        return;
    case FEED_FX_VERIFY:
        verify(m, relay, fx);
        return;
    case FEED_FX_STORE:
        store(m, relay, fx);
        return;
    case FEED_FX_DROP:
        if (r->complete == fx->copy)
            r->complete = 0;
        copy_of(r, fx->copy)->dropped = true;
        free_copy(copy_of(r, fx->copy));
        return;
    case FEED_FX_SETTLED:
        m->report->refused += fx->settled.outcome == FEED_NOT_VALID;
        if (s && fx->settled.outcome == FEED_NOT_VALID) {
            r->liars |= UINT32_C(1) << key_of(m, s);
            r->liar_at[key_of(m, s)] = m->now;
        }
        if (s && fx->settled.outcome == FEED_NOT_STORED)
            s->skipped = fx->number; /* it waits for what a load shows */
        return;
    }
    UNREACHABLE();
}

static void arm(struct model *m, int relay)
{
    struct relay *r = &m->relays[relay];
    uint64_t due = feed_due(r->core);
    if (due == r->tick_at)
        return;
    r->tick_at = due;
    if (due != UINT64_MAX)
        push(m, (struct event){.at = due > m->now ? due : m->now + 1,
                               .type = EV_TICK,
                               .who = relay,
                               .life = r->life});
}

static void step_with(struct model *m, int relay, const struct feed_event *ev,
                      const struct message *message)
{
    struct relay *r = &m->relays[relay];
    const struct feed_effect *effects;
    size_t count;
    bool begun = false, told = false;
    feed_step(r->core, m->now, ev, &effects, &count);
    for (size_t i = 0; i < count && !m->report->violation; i++) {
        begun |= effects[i].type == FEED_FX_BEGIN && effects[i].session == ev->session;
        told |= effects[i].type == FEED_FX_SEND && effects[i].session == ev->session;
        effect(m, relay, &effects[i], message);
    }
    if (ev->type == FEED_EV_HEADER && !begun && !told) {
        const struct session *s = session_of(m, ev->session);
        if (!s->ended && s->skipped != ev->header.number)
            violation(m, "B16: a header that did not win is not answered");
    }
    const char *wrong = feed_core_check(r->core);
    if (wrong)
        violation(m, wrong);
    if (r->complete && m->now > r->complete_at + ACK_MS + 5)
        violation(m, "B27: a batch waits for an answer for ever");
    if (!m->report->violation)
        arm(m, relay);
}

static void step(struct model *m, int relay, const struct feed_event *ev)
{
    step_with(m, relay, ev, NULL);
}

/* A message reaches the core, unless its stream is held. */
static void take(struct model *m, struct session *s, const struct message *message)
{
    struct feed_event ev = {.session = s->id};
    switch (message->verb) {
    case HEADER:
        ev.type = FEED_EV_HEADER;
        ev.header.number = message->number;
        ev.header.publisher = key_of(m, s);
        break;
    case ITEM:
        ev.type = FEED_EV_ITEMS;
        ev.items.count = 1;
        ev.items.bytes = ITEM_BYTES;
        break;
    case TRAILER:
        ev.type = FEED_EV_TRAILER;
        break;
    case CLOSE:
        ev.type = FEED_EV_CLOSE;
        break;
    case BROKEN:
        ev.type = FEED_EV_REFUSE;
        break;
    }
    step_with(m, s->relay, &ev, message);
}

static void drain_queue(struct model *m, struct session *s)
{
    size_t done = 0;
    while (done < s->queued && !s->held && s->server && !m->report->violation)
        take(m, s, &s->queue[done++]);
    memmove(s->queue, s->queue + done, (s->queued - done) * sizeof(*s->queue));
    s->queued -= done;
}

static void drain_queues(struct model *m)
{
    for (size_t i = 0; i < m->session_count; i++)
        if (m->sessions[i].queued)
            drain_queue(m, &m->sessions[i]);
}

static void arrive(struct model *m, const struct event *e)
{
    struct session *s = session_of(m, e->session);
    if (!s->server || s->ended)
        return;
    if (s->queued == s->queue_cap) {
        s->queue_cap = s->queue_cap ? s->queue_cap * 2 : 8;
        s->queue = xrealloc(s->queue, s->queue_cap * sizeof(*s->queue));
    }
    s->queue[s->queued++] = e->message;
}

static void close_stream(struct model *m, struct session *s, bool by_client)
{
    if (by_client && s->client) {
        s->client = false;
        m->publishers[s->publisher].session = 0;
        uint64_t at = m->now + 1;
        s->up = at > s->up ? at : s->up;
        /* Sometimes the relay notices late, as of a cut wire. */
        push(m, (struct event){.at = s->up + (wild(m, 300) ? rng_below(&m->rng, 20000) : 0),
                               .type = EV_GONE,
                               .session = s->id});
    } else if (!by_client && s->server) {
        s->server = false;
        to_client(m, s, EV_LOST, NULL);
    }
}

static void stop_relay(struct model *m, int relay)
{
    struct relay *r = &m->relays[relay];
    m->report->moved |= feed_core_moved(r->core);
    r->core = feed_core_free(r->core);
    r->alive = r->believes = false;
    r->complete = 0;
    memset(r->copies, 0, sizeof(r->copies));
    for (size_t i = 0; i < m->session_count; i++)
        if (m->sessions[i].relay == relay)
            close_stream(m, &m->sessions[i], false);
}

static void start_relay(struct model *m, int relay)
{
    struct relay *r = &m->relays[relay];
    *r = (struct relay){.life = ++m->life, .alive = true, .tick_at = UINT64_MAX};
    r->core = feed_core_new(&(struct feed_config){.persistence_ack_ms = ACK_MS,
                                                  .stale_winner_ms = STALE_MS,
                                                  .resend_ms = RESEND_MS,
                                                  .retry_max_ms = 1000,
                                                  .batch_bytes_max = BATCH_BYTES,
                                                  .abandoned_max = ABANDONED_MAX,
                                                  .duplicate_skip_window = m->rng.state % 3 ? 0 : 5,
                                                  .behind_stays_open = m->rng.state % 2,
                                                  .seed = m->rng.state});
}

/* The relay claims, and the former leader learns of it now or later. */
static void lead(struct model *m, int relay)
{
    struct relay *r = &m->relays[relay];
    if (!r->alive)
        start_relay(m, relay);
    for (int other = 0; other < RELAYS; other++)
        if (other != relay && m->relays[other].believes && !wild(m, 500)) {
            m->relays[other].believes = false;
            step(m, other,
                 &(struct feed_event){
                     .type = FEED_EV_LEAVE,
                     .leave = {.end = FEED_END_NOT_LEADER, .graceful = chance(m, 500)}});
        }
    if (r->believes) {
        step(m, relay,
             &(struct feed_event){.type = FEED_EV_LEAVE, .leave = {.end = FEED_END_NOT_LEADER}});
    }
    r->epoch = ++m->epoch;
    r->winners = r->liars = 0; /* a tenure begins without prejudice */
    r->believes = true;
    step(m, relay, &(struct feed_event){.type = FEED_EV_SERVE});
}

/* ---- publishers ---- */

static void act_in(struct model *m, int who, uint64_t ms)
{
    m->publishers[who].turn = ++m->turns;
    push(m, (struct event){.at = m->now + ms, .type = EV_ACT, .who = who, .copy = m->turns});
}

static void begin(struct model *m, int who, int64_t number)
{
    struct publisher *p = &m->publishers[who];
    p->sending = number;
    p->step = 0;
    p->items = (unsigned)rng_below(&m->rng, 8);
    act_in(m, who, 1 + rng_below(&m->rng, p->pace_ms));
}

static void begin_next(struct model *m, int who)
{
    struct publisher *p = &m->publishers[who];
    p->sending = -1;
    if (p->session && p->produced > p->acked)
        begin(m, who, p->acked + 1);
}

static void send(struct model *m, struct session *s, enum verb verb, int64_t number, enum kind kind)
{
    struct publisher *p = &m->publishers[s->publisher];
    uint64_t at = m->now + p->latency_ms + rng_below(&m->rng, 3);
    s->up = at > s->up ? at : s->up;
    push(m, (struct event){.at = s->up,
                           .type = EV_ARRIVE,
                           .session = s->id,
                           .message = {.verb = verb, .number = number, .kind = kind}});
}

static void connect_to(struct model *m, int who)
{
    struct publisher *p = &m->publishers[who];
    int relay = (int)rng_below(&m->rng, RELAYS);
    if (!m->relays[relay].alive) {
        act_in(m, who, 100 + rng_below(&m->rng, 500));
        return;
    }
    if (m->session_count == m->session_cap) {
        m->session_cap = m->session_cap ? m->session_cap * 2 : 64;
        m->sessions = xrealloc(m->sessions, m->session_cap * sizeof(*m->sessions));
    }
    struct session *s = &m->sessions[m->session_count++];
    *s = (struct session){.id = m->session_count,
                          .publisher = who,
                          .relay = relay,
                          .life = m->relays[relay].life,
                          .client = true,
                          .server = true,
                          .acked = -1,
                          .skipped = -1};
    p->session = s->id;
    step(m, relay, &(struct feed_event){.type = FEED_EV_OPEN, .session = s->id});
    begin_next(m, who);
}

/* The next message of the batch that it is sending. */
static void act(struct model *m, int who)
{
    struct publisher *p = &m->publishers[who];
    struct session *s = session_of(m, p->session);
    if (!s) {
        connect_to(m, who);
        return;
    }
    if (p->sending < 0)
        return;
    if (wild(m, 8)) { /* it is killed, and starts again */
        m->report->crashes++;
        close_stream(m, s, true);
        act_in(m, who, 200 + rng_below(&m->rng, 2000));
        return;
    }
    if (wild(m, 3)) {
        bool broken = chance(m, 500);
        s->broken |= broken;
        send(m, s, broken ? BROKEN : CLOSE, 0, p->kind);
        return;
    }
    unsigned at = p->step++;
    if (at == 0) {
        p->header = p->sending;
        if (p->kind == WRONG_NUMBERS && chance(m, 300))
            p->header += (int64_t)rng_below(&m->rng, 9) - 4;
    }
    enum verb verb = at == 0 ? HEADER : at <= p->items ? ITEM : TRAILER;
    if (p->kind == SCRAMBLER) /* its messages come in any order */
        verb = (enum verb)rng_below(&m->rng, TRAILER + 1);
    send(m, s, verb, p->header, p->kind);
    if (p->kind == STALLER && at > p->items / 2)
        return; /* for ever, with an open stream */
    if (at <= p->items)
        act_in(m, who, 1 + rng_below(&m->rng, p->pace_ms));
    else if (p->pipelines && s->skipped == p->sending && p->step < 40) {
        p->step = 0; /* again the number that it was told to skip */
        act_in(m, who, 1 + rng_below(&m->rng, p->pace_ms));
    }
}

static void lost(struct model *m, struct session *s)
{
    struct publisher *p = &m->publishers[s->publisher];
    if (!s->client)
        return;
    s->client = false;
    p->session = 0;
    p->sending = -1;
    if (s->server)
        push(m, (struct event){.at = m->now + 1, .type = EV_GONE, .session = s->id});
    act_in(m, s->publisher, (p->kind == HONEST ? 50 : 1) + rng_below(&m->rng, 50));
}

static void ended(struct model *m, struct session *s, const struct event *e)
{
    struct publisher *p = &m->publishers[s->publisher];
    if (p->kind == HONEST && e->end == FEED_END_BAD_BLOCK_PROOF)
        violation(m, "BP16: an honest publisher is blamed");
    if (p->kind == HONEST && !s->broken && e->end == FEED_END_INVALID_REQUEST)
        violation(m, "BP1: a publisher that keeps the rules is ended");
    if (e->end == FEED_END_DUPLICATE_BLOCK && e->number > p->acked)
        p->acked = e->number;
    lost(m, s);
}

static void deliver(struct model *m, const struct event *e)
{
    struct session *s = session_of(m, e->session);
    struct publisher *p = &m->publishers[s->publisher];
    if (!s->client)
        return;
    switch (e->told) {
    case FEED_MSG_ACK:
        if (e->number > p->acked)
            p->acked = e->number;
        if (p->sending <= p->acked)
            begin_next(m, s->publisher);
        return;
    case FEED_MSG_SKIP:
        if (e->number == p->sending && !p->pipelines)
            p->sending = -2; /* waits */
        return;
    case FEED_MSG_RESEND:
        if (e->number <= p->acked) /* it no longer has that one */
            close_stream(m, s, true), act_in(m, s->publisher, 100);
        else if (e->number <= p->produced)
            begin(m, s->publisher, e->number);
        return;
    case FEED_MSG_BEHIND:
        p->sending = -2;
        if (e->number >= p->acked)
            p->acked = e->number, begin_next(m, s->publisher);
        else
            close_stream(m, s, true), act_in(m, s->publisher, 100);
        return;
    case FEED_MSG_END:
        ended(m, s, e);
        return;
    }
    UNREACHABLE();
}

/* ---- the course of events ---- */

static void answered(struct model *m, const struct event *e, struct feed_event *ev)
{
    struct relay *r = &m->relays[e->who];
    if (!r->alive || r->life != e->life)
        return;
    struct copy *c = copy_of(r, e->copy);
    c->busy = false;
    free_copy(c);
    step(m, e->who, ev);
}

static void committed(struct model *m, const struct event *e)
{
    struct event answer = *e;
    answer.type = EV_STORED;
    answer.at = m->now + 1 + rng_below(&m->rng, 5);
    answer.outcome = commit(m, e);
    answer.number = m->last;
    if (wild(m, 40))
        answer.outcome = FEED_STORED_UNKNOWN; /* the connection broke */
    else if (wild(m, 30))
        answer.at += rng_below(&m->rng, 4 * ACK_MS);
    push(m, answer);
    struct relay *r = &m->relays[e->who];
    if (r->alive && r->life == e->life && wild(m, 30)) { /* between store and acknowledgement */
        m->report->crashes++;
        stop_relay(m, e->who);
    }
}

static void fault(struct model *m)
{
    if (!m->wild)
        return;
    int relay = (int)rng_below(&m->rng, RELAYS);
    if (m->relays[relay].alive && chance(m, 500)) {
        m->report->crashes++;
        stop_relay(m, relay);
    }
    push(m, (struct event){.at = m->now + 500 + rng_below(&m->rng, 2000),
                           .type = EV_LEAD,
                           .who = (int)rng_below(&m->rng, RELAYS)});
    push(m, (struct event){.at = m->now + 2000 + rng_below(&m->rng, 20000), .type = EV_FAULT});
}

static void happen(struct model *m, const struct event *e)
{
    struct relay *r = &m->relays[e->who < RELAYS ? e->who : 0];
    bool lives = r->alive && r->life == e->life;
    struct session *s = session_of(m, e->session);
    switch (e->type) {
    case EV_ACT:
        if (m->publishers[e->who].turn == e->copy)
            act(m, e->who);
        return;
    case EV_ARRIVE:
        arrive(m, e);
        return;
    case EV_DELIVER:
        deliver(m, e);
        return;
    case EV_LOST:
        lost(m, s);
        return;
    case EV_GONE:
        if (!s->server)
            return;
        s->server = false;
        s->queued = 0;
        step(m, s->relay, &(struct feed_event){.type = FEED_EV_GONE, .session = s->id});
        return;
    case EV_PRODUCE: {
        struct publisher *p = &m->publishers[e->who];
        p->produced++;
        if (p->session && p->sending == -1)
            begin_next(m, e->who);
        if (p->produced < NUMBERS - 1)
            push(m, (struct event){.at = m->now + 1 + rng_below(&m->rng, 2 * HEAL_MS / NUMBERS),
                                   .type = EV_PRODUCE,
                                   .who = e->who});
        return;
    }
    case EV_VERIFIED:
        answered(m, e,
                 &(struct feed_event){.type = FEED_EV_VERIFIED,
                                      .verified = {.copy = e->copy, .valid = e->flag}});
        return;
    case EV_COMMIT:
        committed(m, e);
        return;
    case EV_STORED:
        answered(m, e,
                 &(struct feed_event){
                     .type = FEED_EV_STORED,
                     .stored = {.copy = e->copy, .outcome = e->outcome, .last = e->number}});
        return;
    case EV_LOADED:
        if (lives)
            step(m, e->who,
                 &(struct feed_event){
                     .type = FEED_EV_LOADED,
                     .loaded = {.load = e->copy, .failed = e->flag, .last = m->last}});
        return;
    case EV_TICK:
        if (lives && r->tick_at != UINT64_MAX) {
            r->tick_at = UINT64_MAX;
            step(m, e->who, &(struct feed_event){.type = FEED_EV_TICK});
        }
        return;
    case EV_LEAD:
        lead(m, e->who);
        return;
    case EV_FAULT:
        fault(m);
        return;
    }
    UNREACHABLE();
}

/* Every honest publisher knows that all its numbers are stored. */
static bool finished(const struct model *m)
{
    for (int i = 0; i < m->publisher_count; i++)
        if (m->publishers[i].kind == HONEST && m->publishers[i].acked < NUMBERS - 1)
            return false;
    return m->last >= NUMBERS - 1; /* one that sends wrong numbers may go on */
}

static void begin_world(struct model *m)
{
    m->last = -1;
    m->wild = true;
    m->fenced = chance(m, 500); /* otherwise the cursor alone decides */
    m->publisher_count = 1 + (int)rng_below(&m->rng, PUBLISHERS_MAX);
    for (int i = 0; i < m->publisher_count; i++) {
        struct publisher *p = &m->publishers[i];
        p->kind = i == 0 || chance(m, 500) ? HONEST : (enum kind)rng_below(&m->rng, KINDS);
        p->pipelines = chance(m, 300);
        p->key = i && chance(m, 200) ? (int)rng_below(&m->rng, (uint64_t)i) : i;
        p->produced = p->acked = -1;
        p->sending = -1;
        p->pace_ms = 1 + (uint32_t)rng_below(&m->rng, p->kind == HONEST ? 60 : 5);
        p->latency_ms = 1 + (uint32_t)rng_below(&m->rng, p->kind == HONEST ? 40 : 3);
        act_in(m, i, rng_below(&m->rng, 1000));
        push(m, (struct event){.at = rng_below(&m->rng, 3000), .type = EV_PRODUCE, .who = i});
    }
    push(m, (struct event){.at = rng_below(&m->rng, 500), .type = EV_LEAD});
    push(m, (struct event){.at = rng_below(&m->rng, 10000), .type = EV_FAULT});
}

void feed_model_run(uint64_t seed, bool print, struct feed_model_report *ret)
{
    struct model *m = xcalloc(1, sizeof(*m));
    *ret = (struct feed_model_report){0};
    m->rng.state = seed * 0x9e3779b97f4a7c15U + 16;
    m->print = print;
    m->report = ret;
    begin_world(m);
    const uint64_t deadline =
        HEAL_MS + (uint64_t)NUMBERS * PUBLISHERS_MAX * (STALE_MS + ACK_MS + RESEND_MS);
    while (m->count && !ret->violation && !(finished(m) && !m->wild)) {
        struct event e = pop(m);
        m->now = e.at;
        ret->events++;
        if (m->wild && m->now >= HEAL_MS) {
            m->wild = false;
            lead(m, 0); /* one relay leads from now on, and the other one knows */
        }
        if (print)
            printf("%8llu  %d who %d session %llu copy %llu number %lld told %d end %d\n",
                   (unsigned long long)m->now, (int)e.type, e.who, (unsigned long long)e.session,
                   (unsigned long long)e.copy, (long long)e.number, (int)e.told, (int)e.end);
        happen(m, &e);
        drain_queues(m);
        if (m->now > deadline)
            violation(m, "B60: a number is not taken, and nothing stands in its way");
    }
    if (!finished(m))
        violation(m, "B60: nothing happens any more, and a number is not taken");
    for (int i = 0; i < RELAYS; i++)
        if (m->relays[i].core)
            stop_relay(m, i);
    for (size_t i = 0; i < m->session_count; i++)
        free(m->sessions[i].queue);
    free(m->sessions);
    free(m->heap);
    free(m);
}

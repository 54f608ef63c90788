/* The publisher's machine (client.h has its picture). One stream at a time, one batch at a time. */
#include "feed/client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/check.h"
#include "base/list.h"
#include "chain/codec/hash.h"
#include "chain/keys/keys.h"
#include "net/grpc.h"

enum {
    PIECE_BYTES = 64 << 10,   /* of calls in one request */
    QUEUED_BYTES = 256 << 10, /* in the call's queue, before it waits for room */
    CALL_OVERHEAD = 1024,
};

enum phase {
    BACKOFF_WAIT,
    CONNECT_WAIT,
    STREAM_IDLE, /* nothing to offer */
    SENDING,
    ANSWER_WAIT,
    SKIPPED_WAIT,
    BEHIND_WAIT, /* the relay needs a number that we do not have */
    ENDING_WAIT, /* EndStream is sent */
    ENDED_WAIT,  /* the relay's EndOfStream is here, the end of the call is not */
    OVER,
};

struct batch {
    struct list node;
    int64_t number;
    uint32_t count;
    unsigned refused;
    struct buf body; /* what is hashed: each call as 4 bytes of length and itself */
    uint8_t digest[FEED_WIRE_DIGEST];
    uint8_t signature[KEY_SIG_MAX];
};

struct feed_client {
    struct loop *loop;
    struct feed_client_config config; /* strings are owned copies */
    char **targets;
    char *leader;  /* where NOT_LEADER sent us; NULL: nowhere */
    size_t target; /* the next to try */
    enum phase phase;
    struct loop_timer *timer; /* of a back-off or an answer */
    struct loop_task task;    /* opens the stream, or goes on */
    struct rng rng;
    struct backoff backoff;
    struct list batches; /* ascending */
    size_t kept;
    int64_t last; /* acknowledged; -1: unknown */
    bool ending;

    struct grpc_client *link;
    bool up;
    struct grpc_call *call;
    struct batch *sending; /* NULL: none */
    size_t sent_at;        /* of its body */
    bool header_sent;
    struct feed_wire_response end; /* of ENDED_WAIT */
};

static char *copy_of(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static void note(struct feed_client *c, enum feed_client_note n, int64_t number, const char *text)
{
    if (c->config.on_note)
        c->config.on_note(c->config.arg, n, number, text);
}

/* ---- batches ---- */

static struct batch *batch_free(struct feed_client *c, struct batch *b)
{
    list_remove(&b->node);
    c->kept--;
    if (c->sending == b)
        c->sending = NULL;
    buf_done(&b->body);
    free(b);
    return NULL;
}

static struct batch *first_batch(const struct feed_client *c)
{
    struct list *n = list_first(&c->batches);
    return n ? CONTAINER_OF(n, struct batch, node) : NULL;
}

static void put_be32(struct buf *out, size_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_u8(out, (uint8_t)(v >> shift));
}

static void sign(struct feed_client *c, struct batch *b)
{
    struct buf message = {0};
    hash_sha256(b->body.data, b->body.len, b->digest);
    feed_wire_signed_put(&message, c->config.feed, b->number, b->count, b->digest);
    keypair_sign(c->config.key, message.data, message.len, b->signature);
    buf_done(&message);
}

static void go_on(struct loop_task *task);

static void wake(struct feed_client *c)
{
    if (c->phase != OVER && !list_linked(&c->task.node))
        loop_post(c->loop, &c->task, go_on);
}

int feed_client_put(struct feed_client *c, int64_t number, const struct feed_wire_call *calls,
                    size_t count, struct err *err)
{
    PRE(!c->ending && number >= 0);
    PRE(list_empty(&c->batches) ||
        CONTAINER_OF(c->batches.prev, struct batch, node)->number + 1 == number);
    for (size_t i = 0; i < count; i++)
        if (calls[i].call_len > FEED_WIRE_REQUEST_MAX - CALL_OVERHEAD)
            return err_set(err, ERR_ARGUMENT, "batch %lld, call %zu: it has %zu bytes, at most %d",
                           (long long)number, i, calls[i].call_len,
                           FEED_WIRE_REQUEST_MAX - CALL_OVERHEAD);
    struct batch *b = xcalloc(1, sizeof(*b));
    struct buf one = {0};
    b->number = number;
    b->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&one);
        feed_wire_call_write(&one, &calls[i]);
        put_be32(&b->body, one.len);
        buf_put(&b->body, one.data, one.len);
    }
    buf_done(&one);
    sign(c, b);
    list_append(&c->batches, &b->node);
    c->kept++;
    if (number <= c->last)
        batch_free(c, b); /* another publisher's copy is stored */
    wake(c);
    return 0;
}

size_t feed_client_kept(const struct feed_client *c)
{
    return c->kept;
}

/* Every number up to this one is stored. */
static void acked(struct feed_client *c, int64_t number)
{
    bool any = number > c->last;
    c->last = any ? number : c->last;
    for (struct batch *b = first_batch(c); b && b->number <= number; b = first_batch(c))
        batch_free(c, b);
    if (!any)
        return;
    backoff_reset(&c->backoff);
    c->config.on_acked(c->config.arg, number);
}

/* ---- connections ---- */

static void open_stream(struct feed_client *c);

static void drop_link(struct feed_client *c)
{
    c->call = NULL; /* it goes without a callback */
    c->up = false;
    c->link = grpc_client_close(c->link);
}

static void fail(struct feed_client *c, const struct err *why)
{
    drop_link(c);
    c->phase = OVER;
    loop_timer_stop(c->timer);
    c->config.on_failed(c->config.arg, why);
}

/* Again in delay_ms, at the same relay or at the next one. */
static void again(struct feed_client *c, uint64_t delay_ms, bool elsewhere)
{
    if (elsewhere && c->link)
        drop_link(c);
    c->call = NULL;
    c->sending = NULL;
    c->phase = BACKOFF_WAIT;
    loop_timer_at(c->timer, loop_now_ms(c->loop) + delay_ms);
}

static uint64_t delay(struct feed_client *c)
{
    return backoff_next(&c->backoff, &c->rng);
}

static void on_up(void *arg)
{
    struct feed_client *c = arg;
    c->up = true;
    open_stream(c);
}

static void on_down(void *arg, const struct err *why)
{
    struct feed_client *c = arg;
    struct err text = *why;
    c->up = false;
    if (c->phase == OVER || c->phase == BACKOFF_WAIT)
        return; /* the next attempt dials anew */
    again(c, delay(c), true);
    note(c, FEED_CLIENT_LOST, 0, text.text);
}

static const char *next_target(struct feed_client *c)
{
    if (c->leader)
        return c->leader;
    return c->targets[c->target++ % c->config.target_count];
}

static void dial(struct feed_client *c)
{
    const char *target = next_target(c);
    struct err err = {0};
    struct grpc_client_config config = {
        .target = target,
        .tls = c->config.tls,
        .server_name = c->config.server_name,
        .on_up = on_up,
        .on_down = on_down,
        .arg = c,
    };
    c->link = grpc_client_close(c->link);
    c->phase = CONNECT_WAIT;
    c->link = grpc_client_new(c->loop, &config, &err);
    if (c->link)
        grpc_client_open(c->link);
    else
        again(c, delay(c), true); /* an address that a relay gave */
    free(c->leader);
    c->leader = NULL;
}

static void on_timer(void *arg)
{
    struct feed_client *c = arg;
    switch (c->phase) {
    case BACKOFF_WAIT:
        if (c->up)
            open_stream(c);
        else
            dial(c);
        return;
    case BEHIND_WAIT:
        c->phase = STREAM_IDLE;
        wake(c);
        return;
    case ANSWER_WAIT:
    case SKIPPED_WAIT:
    case ENDING_WAIT:
        again(c, delay(c), true);
        note(c, FEED_CLIENT_ENDED, 0, "no answer in time");
        return;
    case CONNECT_WAIT:
    case STREAM_IDLE:
    case SENDING:
    case ENDED_WAIT:
    case OVER:
        return;
    }
}

/* ---- sending ---- */

static void wait_answer(struct feed_client *c, enum phase phase, uint64_t ms)
{
    c->phase = phase;
    loop_timer_at(c->timer, loop_now_ms(c->loop) + ms);
}

static void send_items(struct feed_client *c, const struct feed_wire_item *items, size_t count)
{
    struct buf out = {0};
    feed_wire_request_write(&out, items, count);
    grpc_call_send(c->call, out.data, out.len);
    buf_done(&out);
}

static size_t call_at(const struct batch *b, size_t at, struct feed_wire_item *ret)
{
    const uint8_t *p = b->body.data + at;
    size_t len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    *ret = (struct feed_wire_item){.kind = FEED_WIRE_CALL};
    ret->call.data = p + 4;
    ret->call.len = len;
    return 4 + len;
}

/* The next request of the batch: up to PIECE_BYTES of calls, the header before the first, the
 * trailer after the last. */
static void send_piece(struct feed_client *c)
{
    enum { ITEMS = 512 };
    struct feed_wire_item items[ITEMS + 2];
    struct batch *b = c->sending;
    size_t n = 0, bytes = 0, calls = 0, public_len = 0;
    if (!c->header_sent) {
        items[n].kind = FEED_WIRE_HEADER;
        items[n++].header =
            (struct feed_wire_header){.feed = c->config.feed,
                                      .number = b->number,
                                      .publisher = keypair_public(c->config.key, &public_len)};
        c->header_sent = true;
    }
    for (; c->sent_at < b->body.len && calls < ITEMS; calls++) {
        size_t len = call_at(b, c->sent_at, &items[n]);
        if (calls && bytes + len > PIECE_BYTES)
            break;
        bytes += len;
        c->sent_at += len;
        n++;
    }
    bool whole = c->sent_at == b->body.len;
    if (whole) {
        items[n].kind = FEED_WIRE_TRAILER;
        items[n++].trailer = (struct feed_wire_trailer){
            .count = b->count, .digest = b->digest, .signature = b->signature};
    }
    send_items(c, items, n);
    if (whole) {
        int64_t number = b->number;
        wait_answer(c, ANSWER_WAIT, c->config.answer_ms);
        note(c, FEED_CLIENT_SENT, number, "");
    }
}

static void send_end(struct feed_client *c)
{
    struct feed_wire_item end = {.kind = FEED_WIRE_END_STREAM, .end_code = 1}; /* RESET */
    send_items(c, &end, 1);
    grpc_call_half_close(c->call);
    wait_answer(c, ENDING_WAIT, c->config.answer_ms);
}

static void finish(struct feed_client *c)
{
    drop_link(c);
    c->phase = OVER;
    loop_timer_stop(c->timer);
    c->config.on_done(c->config.arg);
}

/* Offers the first batch that is kept. */
static void go_on(struct loop_task *task)
{
    struct feed_client *c = CONTAINER_OF(task, struct feed_client, task);
    struct batch *b = first_batch(c);
    if (c->ending && !b && (c->phase == BACKOFF_WAIT || c->phase == CONNECT_WAIT)) {
        finish(c); /* nothing is open that has to be closed */
        return;
    }
    if (c->phase == STREAM_IDLE && b) {
        c->phase = SENDING;
        c->sending = b;
        c->sent_at = 0;
        c->header_sent = false;
        loop_timer_stop(c->timer);
    } else if (c->phase == STREAM_IDLE && c->ending) {
        send_end(c);
    }
    while (c->phase == SENDING && grpc_call_queued(c->call) < QUEUED_BYTES)
        send_piece(c);
}

/* ---- answers ---- */

/* Whatever was on its way of the present batch is of no use: the next one begins with a header. */
static void next(struct feed_client *c)
{
    c->phase = STREAM_IDLE;
    c->sending = NULL;
    wake(c);
}

static bool on_stream(const struct feed_client *c)
{
    return c->phase >= STREAM_IDLE && c->phase <= BEHIND_WAIT;
}

static void on_ack(struct feed_client *c, int64_t number)
{
    const struct batch *b = c->sending ? c->sending : first_batch(c);
    bool mine = on_stream(c) && (!b || b->number <= number || c->phase == BEHIND_WAIT);
    acked(c, number); /* may put more, or close */
    if (mine && on_stream(c))
        next(c);
}

static void on_end_of_stream(struct feed_client *c, const struct feed_wire_response *r)
{
    c->end = *r;
    c->phase = ENDED_WAIT;
    c->sending = NULL;
    loop_timer_stop(c->timer);
}

static void on_message(void *arg, const uint8_t *data, size_t len)
{
    struct feed_client *c = arg;
    struct feed_wire_response r;
    struct err err;
    if (c->phase == ENDED_WAIT || c->phase == OVER)
        return;
    if (feed_wire_response_read(data, len, &r, &err)) {
        grpc_call_cancel(c->call, err.text);
        return;
    }
    switch (r.answer) {
    case FEED_WIRE_ACK:
        on_ack(c, r.number);
        break;
    case FEED_WIRE_SKIP:
        if (c->sending && c->sending->number == r.number) {
            wait_answer(c, SKIPPED_WAIT, c->config.answer_ms);
            note(c, FEED_CLIENT_SKIP, r.number, "");
        }
        break;
    case FEED_WIRE_RESEND:
        if (on_stream(c)) {
            next(c);
            note(c, FEED_CLIENT_RESEND, r.number, "");
        }
        break;
    case FEED_WIRE_BEHIND:
        acked(c, r.number);
        if (on_stream(c) && first_batch(c) && first_batch(c)->number > r.number + 1) {
            c->sending = NULL;
            wait_answer(c, BEHIND_WAIT, delay(c));
        } else if (on_stream(c)) {
            next(c);
        }
        break;
    case FEED_WIRE_END:
        on_end_of_stream(c, &r);
        break;
    }
}

static void on_room(void *arg)
{
    wake(arg);
}

/* One refusal more of the batch that was offered; true: it gave up. */
static bool refused(struct feed_client *c)
{
    struct batch *b = first_batch(c);
    struct err why;
    if (!b || ++b->refused < c->config.refusals_max)
        return false;
    err_set(&why, ERR_PROTOCOL, "batch %lld is refused: %s%s%s", (long long)b->number,
            feed_wire_status_name(c->end.status), c->end.detail[0] ? ": " : "", c->end.detail);
    fail(c, &why);
    return true;
}

static void stream_ended(struct feed_client *c)
{
    struct feed_wire_response end = c->end;
    char text[512];
    snprintf(text, sizeof(text), "%s%s%s", feed_wire_status_name(end.status),
             end.detail[0] ? ": " : "", end.detail);
    uint64_t wait = 0;
    bool elsewhere = false;
    switch (end.status) {
    case FEED_WIRE_SUCCESS:
    case FEED_WIRE_DUPLICATE_BLOCK:
        wait = rng_between(&c->rng, 1, 50);
        break;
    case FEED_WIRE_BAD_BLOCK_PROOF:
    case FEED_WIRE_INVALID_REQUEST:
        if (refused(c))
            return;
        wait = delay(c);
        break;
    case FEED_WIRE_NOT_LEADER:
        /* The first time at once; relays that disagree about it would do so for ever. */
        wait = delay(c) / (c->backoff.attempt > 1 ? 1 : 20);
        elsewhere = true;
        free(c->leader);
        c->leader = end.leader[0] ? xstrdup(end.leader) : NULL;
        break;
    case FEED_WIRE_TIMEOUT:
    case FEED_WIRE_STATUS_BEHIND:
        wait = delay(c);
        break;
    default:
        wait = delay(c);
        elsewhere = true;
        break;
    }
    again(c, wait, elsewhere);
    note(c, FEED_CLIENT_ENDED, end.number, text);
    if (end.status == FEED_WIRE_DUPLICATE_BLOCK || end.status == FEED_WIRE_STATUS_BEHIND)
        acked(c, end.number);
    wake(c);
}

static void on_end(void *arg, enum grpc_status status, const char *text)
{
    struct feed_client *c = arg;
    struct err why;
    bool ended = c->phase == ENDED_WAIT, ending = c->ending && !c->kept;
    c->call = NULL;
    if (c->phase == OVER || c->phase == BACKOFF_WAIT)
        return;
    if (ended && ending && c->end.status == FEED_WIRE_SUCCESS) {
        finish(c);
        return;
    }
    if (ended) {
        stream_ended(c);
        return;
    }
    err_set(&why, ERR_NET, "%s: %s", grpc_status_name(status), text);
    if (status == GRPC_UNAUTHENTICATED || status == GRPC_PERMISSION_DENIED ||
        status == GRPC_UNIMPLEMENTED) {
        fail(c, &why);
        return;
    }
    again(c, delay(c), true);
    note(c, FEED_CLIENT_ENDED, 0, why.text);
}

static const struct grpc_call_events call_events = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end};

static void open_stream(struct feed_client *c)
{
    c->call = grpc_client_call(c->link, FEED_WIRE_PUBLISH, c->config.token, 0, &call_events, c);
    c->phase = STREAM_IDLE;
    loop_timer_stop(c->timer);
    wake(c);
    note(c, FEED_CLIENT_CONNECTED, 0, "");
}

/* ---- its life ---- */

static int check(const struct feed_client_config *config, struct err *err)
{
    if (keypair_scheme(config->key) != KEY_ED25519)
        return err_set(err, ERR_CONFIG, "a publisher signs with an ed25519 key");
    if (strlen(config->feed) < 1 || strlen(config->feed) > FEED_WIRE_NAME_MAX)
        return err_set(err, ERR_CONFIG, "a feed's name has 1 to %d bytes", FEED_WIRE_NAME_MAX);
    return config->target_count ? 0 : err_set(err, ERR_CONFIG, "no relay is named");
}

static int check_targets(struct loop *l, const struct feed_client_config *config, struct err *err)
{
    for (size_t i = 0; i < config->target_count; i++) {
        struct grpc_client_config one = {.target = config->targets[i], .tls = config->tls};
        struct grpc_client *client = grpc_client_new(l, &one, err);
        if (!client)
            return ERR_CONFIG;
        grpc_client_close(client);
    }
    return 0;
}

struct feed_client *feed_client_new(struct loop *l, const struct feed_client_config *config,
                                    struct err *err)
{
    if (check(config, err) || check_targets(l, config, err))
        return NULL;
    struct feed_client *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->config = *config;
    c->config.feed = xstrdup(config->feed);
    c->config.server_name = copy_of(config->server_name);
    c->config.token = copy_of(config->token);
    c->config.answer_ms = config->answer_ms ? config->answer_ms : 60000;
    c->config.refusals_max = config->refusals_max ? config->refusals_max : 3;
    c->targets = xcalloc(config->target_count, sizeof(*c->targets));
    for (size_t i = 0; i < config->target_count; i++)
        c->targets[i] = xstrdup(config->targets[i]);
    c->rng.state = loop_seed(l);
    c->backoff = (struct backoff){.base_ms = config->retry_ms ? config->retry_ms : 1000,
                                  .cap_ms = config->retry_max_ms ? config->retry_max_ms : 30000};
    c->last = -1;
    list_init(&c->batches);
    c->timer = loop_timer_new(l, on_timer, c);
    c->phase = BACKOFF_WAIT;
    loop_timer_at(c->timer, loop_now_ms(l));
    return c;
}

void feed_client_end(struct feed_client *c)
{
    c->ending = true;
    wake(c);
}

struct feed_client *feed_client_close(struct feed_client *c)
{
    if (!c)
        return NULL;
    drop_link(c);
    loop_timer_close(c->timer);
    loop_task_cancel(&c->task);
    while (first_batch(c))
        batch_free(c, first_batch(c));
    for (size_t i = 0; i < c->config.target_count; i++)
        free(c->targets[i]);
    free(c->targets);
    free(c->leader);
    free((char *)(uintptr_t)c->config.feed);
    free((char *)(uintptr_t)c->config.server_name);
    if (c->config.token)
        explicit_bzero((char *)(uintptr_t)c->config.token, strlen(c->config.token));
    free((char *)(uintptr_t)c->config.token);
    free(c);
    return NULL;
}

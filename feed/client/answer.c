/* What does the publisher do after each answer of the relay, and after the end of a stream? It goes
 * on with the first batch that is kept, waits, opens another stream, or gives up. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "client_internal.h"
#include "net/grpc.h"

/* Whatever was on its way of the present batch is of no use: the next one begins with a header. */
static void next(struct feed_client *c)
{
    c->phase = STREAM_IDLE;
    c->sending = NULL;
    feed__client_wake(c);
}

static bool on_stream(const struct feed_client *c)
{
    return c->phase >= STREAM_IDLE && c->phase <= BEHIND_WAIT;
}

static void on_ack(struct feed_client *c, int64_t number)
{
    const struct batch *b = c->sending ? c->sending : feed__client_first_batch(c);
    bool mine = on_stream(c) && (!b || b->number <= number || c->phase == BEHIND_WAIT);
    feed__client_acked(c, number); /* may put more, or close */
    if (mine && on_stream(c))
        next(c);
}

/* The stream is open: an acknowledgement shows when another publisher has sent what is missing. */
static void on_behind(struct feed_client *c, int64_t last)
{
    feed__client_acked(c, last);
    if (!on_stream(c))
        return;
    switch (feed__client_missing(c, last)) {
    case MISSING_NONE:
        next(c);
        return;
    case MISSING_OTHERS:
        c->sending = NULL;
        feed__client_wait_answer(c, BEHIND_WAIT, feed__client_delay(c));
        return;
    case MISSING_LOST:
        c->too_far = true;
        feed__client_send_end(c, FEED_WIRE_END_TOO_FAR_BEHIND, TOO_FAR_WAIT);
        return;
    }
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
            feed__client_wait_answer(c, SKIPPED_WAIT, c->config.skipped_ms);
            feed__client_note(c, FEED_CLIENT_SKIP, r.number, "");
        }
        break;
    case FEED_WIRE_RESEND:
        if (on_stream(c)) {
            next(c);
            feed__client_note(c, FEED_CLIENT_RESEND, r.number, "");
        }
        break;
    case FEED_WIRE_BEHIND:
        on_behind(c, r.number);
        break;
    case FEED_WIRE_END:
        on_end_of_stream(c, &r);
        break;
    }
}

static void on_room(void *arg)
{
    feed__client_wake(arg);
}

/* One refusal more of the batch that was offered; true: it gave up. */
static bool refused(struct feed_client *c)
{
    struct batch *b = feed__client_first_batch(c);
    struct err why;
    if (!b || ++b->refused < c->config.refusals_max)
        return false;
    err_set(&why, ERR_PROTOCOL, "batch %lld is refused: %s%s%s", (long long)b->number,
            feed_wire_status_name(c->end.status), c->end.detail[0] ? ": " : "", c->end.detail);
    feed__client_fail(c, &why);
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
        wait = c->too_far ? feed__client_delay(c) : rng_between(&c->rng, 1, 50);
        break;
    case FEED_WIRE_BAD_BLOCK_PROOF:
    case FEED_WIRE_INVALID_REQUEST:
        if (refused(c))
            return;
        wait = feed__client_delay(c);
        break;
    case FEED_WIRE_NOT_LEADER:
        /* The first time at once; relays that disagree about it would do so for ever. */
        wait = feed__client_delay(c) / (c->backoff.attempt > 1 ? 1 : 20);
        elsewhere = true;
        free(c->leader);
        c->leader = end.leader[0] ? xstrdup(end.leader) : NULL;
        break;
    case FEED_WIRE_TIMEOUT:
    case FEED_WIRE_STATUS_BEHIND:
        wait = feed__client_delay(c);
        break;
    default:
        wait = feed__client_delay(c);
        elsewhere = true;
        break;
    }
    feed__client_again(c, wait, elsewhere);
    feed__client_note(c, FEED_CLIENT_ENDED, end.number, text);
    if (end.status == FEED_WIRE_DUPLICATE_BLOCK || end.status == FEED_WIRE_STATUS_BEHIND) {
        feed__client_acked(c, end.number);
        feed__client_missing(c, end.number);
    }
    feed__client_wake(c);
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
        feed__client_finish(c);
        return;
    }
    if (ended) {
        stream_ended(c);
        return;
    }
    err_set(&why, ERR_NET, "%s: %s", grpc_status_name(status), text);
    if (status == GRPC_UNAUTHENTICATED || status == GRPC_PERMISSION_DENIED ||
        status == GRPC_UNIMPLEMENTED) {
        feed__client_fail(c, &why);
        return;
    }
    feed__client_again(c, feed__client_delay(c), true);
    feed__client_note(c, FEED_CLIENT_ENDED, 0, why.text);
}

static const struct grpc_call_events call_events = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end};

void feed__client_open_stream(struct feed_client *c)
{
    c->call = grpc_client_call(c->link, FEED_WIRE_PUBLISH, c->config.token, 0, &call_events, c);
    c->phase = STREAM_IDLE;
    c->too_far = false;
    loop_timer_stop(c->timer);
    feed__client_wake(c);
    feed__client_note(c, FEED_CLIENT_CONNECTED, 0, "");
}

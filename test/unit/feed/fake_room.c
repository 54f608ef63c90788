#include "fake_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/list.h"

struct feed_session {
    struct list node;
    struct feed_room *room;
    const struct feed_session_ops *ops;
    void *ctx;
    char feed[201];
    int64_t number;
    uint32_t count;
    unsigned headers;
    bool in_batch, held, ended, dropping;
};

static struct list sessions = {&sessions, &sessions};

static void say(struct feed_session *s, enum feed_message message, int64_t number)
{
    struct feed_message_out m = {.message = message, .number = number, .leader = "", .detail = ""};
    s->ops->send(s->ctx, &m);
}

static void end(struct feed_session *s, enum feed_end status, int64_t last, const char *leader,
                const char *detail)
{
    struct feed_message_out m = {
        .message = FEED_MSG_END, .end = status, .number = last, .leader = leader, .detail = detail};
    s->ended = true;
    s->ops->send(s->ctx, &m);
}

static void takes(const struct feed_session *s)
{
    INVARIANT(!s->held);
}

struct feed_session *feed_session_open(struct feed_room *room, const struct feed_session_ops *ops,
                                       void *ctx, const char *peer)
{
    struct feed_session *s = xcalloc(1, sizeof(*s));
    INVARIANT(peer[0]);
    s->room = room;
    s->ops = ops;
    s->ctx = ctx;
    room->open++;
    room->opened++;
    list_append(&sessions, &s->node);
    return s;
}

void feed_session_header(struct feed_session *s, const char *feed, int64_t number,
                         const uint8_t publisher[FEED_KEY])
{
    (void)publisher;
    takes(s);
    if (s->ended)
        return;
    s->room->headers++;
    s->headers++;
    snprintf(s->feed, sizeof(s->feed), "%s", feed);
    s->number = number;
    s->count = 0;
    s->in_batch = true;
    s->dropping = false;
    if (!strncmp(feed, "end-", 4))
        end(s, (enum feed_end)strtoul(feed + 4, NULL, 10), 4, "", "as its name says");
    else if (!strncmp(feed, "leader:", 7) && !s->room->led)
        s->room->led = true, end(s, FEED_END_NOT_LEADER, 4, feed + 7, "");
    else if (!strcmp(feed, "skip") || (!strcmp(feed, "resend") && s->headers == 1))
        say(s, FEED_MSG_SKIP, number);
    else if (!strcmp(feed, "skipped"))
        s->dropping = true, say(s, FEED_MSG_SKIP, number);
    else if (!strcmp(feed, "lost") && number > s->room->last + 1)
        s->dropping = true, say(s, FEED_MSG_BEHIND, s->room->last);
    else if (!strcmp(feed, "behind") && s->headers == 1)
        s->dropping = true, say(s, FEED_MSG_BEHIND, 4);
}

void feed_session_call(struct feed_session *s, const uint8_t *data, size_t len)
{
    takes(s);
    if (s->ended)
        return;
    INVARIANT(s->in_batch);
    s->room->calls++;
    s->room->bytes += len;
    for (size_t i = 0; i < len; i++)
        s->room->bytes += data[i] & 0; /* every byte is there */
    s->count++;
}

void feed_session_trailer(struct feed_session *s, uint32_t count, const uint8_t digest[FEED_DIGEST],
                          const uint8_t signature[FEED_SIGNATURE])
{
    (void)digest;
    (void)signature;
    takes(s);
    if (s->ended || s->dropping)
        return;
    INVARIANT(s->in_batch && s->count == count);
    s->in_batch = false;
    s->room->trailers++;
    if (!strcmp(s->feed, "hold")) {
        s->held = true;
        s->room->held = s;
        s->ops->hold(s->ctx, true);
    } else if (!strcmp(s->feed, "resend") && s->headers == 1) {
        say(s, FEED_MSG_RESEND, s->number);
    } else {
        s->room->last = s->number;
        say(s, FEED_MSG_ACK, s->number);
    }
}

void feed_session_end_stream(struct feed_session *s, int code, int64_t earliest,
                             int64_t latest_acked)
{
    takes(s);
    if (s->ended)
        return;
    s->room->ends++;
    s->room->end_code = code;
    s->room->earliest = earliest;
    s->room->latest_acked = latest_acked;
    end(s, FEED_END_SUCCESS, s->room->last, "", "");
}

void feed_session_bad(struct feed_session *s, const char *why)
{
    INVARIANT(!s->ended);
    s->room->bad++;
    snprintf(s->room->why, sizeof(s->room->why), "%s", why);
    end(s, FEED_END_INVALID_REQUEST, s->room->last, "", why);
}

void feed_session_cut(struct feed_session *s, const char *why)
{
    s->room->cut++;
    snprintf(s->room->why, sizeof(s->room->why), "%s", why);
}

void feed_session_gone(struct feed_session *s)
{
    s->room->open--;
    s->room->gone++;
    if (s->room->held == s)
        s->room->held = NULL;
    list_remove(&s->node);
    free(s);
}

void fake_room_release(struct feed_room *room)
{
    struct feed_session *s = room->held;
    room->held = NULL;
    s->held = false;
    room->last = s->number;
    say(s, FEED_MSG_ACK, s->number);
    s->ops->hold(s->ctx, false);
    s->ops->hold(s->ctx, true); /* it may think again before the stream goes on */
    s->ops->hold(s->ctx, false);
}

void fake_room_push(struct feed_room *room, enum feed_message message, int64_t number)
{
    (void)room;
    LIST_EACH (n, &sessions)
        say(CONTAINER_OF(n, struct feed_session, node), message, number);
}

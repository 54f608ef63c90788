/* Streams of publishers. A session belongs to no feed until its first header names one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "feed/wire/wire.h"
#include "feed_internal.h"

enum { ASKING_MAX = 16 }; /* each keeps a request, while it waits for a read of the feeds */

struct feed_session *feed__session_of(struct feed_room *room, uint64_t id)
{
    struct feed_session *s;
    HASH_FIND(hh, room->sessions, &id, sizeof(id), s);
    return s;
}

struct feed_session *feed_session_open(struct feed_room *room, const struct feed_session_ops *ops,
                                       void *ctx, const char *peer)
{
    PRE(!room->closing);
    struct feed_session *s = xcalloc(1, sizeof(*s));
    s->room = room;
    s->id = ++room->session_ids;
    s->ops = ops;
    s->ctx = ctx;
    s->peer = xstrdup(peer);
    s->number = FEED_NONE;
    HASH_ADD(hh, room->sessions, id, sizeof(s->id), s);
    log_info("feed.connected", "session=%" PRIu64 " peer=\"%s\"", s->id, s->peer);
    return s;
}

static void say(struct feed_session *s, const struct feed_message_out *m)
{
    s->ended |= m->message == FEED_MSG_END;
    s->ops->send(s->ctx, m);
}

/* Ends a session that no core knows. */
static void refuse(struct feed_session *s, enum feed_end end, const char *detail)
{
    log_warn("feed.session_refused", "session=%" PRIu64 " peer=\"%s\" status=%s text=\"%s\"", s->id,
             s->peer, feed_end_name(end), detail);
    say(s, &(struct feed_message_out){.message = FEED_MSG_END,
                                      .end = end,
                                      .number = FEED_NONE,
                                      .leader = "",
                                      .detail = detail});
}

void feed__deliver(struct feed *f, const struct feed_effect *fx)
{
    struct feed_session *s = feed__session_of(f->room, fx->session);
    INVARIANT(s && s->feed == f);
    bool ends = fx->send.message == FEED_MSG_END;
    bool has_why = f->why_session == s->id || f->why_session == EVERY_SESSION;
    /* A feed that was left while its batch was under way ends its sessions later. */
    const char *left = fx->send.end == FEED_END_ERROR ? feed__why_not(f) : "";
    const char *detail = !ends ? "" : has_why && f->why[0] ? f->why : left;
    if (ends && fx->send.end == FEED_END_SUCCESS)
        log_info("feed.closed", "feed=%s session=%" PRIu64 " peer=\"%s\" last=%" PRId64, f->name,
                 s->id, s->peer, fx->number);
    else if (ends)
        log_warn("feed.ended",
                 "feed=%s session=%" PRIu64 " peer=\"%s\" status=%s number=%" PRId64
                 " last=%" PRId64 " text=\"%s\"",
                 f->name, s->id, s->peer, feed_end_name(fx->send.end), s->number, fx->number,
                 detail);
    say(s, &(struct feed_message_out){
               .message = fx->send.message,
               .end = fx->send.end,
               .number = fx->number,
               .leader = ends && fx->send.end == FEED_END_NOT_LEADER ? f->leader : "",
               .detail = detail});
}

/* ---- what comes ---- */

static void bind_to(struct feed_session *s, struct feed *f)
{
    s->feed = f;
    feed__step_why(f, &(struct feed_event){.type = FEED_EV_OPEN, .session = s->id},
                   feed__why_not(f));
}

static void header_of(struct feed_session *s, const char *feed)
{
    struct feed *f = s->feed;
    int at = feed__publisher(f, s->publisher);
    if (strcmp(f->name, feed) != 0) {
        feed__step_why(f, &(struct feed_event){.type = FEED_EV_REFUSE, .session = s->id},
                       "a stream is for one feed: open another one");
        return;
    }
    if (at < 0) {
        feed__step_why(f, &(struct feed_event){.type = FEED_EV_REFUSE, .session = s->id},
                       "the key is none of the feed's publishers: txrelay feed publishers");
        return;
    }
    feed__step_why(f,
                   &(struct feed_event){.type = FEED_EV_HEADER,
                                        .session = s->id,
                                        .header = {.number = s->number, .publisher = at}},
                   "");
}

void feed_session_header(struct feed_session *s, const char *feed, int64_t number,
                         const uint8_t publisher[FEED_KEY])
{
    if (s->ended)
        return;
    struct feed *f = s->feed ? s->feed : feed__find(s->room, feed);
    s->number = number;
    memcpy(s->publisher, publisher, FEED_KEY);
    if (!f && s->room->asking >= ASKING_MAX) {
        refuse(s, FEED_END_ERROR, "the feeds are not known now: try again");
        return;
    }
    if (!f) { /* it may be new: the feeds are read again first */
        s->room->asking++;
        s->asked = xstrdup(feed);
        s->asked_after = s->room->reads;
        s->ops->hold(s->ctx, true);
        feed__read_soon(s->room);
        return;
    }
    if (!s->feed)
        bind_to(s, f);
    if (!s->ended)
        header_of(s, feed);
}

void feed__asked(struct feed_session *s, bool failed)
{
    if (!s->asked || s->asked_after >= s->room->reads)
        return;
    char *name = s->asked;
    struct feed *f = feed__find(s->room, name);
    s->asked = NULL;
    s->room->asking--;
    if (f)
        bind_to(s, f);
    else if (failed)
        refuse(s, FEED_END_ERROR, "the feeds are not known now: try again");
    else
        refuse(s, FEED_END_INVALID_REQUEST, "there is no such feed at this relay");
    if (!s->ended)
        header_of(s, name);
    free(name);
    s->ops->hold(s->ctx, false);
}

void feed_session_call(struct feed_session *s, const uint8_t *data, size_t len)
{
    if (s->ended)
        return;
    if (!s->feed) {
        refuse(s, FEED_END_INVALID_REQUEST, "a batch begins with its header");
        return;
    }
    s->feed->item = data;
    s->feed->item_len = len;
    feed__step_why(s->feed,
                   &(struct feed_event){.type = FEED_EV_ITEMS,
                                        .session = s->id,
                                        .items = {.count = 1, .bytes = len + COPY_LENGTH}},
                   "calls without a header, or more of them than a batch may have");
}

void feed_session_trailer(struct feed_session *s, uint32_t count, const uint8_t digest[FEED_DIGEST],
                          const uint8_t signature[FEED_SIGNATURE])
{
    if (s->ended)
        return;
    if (!s->feed) {
        refuse(s, FEED_END_INVALID_REQUEST, "a batch begins with its header");
        return;
    }
    s->feed->trailer =
        (struct feed_trailer){.count = count, .digest = digest, .signature = signature};
    feed__step_why(s->feed, &(struct feed_event){.type = FEED_EV_TRAILER, .session = s->id},
                   "a trailer without a header");
}

void feed_session_end_stream(struct feed_session *s, int code, int64_t earliest,
                             int64_t latest_acked)
{
    if (s->ended)
        return;
    if (code == FEED_WIRE_END_TOO_FAR_BEHIND && s->feed)
        log_warn("feed.too_far_behind",
                 "feed=%s session=%" PRIu64 " peer=\"%s\" last=%" PRId64 " earliest=%" PRId64
                 " latest_acked=%" PRId64,
                 s->feed->name, s->id, s->peer, feed_core_last(s->feed->core), earliest,
                 latest_acked);
    else
        log_debug("feed.end_stream", "session=%" PRIu64 " code=%d", s->id, code);
    if (s->feed)
        feed__step_why(s->feed, &(struct feed_event){.type = FEED_EV_CLOSE, .session = s->id}, "");
    else
        refuse(s, FEED_END_SUCCESS, "");
}

void feed_session_bad(struct feed_session *s, const char *why)
{
    if (s->ended)
        return;
    if (s->feed)
        feed__step_why(s->feed, &(struct feed_event){.type = FEED_EV_REFUSE, .session = s->id},
                       why);
    else
        refuse(s, FEED_END_INVALID_REQUEST, why);
}

void feed_session_cut(struct feed_session *s, const char *why)
{
    if (!s->ended)
        log_warn("feed.cut",
                 "feed=%s session=%" PRIu64 " peer=\"%s\" number=%" PRId64 " text=\"%s\"",
                 s->feed ? s->feed->name : "", s->id, s->peer, s->number, why);
}

void feed_session_gone(struct feed_session *s)
{
    struct feed_room *room = s->room;
    struct feed *f = s->feed;
    log_info("feed.disconnected", "session=%" PRIu64 " peer=\"%s\"", s->id, s->peer);
    HASH_DEL(room->sessions, s);
    if (f)
        feed__step(f, &(struct feed_event){.type = FEED_EV_GONE, .session = s->id});
    room->asking -= s->asked != NULL;
    free(s->asked);
    free(s->peer);
    free(s);
    feed__progress(room);
}

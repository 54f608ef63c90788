/* One reader of events. It holds no more than what its socket has not taken: a page of rows, or
 * twice QUEUED_MAX bytes of the ring and an event. One that falls behind the ring is closed, and
 * resumes by its id. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "events_internal.h"

enum { QUEUED_MAX = 64 << 10 };

/* ---- the end ---- */

void follower__free(struct follower *f)
{
    if (f->stream || f->asking || f->checking)
        return;
    told_free(f->told);
    free(f);
}

static void on_gone(void *arg)
{
    struct follower *f = arg;
    f->stream = NULL;
    hub__left(f->hub, f);
    follower__free(f);
}

/* Who has read the whole ring waits for the next pump: what has come since then is few, and a write
 * costs as much as many. */
static void on_room(void *arg)
{
    struct follower *f = arg;
    if (f->phase != FOLLOWER_RING || f->behind)
        follower__go_on(f);
}

static const struct http_stream_events stream_events = {.on_room = on_room, .on_end = on_gone};

static void share(struct follower *f, struct shared *piece)
{
    http_stream_share(f->stream, piece);
    f->written = true;
    f->hub->writes++;
    f->hub->bytes += piece->len;
}

void follower__say(struct follower *f, struct buf *text)
{
    if (!text->len)
        return;
    struct shared *piece = http_stream_piece(text->data, text->len);
    share(f, piece);
    shared_drop(piece);
    buf_clear(text);
}

static void comment(struct follower *f, const char *what)
{
    struct buf text = {0};
    buf_printf(&text, ": %s\n\n", what);
    follower__say(f, &text);
    buf_done(&text);
}

void follower__end(struct follower *f, const char *why)
{
    struct http_stream *s = f->stream;
    comment(f, why);
    f->stream = NULL;
    http_stream_end(s);
    hub__left(f->hub, f);
    follower__free(f);
}

/* ---- the ring ---- */

static void begin(struct follower *f)
{
    struct hub *h = f->hub;
    if (h->recent && !h->closing && recent_resumes(h->recent, h->tag, &f->from)) {
        f->number = f->joined = f->from.number + 1;
        f->phase = FOLLOWER_RING;
    } else if (h->live) {
        f->number = f->joined = recent_end(h->recent);
        f->phase = f->since_us ? FOLLOWER_POSITION : FOLLOWER_RING;
    }
}

static void send_live(struct follower *f)
{
    struct hub *h = f->hub;
    struct buf text = {0};
    char id[EVENT_ID_TEXT];
    event_id_put(&(struct event_id){h->position_us, h->tag, f->number - 1}, id);
    buf_printf(&text, "id: %s\ndata: ", id);
    listen_format_state_json(h->position_us, 0, NULL, &text);
    buf_puts(&text, "\n\n");
    follower__say(f, &text);
    buf_done(&text);
    f->told_live = true;
    f->told_stale = false;
}

/* What this reader is sent next, in h->text. */
static void gather(struct follower *f)
{
    struct hub *h = f->hub;
    for (; f->number < recent_end(h->recent) && h->text.len < QUEUED_MAX; f->number++) {
        const struct recent_event *ev = recent_at(h->recent, f->number);
        if (f->told && told_is_over(f->told, ev))
            f->told = told_free(f->told);
        if (recent_is_new(ev, f->number, f->joined, f->split_us) && told_passes(f->told, ev) &&
            event_wanted(&f->filter, ev))
            buf_put(&h->text, ev->text, ev->len);
    }
}

void follower__forget_batches(struct hub *h)
{
    for (size_t i = 0; i < ARRAY_LEN(h->batches); i++)
        h->batches[i].piece = shared_drop(h->batches[i].piece);
}

/* Most readers want all events and are at the same one: they share one piece of memory. */
static struct batch *batch_of(struct follower *f)
{
    struct hub *h = f->hub;
    for (size_t i = 0; i < ARRAY_LEN(h->batches); i++)
        if (h->batches[i].piece && h->batches[i].from == f->number)
            return &h->batches[i];
    struct batch *b = &h->batches[h->batched++ % ARRAY_LEN(h->batches)];
    shared_drop(b->piece);
    *b = (struct batch){.from = f->number};
    gather(f);
    b->end = f->number;
    if (h->text.len)
        b->piece = http_stream_piece(h->text.data, h->text.len);
    buf_clear(&h->text);
    return b;
}

static void pump(struct follower *f)
{
    struct hub *h = f->hub;
    if (f->number < recent_first(h->recent)) {
        follower__end(f, "too slow: resume from your last id");
        return;
    }
    if (http_stream_queued(f->stream) >= QUEUED_MAX) {
        f->behind = f->number < recent_end(h->recent);
        return;
    }
    if (f->number >= f->joined && !f->told && !f->filter.account && !f->filter.id &&
        !*f->filter.state) {
        struct batch *b = batch_of(f);
        f->number = b->end;
        if (b->piece)
            share(f, b->piece);
    } else {
        gather(f);
        follower__say(f, &h->text);
    }
    f->behind = f->number < recent_end(h->recent);
    if (!f->behind && h->live && !f->told_live)
        send_live(f);
}

void follower__go_on(struct follower *f)
{
    if (f->asking || !f->stream)
        return;
    if (f->phase == FOLLOWER_WAIT)
        begin(f);
    if (f->phase == FOLLOWER_RING)
        pump(f);
    else if (f->phase != FOLLOWER_WAIT && http_stream_queued(f->stream) < QUEUED_MAX)
        follower__read(f);
}

void follower__stale(struct follower *f)
{
    struct hub *h = f->hub;
    struct buf text = {0};
    if (f->phase != FOLLOWER_RING || f->told_stale)
        return;
    f->told_live = false;
    f->told_stale = true;
    buf_puts(&text, "data: ");
    listen_format_state_json(h->position_us, 0, &h->why, &text);
    buf_puts(&text, "\n\n");
    follower__say(f, &text);
    buf_done(&text);
}

/* ---- time ---- */

static void on_checked(struct conn_query *q, const struct conn_result *r)
{
    struct follower *f = CONTAINER_OF(q, struct follower, check);
    int len;
    f->checking = false;
    if (!f->stream)
        follower__free(f);
    else if (!q->err.code && (!conn_result_rows(r) || *conn_result_get(r, 0, 1, &len) != 't'))
        follower__end(f, "the token was revoked, or has expired");
}

static void check_token(struct follower *f)
{
    static const char file[] = "token_use.sql";
    struct conn_param params[] = {{.data = f->hash}, {.data = http_scope_name(HTTP_READ)}, {0}};
    f->checking = true;
    conn_query_start(f->hub->api->acts, &f->check, file, api__sql(file), 3, params, 0, on_checked);
}

void follower__beat(struct follower *f, uint64_t now)
{
    if (f->phase == FOLLOWER_RING && f->told && !f->behind && now >= f->told_until)
        f->told = told_free(f->told);
    if (!f->written && !http_stream_queued(f->stream))
        comment(f, "still here");
    f->written = false;
    if (!f->checking)
        check_token(f);
}

/* ---- the beginning ---- */

void follower__start(struct follower *f, struct hub *h, struct http_request *r, const char *hash)
{
    const struct http_answer head = {.status = 200, .type = "text/event-stream"};
    static const char first[] = "retry: 1000\n\n";
    f->hub = h;
    memcpy(f->hash, hash, sizeof(f->hash));
    f->stream = http_stream_start(r, &head, &stream_events, f);
    if (!f->stream) {
        free(f);
        return;
    }
    http_stream_write(f->stream, first, sizeof(first) - 1);
    hub__join(h, f);
    follower__go_on(f);
}

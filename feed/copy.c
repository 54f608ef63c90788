/* The bytes of a copy: collected, verified, stored, freed.
 *
 *   collect -> (thread) count, digest, signature, form of each call -> (loop, in slices) each call
 *   decodes by the chain's metadata -> the core -> the database
 *
 * A small copy is not worth the way to the thread and back.
 *
 * The metadata belongs to the node and may be replaced at any time, so the thread does not use it.
 * Calls are decoded on the loop, a few milliseconds at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "chain/keys/keys.h"
#include "feed/wire/wire.h"
#include "feed_internal.h"

enum {
    SLICE_NS = 2000000,  /* of decoding in one turn of the loop */
    AGAIN_MS = 200,      /* the metadata is not known: look again */
    SMALL_BYTES = 16384, /* a copy up to this is verified at once: some 0.3 ms */
    AMOUNT_DIGITS = 39,
    PRIORITY_MAX = 1000,
    RETRIES_MAX = 100,
};

struct feed_copy_bytes *feed__copy_of(struct feed *f, uint64_t id)
{
    struct feed_copy_bytes *c;
    HASH_FIND(hh, f->copies, &id, sizeof(id), c);
    return c;
}

void feed__copy_begin(struct feed *f, const struct feed_effect *fx)
{
    struct feed_session *s = feed__session_of(f->room, fx->session);
    struct feed_copy_bytes *c = xcalloc(1, sizeof(*c));
    INVARIANT(s);
    c->feed = f;
    c->id = fx->copy;
    c->number = fx->number;
    c->epoch = f->epoch;
    c->session = fx->session;
    c->name = xstrdup(f->name);
    memcpy(c->publisher, s->publisher, FEED_KEY);
    HASH_ADD(hh, f->copies, id, sizeof(c->id), c);
}

static uint32_t length_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void feed__copy_append(struct feed_copy_bytes *c, const uint8_t *data, size_t len)
{
    PRE(len <= UINT32_MAX);
    for (int shift = 24; shift >= 0; shift -= 8)
        buf_put_u8(&c->body, (uint8_t)(len >> shift));
    buf_put(&c->body, data, len);
    c->count++;
}

static void free_copy(struct feed_copy_bytes *c)
{
    struct feed *f = c->feed;
    HASH_DEL(f->copies, c);
    loop_timer_close(c->again);
    buf_done(&c->body);
    buf_done(&c->data);
    free(c->calls);
    free(c->name);
    free(c);
    feed__progress(f->room);
}

void feed__copy_drop(struct feed *f, uint64_t id)
{
    struct feed_copy_bytes *c = feed__copy_of(f, id);
    INVARIANT(c && !c->dropped);
    c->dropped = true;
    if (!c->busy)
        free_copy(c);
}

/* ---- on the thread, or at once ---- */

static bool is_amount(const char *text)
{
    size_t len = strlen(text);
    return len <= AMOUNT_DIGITS && strspn(text, "0123456789") == len;
}

/* Appends a text to the copy's data; its place, or 0 for none. Places are made pointers at the end,
 * because the data moves while it grows. */
static size_t append_text(struct feed_copy_bytes *c, const char *text)
{
    if (!text || !*text)
        return 0;
    size_t at = c->data.len;
    buf_put(&c->data, text, strlen(text) + 1);
    return at;
}

struct place {
    size_t data, tip, max_tip;
};

static int read_call(struct feed_copy_bytes *c, uint32_t i, const uint8_t *bytes, size_t len,
                     struct place *place)
{
    struct feed_wire_call w;
    struct feed_wire_call_memory *memory = NULL;
    if (feed_wire_call_read(bytes, len, &w, &memory, &c->err))
        return err_set(&c->err, ERR_ARGUMENT, "call %u: it is no message Call", i);
    const char *bad = !w.call_len                                               ? "call"
                      : w.priority < -PRIORITY_MAX || w.priority > PRIORITY_MAX ? "priority"
                      : !is_amount(w.tip)                                       ? "tip"
                      : !is_amount(w.max_tip)                                   ? "max_tip"
                      : w.not_before_ms < 0                                     ? "not_before_ms"
                      : w.deadline_ms < 0                                       ? "deadline_ms"
                      : w.deadline_block < 0                                    ? "deadline_block"
                      : w.retries > RETRIES_MAX                                 ? "retries"
                                                                                : NULL;
    if (bad)
        err_set(&c->err, ERR_ARGUMENT, "call %u: %s is missing or out of its bounds", i, bad);
    else {
        struct feed_call *call = &c->calls[i];
        *call = (struct feed_call){
            .len = w.call_len,
            .priority = w.priority,
            .not_before_ms = w.not_before_ms ? w.not_before_ms : -1,
            .deadline_ms = w.deadline_ms ? w.deadline_ms : -1,
            .spec_version = w.spec_version ? (int64_t)w.spec_version : -1,
            .deadline_block = w.deadline_block ? w.deadline_block : -1,
            .retries = w.retries,
        };
        place->data = c->data.len;
        buf_put(&c->data, w.call, w.call_len);
        place->tip = append_text(c, w.tip);
        place->max_tip = append_text(c, w.max_tip);
    }
    feed_wire_call_free(memory);
    return bad ? ERR_ARGUMENT : 0;
}

static int read_calls(struct feed_copy_bytes *c)
{
    struct place *places = xcalloc(c->count ? c->count : 1, sizeof(*places));
    const uint8_t *at = c->body.data;
    int rc = 0;
    c->calls = xcalloc(c->count ? c->count : 1, sizeof(*c->calls));
    buf_put_u8(&c->data, 0); /* so that place 0 is none */
    for (uint32_t i = 0; i < c->count && !rc; i++) {
        uint32_t len = length_at(at);
        rc = read_call(c, i, at + COPY_LENGTH, len, &places[i]);
        at += COPY_LENGTH + len;
    }
    for (uint32_t i = 0; i < c->count && !rc; i++) {
        c->calls[i].data = c->data.data + places[i].data;
        c->calls[i].tip = places[i].tip ? (const char *)c->data.data + places[i].tip : NULL;
        c->calls[i].max_tip =
            places[i].max_tip ? (const char *)c->data.data + places[i].max_tip : NULL;
    }
    free(places);
    return rc;
}

static void verify(struct loop_work *w)
{
    struct feed_copy_bytes *c = CONTAINER_OF(w, struct feed_copy_bytes, work);
    uint8_t digest[FEED_DIGEST];
    struct buf message = {0};
    hash_sha256(c->body.data, c->body.len, digest);
    feed_wire_signed_put(&message, c->name, c->number, c->promised, c->digest);
    if (c->promised != c->count)
        err_set(&c->err, ERR_ARGUMENT, "the trailer says %u calls, and there are %u", c->promised,
                c->count);
    else if (memcmp(digest, c->digest, sizeof(digest)) != 0)
        err_set(&c->err, ERR_ARGUMENT, "the digest of the trailer is not that of the calls");
    else if (!key_verify(KEY_ED25519, c->publisher, message.data, message.len, c->signature))
        err_set(&c->err, ERR_ARGUMENT, "the signature is not that of the header's publisher");
    else
        read_calls(c);
    buf_done(&message);
    buf_done(&c->body); /* what is needed of it is in `data` */
}

/* ---- on the loop ---- */

static void verified(struct feed_copy_bytes *c, bool valid)
{
    struct feed *f = c->feed;
    uint64_t id = c->id, session = c->session;
    char why[sizeof(c->err.text)];
    memcpy(why, c->err.text, sizeof(why));
    bool dropped = c->dropped;
    c->busy = dropped; /* else the core may drop it at once */
    if (!valid && !dropped)
        log_warn("feed.bad_batch",
                 "feed=%s session=%" PRIu64 " number=%" PRId64 " publisher=%s text=\"%s\"", f->name,
                 session, c->number, hex_log(c->publisher, FEED_KEY), why);
    feed__step_why_of(
        f, &(struct feed_event){.type = FEED_EV_VERIFIED, .verified = {.copy = id, .valid = valid}},
        session, why);
    if (dropped)
        free_copy(c);
}

static void next_slice(struct feed_copy_bytes *c);

static void check_slice(struct loop_task *task)
{
    struct feed_copy_bytes *c = CONTAINER_OF(task, struct feed_copy_bytes, slice);
    struct feed_room *room = c->feed->room;
    uint64_t until = loop_clock_ns(room->loop) + SLICE_NS;
    while (c->checked < c->count && !c->dropped) {
        struct err err = {0};
        const struct feed_call *call = &c->calls[c->checked];
        int rc = room->ops->check_call(room->arg, call->data, call->len, &err);
        if (rc == ERR_DECODE) {
            err_set(&c->err, rc, "call %u: %s", c->checked, err.text);
            verified(c, false);
            return;
        }
        if (rc) {
            loop_timer_at(c->again, loop_now_ms(room->loop) + AGAIN_MS);
            return;
        }
        c->checked++;
        if (loop_clock_ns(room->loop) > until)
            break;
    }
    if (c->checked == c->count || c->dropped)
        verified(c, true);
    else
        next_slice(c);
}

static void next_slice(struct feed_copy_bytes *c)
{
    loop_post(c->feed->room->loop, &c->slice, check_slice);
}

static void on_again(void *arg)
{
    struct feed_copy_bytes *c = arg;
    check_slice(&c->slice);
}

static void on_verified(struct loop_work *w)
{
    struct feed_copy_bytes *c = CONTAINER_OF(w, struct feed_copy_bytes, work);
    if (c->err.code) {
        verified(c, false);
        return;
    }
    next_slice(c);
}

static void on_small(struct loop_task *task)
{
    struct feed_copy_bytes *c = CONTAINER_OF(task, struct feed_copy_bytes, slice);
    if (c->err.code)
        verified(c, false);
    else
        check_slice(task);
}

void feed__copy_verify(struct feed_copy_bytes *c, const struct feed_trailer *t)
{
    struct feed_room *room = c->feed->room;
    c->promised = t->count;
    memcpy(c->digest, t->digest, FEED_DIGEST);
    memcpy(c->signature, t->signature, FEED_SIGNATURE);
    c->again = loop_timer_new(room->loop, on_again, c);
    c->busy = true;
    if (c->body.len <= SMALL_BYTES) {
        verify(&c->work);
        loop_post(room->loop, &c->slice, on_small);
        return;
    }
    loop_work_start(room->loop, &c->work, verify, on_verified);
}

void feed__copy_store(struct feed_copy_bytes *c)
{
    struct feed *f = c->feed;
    PRE(!c->busy && c->epoch);
    c->busy = true;
    c->take = (struct feed_take){.account = f->account,
                                 .epoch = c->epoch,
                                 .feed = c->name,
                                 .number = c->number,
                                 .publisher = c->publisher,
                                 .digest = c->digest,
                                 .count = c->count,
                                 .calls = c->calls,
                                 .copy = c};
    f->room->ops->take(f->room->arg, &c->take);
}

void feed_take_done(struct feed_take *t, enum feed_stored outcome, int64_t last,
                    const struct err *err)
{
    struct feed_copy_bytes *c = t->copy;
    struct feed *f = c->feed;
    uint64_t id = c->id, session = c->session;
    bool dropped = c->dropped;
    INVARIANT(c->busy);
    c->busy = dropped; /* else the core drops it now */
    if (outcome != FEED_STORED)
        log_warn("feed.not_stored", "feed=%s number=%" PRId64 " code=%s text=\"%s\"", f->name,
                 c->number, err ? err_name(err->code) : "", err ? err->text : "");
    feed__step_why_of(
        f,
        &(struct feed_event){.type = FEED_EV_STORED,
                             .stored = {.copy = id, .outcome = outcome, .last = last}},
        session, err ? err->text : "");
    if (dropped)
        free_copy(c);
}

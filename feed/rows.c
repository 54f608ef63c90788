/* The feeds as the database has them: when they are read, and what changes with a read. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "feed_internal.h"

enum {
    READ_MS = 2000, /* how often to look for new and changed feeds */
    FIRST_MS = 50,  /* the first read failed, and publishers wait: again after this, then later */
    AGAIN_MS = 200, /* from one read to the next that publishers of unknown feeds cause */
};

static uint64_t number_of(const json_t *options, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(options, name));
}

/* Of the database, which has checked them. */
static struct feed_config config_of(struct feed_room *room, const char *options)
{
    json_t *o = json_loads(options, 0, NULL);
    struct feed_config c = {
        .persistence_ack_ms = (uint32_t)number_of(o, "persistence_ack_ms"),
        .stale_winner_ms = (uint32_t)number_of(o, "stale_winner_ms"),
        .resend_ms = (uint32_t)number_of(o, "resend_ms"),
        .duplicate_skip_window = (uint32_t)number_of(o, "duplicate_skip_window"),
        .behind_stays_open = number_of(o, "behind_stays_open") != 0,
        .batch_calls_max = (uint32_t)number_of(o, "batch_calls_max"),
        .batch_bytes_max = number_of(o, "batch_bytes_max"),
        .seed = loop_seed(room->loop),
    };
    json_decref(o);
    return c;
}

static void replace_text(char **text, const char *with)
{
    if (*text && !strcmp(*text, with))
        return;
    free(*text);
    *text = xstrdup(with);
}

static struct feed *add(struct feed_room *room, const struct feed_row *row)
{
    struct feed *f = xcalloc(1, sizeof(*f));
    struct feed_config config = config_of(room, row->options);
    f->room = room;
    f->name = xstrdup(row->name);
    f->options = xstrdup(row->options);
    f->account = row->account;
    f->core = feed_core_new(&config);
    f->end = FEED_END_NOT_LEADER;
    f->timer = loop_timer_new(room->loop, feed__tick, f);
    HASH_ADD_KEYPTR(hh, room->feeds, f->name, strlen(f->name), f);
    return f;
}

static void update(struct feed_room *room, const struct feed_row *row)
{
    struct feed *f;
    HASH_FIND_STR(room->feeds, row->name, f);
    if (!f)
        f = add(room, row);
    f->listed = true;
    f->row_last = row->last;
    f->paused = row->paused;
    f->account = row->account;
    f->publisher_count = 0;
    for (size_t i = 0; i < row->publisher_count && i < FEED_PUBLISHERS_MAX; i++)
        memcpy(f->publishers[f->publisher_count++], row->publishers + i * FEED_KEY, FEED_KEY);
    replace_text(&f->leader, row->leader);
    if (strcmp(f->options, row->options) != 0) {
        struct feed_config config = config_of(room, row->options);
        replace_text(&f->options, row->options);
        feed_core_options(f->core, &config);
        feed__arm(f);
    }
}

/* Answers the load that a read covers. */
static void answer_load(struct feed *f, bool failed)
{
    if (!f->load || f->load_after >= f->room->reads)
        return;
    uint64_t number = f->load;
    f->load = 0;
    feed__step(
        f, &(struct feed_event){.type = FEED_EV_LOADED,
                                .loaded = {.load = number, .failed = failed, .last = f->row_last}});
}

static void read_done(struct feed_room *room, bool failed)
{
    room->reading = false;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        answer_load(f, failed); /* one that is gone was left: it waits for none */
    for (struct feed_session *s = room->sessions; s; s = s->hh.next)
        feed__asked(s, failed);
    if (room->read_again)
        feed__read(room);
    else if (!room->closing)
        loop_timer_at(room->timer,
                      loop_now_ms(room->loop) +
                          (room->known ? READ_MS : backoff_next(&room->first, &room->rng)));
    feed__progress(room);
}

void feed_room_rows(struct feed_room *room, const struct feed_row *rows, size_t count)
{
    PRE(room->reading);
    room->known = true;
    for (struct feed *f = room->feeds; f; f = f->hh.next)
        f->listed = false;
    for (size_t i = 0; i < count; i++)
        update(room, &rows[i]);
    for (struct feed *f = room->feeds; f; f = f->hh.next) {
        feed__serve(f);
        feed__renew(f);
    }
    read_done(room, false);
}

void feed_room_no_rows(struct feed_room *room)
{
    PRE(room->reading);
    read_done(room, true);
}

void feed__read(struct feed_room *room)
{
    room->read_again = room->reading;
    if (room->reading || room->closing)
        return;
    room->reading = true;
    room->reads++;
    room->read_at = loop_now_ms(room->loop);
    loop_timer_stop(room->timer);
    room->ops->load(room->arg);
}

void feed__read_soon(struct feed_room *room)
{
    if (room->reading)
        room->read_again = true;
    else if (room->reads)
        loop_timer_at(room->timer, room->read_at + AGAIN_MS);
}

static void on_read(void *arg)
{
    feed__read(arg);
}

void feed__rows_begin(struct feed_room *room)
{
    room->first = (struct backoff){.base_ms = FIRST_MS, .cap_ms = READ_MS};
    room->timer = loop_timer_new(room->loop, on_read, room);
    loop_timer_at(room->timer, loop_now_ms(room->loop));
}

/* Events for many readers, pure: the ring that they share, where a reader begins, what it wants.
 *
 *   ends before `split`: the table      ends from `split` on: the ring
 *   ------------------------------------|------------------------------> time
 *
 * A reader that resumes reads the ends before `split` from the table, then the pending rows, and
 * then the ring. The ring has every event that is not older than recent_covers, so a reader whose
 * split is not older misses none. An end is read from one of the two. */
#ifndef HTTP_CORE_EVENTS_H
#define HTTP_CORE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EVENT_STATE_MAX = 24 };

struct recent_event {
    int64_t updated_us; /* by the database's clock */
    int64_t id;         /* 0: a filler */
    int64_t nonce;      /* -1: none */
    int32_t account;
    bool ended;
    bool removed;  /* from its nonce, without an end */
    bool passing;  /* a state between two others: the next event of its id replaces it */
    bool replaced; /* by the ring */
    char state[EVENT_STATE_MAX], outcome[EVENT_STATE_MAX]; /* "": none */
    char *text;                                            /* as it is sent */
    size_t len;
};

/* ---- the ring ---- */

struct recent;

struct recent *recent_new(size_t events_max, size_t bytes_max);
struct recent *recent_free(struct recent *r);
/* Copies it; the oldest ones make room. Its number is the recent_end before. If the ring holds a
 * passing event of the same id, that one is marked as replaced, and readers that have not read it
 * yet are not sent it: they get the newer event alone. */
void recent_put(struct recent *r, const struct recent_event *ev);
uint64_t recent_first(const struct recent *r); /* number of the oldest event; from 1 on */
uint64_t recent_end(const struct recent *r);   /* number of the next one */
const struct recent_event *recent_at(const struct recent *r,
                                     uint64_t number); /* first <= number < end */
/* From this time on each event is, or will be, in the ring. */
int64_t recent_covers(const struct recent *r);
void recent_cover_from(struct recent *r, int64_t us); /* never moves back */

/* ---- where a reader begins ---- */

/* What Last-Event-ID says: a position, and the number of an event of one ring. */
struct event_id {
    int64_t position_us;
    uint32_t ring;   /* 0: any; the position alone counts */
    uint64_t number; /* that was read */
};
enum { EVENT_ID_TEXT = 64 };
void event_id_put(const struct event_id *id, char out[EVENT_ID_TEXT]);
bool event_id_parse(const char *text, struct event_id *ret); /* only what event_id_put writes */

/* Does the ring go on right after this event? */
bool recent_resumes(const struct recent *r, uint32_t ring, const struct event_id *id);

/* The split of a reader for whom the table is complete before `complete_us`. INT64_MAX: the ring
 * does not reach back so far, so all ends are read from the table, and some perhaps twice. */
int64_t recent_split(const struct recent *r, int64_t complete_us);
/* Must a reader that joined when the ring ended at `joined` be sent this event? Of older events
 * only ends: the pending rows were read later. */
bool recent_is_new(const struct recent_event *ev, uint64_t number, uint64_t joined,
                   int64_t split_us);

/* ---- what a reader wants ---- */

struct event_filter {
    int32_t account;             /* 0: any */
    int64_t id;                  /* 0: any */
    char state[EVENT_STATE_MAX]; /* or outcome; "": any */
};
/* A replaced event is sent only to readers that filter by a state: the newer event has another
 * state, so they would miss the one that they asked for. */
bool event_wanted(const struct event_filter *f, const struct recent_event *ev);

/* How many ms pass before the readers are written to again, after this many writes and bytes. Each
 * write costs a system call, and wakes a reader. The longer the pause, the more events one write
 * carries, so the streams take a bounded share of the machine. */
uint64_t events_pause_ms(size_t writes, size_t bytes);

#endif

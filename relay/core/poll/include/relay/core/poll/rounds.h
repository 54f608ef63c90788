/* One question for all accounts that a relay leads, in place of two a second for each: a look at the table's
 * clock and applications, and the slow poll of the outbox. Pure cores; the door is service_rounds.c.
 *
 *   rounds   when is asked, and how many at a time: everybody's turn comes once a second, in slices of a
 * thousand, so that no answer that somebody waits for stands behind a long one calm     one account: may its
 * slow questions go unasked, because the rounds have it?
 *
 * A round asks nothing on an account's behalf that the account would not ask by itself, and what it finds is
 * only a reason to ask: everything is read again, under the epoch, by the account's own look or fetch. What a
 * manager or a wake-up wants for another reason than the time that has passed is asked at once, as ever. */
#ifndef RELAY_ROUNDS_H
#define RELAY_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROUND_MS = 1000,
    ROUND_PAUSE_MS = 200, /* after an answer that took too long, or none */
    ROUND_SLICE = 1000,   /* accounts in one question */
    /* After an answer: an account whose turn does not come again by then asks by itself. Where rounds take
     * longer, because database and relay have much to do, so many of them: thousands of questions more would
     * make them take longer still. */
    ROUND_COVER_MS = 3000,
    ROUND_COVER_TURNS = 3,
    ROUND_LOST_MS = 60000,  /* after a question: an answer that never comes must not end the asking */
    ROUND_AHEAD_MS = 10000, /* deadlines that are nearer are told */
    ROUND_REST_MS = 10000,  /* so long an account that is covered does not ask itself whether it is */
};

/* ---- when ---- */

struct rounds {
    bool out;
    uint64_t begun_ms, due_ms;
    uint32_t slices;
};

void rounds_init(struct rounds *r, uint64_t now, uint64_t seed);
/* How many of the accounts that are led to ask about now; 0: none. rounds_ended is to follow. */
size_t rounds_begin(struct rounds *r, uint64_t now, size_t led);
void rounds_ended(struct rounds *r, uint64_t now);
/* When to ask rounds_begin again; UINT64_MAX: after the end. */
uint64_t rounds_next(const struct rounds *r);

/* ---- one account ---- */

struct calm {
    int64_t mark;        /* of the facts that the manager was told last; -1: not known */
    uint64_t covered_ms; /* the rounds have it until then */
    uint64_t turn_ms;    /* they had it last; 0: never */
    uint64_t next_ms; /* the next time in the table that is known: then it asks by itself; UINT64_MAX: none */
    unsigned looks;   /* its own, on their way */
    bool wanted;      /* the manager waits for one */
};

void calm_reset(struct calm *c);
void calm_begin(struct calm *c, uint64_t now); /* led from now on: the rounds will come to it */

/* The outbox is to be polled because time passed. false: it need not be asked, and has nothing. */
bool calm_poll(const struct calm *c, uint64_t now);

/* The manager wants a look; slow: only because time passed. false: it need not be asked, and finds nothing.
 */
bool calm_look(struct calm *c, uint64_t now, bool slow);
/* Its answer; mark -1: it failed, and next_ms says nothing. next_ms as of the table (-1: none). */
void calm_looked(struct calm *c, uint64_t now, int64_t mark, int64_t next_ms);

/* A round asks about it. While that is on its way the account's own question would only stand behind it. */
void calm_asked(struct calm *c, uint64_t now);
/* The answer. look, ripe: it found a reason. Returns what to do. */
enum calm_effect { CALM_FX_NONE = 0, CALM_FX_LOOK = 1, CALM_FX_RING = 2 };
unsigned calm_round(struct calm *c, uint64_t asked, uint64_t now, bool look, bool ripe, int64_t next_ms);
void calm_round_failed(struct calm *c);

/* How long until the account asks by itself; UINT64_MAX: nothing in the table says when. */
uint64_t calm_left(const struct calm *c, uint64_t now);
/* The moment that a round told of, for a manager that rests; UINT64_MAX: none, or a look is on its way. */
uint64_t calm_deadline(const struct calm *c);
bool calm_due(struct calm *c, uint64_t now); /* it has come; says so once */

#endif

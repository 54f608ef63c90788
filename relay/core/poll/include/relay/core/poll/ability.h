/* Can this relay act for the accounts that it leads, and could another one? A pure core. A leader
 * whose endpoints serve it nothing gives its accounts up if another relay may do better.
 *
 * What shows that another one may: the highest block that the relays' nodes have heard of rises,
 * and this relay's node does not have it. Who submits nothing does not know whether its endpoint
 * takes submissions; there it is enough that another relay lives.
 *
 * Two relays that are equally bad give an account to each other. Each time a relay has given up, it
 * waits twice as long before it does so again, up to ABILITY_MOST_MS, until an endpoint has taken a
 * submission. So a relay gives up at most 7 times in the first 21 minutes of its lead, and once in
 * 11 minutes from then on. */
#ifndef RELAY_CORE_POLL_ABILITY_H
#define RELAY_CORE_POLL_ABILITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(LACK, name, what the log says) */
#define ABILITY_LACKS(X)                                                                           \
    X(NOTHING, "nothing", "")                                                                      \
    X(NO_ENDPOINT, "no_endpoint", "no endpoint of this relay is usable, and another relay's is")   \
    X(REFUSED, "refused", "no endpoint of this relay takes submissions, and another relay's may")  \
    X(BEHIND, "behind",                                                                            \
      "this relay's node lacks a block that the account waits for, and another relay's has it")    \
    X(STUCK, "stuck", "this relay's node hears of no new blocks, and another relay's does")

enum ability_lack {
#define X(LACK, name, text) ABILITY_LACKS_##LACK,
    ABILITY_LACKS(X)
#undef X
};

enum {
    ABILITY_FIRST_MS = 10000, /* a relay waits so long before it gives its accounts up */
    ABILITY_MOST_MS = 640000,
    ABILITY_AGAIN_MS = 3000, /* after this time without a lack it has what it lacked */
    ABILITY_REFUSALS = 3,    /* submissions in a row that the endpoint did not take */
};

/* As it is now. */
struct ability_seen {
    bool leads;           /* an account */
    bool ready;           /* an endpoint is usable */
    bool waits;           /* an account waits for a block that the endpoint lacks */
    uint64_t best;        /* the endpoint's best block */
    uint64_t others_best; /* the highest that any live relay has heard of, this one included */
    size_t members;       /* live relays, this one included */
};

struct ability {
    enum ability_lack lack;
    uint64_t since;       /* it lacks something; 0: nothing */
    uint64_t has_since;   /* it lacks nothing any more; 0: it does */
    uint64_t best;        /* at `since` */
    uint64_t others_best; /* at `since` */
    uint64_t patience_ms; /* 0: ABILITY_FIRST_MS */
    unsigned refusals;    /* submissions in a row that no endpoint took */
};

/* What a relay lacks to act, by a table. behind: another relay's node has more blocks. */
enum ability_lack ability_of(bool ready, bool refused, bool waits, bool behind);
const char *ability_name(enum ability_lack lack);
const char *ability_text(enum ability_lack lack);

/* A submission was answered. taken: the endpoint passed it to a pool, whatever that said of it. */
void ability_answer(struct ability *a, bool taken);

/* With each heartbeat. Other than ABILITY_LACKS_NOTHING: the relay gives its accounts up now. */
enum ability_lack ability_step(struct ability *a, uint64_t now, const struct ability_seen *seen);

#endif

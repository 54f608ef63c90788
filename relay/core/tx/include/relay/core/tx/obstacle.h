/* What keeps an account, a relay or a transaction from going on, for operators: one obstacle at a
 * time, the one that the others follow from. docs/obstacles.md explains each; the test
 * relay_manager_obstacle compares the two.
 *
 * These lists are all reasons that there are. Each has a test that makes it: relay_manager_obstacle
 * makes those of OBSTACLES, test/schema/test_obstacles.py and test/system/test_obstacles.py the
 * others; the last one names who makes each. Each of the three fails if one is left out. */
#ifndef RELAY_CORE_TX_OBSTACLE_H
#define RELAY_CORE_TX_OBSTACLE_H

#include <stdbool.h>
#include <stdint.h>

struct manager;

/* X(code, name): the name is in the table, in the log and in the status. In the order in which
 * they are looked for. */
#define OBSTACLES(X)                                                                               \
    X(OBSTACLE_WRITE, "write")                                                                     \
    X(OBSTACLE_READ, "read")                                                                       \
    X(OBSTACLE_NODE, "node")                                                                       \
    X(OBSTACLE_LOAD, "load")                                                                       \
    X(OBSTACLE_SUSPENDED, "suspended")                                                             \
    X(OBSTACLE_CONTRADICTED, "contradicted")                                                       \
    X(OBSTACLE_UNCONFIRMED, "unconfirmed")                                                         \
    X(OBSTACLE_LOST_COMMITS, "lost_commits")                                                       \
    X(OBSTACLE_BEHIND, "behind")                                                                   \
    X(OBSTACLE_QUESTION, "question")                                                               \
    X(OBSTACLE_GATE, "gate")                                                                       \
    X(OBSTACLE_NO_BLOCKS, "no_blocks")                                                             \
    X(OBSTACLE_FINALITY, "finality")                                                               \
    X(OBSTACLE_UNREAD, "unread")                                                                   \
    X(OBSTACLE_UNSEEN, "unseen")                                                                   \
    X(OBSTACLE_SIGNATURE, "signature")                                                             \
    X(OBSTACLE_GAP, "gap")                                                                         \
    X(OBSTACLE_REFUSED, "refused")                                                                 \
    X(OBSTACLE_HEAD, "head")                                                                       \
    X(OBSTACLE_POOL, "pool")                                                                       \
    X(OBSTACLE_PAUSED, "paused")                                                                   \
    X(OBSTACLE_PRESIGNED, "presigned")                                                             \
    X(OBSTACLE_ROW_HELD, "row_held")                                                               \
    X(OBSTACLE_FOREIGN_LOCK, "foreign_lock")                                                       \
    X(OBSTACLE_NO_LEADER, "no_leader")

/* What keeps a relay, whatever it leads: its process finds them, in this order, and NODE, which
 * keeps it from taking over, after CONTROL. Without its database it cannot say so there. */
#define RELAY_OBSTACLES(X)                                                                         \
    X(OBSTACLE_DATABASE, "database")                                                               \
    X(OBSTACLE_CONTROL, "control")                                                                 \
    X(OBSTACLE_LISTENER, "listener")                                                               \
    X(OBSTACLE_QUEUE, "queue")                                                                     \
    X(OBSTACLE_CLOCK, "clock")

/* What the database finds by itself: of accounts in the view blocked_accounts, of transactions in
 * the column waits. Leaders find some of them too, for the log and the status. X(name) */
#define DATABASE_OBSTACLES(X)                                                                      \
    X("paused")                                                                                    \
    X("payment")                                                                                   \
    X("signing")                                                                                   \
    X("reaped")                                                                                    \
    X("transaction_version")                                                                       \
    X("foreign_lock")                                                                              \
    X("no_leader")                                                                                 \
    X("row_held")                                                                                  \
    X("refused")                                                                                   \
    X("presigned")
#define TRANSACTION_OBSTACLES(X)                                                                   \
    X("not_before")                                                                                \
    X("site")                                                                                      \
    X("turn")                                                                                      \
    X("sent")                                                                                      \
    X("block")                                                                                     \
    X("final")                                                                                     \
    X("search")

enum obstacle_code {
    OBSTACLE_NONE,
#define X(code, name) code,
    OBSTACLES(X) RELAY_OBSTACLES(X)
#undef X
        OBSTACLE_CODES,
};
const char *obstacle_name(enum obstacle_code code); /* "" of none */
/* The views find it sooner than a leader can report it: it is never in the table, and neither is
 * what was there before. */
bool obstacle_is_in_views(enum obstacle_code code);

struct obstacle {
    enum obstacle_code code;
    char text[400]; /* printable ASCII; "" of none. Longer than the text of an error. */
};

/* What the manager of a leader sees at this moment. It never finds READ, CONTRADICTED, UNCONFIRMED,
 * PRESIGNED and ROW_HELD, which its adapter knows, and what only followers see: FOREIGN_LOCK and
 * NO_LEADER.
 * now: monotonic ms. */
void manager_obstacle(const struct manager *m, uint64_t now, struct obstacle *ret);

/* Which obstacles last. One that is over within seconds is not reported. One that lasts goes
 * into the log, each minute again, and into the table, and leaves the table soon after its end. */
enum {
    OBSTACLE_AFTER_MS = 5000, /* it lasts */
    OBSTACLE_CLEAR_MS = 2500, /* for this long there was none: it is over */
    OBSTACLE_AGAIN_MS = 60000,
    OBSTACLE_REFRESH_MS = 5000, /* between two writes while it lasts */
};

struct obstacle_track {
    struct obstacle now;  /* the last one that was seen; it may have ended */
    uint64_t since;       /* when it was seen first; 0: the account makes progress */
    uint64_t clear_since; /* nothing has been seen since then; 0: something is */
    uint64_t told_at;     /* 0: not told */
    uint64_t stored_at;   /* of the last write that began; 0: the table has none */
    bool unstored;        /* the table says something else */
};

enum obstacle_action { /* bits */
                       OBSTACLE_TELL = 1,
                       OBSTACLE_STORE =
                           2, /* `now`, or that there is none; obstacle_unstored if that fails */
                       OBSTACLE_OVER =
                           4, /* what the log has is over; `since` and `now` are those of before */
};

/* One look at it. OVER: the caller reads `now` and `since`, then calls obstacle_forget. */
unsigned obstacle_step(struct obstacle_track *t, uint64_t now, const struct obstacle *seen);
void obstacle_unstored(struct obstacle_track *t);
/* Also at a demotion: what this epoch stored means nothing any more. */
void obstacle_forget(struct obstacle_track *t);
/* It lasts: operators see it. */
bool obstacle_lasts(const struct obstacle_track *t);

#endif

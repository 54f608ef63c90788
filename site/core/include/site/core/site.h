/* The core of one account at one site: site_step(core, now, event) -> effects, without clock,
 * socket or SQL. The account has several sites, each with a database of its own. One state machine
 * has both roles:
 *
 * - The sender is the site whose outbox has a transaction. It delegates the transaction to the
 *   site that the selector names, verifies the bytes that this site proposes, and stores them:
 *   that is the grant. It alone decides what became of the transaction, by the finalized blocks
 *   of its own node.
 * - The coordinator gives nonces, has the bytes signed, proposes them to the senders, and stores
 *   and sends those that were granted: that is the dispatch.
 *
 * The signed bytes are the token. No site submits bytes before the sender has committed them, and
 * all bytes of a transaction that can still be included share one place (key and nonce). The sender
 * grants bytes at another place only when the finalized chain proves that the former ones are dead.
 * So two coordinators, repeated submissions, and messages that are lost, repeated or late do no
 * harm.
 *
 * The owner keeps the bytes; the core refers to them by their hash. The owner verifies the call and
 * the signature of bytes that a message carries, and reads key, nonce and death from them
 * (`valid`). It never uses a message's description of bytes. It commits the STORE effects of one
 * step in one database transaction and answers them with one STORED.
 *
 * site_table.c has the tables of states. docs/design.md shows them. */
#ifndef SITE_CORE_SITE_H
#define SITE_CORE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ring.h"
#include "site/core/selector.h"

struct buf;
struct site_core;

enum {
    SITE_MEMBERS_MAX = 32,
    SITE_HASH_BYTES = 32,
    SITE_NOBODY = -1,
};

/* The id of a filler: this bit and its nonce. */
#define SITE_FILLER (UINT64_C(1) << 63)

struct site_hash {
    uint8_t bytes[SITE_HASH_BYTES];
};

/* Signed bytes of one transaction. */
struct site_bytes {
    struct site_hash hash;
    uint32_t key; /* the member whose key signed them; 0 if all have the same key */
    uint64_t nonce;
    uint64_t death; /* the last height at which a block can include them */
};

struct site_config {
    ring_hash_fn *hash;
    uint8_t account[SELECTOR_ACCOUNT_BYTES];
    const char *const *names; /* of the members; copied */
    uint32_t members, self;   /* how many, and which one this site is */
    uint64_t life;            /* a random number, another one in every life of the leader */
    bool own_keys;            /* each member signs with a key of its own */
    bool sticky;              /* the coordinator changes only if it is silent, or if a preferred
                                 site has work; otherwise every `range_blocks` */
    bool silence_is_down;     /* silence alone demotes a site, without a probe */
    uint32_t range_blocks;    /* default 1000 */
    uint32_t approvals;       /* of other members, before a proposal; default 0 */
    uint32_t era_blocks;      /* longest life of granted bytes, counted from the finalized block;
                                 the same at all members. Default 64 */
    uint32_t beat_ms;         /* between heartbeats; default 1000 */
    uint32_t closing_beats;   /* that end a coordinator's work; default 3 */
    uint32_t silence_ms;      /* after which a site that owes a message is probed; default 5000 */
    uint32_t probe_ms;        /* time for the answer to a probe; default 2000 */
    uint32_t retry_ms;        /* until what was not acknowledged is sent again; default 1000 */
    uint32_t propose_ms;      /* time for the answer to a proposal; default 10000 */
    uint32_t elect_ms;        /* time for the handover of another coordinator; default 10000 */
    uint32_t blind_ms;        /* without a new block: this site cannot coordinate. Default 60000 */
    uint32_t own_send_ms;     /* until the sender itself sends what it granted; default 30000 */
    uint32_t hole_ms;         /* until a nonce that no transaction needs gets a filler; default
                                 2000 */
    uint32_t letter_ms;       /* for which a message that is not on record is sent again; default
                                 60000 */
    uint32_t flight_max;      /* transactions of a sender that are delegated; default 1000 */
    uint32_t work_max;        /* transactions at a coordinator; default 2000 */
    uint32_t window_max;      /* nonces that are given and not final; default 1000 */
    uint32_t batch_max;       /* items of a message; default 500 */
};

/* The states of the machine. */
enum site_state {
    SITE_IDLE,      /* nothing is in flight */
    SITE_OBSERVING, /* another site coordinates */
    SITE_ELECT,     /* this site is chosen, and another one has not handed over yet */
    SITE_PREPARED,  /* it has; its dispatched transactions are not all final, so nothing is
                       dispatched here but in holes below them */
    SITE_ACTIVE,    /* coordinates */
    SITE_FLUSH,     /* another is chosen; what is dispatched here is followed to its end */
    SITE_CLOSING,   /* all of that has ended; the last heartbeats */
};

/* The states of a transaction at its sender. */
enum site_tx_state {
    SITE_TX_WAITING,  /* no site coordinates it */
    SITE_TX_ASKED,    /* the delegation is not answered */
    SITE_TX_HELD,     /* the delegate has accepted it */
    SITE_TX_GRANTING, /* the grant is being stored */
    SITE_TX_GRANTED,  /* bytes are stored that may be included */
    SITE_TX_ENDING,   /* the end is being stored */
};

/* The states of a transaction at its coordinator. */
enum site_work_state {
    SITE_WORK_HELD,        /* it has no nonce */
    SITE_WORK_SIGNING,     /* it has one */
    SITE_WORK_APPROVING,   /* other members are asked */
    SITE_WORK_PROPOSED,    /* the sender is asked */
    SITE_WORK_GRANTED,     /* the sender has stored the bytes */
    SITE_WORK_DISPATCHING, /* the dispatch is being stored */
    SITE_WORK_DISPATCHED,  /* the point of no return */
};

enum site_message_type {
    SITE_MSG_DELEGATE, /* take these transactions; with live bytes if there are some */
    SITE_MSG_ACCEPTED,
    SITE_MSG_REFUSED,    /* with a reason */
    SITE_MSG_PROPOSE,    /* may these bytes be sent? */
    SITE_MSG_GRANT,      /* they are stored at the sender */
    SITE_MSG_DENY,       /* they are not, with a reason and the bytes that are in the way */
    SITE_MSG_DISPATCHED, /* they are stored at the coordinator */
    SITE_MSG_GONE,       /* the nonce of granted bytes was given to others */
    SITE_MSG_RETURNED,   /* the coordinator no longer works on it */
    SITE_MSG_REVERTED,   /* the dispatched bytes died */
    SITE_MSG_HANDOVER,   /* the dispatched bytes of the former coordinator */
    SITE_MSG_CLOSED,     /* none of them is open any more */
    SITE_MSG_APPROVE,    /* may the transaction be dispatched by this site? */
    SITE_MSG_APPROVED,
    SITE_MSG_DISAPPROVED,
    SITE_MSG_ACK,       /* of a GRANT, DISPATCHED, RETURNED, REVERTED, HANDOVER or CLOSED */
    SITE_MSG_HEARTBEAT, /* what is coordinated */
    SITE_MSG_PROBE,     /* are you there? */
    SITE_MSG_COUNT,
};

enum site_reason {
    SITE_REASON_NONE,
    SITE_REASON_NOT_CHOSEN, /* the refuser's height chooses another site */
    SITE_REASON_FULL,
    SITE_REASON_BLIND,   /* the site sees no new blocks */
    SITE_REASON_UNKNOWN, /* no such transaction, or it has ended */
    SITE_REASON_MOVED,   /* it is delegated to another site */
    SITE_REASON_INVALID, /* not its call, or a bad signature */
    SITE_REASON_ERA,     /* dead, or alive for too long */
    SITE_REASON_LIVE,    /* bytes at another place can still be included */
    SITE_REASON_WAIT,    /* the sender lost commits */
    SITE_REASON_COUNT,
};

/* One transaction or one set of bytes in a message. */
struct site_item {
    uint32_t sender; /* the member whose transaction it is */
    uint64_t id;     /* with SITE_FILLER: not a transaction */
    bool has_bytes;
    bool valid; /* by the receiver's owner: the bytes are there, with this call and signature */
    enum site_reason reason;
    enum site_message_type acked; /* ACK */
    enum site_work_state stage;   /* HEARTBEAT */
    struct site_bytes bytes;
};

struct site_message {
    enum site_message_type type;
    uint32_t from, to;
    uint64_t life;          /* of the sender's leader */
    uint64_t number;        /* of this message: rises during a life */
    uint64_t answers;       /* the number that it answers; 0: none */
    uint64_t height, final; /* that its sender sees */
    enum site_state state;
    uint32_t down; /* the members that its sender considers away */
    bool blind;
    const struct site_item *items;
    size_t count;
};

/* An extrinsic of a finalized block that used a nonce of the account, or of a member's. */
struct site_used {
    struct site_bytes bytes; /* death is not used */
    uint64_t id;             /* a transaction of this site with the same call; 0: none */
};

/* A transaction as the database of its sender has it. */
struct site_row {
    uint64_t id;
    const struct site_bytes *attempts; /* all that were ever granted */
    size_t count;
    bool cancel; /* an application wants it stopped */
};

/* A dispatch as the database of its coordinator has it. */
struct site_dispatch {
    uint32_t sender;
    uint64_t id;
    struct site_bytes bytes;
};

enum site_event_type {
    SITE_EV_LEAD,    /* this relay leads the account at this site */
    SITE_EV_LEAVE,   /* no longer */
    SITE_EV_LOADED,  /* answer to LOAD */
    SITE_EV_ROWS,    /* new rows of the outbox */
    SITE_EV_CANCEL,  /* stop a transaction */
    SITE_EV_HEAD,    /* a new best block */
    SITE_EV_FINAL,   /* the next finalized block */
    SITE_EV_MESSAGE, /* from another member */
    SITE_EV_SIGNED,  /* answers to SIGN */
    SITE_EV_STORED,  /* answer to the STORE effects of one step */
    SITE_EV_TICK,    /* site_due has come; spurious ones are allowed */
};

enum site_stored {
    SITE_STORED,
    SITE_STORED_LOST,    /* another relay leads the account */
    SITE_STORED_UNKNOWN, /* no answer, or it failed, and nothing of it is under way any more: what
                          * is stored has to be read. No later batch is answered */
};

struct site_event {
    enum site_event_type type;
    union {
        struct {
            uint64_t load;
            bool failed;
            bool lost;            /* the database lost commits, and no wait is on record */
            uint64_t wait_until;  /* on record; 0: none */
            uint64_t highest;     /* height that any relay of this site has heard of */
            uint64_t final;       /* the last finalized block whose outcomes are on record */
            const uint64_t *next; /* of each key: its nonce after that block */
            const struct site_row *rows;
            size_t row_count;
            const struct site_dispatch *dispatches;
            size_t dispatch_count;
        } loaded;
        struct {
            const uint64_t *ids;
            size_t count;
        } rows;
        uint64_t id; /* CANCEL */
        struct {
            uint64_t height;
            uint64_t next; /* the nonce of this site's key after the best block */
        } head;
        struct {
            uint64_t height;
            const uint64_t *next; /* of each key, after this block */
            const struct site_used *used;
            size_t count;
        } final;
        struct site_message message;
        struct {
            const struct site_item *items;
            size_t count;
        } signed_;
        struct {
            uint64_t batch;
            enum site_stored outcome;
        } stored;
    };
};

enum site_effect_type {
    SITE_FX_LOAD,           /* read the tables */
    SITE_FX_SEND,           /* a message */
    SITE_FX_SIGN,           /* sign the call of a transaction, or a filler */
    SITE_FX_SUBMIT,         /* send stored bytes to the node */
    SITE_FX_STORE_GRANT,    /* an attempt of a transaction of this site */
    SITE_FX_STORE_DISPATCH, /* an attempt of a transaction that this site coordinates */
    SITE_FX_STORE_NOTED,    /* the coordinator has dispatched these bytes */
    SITE_FX_STORE_DROP,     /* the dispatch is over: used or dead */
    SITE_FX_STORE_END,      /* how a transaction ended */
    SITE_FX_STORE_FINAL,    /* the finalized block up to which outcomes are on record */
    SITE_FX_STORE_WAIT,     /* nothing is granted or ended before this height was read */
};

enum site_end { SITE_OK, SITE_CANCELLED };

struct site_effect {
    enum site_effect_type type;
    uint64_t batch;  /* STORE; of LOAD, its number */
    uint32_t sender; /* whose transaction; STORE_GRANT: who proposed the bytes */
    uint64_t id;
    enum site_end end;
    uint64_t height;         /* STORE_FINAL, STORE_WAIT; SIGN: the death */
    struct site_bytes bytes; /* SIGN: key and nonce */
    struct site_message message;
};

/* Who coordinates, as this site sees it. */
struct site_view {
    enum site_state state;
    int chosen; /* SITE_NOBODY: nobody is available */
    uint64_t range;
    uint32_t down;  /* members that are considered away */
    uint64_t final; /* 0: the tables are not read */
    uint64_t wait_until;
    size_t rows, work, dispatched, granted;
    bool waits; /* commits were lost */
};

/* The moves that were made: of the machine, of transactions, of work. */
struct site_moves {
    uint64_t machine, tx, work;
};

struct site_counts {
    uint64_t sent[SITE_MSG_COUNT], items[SITE_MSG_COUNT];
    uint64_t refused[SITE_REASON_COUNT]; /* delegations and proposals that this site refused */
    uint64_t demoted, adopted, fillers;
};

struct site_config site_config_filled(const struct site_config *config); /* defaults for zeros */
struct site_core *site_core_new(const struct site_config *config);       /* zeros = defaults */
struct site_core *site_core_free(struct site_core *c);

/* Effects are valid until the next step. */
void site_step(struct site_core *c, uint64_t now, const struct site_event *ev,
               const struct site_effect **ret_effects, size_t *ret_count);

/* When to send a TICK; UINT64_MAX: never. */
uint64_t site_due(const struct site_core *c, uint64_t now);

void site_core_view(const struct site_core *c, struct site_view *ret);
/* A transaction of this site that has not ended, or one that this site coordinates. */
bool site_core_knows(struct site_core *c, uint32_t sender, uint64_t id);
const struct site_counts *site_core_counts(const struct site_core *c);

const char *site_state_name(enum site_state state);         /* "ACTIVE" */
const char *site_message_name(enum site_message_type type); /* "delegate" */
const char *site_reason_name(enum site_reason reason);      /* "not chosen" */

void site_state_dump(struct buf *out); /* the machine as a diagram */
void site_tx_dump(struct buf *out);    /* a transaction at its sender */
void site_work_dump(struct buf *out);  /* a transaction at its coordinator */
struct site_moves site_core_moved(const struct site_core *c);
void site_core_missing(const struct site_moves *moved, struct buf *out);

/* The last step made a move that no table has: which one. NULL, as ever: none. The step decided
 * nothing, and the tables are read again. */
const char *site_core_bug(const struct site_core *c);
/* What contradicts itself in the core; NULL: nothing. The simulation asks after every step. */
const char *site_core_check(const struct site_core *c);

#endif

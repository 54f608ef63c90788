/* Private to relay/sites/: accounts that have several sites. In place of their managers
 * the room of sites (site/room.h) decides; these files are its host.
 *
 *   sites_room.c     the room: which accounts, its life
 *   sites_config.c   values that can never be right
 *   sites_lead.c     who leads; requests of the database; what operators see
 *   sites_chain.c    heads and finalized blocks
 *   sites_anchors.c  hashes of blocks that eras name
 *   sites_best.c     blocks that are not final
 *   sites_bytes.c    eras; signing, and reading what other sites have signed
 *   sites_submit.c   what goes to the node
 *   sites_refused.c  what nodes refuse
 *   sites_poll.c     rows of the outbox
 *
 * An account at a site, while this relay leads it:
 *
 *   AWAY --promoted--> BLOCK --a finalized block--> SETUP --stored--> LED
 *                        ^                            | refused, or the database is away
 *                        +----------------------------+
 */
#ifndef RELAY_SITES_H
#define RELAY_SITES_H

#include "relay/sites_config.h"
#include "service/entry.h"
#include "service/service_internal.h"
#include "site/room.h"
#include "site/tables/tables.h"
#include "store/sites.h"

enum {
    ANCHOR_BEHIND = 8, /* eras begin this many blocks below the last one that was read: the nodes
                           of other sites have it too */
    ANCHORS_MORE = 64, /* above the era */
    POLL_ROWS = 500,
    ROWS_MAX = 10000, /* in memory: more are polled when some have ended */
};

enum host_phase { HOST_AWAY, HOST_BLOCK, HOST_SETUP, HOST_LED };

/* A block that was read, while it may be the first one of an era. */
struct site_anchor {
    bool known;
    uint64_t number;
    uint8_t hash[32];
};

/* Blocks of the best chain that are being read. */
struct sites_best {
    struct site_host *host;
    struct node_ask ask;
    struct buf all;                /* of all extrinsics: not used */
    bool asking, behind, nameless; /* behind: a newer head came meanwhile */
    int64_t epoch;
    uint8_t (*hashes)[32];
    size_t count, room;
    struct site_tables_seen *seen;
    size_t seen_count, seen_room;
};

struct site_block;
struct site_refusal;
struct site_signing;
struct site_submit;

/* An account that has sites. */
struct site_host {
    struct service_sites_room *room;
    struct account *account;
    const struct sites_account *config;
    uint32_t self, era_blocks;
    struct site_account *site; /* these two: NULL: the room is not open */
    struct site_tables *tables;
    enum host_phase phase;
    int64_t epoch; /* 0: it is not led */
    struct store_site_setup setup;
    bool setting_up;   /* it is out */
    uint64_t setup_at; /* not before */
    struct store_site_member *members;
    int64_t *setup_next;
    char trouble[200]; /* why it does not come to LED, or cannot go on; "": nothing */
    /* sites_chain.c */
    struct site_anchor *anchors; /* a ring */
    size_t anchor_count;
    bool reading; /* `read` and `next` are known; block 0 may be the last one */
    /* The block that showed that the chain removed the account, whose nonces begin again: nothing
     * is signed, granted or sent. 0: none did. */
    uint64_t reaped;
    char reaped_text[200];
    uint64_t read, next; /* the last block that was given to the room, the nonce after it */
    struct site_block *blocks, **last; /* that wait for what their calls match */
    struct node_ask nonce_ask;
    bool asking;
    uint64_t best_next; /* the nonce at the best block */
    struct sites_best best;
    struct loop_timer *again; /* a block is asked for again; NULL: closed */
    /* sites_bytes.c: what was signed, until the room receives it */
    struct site_signing *signings, **signings_last;
    struct loop_task sign_task;
    struct {
        size_t count; /* since the last line in the log */
        uint64_t nonce, tell_at;
        struct err err; /* of the last one, as the nonce is */
    } not_signed;
    /* sites_poll.c: questions of the scheduler, by what they ask for */
    uint64_t waiting[2], asked[2];
    /* sites_submit.c */
    struct site_submit *submits; /* uthash by hash */
    /* sites_refused.c */
    struct site_refusal *refusals; /* uthash by nonce */
    bool refusals_untold;          /* the task is posted */
    bool alerted;                  /* of one, and it is not over */
    struct loop_task refusals_task;
    /* what operators saw last */
    struct store_site_note note;
    bool noting;
    int seen_state; /* enum site_state; -1: none */
    int seen_chosen;
    uint32_t seen_down;
    char reason[120];
};

struct service_sites_room {
    struct room room;
    const struct sites_config *config;
    struct entry entry;
    struct site_room *sites;   /* NULL: it is not open */
    struct store_sites *store; /* NULL: the accounts are not registered yet, or it is closed */
    struct site_host *hosts;
    size_t host_count;
};

/* sites_lead.c */
extern const struct site_host_ops sites_host_ops;
void sites_leave(struct site_host *h);
void sites_begin_again(struct site_host *h); /* the timer `again`, while nothing is read */
void sites_failed(void *arg, const char *request, const struct err *err);
void sites_lost(struct site_host *h, int code); /* a request failed: is it another relay's now? */
void sites_setup(struct site_host *h, uint64_t final, uint64_t next);
/* Did the chain remove the account in this block? used: above the nonces that were used by then. */
void sites_look_for_life(struct site_host *h, const struct node_block *from, uint64_t used);
void sites_look(struct site_host *h); /* show operators who coordinates, if that has changed */

/* sites_chain.c */
void sites_chain_again(void *arg);
void sites_chain_loaded(void *arg, uint64_t final, const uint64_t *next);
void sites_chain_forget(struct site_host *h); /* what was read is read again after the next load */
void sites_head(struct site_host *h);         /* a new best block */
bool sites_waits(const struct site_host *h);  /* after lost commits */

/* sites_anchors.c */
bool sites_anchor(const struct site_host *h, uint64_t number, uint8_t ret_hash[32]);
/* The first block that is wanted to read `number` and what was signed before it. */
uint64_t sites_first_wanted(const struct site_host *h, uint64_t number);

/* sites_best.c */
void sites_best(struct site_host *h); /* the best chain has changed */
void sites_best_free(struct site_host *h);

/* sites_bytes.c: operations of the room */
void sites_sign(void *arg, struct site_account *a, const struct site_room_sign *s);
bool sites_read(void *arg, struct site_account *a, uint64_t own, const uint8_t *data, size_t len,
                const uint8_t *call, size_t call_len, struct site_bytes *ret);
void sites_sign_end(struct site_host *h);
void sites_describe(void *arg, const uint8_t *data, size_t len, struct store_site_write *ret,
                    char ret_tip[40]);

/* sites_submit.c */
void sites_submit(void *arg, struct site_account *a, const struct site_signed *attempt);
void sites_submit_end(struct site_host *h);

/* sites_refused.c */
void sites_answered(struct site_host *h, uint64_t nonce, const uint8_t hash[SITE_HASH_BYTES],
                    const struct rpc_call *call);
void sites_taken(struct site_host *h, uint64_t nonce);         /* it is in a pool, or in a block */
void sites_refused_below(struct site_host *h, uint64_t nonce); /* they are used */
void sites_refused_end(struct site_host *h);
bool sites_refused(const struct site_host *h, struct obstacle *ret); /* false: nothing is */

/* sites_poll.c */
void sites_want(struct site_host *h); /* rows, if there is room for them */
void sites_polled(void *arg, size_t count, int64_t next_ms);
void sites_poll_failed(struct site_host *h, bool refused);

#endif

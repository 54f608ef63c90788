/* Private to the core of sites: its data, and what its files call of each other. */
#ifndef SITE_CORE_SITE_INTERNAL_H
#define SITE_CORE_SITE_INTERNAL_H

#include "base/sm.h"
#include "base/table.h"
#include "site/core/site.h"

#define SITE_NEVER UINT64_MAX

struct site_member {
    uint64_t heard_at; /* its last message; 0: none */
    uint64_t beat_at;  /* of its last heartbeat; 0: none */
    enum site_state state;
    uint64_t owes_since; /* since when an answer of it is missing; SITE_NEVER: none is */
    uint64_t probe_at;   /* when it was asked whether it is there; 0: not */
    bool height_known;   /* since commits were lost here: it said how high it is */
};

struct site_grant {
    struct site_bytes bytes;
    uint32_t delegate; /* who proposed them */
    bool stored;
};

/* A transaction of this site. */
struct site_tx {
    uint64_t id;
    enum site_tx_state state;
    int delegate;
    uint64_t asked;          /* number of the delegation */
    uint64_t life, accepted; /* of the message that accepted it */
    uint64_t retry_at;
    uint64_t wait_range; /* the delegate sees this range already, and this site does not */
    uint64_t send_at;    /* when this site sends its granted bytes itself */
    bool acked;          /* the delegate has the granted bytes */
    bool again;          /* it has not, or no longer: delegate the bytes once more */
    bool cancel;
    struct site_grant *grants;
    size_t grant_count, grant_cap;
    UT_hash_handle hh;
};

/* A transaction that this site coordinates. */
struct site_work_key {
    uint64_t sender, id;
};

struct site_work {
    struct site_work_key key;
    enum site_work_state state;
    struct site_bytes bytes; /* from SIGNING on: key and nonce */
    bool included;           /* a finalized block has them */
    bool told;               /* the sender has acknowledged the dispatch */
    uint32_t stay;           /* members that the sender cannot reach and this site can */
    uint32_t approvals;      /* a bit for each member that approved */
    uint64_t since;          /* PROPOSED, APPROVING */
    uint64_t retry_at;
    uint64_t send_at; /* DISPATCHED */
    UT_hash_handle hh;
};

/* Bytes at a nonce of this line that another site dispatched. */
struct site_foreign {
    uint32_t from;
    struct site_bytes bytes;
};

/* A message that is sent again until it is acknowledged. What it says follows from the tables, so
 * it is not on record itself. */
struct site_letter {
    enum site_message_type type;
    uint32_t to;
    struct site_item item;
    uint64_t retry_at, until;
};

struct site_out {
    enum site_message_type type;
    uint32_t to;
    uint64_t number, answers;
    struct site_item *items;
    size_t count, cap;
};

/* A STORE effect whose answer is missing. */
struct site_write {
    uint64_t batch;
    enum site_effect_type type;
    uint32_t sender;
    uint64_t id;
    struct site_bytes bytes;
};

struct site_core {
    struct site_config config;
    struct ring *ring;
    struct site_member members[SITE_MEMBERS_MAX];
    uint64_t ranked; /* the range of `order` */
    bool ranked_ever;
    size_t order[SITE_MEMBERS_MAX];
    uint32_t down; /* members that are considered away */
    uint32_t owed; /* members whose answer a transaction waits for, as of the last review */

    uint32_t asked_by; /* members that probed in this step */
    int chosen;        /* as of the last review */

    bool led, loaded;
    uint64_t loads, load_at; /* load_at: when to try again; SITE_NEVER: it is under way or done */
    enum site_state state;
    uint64_t state_at; /* since when */
    uint64_t beat_at;  /* of the next heartbeat */
    uint32_t beats;    /* CLOSING: that were sent */

    uint64_t height, head_at; /* best block, and when it came; head_at 0: none yet */
    uint64_t next;            /* nonce of this site's key after it */
    uint64_t final;
    uint64_t final_next[SITE_MEMBERS_MAX];

    bool lost; /* commits were lost, and the wait is not on record yet */
    bool wait_stored;
    uint64_t lost_at, highest, wait_until;

    struct site_tx *txs;
    struct site_work *works;
    size_t held; /* works without a nonce */
    struct site_foreign *foreign;
    size_t foreign_count, foreign_cap;
    uint64_t above;         /* of a planted fault: the line begins here */
    uint64_t hole, hole_at; /* a nonce that nobody needs, and since when; hole_at 0: none */

    struct site_letter *letters;
    size_t letter_count, letter_cap;
    struct site_out *outs;
    size_t out_count, out_cap;
    uint64_t number;
    struct site_write *writes;
    size_t write_count, write_cap;
    uint64_t batch;
    bool batch_used;

    struct sm_trace machine_moves, tx_moves, work_moves;
    char bug[SM_BUG_MAX]; /* of the last step; "": none */
    uint64_t stray;       /* batches up to this one were sent before a bug: nothing follows */
    uint64_t moves;       /* how many were made: a review after each */
    bool more;            /* the last review did not come to an end */
    struct site_counts counts;
    struct site_effect *effects;
    size_t effect_count, effect_cap;
};

static inline bool site__same(const struct site_hash *a, const struct site_hash *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- site.c ---- */

/* Everything but the chain's heights: this relay no longer leads, or reads the tables again. */
void site__clear(struct site_core *c);
/* Reads the tables again: what is stored is not known. */
void site__reload(struct site_core *c);
void site__stray_stored(struct site_core *c, uint64_t batch); /* see `stray` */

/* ---- site_store.c: effects ---- */

struct site_effect *site__emit(struct site_core *c, enum site_effect_type type);
/* A STORE effect; its answer is looked up later. `bytes` may be NULL. */
struct site_effect *site__store(struct site_core *c, enum site_effect_type type, uint32_t sender,
                                uint64_t id, const struct site_bytes *bytes);
void site__submit(struct site_core *c, const struct site_bytes *bytes);
void site__on_stored(struct site_core *c, uint64_t now, const struct site_event *ev);

/* ---- site_post.c: messages ---- */

/* Adds an item to a message that leaves at the end of the step; returns the message's number. */
uint64_t site__put(struct site_core *c, enum site_message_type type, uint32_t to, uint64_t answers,
                   const struct site_item *item);
/* The same, again until it is acknowledged. */
void site__letter(struct site_core *c, uint64_t now, enum site_message_type type, uint32_t to,
                  const struct site_item *item);
void site__acknowledge(struct site_core *c, const struct site_message *m,
                       const struct site_item *item);
void site__acked(struct site_core *c, uint32_t from, const struct site_item *item);
void site__resend_letters(struct site_core *c, uint64_t now);
void site__forget_letters(struct site_core *c);
void site__flush(struct site_core *c, uint64_t now);

/* ---- site_view.c: who is there, and who is chosen ---- */

uint64_t site__range(const struct site_core *c);
bool site__blind(const struct site_core *c, uint64_t now);
void site__hear(struct site_core *c, uint64_t now, const struct site_message *m);
/* A sender cannot reach these members: those that are silent here too are away. Returns the
 * others. */
uint32_t site__adopt_view(struct site_core *c, uint64_t now, uint32_t down);
/* This member owes an answer from now on. */
void site__owes(struct site_core *c, uint64_t now, int member);
void site__owes_nothing(struct site_core *c, uint32_t members);
void site__review_members(struct site_core *c, uint64_t now);
/* It sent a heartbeat as a coordinator within the silence. */
bool site__coordinates(const struct site_core *c, uint64_t now, size_t member);
/* The member that is chosen if those of `away` are away too. */
int site__choose(struct site_core *c, uint64_t now, uint32_t away);
bool site__leads(struct site_core *c, uint64_t now, uint32_t away);

/* ---- site_machine.c ---- */

void site__review_machine(struct site_core *c, uint64_t now);
void site__beat_to(struct site_core *c, uint32_t to);
void site__beat(struct site_core *c, uint64_t now);
void site__leave(struct site_core *c);
bool site__is_coordinator(const struct site_core *c); /* ELECT .. ACTIVE */

/* ---- site_row.c: the transactions of this site ---- */

struct site_tx *site__tx(struct site_core *c, uint64_t id);
struct site_tx *site__add_tx(struct site_core *c, uint64_t id);
void site__load_row(struct site_core *c, const struct site_row *row);
void site__remove_tx(struct site_core *c, struct site_tx *t);
void site__free_txs(struct site_core *c);
size_t site__open_rows(const struct site_core *c);
/* No block that can still come has these bytes. */
bool site__dead(const struct site_core *c, const struct site_bytes *bytes);
struct site_grant *site__add_grant(struct site_tx *t, const struct site_bytes *bytes,
                                   uint32_t delegate);
struct site_grant *site__grant_of(struct site_tx *t, const struct site_hash *hash);
/* The newest bytes that may be included and are stored; NULL: none. */
struct site_grant *site__live_grant(const struct site_core *c, const struct site_tx *t);

/* ---- site_grant.c ---- */

/* May these bytes be sent? Stores the grant, or answers. */
void site__consider(struct site_core *c, uint64_t now, uint32_t from, uint64_t number,
                    const struct site_item *item);
void site__on_granted(struct site_core *c, uint64_t now, const struct site_write *w);

/* ---- site_end.c ---- */

bool site__waits(const struct site_core *c); /* commits were lost */
void site__lost(struct site_core *c, uint64_t now, uint64_t highest);
/* The first word of each member after the loss: it may have heard of a higher block. */
void site__height_of(struct site_core *c, uint32_t member, uint64_t height);
void site__review_lost(struct site_core *c, uint64_t now);
void site__end(struct site_core *c, struct site_tx *t, enum site_end how,
               const struct site_bytes *bytes);
void site__ended(struct site_core *c, uint64_t id);
void site__on_final_rows(struct site_core *c, const struct site_event *ev);
void site__best_end(struct site_core *c); /* of a planted fault */

/* ---- site_told.c ---- */

void site__on_sender_message(struct site_core *c, uint64_t now, const struct site_message *m);
void site__back_to_waiting(struct site_core *c, struct site_tx *t, uint64_t retry_at);

/* ---- site_sender.c ---- */

void site__review_sender(struct site_core *c, uint64_t now);

/* ---- site_work.c: what this site coordinates ---- */

struct site_work *site__work(struct site_core *c, uint32_t sender, uint64_t id);
struct site_work *site__begin_work(struct site_core *c, uint32_t sender, uint64_t id,
                                   enum site_work_state state);
void site__load_dispatch(struct site_core *c, const struct site_dispatch *d);
void site__drop_work(struct site_core *c, struct site_work *w);
void site__work_state(struct site_core *c, struct site_work *w, enum site_work_state to);
void site__free_works(struct site_core *c);
bool site__is_filler(const struct site_work *w);
struct site_item site__item_of(const struct site_work *w);
/* To the sender, which may be this site: then it follows from the tables. */
void site__report(struct site_core *c, enum site_message_type type, const struct site_work *w);

/* ---- site_accept.c ---- */

/* A delegation of this or another site. */
void site__accept(struct site_core *c, uint64_t now, const struct site_message *m,
                  const struct site_item *item);
void site__granted(struct site_core *c, uint32_t from, const struct site_item *item);
void site__denied(struct site_core *c, uint32_t from, const struct site_item *item);

/* ---- site_sign.c ---- */

void site__signed(struct site_core *c, uint64_t now, const struct site_item *item);
void site__ask_approval(struct site_core *c, uint64_t now, struct site_work *w);
void site__approval(struct site_core *c, uint64_t now, uint32_t from, const struct site_item *item);
/* Another member asks: by this site's height, is that member the coordinator? */
void site__approve(struct site_core *c, uint64_t now, const struct site_message *m,
                   const struct site_item *item);

/* ---- site_dispatch.c ---- */

void site__sent(struct site_core *c, uint64_t now, struct site_work *w);
void site__on_dispatched(struct site_core *c, uint64_t now, const struct site_write *w);
void site__on_final_works(struct site_core *c, const struct site_event *ev);
/* The bytes of a work can no longer be included, or are. */
void site__over(struct site_core *c, uint64_t now, struct site_work *w);

/* ---- site_coordinator.c ---- */

void site__on_coordinator_message(struct site_core *c, uint64_t now, const struct site_message *m);
void site__review_coordinator(struct site_core *c, uint64_t now);

/* ---- site_line.c: nonces ---- */

uint32_t site__key(const struct site_core *c); /* of this site */
bool site__in_line(const struct site_core *c, const struct site_work *w);
/* The work at this nonce; NULL: none. */
struct site_work *site__at(struct site_core *c, uint64_t nonce);
void site__foreign(struct site_core *c, uint32_t from, const struct site_item *item);
void site__forget_foreign(struct site_core *c, uint32_t from); /* all of this member's */
void site__review_foreign(struct site_core *c);
/* Gives nonces to works that have none, the lowest free one first, and fillers to holes. */
void site__give_nonces(struct site_core *c, uint64_t now);
/* Stores the dispatch of what is granted, as far as nothing below is open. */
void site__dispatch(struct site_core *c);

/* ---- site_table.c ---- */

/* The only ways to change a state: they check the tables. */
void site__move(struct site_core *c, uint64_t now, enum site_state to);
void site__move_tx(struct site_core *c, struct site_tx *t, enum site_tx_state to);
void site__move_work(struct site_core *c, struct site_work *w, enum site_work_state to);
void site__tx_begins(struct site_core *c, enum site_tx_state to);
void site__tx_ends(struct site_core *c, enum site_tx_state from);
void site__work_begins(struct site_core *c, enum site_work_state to);
void site__work_ends(struct site_core *c, enum site_work_state from);
bool site__illegal(const struct site_core *c); /* this step made a move that no table has */
void site__forgive(struct site_core *c);       /* records it in `bug`; the tables are read again */

#endif

/* The sites of one relay: for each account that has several sites, the core (site/core/site.h), the
 * bytes that it knows by their hash alone, and its messages on the links (site/link/link.h). The
 * host, a relay, has everything else: the tables, the keys and the node.
 *
 *   other sites --> site/link        load, store, sign, submit, read <-- site_host_ops
 *                       |
 *                 room: cores, bytes and calls, timers
 *                       |
 *   host        --> site_account_*
 *
 * Only the relay that leads the account at this site speaks for it: the others refuse messages and
 * name the leader. The host answers from the loop, never inside an operation. */
#ifndef SITE_ROOM_H
#define SITE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "site/core/site.h"
#include "site/link/link.h"

struct site_room;
struct site_account;

/* Signed bytes with what was read from them. */
struct site_signed {
    struct site_bytes bytes;
    const uint8_t *data; /* NULL: they are known by their hash alone */
    size_t len;
};

/* A transaction of this site. */
struct site_room_row {
    uint64_t id;
    const uint8_t *call;
    size_t call_len;
    struct site_terms terms;
    bool cancel;
    const struct site_signed *attempts; /* that may be included */
    size_t count;
};

struct site_room_dispatch {
    uint32_t sender;
    uint64_t id;
    struct site_signed attempt;
};

/* What became of a `sign`. */
struct site_room_signed {
    uint32_t sender;
    uint64_t id;
    struct site_signed attempt; /* data: NULL: it was not signed */
};

struct site_room_loaded {
    bool lost; /* the fields of SITE_EV_LOADED */
    uint64_t wait_until, highest, final;
    const uint64_t *next;
    const struct site_room_row *rows;
    size_t row_count;
    const struct site_room_dispatch *dispatches;
    size_t dispatch_count;
};

/* A STORE effect of the core with its bytes. */
struct site_room_write {
    enum site_effect_type type;
    uint32_t sender; /* of a grant: who proposed the bytes */
    uint64_t id;
    enum site_end end;
    uint64_t height;
    struct site_signed attempt;
};

struct site_room_sign {
    uint32_t sender;
    uint64_t id;
    const uint8_t *call; /* NULL: a filler's, which the host chooses */
    size_t call_len;
    uint32_t key;
    uint64_t nonce, death; /* and the era ends by the last block that may include it */
    u128 tip;
};

struct site_host_ops {
    /* site_account_loaded follows, with this number. */
    void (*load)(void *arg, struct site_account *a, uint64_t load);
    /* Commits all writes in one database transaction; site_account_stored follows. Borrowed. */
    void (*store)(void *arg, struct site_account *a, uint64_t batch,
                  const struct site_room_write *writes, size_t count);
    /* site_account_signed follows. Borrowed. */
    void (*sign)(void *arg, struct site_account *a, const struct site_room_sign *s);
    /* Sends the bytes to the node. There is no answer: blocks show the result. Borrowed. */
    void (*submit)(void *arg, struct site_account *a, const struct site_signed *attempt);
    /* Reads bytes that another site sent. false: they are not an extrinsic of this account with
     * this call and a signature of one of its keys, or they may not be included. own: the
     * transaction of this site that they are of; 0: it is another site's. */
    bool (*read)(void *arg, struct site_account *a, uint64_t own, const uint8_t *data, size_t len,
                 const uint8_t *call, size_t call_len, struct site_bytes *ret);
    /* HOST:PORT of the relay of this site that leads the account; "": not known. */
    const char *(*leader)(void *arg, struct site_account *a);
    /* An event of the links: struct site_links_config. */
    void (*note)(void *arg, enum site_links_note note, size_t peer, const char *text);
};

/* `links`: without its callbacks. NULL: err (ERR_CONFIG or ERR_IO) says what is wrong. */
struct site_room *site_room_open(struct loop *l, const struct site_links_config *links,
                                 const struct site_host_ops *ops, void *arg, struct err *err);
struct site_links *site_room_links(struct site_room *r);
/* Closes immediately: pending operations get no answer, and no operation follows. */
struct site_room *site_room_close(struct site_room *r);

/* An account that has sites: `config.names` are in the order of their names, `config.self` is the
 * name of the links' site, and the others are peers of the links. NULL: err (ERR_CONFIG). */
struct site_account *site_room_add(struct site_room *r, const struct site_config *config, void *ctx,
                                   struct err *err);
void *site_account_ctx(const struct site_account *a);

/* This relay leads the account at this site, or does not any more. */
void site_account_lead(struct site_account *a, bool leads);
/* loaded: NULL: the load failed. An answer to an older load is ignored. */
void site_account_loaded(struct site_account *a, uint64_t load,
                         const struct site_room_loaded *loaded);
void site_account_rows(struct site_account *a, const struct site_room_row *rows, size_t count);
void site_account_cancel(struct site_account *a, uint64_t id);
void site_account_head(struct site_account *a, uint64_t height, uint64_t next);
void site_account_final(struct site_account *a, uint64_t height, const uint64_t *next,
                        const struct site_used *used, size_t count);
/* Give many at a time: what follows from one call is one database transaction, and one message for
 * each site. */
void site_account_signed(struct site_account *a, const struct site_room_signed *all, size_t count);
void site_account_stored(struct site_account *a, uint64_t batch, enum site_stored outcome);

struct site_account_view {
    struct site_view core;
    const char *chosen; /* the name of the site that is chosen; NULL: nobody */
    size_t kept_bytes;  /* calls and extrinsics in memory */
};
void site_account_view(const struct site_account *a, struct site_account_view *ret);
/* Bytes of a transaction of this site, or of one that it coordinates. */
bool site_account_has(const struct site_account *a, const uint8_t hash[SITE_HASH_BYTES]);
const struct site_counts *site_account_counts(const struct site_account *a);

struct buf;
struct metric;
typedef const char *site_name_fn(const struct site_account *a);
/* Prometheus' text. name: by which operators know an account. */
void site_room_metrics(const struct site_room *r, site_name_fn *name, struct buf *out);
const struct metric *site_metric(size_t i); /* its metrics; NULL after the last one */

#endif

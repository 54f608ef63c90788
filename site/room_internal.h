/* Private to the room of sites.
 *
 *   room.c   accounts, steps of their cores, effects
 *   cache.c  calls and signed bytes that the cores know by name
 *   mail.c   messages between cores and links */
#ifndef SITE_ROOM_INTERNAL_H
#define SITE_ROOM_INTERNAL_H

#include "base/table.h"
#include "site/room.h"

enum { KEPT_BYTES_MAX = 256 << 20 }; /* of an account */

struct kept_key {
    uint64_t sender, id;
};

/* The call of a transaction. */
struct kept_call {
    struct kept_key key;
    uint8_t *data;
    size_t len;
    struct site_terms terms;
    UT_hash_handle hh;
};

struct kept_bytes {
    struct site_bytes bytes; /* the hash is the key */
    uint8_t *data;
    size_t len;
    UT_hash_handle hh;
};

struct site_account {
    struct site_room *room;
    struct site_account *next;
    void *ctx;
    struct site_core *core;
    struct loop_timer *timer;
    uint8_t id[SELECTOR_ACCOUNT_BYTES];
    uint64_t committee;
    struct site_wire_settings settings;
    uint32_t members, self;
    size_t peers[SITE_MEMBERS_MAX]; /* of the links, for each member */
    const char *names[SITE_MEMBERS_MAX];
    bool leads, stepping;
    struct kept_call *calls;
    struct kept_bytes *bytes;
    size_t kept;
};

struct site_room {
    struct loop *loop;
    struct site_links *links;
    const struct site_host_ops *ops;
    void *arg;
    char *self;
    char **peer_names;
    size_t peer_count;
    struct site_account *accounts;
};

/* room.c */

void site__step(struct site_account *a, const struct site_event *ev);
struct site_account *site__account(const struct site_room *r,
                                   const uint8_t id[SELECTOR_ACCOUNT_BYTES]);

/* cache.c: what it has stays as it is. Beyond the cap nothing of other sites is cached. */

bool site__cache_call(struct site_account *a, uint32_t sender, uint64_t id, const uint8_t *call,
                      size_t len, const struct site_terms *terms); /* false: it is not kept */
const struct kept_call *site__call(const struct site_account *a, uint32_t sender, uint64_t id);
void site__cache_bytes(struct site_account *a, const struct site_signed *s);
const struct kept_bytes *site__bytes(const struct site_account *a, const struct site_hash *hash);
struct site_signed site__signed_of(const struct site_account *a, const struct site_bytes *bytes);
/* Drops what no row and no work needs any more. */
void site__sweep(struct site_account *a, uint64_t final, const uint64_t *next);
void site__cache_clear(struct site_account *a);

/* mail.c */

void site__post(struct site_account *a, const struct site_message *m);
/* What this site answers to questions about the account. */
void site__settle(struct site_account *a, const struct site_config *config);
/* Of struct site_links_config; arg: the room. */
bool site__on_question(void *arg, struct site_wire_settings *ret);
bool site__on_mail(void *arg, size_t peer, const struct site_wire_message *m);

#endif

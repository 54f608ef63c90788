/* Feeds, on a connection of its own: a batch of ten thousand calls does not stand before a leader's
 * writes. A request ends with an error as long as the connection is not up. */
#ifndef STORE_FEEDS_H
#define STORE_FEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loop/loop.h"
#include "store/conn.h"

struct store_feeds;

/* dsn: of the relay's login. `name` for the server's list of sessions. */
struct store_feeds *store_feeds_new(struct loop *l, const char *dsn, const char *name);
/* Requests in flight end before: their outcome is not known. */
void store_feeds_close(struct store_feeds *s, void (*cb)(void *arg), void *arg);

/* One feed; texts are valid in the callback only. */
struct store_feed_row {
    const char *name;
    int32_t account;
    int64_t last;
    const uint8_t *publishers; /* keys of 32 bytes */
    size_t publishers_len;
    const char *options; /* JSON */
    bool paused;
    const char *leader; /* where the account's leader takes feeds; "": not known */
};

struct store_feed_list {
    /* in */
    size_t count;
    const int32_t *accounts;
    const char *holder, *address; /* of this relay */
    /* out */
    struct err err;
    size_t row_count;
    const struct store_feed_row *rows; /* valid in the callback only */
    /* private */
    struct conn_query query;
    void (*cb)(struct store_feed_list *r);
};
void store_feed_list_start(struct store_feeds *s, struct store_feed_list *r,
                           void (*cb)(struct store_feed_list *r));

/* One call. -1 and NULL: none. */
struct store_feed_call {
    const uint8_t *data;
    size_t len;
    int64_t priority, not_before_ms, deadline_ms, spec_version, deadline_block, retries;
    const char *tip, *max_tip; /* decimal */
};

enum store_feed_taken {
    STORE_FEED_TAKEN,
    STORE_FEED_ELSEWHERE, /* nothing was written: `last` is where the cursor is */
    STORE_FEED_PAUSED,
    STORE_FEED_REMOVED,
};

/* Take a batch: its calls and the cursor in one statement. Everything that it names lives until the
 * callback. */
struct store_feed_take {
    /* in */
    int32_t account;
    int64_t epoch;
    const char *feed;
    int64_t number;
    const uint8_t *publisher, *digest; /* 32 bytes each */
    size_t count;
    /* Gives the i-th call. */
    void (*call)(void *arg, size_t i, struct store_feed_call *ret);
    void *arg;
    /* out */
    struct err err;
    enum store_feed_taken taken;
    int64_t last;
    /* private */
    struct conn_query query;
    void (*cb)(struct store_feed_take *r);
};
void store_feed_take_start(struct store_feeds *s, struct store_feed_take *r,
                           void (*cb)(struct store_feed_take *r));

#endif

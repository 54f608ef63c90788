/* The event that the cursor orders and that readers receive about a transaction. */
#ifndef LISTEN_CORE_EVENT_H
#define LISTEN_CORE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LISTEN_ACCOUNT_ID_MAX = 32 };

enum listen_kind {
    LISTEN_NEW,      /* a transaction (or a filler) has a nonce */
    LISTEN_UPDATE,   /* its state, attempt or block changed */
    LISTEN_REMOVED,  /* it lost its nonce and returned to the outbox */
    LISTEN_FINISHED, /* it ended: the outcome is set */
};

/* Texts are valid in the callback only; "" if there is none. */
struct listen_event {
    enum listen_kind kind;
    int32_t account; /* row of txrelay.accounts */
    const char *alias;
    uint8_t account_id[LISTEN_ACCOUNT_ID_MAX];
    size_t account_id_len;
    int64_t id;    /* 0: a filler, which no application enqueued */
    int64_t nonce; /* -1: it ended without one */
    bool has_hash, has_block;
    uint8_t hash[32];
    uint8_t block_hash[32];
    int64_t block_number; /* -1: unknown (a notification does not contain it) */
    const char *state;    /* Substrate's names and "signed" */
    const char *outcome;  /* finished: ok, dispatch_error, expired, cancelled, failed, usurped,
                          * unknown */
    const char *error;    /* finished, or from a scan */
    const char *creator;
    const char *trace;     /* traceparent */
    int64_t updated_at_us; /* database clock, microseconds since 1970 */
    bool from_scan;
    /* for since_us: a reader that begins there misses nothing after this event */
    int64_t position_us;
};

const char *listen_kind_name(enum listen_kind kind); /* "finished" */

#endif

/* A publisher of a feed: keeps numbered batches until they are acknowledged, and offers them to
 * whichever relay takes them, one after the other.
 *
 *   BACKOFF_WAIT -> CONNECT_WAIT -> STREAM_IDLE -> SENDING -> ANSWER_WAIT     (*_WAIT: until a
 *        ^                              ^                        |             callback or a timer)
 *        |                              +---- acknowledged ------+
 *        |                              |     SKIPPED_WAIT, BEHIND_WAIT
 *        +------ the stream ended ------+
 *
 * Callbacks fire from the loop, never inside the call that started them. They may call every
 * function below; feed_client_close only on_failed and on_done, which are the last ones. */
#ifndef FEED_CLIENT_CLIENT_H
#define FEED_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "feed/wire/wire.h"
#include "loop/loop.h"
#include "net/tls.h"

struct keypair;
struct feed_client;

enum feed_client_note {
    FEED_CLIENT_CONNECTED, /* text: the relay */
    FEED_CLIENT_SENT,      /* the batch `number` is with the relay */
    FEED_CLIENT_SKIP,      /* another publisher's copy is taken */
    FEED_CLIENT_RESEND,
    FEED_CLIENT_ENDED,   /* the stream ended; text: why; it goes on by itself */
    FEED_CLIENT_LOST,    /* there is no connection; text: why; the same */
    FEED_CLIENT_MISSING, /* the relay needs `number`, which is kept no more or never was: it waits
                            for another publisher that has it */
};

struct feed_client_config {
    const char *feed;           /* copied */
    const char *const *targets; /* HOST:PORT or unix:/path, one or more; copied */
    size_t target_count;
    struct tls_context *tls;   /* borrowed; NULL: cleartext */
    const char *server_name;   /* in the relays' certificates; NULL: the target's host; copied */
    const char *token;         /* NULL: none; copied */
    const struct keypair *key; /* ed25519; borrowed */
    uint32_t answer_ms;        /* how long to wait for the answer to a whole batch; 0: 60,000 */
    /* The same while another publisher's copy is taken; 0: 120,000. It has to be longer than that
     * copy may last at the relay: stale_winner_ms (60,000) for its items, then persistence_ack_ms
     * (30,000). Who gives up earlier goes away when the relay is about to ask for its copy. */
    uint32_t skipped_ms;
    uint32_t retry_ms, retry_max_ms;             /* back-off; 0: 1,000 and 30,000 */
    uint32_t refusals_max;                       /* of one batch, before it gives up; 0: 3 */
    void (*on_acked)(void *arg, int64_t number); /* every batch up to this one is stored */
    void (*on_note)(void *arg, enum feed_client_note note, int64_t number, const char *text);
    /* The relay needs a number below the first one that is kept. true: the callback has called
     * feed_client_rewind, and puts batches from this number on. NULL: nothing can be put again. */
    bool (*on_missing)(void *arg, int64_t number);
    void (*on_failed)(void *arg, const struct err *why); /* it gave up; nothing follows */
    void (*on_done)(void *arg); /* feed_client_end: the stream is closed; nothing follows */
    void *arg;
};

/* NULL: err (ERR_CONFIG) says what is wrong with a target or the key. */
struct feed_client *feed_client_new(struct loop *l, const struct feed_client_config *config,
                                    struct err *err);
/* Keeps a batch. Numbers ascend by one. ERR_ARGUMENT: a call is too long for a request. */
int feed_client_put(struct feed_client *c, int64_t number, const struct feed_wire_call *calls,
                    size_t count, struct err *err);
/* Forgets all that is kept, and feed_client_end. The next batch that is put is `number`. */
void feed_client_rewind(struct feed_client *c, int64_t number);
size_t feed_client_kept(const struct feed_client *c); /* batches that are not acknowledged */
/* There are no more batches: once all are acknowledged it closes the stream; on_done follows. */
void feed_client_end(struct feed_client *c);
struct feed_client *feed_client_close(struct feed_client *c); /* at once; no callback follows */

#endif

/* The HTTP interface of a relay: who may ask, the routes, and the statements that answer them. It
 * has sessions of its own, so a slow answer keeps nothing else of the relay. Every relay answers:
 * what a request asks for is in the database, and leaders find it there. */
#ifndef HTTP_API_H
#define HTTP_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/u128.h"
#include "chain/codec/metadata.h"
#include "chain/codec/ss58.h"
#include "loop/loop.h"

struct api;
struct buf;

/* What the leader of an account knows beside the database. */
struct api_account {
    uint32_t window;  /* most nonces that it uses at a time */
    bool has_balance; /* false: no block was final yet, or the chain keeps none */
    u128 balance;     /* free, at the last final block */
};

/* What a new account of the relay's chain is registered with. */
struct api_enrolment {
    char address[SS58_TEXT_MAX];
    uint8_t genesis[32];
    int64_t lock_key;
    uint32_t era_longest;
    bool era_immortal;
};

struct api_config {
    const char *listen;                         /* tcp:HOST:PORT or unix:/path */
    const char *host;                           /* name that requests may give; NULL: loopback's */
    const char *cert_file, *key_file, *ca_file; /* TLS; NULL: cleartext */
    uint32_t rate;                              /* requests a second of one token; 0: 200 */
    const char *dsn;                            /* of the database, directly */
    const char *listen_dsn;                     /* for events: direct, not through a pooler */
    const char *name;                           /* of the sessions */
    const struct metadata *(*metadata)(void *arg); /* of the chain; NULL: not known now */
    bool (*account)(void *arg, const char *name,
                    struct api_account *ret); /* false: the relay does not lead it */
    bool (*enrolment)(void *arg, const uint8_t *account_id, size_t len,
                      struct api_enrolment *ret); /* false: no node is usable now */
    const char *(*relay)(void *arg);              /* its identity in the database */
    void (*drain)(void *arg);                     /* an operator drains it */
    /* What the chain would take for a call. cb fires once, from the loop, unless it is forgotten;
     * known false: no node tells now. */
    void *(*fee)(void *arg, const uint8_t *call, size_t len,
                 void (*cb)(void *cb_arg, bool known, u128 fee), void *cb_arg);
    void (*fee_forget)(void *fee);
    void *arg;
};

/* Can these values ever be right, whatever files and ports there are? */
int api_values(const struct api_config *config, struct err *err);
/* Would it open? It reads the files and listens to nothing. `out` gets who may ask, for people;
 * `caution` what is to be mended soon. */
int api_check(const struct api_config *config, struct buf *out,
              void (*caution)(void *arg, const char *text), void *arg, struct err *err);
/* NULL and *err (ERR_CONFIG, ERR_ARGUMENT, ERR_IO). The strings are copied. */
struct api *api_open(struct loop *l, const struct api_config *config, struct err *err);
void api_metrics(const struct api *a, struct buf *out);
const char *api_address(const struct api *a); /* with the real port */
/* Certificates again. If it fails, the old ones stay. */
int api_reload(struct api *a, struct err *err);
void api_drain(struct api *a); /* answers what came, and takes no more */
void api_close(struct api *a, void (*cb)(void *arg), void *arg); /* frees a before the callback */

#endif

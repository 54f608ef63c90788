/* The service: one relay process. Wires store, listen, election, chain and one manager per account
 * on one loop. Everything that is decided is decided in the pure cores (manager.h,
 * relay/core/poll/poll.h, election/core/elector.h); this adapter carries events in and effects out.
 *
 * Roles: a database is configured -> leader or follower per account, never anything else,
 * however long the database is out of reach. No database is configured -> standalone: the same
 * manager over a memory store, transactions come as JSON lines on standard input. */
#ifndef RELAY_SERVICE_H
#define RELAY_SERVICE_H

#include "base/error.h"
#include "chain/codec/metadata.h"
#include "chain/codec/ss58.h"
#include "chain/keys/keys.h"
#include "election/core/elector.h"
#include "loop/loop.h"
#include "relay/core/tx/manager.h"
#include "relay/sites_config.h"

struct service;

struct service_account {
    const char *alias;
    /* owned by the service from service_new on; NULL: sends only presigned transactions */
    struct keypair *key;
    enum key_scheme scheme; /* without a key: the account's */
    uint8_t id[ACCOUNT_ID_MAX];
    size_t id_len;
    bool has_prefix; /* the configuration has its SS58 address, of this prefix */
    uint16_t prefix;
    bool has_lock_key; /* Override of the derived key */
    int64_t lock_key;
};

/* Where publishers of feeds connect. The relay calls it, and does not know the protocol. */
struct feed_room;
struct service_feeds {
    const char *address; /* by which publishers reach this relay, for the other relays */
    /* NULL: this relay takes no feeds. If it fails, it is called again later. */
    int (*open)(void *arg, struct loop *l, struct feed_room *room, struct err *err);
    void (*drain)(void *arg); /* new streams go elsewhere */
    void (*close)(void *arg); /* every session is gone when it returns */
    void *arg;
};

/* Where people and programs ask over HTTP: the same. */
struct buf;
struct service_http {
    /* NULL: this relay has no such interface. If it fails, it is called again later. */
    int (*open)(void *arg, struct loop *l, struct service *s, struct err *err);
    void (*drain)(void *arg); /* answer what came, and take no more */
    void (*close)(void *arg, void (*cb)(void *arg),
                  void *cb_arg);                 /* every handle is closed at cb */
    void (*metrics)(void *arg, struct buf *out); /* also while it is not open */
    void *arg;
};

struct service_config {
    const char *name;        /* of this relay, in logs and identity; default: host name */
    const char *holder;      /* its identity in the database; default: made anew for each process */
    const char *control_dsn; /* NULL: standalone */
    const char *work_dsn;    /* NULL: control_dsn */
    const char *listen_dsn;  /* NULL: control_dsn */
    const char *const *endpoints; /* chain */
    size_t endpoint_count;
    const char *ca_file; /* chain's wss; NULL: system store */
    bool chain_insecure;
    bool verify_blocks, allow_chopsticks;         /* chain/node/node.h */
    unsigned quorum;                              /* there too */
    const struct extrinsic_extension *extensions; /* borrowed; chain/codec/extrinsic.h */
    size_t extension_count;
    bool metadata_hash;          /* extrinsics sign the metadata hash (CheckMetadataHash) */
    struct metadata_token token; /* symbol NULL: the node is asked */
    bool has_genesis;
    uint8_t genesis[32];
    uint32_t call_timeout_ms;
    struct service_account *accounts;
    size_t account_count;
    struct elector_config elector;
    struct manager_config manager;
    uint32_t rotate_blocks; /* an account moves to the next member after this many finalized blocks;
                               0: never */
    uint32_t handover_ms;   /* limit for settling before a hand-over; default 2000 */
    uint32_t retention_days;        /* what ended longer ago may be removed; default 30 */
    uint32_t retention_interval_ms; /* between two looks at that; default an hour */
    uint32_t snapshot_rows;         /* pending rows that a load reads at a time; default 5000 */
    const char *control_address;    /* "unix:..." or "tcp:..."; NULL: none */
    const char *metrics_address;    /* "tcp:127.0.0.1:PORT" for HTTP; NULL: none */
    struct service_feeds feeds;
    struct service_http http;
    struct service_http webhooks;     /* the same */
    const struct sites_config *sites; /* NULL: no account has sites */
    bool read_stdin;                  /* standalone: JSON lines in */
    void (*on_exit)(void *arg,
                    const struct err *err); /* the service cannot go on (permanent error) */
    /* NULL: the relay leads from then on. Otherwise it only registers its accounts, calls this, and
     * waits to be stopped. */
    void (*on_registered)(void *arg);
    /* Stop the service: a client of the control endpoint asked for it, or a standalone relay
     * without such an endpoint has carried out all of its input. */
    void (*on_drain)(void *arg);
    void *arg;
};

/* ERR_CONFIG: a value that can never be right. */
int service_check(const struct service_config *c, struct err *err);
/* Of a configuration that was checked. NULL: what was made closes in the next rounds of the
 * loop. */
struct service *service_new(struct loop *l, const struct service_config *config, struct err *err);
void service_open(struct service *s);
/* Once a second: reports each step of a start that takes long (relay/progress.h). Not after
 * service_stop has called back. */
void service_look_at_start(struct service *s);
/* One line: what the relay is doing, how much it leads, and the first step of its start that lasts.
 * Costs a look at each account, and no memory. */
void service_line(const struct service *s, char *ret, size_t size);
/* The same without the first two; "": nothing lasts. */
void service_start_line(const struct service *s, char *ret, size_t size);
size_t service_registered(const struct service *s); /* how many of its accounts are, so far */
/* Admit no more, let what is led settle (handover_ms), give leadership up, close everything,
 * then cb; the service is freed after it. */
void service_stop(struct service *s, void (*cb)(void *arg), void *arg);

/* The certificates of the links to other sites, again: new links use them. 0 too where there are no
 * sites; an error: what was in force stays. */
int service_sites_reload(struct service *s, struct err *err);

/* Of the chain, as the node in use has it; NULL: no node is usable now. Valid until the loop goes
 * on. */
const struct metadata *service_metadata(const struct service *s);

/* What this relay knows of an account (alias, 0x id or address) that it leads. false: it leads no
 * such one. */
struct service_account_now {
    uint32_t window;
    bool has_balance; /* a block was final since it leads, and the chain keeps a balance */
    u128 balance;
};
bool service_account_now(struct service *s, const char *name, struct service_account_now *ret);
const char *service_holder(const struct service *s); /* its identity in the database */

/* What a new account of this relay's chain is registered with. false: no node is usable now. */
struct service_enrolment {
    char address[SS58_TEXT_MAX]; /* SS58 of the chain, or 0x */
    uint8_t genesis[32];
    int64_t lock_key;
    uint32_t era_longest; /* of what this relay signs */
    bool era_immortal;
};
bool service_enrolment_of(const struct service *s, const uint8_t *account_id, size_t len,
                          struct service_enrolment *ret);

/* What the chain would take for a call, signed by a key of this relay's schemes, without a tip. cb
 * fires exactly once, from the loop, unless it is forgotten before; known false: no node tells. */
struct service_fee;
struct service_fee *service_fee_ask(struct service *s, const uint8_t *call, size_t len,
                                    void (*cb)(void *arg, bool known, u128 fee), void *arg);
void service_fee_forget(struct service_fee *f);
void service_ask_drain(struct service *s); /* an operator wants it to stop */

#endif

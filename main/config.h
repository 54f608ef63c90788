/* Configuration: a YAML file, the environment over it, flags over both. Every value remembers where
 * it came from, so that `txrelay check` can explain it. Times are milliseconds. */
#ifndef MAIN_CONFIG_H
#define MAIN_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct config_account {
    char *alias;
    char *scheme;   /* sr25519 | ed25519 | ecdsa | ethereum */
    char *key_file; /* holds a secret URI; mode 0600; NULL: sends only presigned transactions */
    char *account;  /* SS58 or 0x: the key must belong to it; optional with a key */
    char *lock_key; /* optional override of the advisory lock's key: config_lock_key */
    char **sites;   /* names of all sites that share it; none: it has no sites */
    uint32_t sites_count;
    char *sites_policy; /* rotate (default) | sticky */
};

struct config_database {
    char *url;        /* libpq connection string; direct, not through a transaction pooler */
    char *work_url;   /* optional: may go through a pooler with use_lock: false */
    char *listen_url; /* optional */
    bool *use_lock;   /* default true */
};

struct config_extension {
    char *name;
    char *explicit_part; /* 0x.. */
    char *implicit_part; /* optional 0x.. */
};

struct config_chain {
    char **endpoints;
    uint32_t endpoints_count;
    char *genesis; /* optional 0x..: any other chain is refused */
    char *ca_file;
    bool insecure;
    bool *verify_blocks; /* default true, but not for chopsticks on this host */
    uint32_t quorum;     /* default 1 */
    uint32_t call_timeout_ms;
    struct config_extension *extensions;
    uint32_t extensions_count;
    bool metadata_hash;
    char *token_symbol; /* both, or none */
    uint32_t *token_decimals;
};

struct config_leadership {
    uint32_t heartbeat_ms, expiry_1_ms, expiry_2_ms, margin_ms, bid_min_ms, bid_max_ms;
    char *placement;        /* sticky (default) | ring */
    uint32_t rotate_blocks; /* 0: never */
    uint32_t handover_ms;
    char *lost_commits; /* wait (default) | search */
};

struct config_manager {
    uint32_t window, batch, unanswered, reprobe_blocks, gap_blocks;
    uint32_t *era_period; /* default 64 */
};

struct config_retention {
    uint32_t keep_days, interval_ms;
};

struct config_feeds {
    char *listen;  /* unix:/path or tcp:host:port; NULL: this relay takes no feeds */
    char *address; /* by which publishers reach it; NULL: listen */
    char *cert_file, *key_file, *ca_file; /* TLS */
    char *token_file;
};

struct config_http {
    char *listen;                         /* tcp:host:port or unix:/path; NULL: none */
    char *host;                           /* name that requests may give; NULL: loopback's */
    char *cert_file, *key_file, *ca_file; /* TLS */
    uint32_t rate;                        /* requests a second of one token; 0: the default */
};

struct config_webhooks {
    char *key_file; /* NULL: this relay delivers none */
    char *ca_file;
    bool allow_private;
    uint32_t timeout_ms;
};

struct config_site_peer {
    char *name;
    char **targets; /* host:port of its relays */
    uint32_t targets_count;
};

struct config_sites {
    char *name;    /* of this site; NULL: no account has sites */
    char *listen;  /* tcp:host:port */
    char *address; /* host:port by which other sites reach it; NULL: listen */
    char *cert_file, *key_file, *ca_file;
    uint32_t range_blocks, approvals, era_blocks; /* 0: the default */
    bool silence_is_down;
    struct config_site_peer *peers; /* the other sites */
    uint32_t peers_count;
};

struct config_file {
    char *name;
    char *log_level;
    char *log_format;       /* logfmt (default) | json */
    char *log_transactions; /* debug (default) | info */
    char *control;          /* unix:/path or tcp:host:port */
    char *metrics;          /* 127.0.0.1:port, for HTTP */
    struct config_database database;
    struct config_chain chain;
    struct config_leadership leadership;
    struct config_manager manager;
    struct config_retention retention;
    struct config_feeds feeds;
    struct config_http http;
    struct config_webhooks webhooks;
    struct config_sites sites;
    struct config_account *accounts;
    uint32_t accounts_count;
};

struct config {
    struct config_file *file; /* merged values */
    char *path;               /* of the file; NULL: none */
    /* "file", "flag", "default", or the name of an environment variable */
    const char *from_database, *from_endpoints, *from_log_level, *from_name, *from_control,
        *from_metrics, *from_log_format, *from_log_transactions;
};

struct config_flags {
    const char *path, *database, *endpoint, *name, *log_level, *control;
};

/* Every key of the file, for tests. `section`: "" at the top, "accounts" for an account's. */
struct config_key {
    const char *section, *key;
    bool number, boolean, list; /* none of them: a text */
};
void config_keys(void (*each)(void *arg, const struct config_key *key), void *arg);

/* ERR_CONFIG names file, line and column, the key or value, and what is allowed. The log looks as
 * the file says from then on. */
int config_load(const struct config_flags *flags, struct config *ret, struct err *err);
void config_use_log(const struct config_file *f); /* as this one says, again */
void config_done(struct config *c);

/* Calls `each` for every key in the order of the schema, and for every element of a list. text: the
 * value; NULL: not set. An element with keys of its own is one text, "key=value ..". Texts
 * may hold secrets (database urls, endpoints). */
void config_values(const struct config *c,
                   void (*each)(void *arg, const char *key, const char *text), void *arg);

/* Calls `each` with "section.key" for each value that differs; a list is one value. */
void config_changes(const struct config *from, const struct config *to,
                    void (*each)(void *arg, const char *key), void *arg);

bool config_placement_ring(const struct config_file *f);
bool config_lost_search(const struct config_file *f);
bool config_use_lock(const struct config_file *f);
bool config_verify_blocks(const struct config_file *f);
/* false: it has none. Loading a configuration refuses a value that is not a number. */
bool config_lock_key(const struct config_account *a, int64_t *ret);
uint32_t config_era_period(const struct config_file *f);

#endif

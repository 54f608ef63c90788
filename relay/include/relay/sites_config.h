/* The sites of this relay, as configured: accounts that send from several databases
 * (docs/sites.md). Borrowed until the service has stopped. */
#ifndef RELAY_SITES_CONFIG_H
#define RELAY_SITES_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Another site. */
struct sites_peer {
    const char *name;           /* in its certificate */
    const char *const *targets; /* HOST:PORT of its relays */
    size_t target_count;
};

/* An account of this relay that has several sites. All sites have the same values. */
struct sites_account {
    const char *account; /* its alias here */
    /* Of all its sites, this one too, each once, in the order of strcmp. */
    const char *const *names;
    size_t count;
    bool sticky;           /* default: the coordinator changes every `range_blocks` */
    bool silence_is_down;  /* silence alone demotes a site, without a probe */
    uint32_t range_blocks; /* 0: 1000 */
    uint32_t approvals;    /* of other sites, before a transaction is dispatched */
    uint32_t era_blocks;   /* the longest life of signed bytes; 16 to 4096; 0: 64 */
};

struct sites_config {
    const char *self;    /* this site's name */
    const char *listen;  /* tcp:HOST:PORT */
    const char *address; /* HOST:PORT where other sites reach this relay; NULL: where it listens */
    const char *cert_file, *key_file, *ca_file; /* all three are needed */
    const struct sites_peer *peers;             /* the other sites */
    size_t peer_count;
    const struct sites_account *accounts;
    size_t account_count;
};

/* ERR_CONFIG: err says which value can never be right. */
int sites_config_check(const struct sites_config *c, struct err *err);

#endif

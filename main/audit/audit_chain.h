/* Reads final blocks for an audit: by its own questions to one endpoint, several at a time. Each
 * function blocks; it runs the loop until all answers have come. */
#ifndef MAIN_AUDIT_AUDIT_CHAIN_H
#define MAIN_AUDIT_AUDIT_CHAIN_H

#include "audit/audit.h"
#include "loop/loop.h"

struct audit_chain;

struct audit_chain_config {
    const char *const *urls; /* the first one that answers is asked, for all of the audit */
    size_t url_count;
    const char *ca_file;
    bool insecure;
};

/* NULL: ret_err says what is wrong with the last endpoint that was tried. */
struct audit_chain *audit_chain_open(struct loop *l, const struct audit_chain_config *config,
                                     struct err *ret_err);
void audit_chain_close(struct audit_chain *c);            /* NULL allowed */
const char *audit_chain_url(const struct audit_chain *c); /* without secrets */

/* The genesis and the last final block. */
int audit_chain_head(struct audit_chain *c, uint8_t ret_genesis[32], uint64_t *ret_last,
                     struct err *err);
/* The first block of this time or later, up to `last`; last + 1: there is none. */
int audit_chain_at(struct audit_chain *c, int64_t time_ms, uint64_t last, uint64_t *ret_block,
                   struct err *err);
/* Blocks [from, from + count) and the accounts' extrinsics in them. Leaves known and records empty.
 * On an error the chunk must still be freed. */
int audit_chain_read(struct audit_chain *c, const struct audit *a, uint64_t from, size_t count,
                     struct audit_chunk *ret, struct err *err);

#endif

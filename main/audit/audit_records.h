/* Reads what the tables have on record, for an audit. Each function blocks; it runs the loop until
 * the answer has come. The login needs the rights of a relay (role txrelay_relay). */
#ifndef MAIN_AUDIT_AUDIT_RECORDS_H
#define MAIN_AUDIT_AUDIT_RECORDS_H

#include "audit/audit.h"
#include "loop/loop.h"

struct audit_records;

/* NULL: ret_err says why. */
struct audit_records *audit_records_open(struct loop *l, const char *dsn, struct err *ret_err);
void audit_records_close(struct audit_records *r); /* NULL allowed */

/* The accounts of this chain; only those of the list, unless it is empty. ERR_ARGUMENT names one
 * that is not there. a->accounts is the caller's to free (audit_done). */
int audit_records_accounts(struct audit_records *r, const char *const *aliases, size_t count,
                           const uint8_t genesis[32], struct audit *a, struct err *err);
/* When the oldest record that is kept may have ended; -1: none was removed. */
int audit_records_kept(struct audit_records *r, int64_t *ret_ms, struct err *err);
/* Fills known and records of a chunk. */
int audit_records_read(struct audit_records *r, const struct audit *a, struct audit_chunk *c,
                       struct err *err);
/* Transactions that have several results in these blocks. */
int audit_records_twice(struct audit_records *r, struct audit *a, uint64_t from, uint64_t to,
                        struct err *err);

#endif

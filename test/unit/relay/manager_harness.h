/* A script for one manager: feed an event, look at the effects. Each feed checks the whole state.
 * Attempts are made up: hash_of(nonce, attempt) and bytes that end with a call of CALL_LEN
 * bytes. */
#ifndef TEST_MANAGER_HARNESS_H
#define TEST_MANAGER_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/error.h"
#include "relay/core/tx/manager.h"

enum { CALL_LEN = 8, BYTES_LEN = 40, NONCES = 4096, SPEC = 900 };

struct script {
    struct manager *m;
    uint64_t now;
    struct manager_effect *fx; /* of the last step, deep copies */
    size_t count;
    bool *taken;
    unsigned attempts[NONCES]; /* attempts made at each nonce */
    int64_t next_id;
    uint32_t spec;
    uint32_t block_spec; /* of final blocks; 0: not told */
    uint64_t finalized, best;
    uint64_t best_known;            /* what another node has; 0: no more than this one */
    int64_t era;                    /* blocks of life of new attempts, -1 immortal */
    struct manager_account account; /* what the snapshot says; no tips unless a test sets a cap */
    const char *suspension_text;    /* and why an earlier leader suspended it */
    int64_t used_nonce, used_block;
    uint64_t follow;       /* the height that was asked for last */
    uint64_t request_poll; /* number of the last request poll */
    bool inner;            /* failures in blocks are inner ones */
    bool unverified;       /* nobody can tell whether signatures in blocks are right */
    unsigned refusals;     /* stored so far */
    char refusal[200];     /* the last one */
};

struct script *script_new(const struct manager_config *config);
void script_free(struct script *s);

/* ---- feeding ---- */
void feed(struct script *s, struct manager_event ev);
void promote(struct script *s);
void chain_up(struct script *s);
void chain_down(struct script *s);
void best(struct script *s); /* the next best block */
void pool_is(struct script *s, unsigned count,
             ...); /* answer to ASK_POOL: const uint8_t * hashes */
void pool_failed(struct script *s);
void nonce_is(struct script *s, uint64_t nonce); /* answer to ASK_NONCE */
void unfinal_is(struct script *s,
                const uint8_t *hash); /* answer to ASK_UNFINAL: nothing, or this one */
void probe(struct script *s, uint64_t nonce, unsigned count,
           ...); /* both answers, expecting the questions */
/* A probe with a nonce above all that is known: it counts when it was answered four times. */
void probe_foreign(struct script *s, uint64_t nonce);
void outbox(struct script *s, unsigned count); /* answer to WANT_OUTBOX */
void admitted(struct script *s);               /* answer to the ADMIT of the last step */
void resigned(struct script *s);
void filled(struct script *s);
void stored(struct script *s, enum manager_effect_type write);
void write_failed(struct script *s, enum manager_effect_type write, int code);
void accept(struct script *s, uint64_t nonce);
void refuse(struct script *s, uint64_t nonce, int64_t rpc_code, const char *text);
void refuse_code(struct script *s, uint64_t nonce, int code); /* not the node: transport, gate */
void status(struct script *s, uint64_t nonce, enum tx_status status, const uint8_t *block_hash);
void status_of(struct script *s, uint64_t nonce, const uint8_t *hash, enum tx_status status,
               const uint8_t *block_hash);
void watch_lost(struct script *s, uint64_t nonce);
void runtime(struct script *s, uint32_t spec);
void tick(struct script *s); /* moves the time to the manager's deadline */

/* A finalized block at the next height, or at `number`. */
struct in_block {
    const uint8_t *hash;
    uint64_t nonce;
    bool own;
    enum dispatch_outcome outcome;
    const char *error;
};
void finalized(struct script *s, uint64_t account_nonce, unsigned count, const struct in_block *x);
void unread_at(struct script *s, uint64_t number); /* no endpoint has it */
void finalized_at(struct script *s, uint64_t number, uint64_t account_nonce, unsigned count,
                  const struct in_block *x);
void finals(struct script *s, uint64_t from, uint64_t nonce); /* empty ones, up to s->finalized */
void finalized_ours(struct script *s, uint64_t nonce); /* the current attempt, dispatched well */

/* ---- looking ---- */
const uint8_t *hash_of(uint64_t nonce, unsigned attempt); /* one of 16 rotating buffers */
const uint8_t *current(const struct script *s, uint64_t nonce);
const uint8_t *block_of(unsigned n);
const struct manager_effect *expect(struct script *s, enum manager_effect_type type); /* takes it */
void none(struct script *s, enum manager_effect_type type);
void quiet(struct script *s); /* nothing at all is left */
size_t count_of(const struct script *s, enum manager_effect_type type);
void expect_submit(struct script *s, uint64_t nonce); /* of the current attempt, bytes checked */
void expect_alert(struct script *s, const char *words);

/* ---- starting ---- */
struct tx_pending loaded_row(struct script *s, uint64_t nonce, const char *state);
void load(struct script *s, const struct tx_pending *rows, size_t count, int64_t next);
/* Leading with nothing pending and this next nonce. */
struct script *leading(uint64_t next);
struct script *leading_with(const struct manager_config *config, uint64_t next);
/* Leading with `count` rows from `first` on, admitted and accepted. */
struct script *leading_pooled(uint64_t first, unsigned count);

#endif

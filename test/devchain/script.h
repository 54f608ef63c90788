/* Scripted faults: rules that match a request, a status, a validation, a block author's choice or a
 * dispatch, and say what happens instead. README.md lists the forms. */
#ifndef DEVCHAIN_SCRIPT_H
#define DEVCHAIN_SCRIPT_H

#include <jansson.h>

#include "base/error.h"
#include "base/list.h"
#include "listener.h"
#include "runtime.h"

enum script_point {
    SCRIPT_REQUEST,
    SCRIPT_STATUS,
    SCRIPT_NOTIFY,
    SCRIPT_VALIDATE,
    SCRIPT_INCLUDE,
    SCRIPT_DISPATCH
};

enum script_action {
    ACTION_NONE,
    ACTION_ERROR,           /* request: this error, nothing is done */
    ACTION_RESULT,          /* request: this result, nothing is done */
    ACTION_CUT_BEFORE,      /* request: close the connection, nothing is done */
    ACTION_CUT_AFTER,       /* request: do it, close before the response */
    ACTION_NO_REPLY,        /* request: do it, never answer */
    ACTION_IGNORE,          /* request: do nothing, never answer */
    ACTION_DELAY,           /* request: do it, answer later; status: tell it later */
    ACTION_ACCEPT_AND_DROP, /* submission: accept, then lose it without a word */
    ACTION_FREEZE,          /* request: the connection goes dead without closing */
    ACTION_VERDICT,         /* submission or validation: the runtime says this */
    ACTION_OMIT,            /* status, notification: not told */
    ACTION_END,             /* status, notification: neither this nor any later one is told */
    ACTION_SKIP,            /* include: the author leaves it out */
    ACTION_FAIL,            /* dispatch: it fails, whatever the call is */
};

struct script_rule {
    struct list node;
    uint64_t id;
    enum script_point point;
    char *method; /* NULL: any */
    int status;   /* enum pool_status, -1: any */
    bool has_signer, has_nonce, has_hash;
    uint8_t signer[32], hash[32];
    uint32_t nonce;
    uint64_t nth;     /* fires from the nth match on (1: the first) */
    uint64_t times;   /* and so often; 0: for ever */
    uint64_t every;   /* every k-th match only; 0, 1: each */
    uint64_t percent; /* of the matches, by the script's generator; 0: all */
    uint64_t seen, fired;
    enum script_action action;
    uint32_t delay_ms;
    json_t *json; /* error or result: owned */
    struct validity verdict;
    struct dispatch_error failure;
};

struct script {
    struct list rules;
    uint64_t next_id;
    uint64_t rng_state;
};

void script_init(struct script *s, uint64_t seed);
void script_done(struct script *s);
/* One rule from JSON. 0 and *ret_id, or ERR_ARGUMENT with what is wrong. */
int script_add(struct script *s, const json_t *rule, uint64_t *ret_id, struct err *err);
size_t script_clear(struct script *s, uint64_t id); /* 0: all */
json_t *script_json(const struct script *s);

bool script_wants_tx(const struct script *s,
                     const char *method); /* a rule for this method looks at the transaction */
/* The first rule that fires, or NULL. tx may be NULL. */
struct script_rule *script_request(struct script *s, const char *method, const struct tx *tx);
/* A head or version notification ("chain_newHead") to one subscriber. */
struct script_rule *script_notify(struct script *s, const char *method);
struct script_rule *script_status(struct script *s, enum pool_status status, const struct tx *tx);
struct script_rule *script_tx(struct script *s, enum script_point point, const struct tx *tx);

#endif

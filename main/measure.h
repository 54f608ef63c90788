/* What one endpoint can do, measured by asking it directly: which methods it answers, how far back
 * it has blocks and states, how fast and how much it answers. The relay's own connection
 * (chain/node) goes round what an endpoint refuses; this one shows it.
 *
 *   measure.c        the connection: one question after another
 *   measure_best.c   the best block of all endpoints at the same time
 *   measure_table.c  the questions by feature, and what an answer says of its method
 *   check_measure.c  how `txrelay check` shows it */
#ifndef MAIN_MEASURE_H
#define MAIN_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "chain/node/json_view.h"
#include "chain/node/rpc_error.h"
#include "loop/loop.h"
#include "net/ws_client.h"

enum {
    MEASURE_METHODS = 24, /* at most, in the table */
    MEASURE_DEPTHS = 8,
    MEASURE_ANSWER_MS = 3000,
};

/* What is asked of each method. */
struct measure_question {
    const char *feature, *method, *params;
    const char *stop; /* ends what it began, with the result as its parameter; NULL: nothing */
    bool submits;     /* bytes that no node can decode: a refusal of a pool shows that it is open */
};
extern const struct measure_question measure_questions[];
size_t measure_question_count(void);

enum measure_is {
    MEASURE_OPEN,
    MEASURE_CLOSED,    /* the endpoint does not answer this method to us */
    MEASURE_TOO_MANY,  /* it asks for a slower pace, again and again */
    MEASURE_TOO_LARGE, /* the answer is larger than it sends */
    MEASURE_BROKEN,    /* an error of which nothing is known */
    MEASURE_SILENT,    /* no answer in time */
    MEASURE_IS
};
const char *measure_is_name(enum measure_is is);
/* An answer to this question; error NULL: it has a result. */
enum measure_is measure_judge(const struct measure_question *q, const struct jv *error);

struct measured_method {
    enum measure_is is;
    uint32_t ms;
    bool listed;    /* in rpc_methods */
    char text[120]; /* of its error; "": none */
};

/* How many blocks before the final one it has each; -1: not even the final one's. */
struct measured_reach {
    bool known;
    int64_t headers, bodies, states;
    bool whole[3]; /* from block 1 */
};

struct measured {
    struct err err; /* why it was not measured to the end */
    bool lists;     /* rpc_methods is answered */
    size_t listed;
    struct measured_method methods[MEASURE_METHODS];
    struct measured_reach reach;
    size_t answers, refused[RPC_ERROR_OTHER + 1];
    uint32_t median_ms, slowest_ms;
    const char *slowest, *largest; /* the methods */
    size_t largest_bytes;
    bool has_best;
    uint64_t best;
};

struct measure_endpoint {
    const char *url, *ca_file;
    bool insecure;
};

/* Runs a loop of its own until everything was asked, or the connection is lost. */
void measure(const struct measure_endpoint *at, struct measured *ret);
/* The best block of each endpoint, asked of all at the same time. *has: it told. */
void measure_best(const struct measure_endpoint *at, size_t count, bool *has, uint64_t *best);

/* For the connections of both: a call as text; send it, and free it; a header's height. */
char *measure_call(uint64_t id, const char *method, const char *params);
void measure_send(struct ws_client *ws, char *text);
bool measure_number(const struct jv *header, uint64_t *ret);

#endif

/* What devchain's tests share: signed transactions made by hand, a core whose statuses are written
 * down as text, and a blocking WebSocket client with deadlines. */
#ifndef DEVCHAIN_TESTLIB_H
#define DEVCHAIN_TESTLIB_H

#include <jansson.h>
#include <sys/types.h>

#include "core.h"

/* ---- transactions ---- */

struct tx_facts {
    uint8_t genesis[32];
    uint32_t spec, tx_version;
    /* mortal when era_period is set; the birth block's hash is needed then */
    uint32_t era_period, era_phase;
    uint8_t birth[32];
};

struct keypair *test_key(const char *uri, enum key_scheme scheme);
void call_remark(struct buf *out, const char *text);
void call_transfer(struct buf *out, const uint8_t dest[32], u128 amount, unsigned call);
void test_sign(const struct tx_facts *f, const struct keypair *key, uint32_t nonce, u128 tip,
               const struct buf *call, struct buf *out);

/* ---- a core with a diary ---- */

struct diary { /* of one watched transaction */
    struct watch watch;
    uint8_t hash[32];
    /* "ready inBlock:3 finalized:3"; blocks by salt, which counts the blocks made */
    struct buf text;
};

struct rig {
    struct core core;
    uint64_t now_ms, wall_ms;
    struct keypair *alice, *bob,
        *charlie; /* ed25519: funded with 1000 units, 1000 units, and nothing */
    uint32_t finalized_told, runtime_told;
    struct buf heads; /* numbers of new best blocks: "1 2 3 " */
    struct pool_result last;
    struct validity (*verdict)(struct rig *r, const struct tx *tx,
                               struct validity v); /* NULL: the runtime's */
};
#define DEV ((u128)1000000000000u)

struct rig *rig_new(void (*adjust)(struct core_config *config));
void rig_free(struct rig *r);
const uint8_t *rig_id(const struct keypair *key);
/* Submit a remark; 0 or the RPC error's number. d may be NULL. */
int rig_remark(struct rig *r, const struct keypair *key, uint32_t nonce, u128 tip, const char *text,
               struct diary *d);
int rig_call(struct rig *r, const struct keypair *key, uint32_t nonce, u128 tip,
             const struct buf *call, struct diary *d);
int rig_bytes(struct rig *r, const void *bytes, size_t len, struct diary *d);
int rig_code(const struct pool_result *p);
const struct block *rig_block(struct rig *r); /* author one */
void rig_blocks(struct rig *r, size_t count);
const char *diary_text(struct diary *d);
void diary_done(struct diary *d);
struct tx_facts rig_facts(const struct rig *r);
/* The dispatch error of transaction `index` of a block: "ok", "module:10:2", "token:8"... */
const char *block_outcome(const struct block *b, uint32_t index);

/* ---- the program and a client ---- */

struct child {
    pid_t pid;
    unsigned port;
    char url[40];
};
void child_start(struct child *c,
                 const char *const *args); /* devchain's options, NULL at the end */
void child_stop(struct child *c);          /* SIGTERM; its exit status must be 0 */
void child_kill(struct child *c);          /* SIGKILL */

struct ws;
struct ws *ws_open(unsigned port);
int ws_open_status(unsigned port); /* the HTTP status of the upgrade: 101 when it was taken */
void ws_close(struct ws *w);
void ws_send(struct ws *w, const char *text);
void ws_send_bytes(struct ws *w, const char *text, size_t len);
/* The next message within the deadline, or NULL: silence (*ret_closed false) or a closed
 * connection. */
json_t *ws_next(struct ws *w, int timeout_ms, bool *ret_closed);
unsigned ws_pings(const struct ws *w);
void ws_answer_pings(struct ws *w, bool answer);
/* Send a call and wait for its answer; notifications in between are kept for ws_note. */
json_t *ws_call(struct ws *w, const char *method, const char *params);
/* The next notification of the subscription within the deadline: its result. NULL: none came. */
json_t *ws_note(struct ws *w, const char *subscription, int timeout_ms);
const char *ws_note_method(const struct ws *w); /* of the last ws_note */
json_t *ws_answer(struct ws *w, int id,
                  int timeout_ms); /* the answer to a request sent by ws_send */

char *http_post(unsigned port, const char *body, int *ret_status);

struct tx_facts ws_facts(struct ws *w);
char *tx_params(const struct buf *bytes); /* "[\"0x..\"]", malloc'd */

#endif

/* Private to store/: the seam between the requests of store.h and their two implementations. */
#ifndef STORE_STORE_INTERNAL_H
#define STORE_STORE_INTERNAL_H

#include "store/store.h"

/* X(request, member of store_ops, struct) */
#define STORE_REQUESTS(X)                                                                                    \
    X(register, enroll, store_register)                                                                      \
    X(lock, lock, store_lock)                                                                                \
    X(unlock, unlock, store_lock)                                                                            \
    X(claim, claim, store_claim)                                                                             \
    X(renew, renew, store_renew)                                                                             \
    X(release, release, store_release)                                                                       \
    X(evict, evict, store_evict)                                                                             \
    X(scan, scan, store_scan)                                                                                \
    X(member, member, store_member)                                                                          \
    X(doorbell_arm, doorbell_arm, store_doorbell)                                                            \
    X(doorbell_disarm, doorbell_disarm, store_doorbell)                                                      \
    X(snapshot, snapshot, store_snapshot)                                                                    \
    X(outbox, outbox, store_outbox)                                                                          \
    X(look, look, store_look)                                                                                \
    X(admit, admit, store_attempts)                                                                          \
    X(admit_signed, admit_signed, store_attempts)                                                            \
    X(note, note, store_note)                                                                                \
    X(attempt, attempt, store_attempts)                                                                      \
    X(fill, fill, store_attempts)                                                                            \
    X(state, state, store_states)                                                                            \
    X(finish, finish, store_finish)                                                                          \
    X(reject, reject, store_finish)                                                                          \
    X(requeue, requeue, store_finish)                                                                        \
    X(nonce, nonce, store_nonce)                                                                             \
    X(pause, pause, store_pause)                                                                             \
    X(adopt, adopt, store_adopt)                                                                             \
    X(enqueue, enqueue, store_enqueue)                                                                       \
    X(cancel, cancel, store_ask)                                                                             \
    X(bump, bump, store_ask)                                                                                 \
    X(resume, resume, store_ask)

struct store_ops {
    void (*open)(struct store *s);
    void (*close)(struct store *s, void (*cb)(void *arg), void *arg);
#define X(name, op, type) void (*op)(struct store * s, struct type * r);
    STORE_REQUESTS(X)
#undef X
};

struct store {
    const struct store_ops *ops;
    struct loop *loop;
    enum store_state state;
};

/* Memory that lives until store_req_done; `extra` is handed to free_extra then. */
void *store__arena(struct store_req *req, size_t n, void *extra, void (*free_extra)(void *extra));

/* Answer from the next round of the loop with what req->err says. */
void store__answer_later(struct store *s, struct store_req *req);

#endif

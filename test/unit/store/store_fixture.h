/* Stores under test and requests that are waited for. */
#ifndef STORE_STORE_FIXTURE_H
#define STORE_STORE_FIXTURE_H

#include "fixture.h"
#include "store/lead.h"
#include "store/migrate.h"
#include "store/operator.h"
#include "store/outbox.h"
#include "store/pending.h"

struct fx_store {
    struct loop *l;
    struct store *s;
    bool is_pg;
    int ups, downs, control_lost, wakes, events;
    struct err down_err;
    char event[200]; /* the last one */
    bool closed;
};
extern struct store_req *fx_last_done;
void fx_on_done(struct store_req *req);

/* Start a request and run the loop until it is answered. */
#define RUN(x, kind, r)                                                                            \
    do {                                                                                           \
        fx_last_done = NULL;                                                                       \
        store_##kind##_start((x)->s, (r), fx_on_done);                                             \
        assert_null(fx_last_done); /* never inside the start */                                    \
        WAIT_FOR((x)->l, fx_last_done == &(r)->req);                                               \
    } while (0)
#define RUN_OK(x, kind, r)                                                                         \
    do {                                                                                           \
        RUN(x, kind, r);                                                                           \
        if ((r)->req.err.code)                                                                     \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, err_name((r)->req.err.code),             \
                     (r)->req.err.text);                                                           \
    } while (0)

void fx_store_pg(struct fx_store *x, struct loop *l,
                 struct store_pg_config *config); /* fills what is not set */
void fx_store_mem(struct fx_store *x, struct loop *l);
void fx_store_up(struct fx_store *x);
void fx_store_close(struct fx_store *x);
void fx_migrate(const char *dsn); /* must succeed */

/* A new account, claimed: its number and epoch. */
struct fx_account {
    int32_t account;
    int64_t epoch, lock_key;
    char alias[32];
};
void fx_account_new(struct fx_store *x, struct fx_account *a);
void fx_account_claim(struct fx_store *x, struct fx_account *a, const char *holder);
int64_t fx_enqueue(struct fx_store *x, const struct fx_account *a, const char *call,
                   int32_t priority);
void fx_hash(uint8_t out[32], int n); /* a hash that only n has */
/* Enqueue and admit n transactions from nonce `first` on, hash i = fx_hash(first + i). */
void fx_admit(struct fx_store *x, struct fx_account *a, int64_t first, size_t n);

#endif

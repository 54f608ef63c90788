/* Private to sim_audit*.c: one statement, and what stood in the tables before it. */
#ifndef TEST_SIM_SIM_AUDIT_H
#define TEST_SIM_SIM_AUDIT_H

#include "sim.h"

enum { ROWS_MAX = 1024 }; /* rows of one request: the most of the manager (FINISH_BATCH_MAX) */

/* Of a row that the statement names, before. */
struct before {
    int64_t id; /* 0: filler, or none */
    bool used, waiting;
    enum mem_outcome stop_outcome;
    enum mem_state state;
    uint32_t tx;
    uint32_t retries;
};

struct audit {
    struct world *w;
    const struct request *x;
    int process, account;
    const struct mem_session *by;
    struct mem_account was; /* pointers in it are of no use afterwards */
    char suspension[24];
    size_t count;
    struct before rows[ROWS_MAX];
};

/* After a failover that lost commits a relay may do in good faith what was right once. */
static inline bool lossy(const struct audit *t)
{
    return t->w->db.lossy;
}

/* It waits for what they have sent, except where it cannot or is told not to. */
static inline bool may_double(const struct audit *t)
{
    return db_may_double(t->w);
}

/* sim_audit_attempts.c */
void audit_attempts(const struct audit *t);
void audit_adopted(const struct audit *t);

/* sim_audit_ends.c */
void audit_finished(const struct audit *t);
void audit_requeued(const struct audit *t);
void audit_rejected(const struct audit *t);

/* sim_audit_lead.c */
void audit_renewed(const struct audit *t);
void audit_evicted(const struct audit *t);

#endif

/* What an account's leader counts for the metrics, how long transactions take, and the lines of the
 * log about their steps. Nothing here decides anything. */
#include "account/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/table.h"

/* One nonce in use, while this relay leads. */
struct tally_row {
    uint64_t nonce;
    int64_t id; /* 0: not known, or a filler */
    struct tx_origin origin;
    uint8_t submitted[32]; /* hash of the last bytes that went to a node */
    bool pooled, in_block; /* observed */
    UT_hash_handle hh;
    struct tally_row *next; /* of the service's unused ones: a transaction costs no allocation */
};

static struct tally_row *find(struct account *a, uint64_t nonce)
{
    struct tally_row *row = NULL;
    HASH_FIND(hh, a->tally_rows, &nonce, sizeof(nonce), row);
    return row;
}

static struct tally_row *get(struct account *a, uint64_t nonce)
{
    struct tally_row *row = find(a, nonce);
    if (row)
        return row;
    row = a->service->tally_unused;
    if (row)
        a->service->tally_unused = row->next;
    else
        row = xmalloc(sizeof(*row));
    *row = (struct tally_row){.nonce = nonce};
    HASH_ADD(hh, a->tally_rows, nonce, sizeof(row->nonce), row);
    return row;
}

static void drop(struct account *a, struct tally_row *row)
{
    HASH_DELETE(hh, a->tally_rows, row);
    row->next = a->service->tally_unused;
    a->service->tally_unused = row;
}

void tally_done(struct service *s)
{
    while (s->tally_unused) {
        struct tally_row *row = s->tally_unused;
        s->tally_unused = row->next;
        free(row);
    }
}

void tally_forget(struct account *a)
{
    struct tally_row *row, *next;
    HASH_ITER(hh, a->tally_rows, row, next)
    drop(a, row);
}

static void observe(struct account *a, const struct tally_row *row, enum relay_stage stage)
{
    enum { MS_PER_S = 1000 };
    if (!row || !row->origin.known)
        return;
    int64_t took = (int64_t)loop_now_ms(a->service->loop) - row->origin.enqueued_ms;
    metric_observe(&a->stages[stage], took > 0 ? (double)took / MS_PER_S : 0);
}

/* The trace is a field only where there is one. `trace` is evaluated once more than that. */
#define LOG_TRACED(level, event, trace, fmt, ...)                                                  \
    do {                                                                                           \
        if (*(trace))                                                                              \
            log_line(level, event, fmt " trace=%s", __VA_ARGS__, trace);                           \
        else                                                                                       \
            log_line(level, event, fmt, __VA_ARGS__);                                              \
    } while (0)

static const char *trace_of(const struct tally_row *row)
{
    return row ? row->origin.trace : "";
}

/* A step that a transaction took. */
static void log_step(const struct account *a, const char *event, int64_t id,
                     const struct tally_row *row, uint64_t nonce, const uint8_t hash[32])
{
    if (log_is_on(log_steps_level()))
        LOG_TRACED(log_steps_level(), event, trace_of(row), "account=%s id=%lld nonce=%llu hash=%s",
                   a->alias, (long long)id, (unsigned long long)nonce, hex_log(hash, 32));
}

static void log_state(const struct account *a, const struct tally_row *row,
                      const struct tx_report *r)
{
    if (log_is_on(log_steps_level()))
        LOG_TRACED(log_steps_level(), "transaction.state", trace_of(row),
                   "account=%s id=%lld nonce=%llu hash=%s state=%s block=%lld text=\"%s\"",
                   a->alias, (long long)r->id, (unsigned long long)r->nonce, hex_log(r->hash, 32),
                   r->state, r->has_block ? (long long)r->block_number : -1LL, r->error);
}

const char *relay_outcome_name(enum relay_outcome outcome)
{
    static const char *const names[] = {
        [RELAY_OUTCOME_OK] = "ok",
        [RELAY_OUTCOME_DISPATCH_ERROR] = "dispatch_error",
        [RELAY_OUTCOME_FAILED] = "failed",
        [RELAY_OUTCOME_EXPIRED] = "expired",
        [RELAY_OUTCOME_CANCELLED] = "cancelled",
        [RELAY_OUTCOME_USURPED] = "usurped",
        [RELAY_OUTCOME_UNKNOWN] = "unknown",
    };
    PRE(outcome < ARRAY_LEN(names));
    return names[outcome];
}

static void count_outcome(struct account_counts *c, const char *name)
{
    for (enum relay_outcome o = 0; o < RELAY_OUTCOMES; o++)
        c->outcomes[o] += !strcmp(relay_outcome_name(o), name);
}

/* What took no effect is worth a line by itself; what did is, with its hash, for who asks. */
static void log_end(const struct account *a, const struct tx_end *end, bool has_nonce,
                    const char *trace)
{
    bool ok = !strcmp(end->outcome, relay_outcome_name(RELAY_OUTCOME_OK));
    bool cancelled = !strcmp(end->outcome, relay_outcome_name(RELAY_OUTCOME_CANCELLED));
    enum log_level level = ok ? log_steps_level() : cancelled ? LOG_LEVEL_INFO : LOG_LEVEL_WARN;
    static const uint8_t none[32];
    if (!log_is_on(level))
        return;
    bool has_hash = memcmp(end->hash, none, sizeof(none)) != 0;
    LOG_TRACED(level, "transaction.ended", trace,
               "account=%s id=%lld nonce=%lld hash=%s outcome=%s block=%lld text=\"%s\"", a->alias,
               (long long)end->id, has_nonce ? (long long)end->nonce : -1LL,
               has_hash ? hex_log(end->hash, sizeof(end->hash)) : "", end->outcome,
               end->has_block ? (long long)end->block_number : -1LL, end->error);
}

void tally_loaded(struct account *a, const struct tx_pending *rows, size_t count)
{
    int64_t now = (int64_t)loop_now_ms(a->service->loop);
    for (size_t i = 0; i < count; i++) {
        struct tally_row *row = get(a, rows[i].nonce);
        bool in_block = !strcmp(rows[i].state, tx_status_name(TX_IN_BLOCK));
        row->id = rows[i].id;
        row->origin = (struct tx_origin){.known = rows[i].id && rows[i].age_ms >= 0,
                                         .enqueued_ms = now - rows[i].age_ms};
        if (rows[i].trace)
            snprintf(row->origin.trace, sizeof(row->origin.trace), "%s", rows[i].trace);
        /* Which of these it has passed under another leader is not known: only its end is
         * measured. */
        row->pooled = true;
        row->in_block = in_block;
    }
}

/* A filler has taken the nonce of a transaction, which ends with it. */
static void ended_by_filler(struct account *a, const struct manager_sign_row *row,
                            const char *trace)
{
    struct tx_end end = {.nonce = row->nonce, .id = row->id, .outcome = row->outcome};
    memcpy(end.hash, row->hash, sizeof(end.hash));
    snprintf(end.error, sizeof(end.error), "%s", row->reason ? row->reason : "");
    count_outcome(&a->counts, end.outcome);
    log_end(a, &end, true, trace);
}

void tally_attempts(const struct op *op)
{
    struct account *a = op->account;
    struct account_counts *c = &a->counts;
    for (size_t i = 0; i < op->count; i++) {
        const struct tx_attempt *t = &op->attempts[i];
        struct tally_row *row = get(a, t->nonce);
        bool filler = op->effect == MANAGER_FX_FILL || op->rows.sign[i].filler;
        if (op->effect == MANAGER_FX_ADMIT) {
            c->admitted++;
            row->origin = op->rows.sign[i].origin;
            observe(a, row, RELAY_STAGE_NONCE);
        } else if (filler) {
            c->fillers++;
            if (op->effect == MANAGER_FX_FILL && op->rows.sign[i].id)
                ended_by_filler(a, &op->rows.sign[i], trace_of(row));
        } else {
            c->resigned++;
        }
        row->id = t->id;
        log_step(a,
                 op->effect == MANAGER_FX_ADMIT ? "transaction.admitted"
                 : filler                       ? "transaction.filler"
                                                : "transaction.resigned",
                 op->rows.sign[i].id, row, t->nonce, t->hash);
    }
}

void tally_submit(struct account *a, uint64_t nonce, const uint8_t hash[32])
{
    struct tally_row *row = get(a, nonce);
    a->counts.submitted++;
    a->counts.resubmitted += !memcmp(row->submitted, hash, sizeof(row->submitted));
    memcpy(row->submitted, hash, sizeof(row->submitted));
    log_step(a, "transaction.submitted", row->id, row, nonce, hash);
}

void tally_states(struct account *a, const struct tx_report *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tally_row *row = find(a, rows[i].nonce);
        bool in_block = !strcmp(rows[i].state, tx_status_name(TX_IN_BLOCK));
        bool pooled = !strcmp(rows[i].state, tx_status_name(TX_READY)) ||
                      !strcmp(rows[i].state, tx_status_name(TX_FUTURE)) ||
                      !strcmp(rows[i].state, tx_status_name(TX_BROADCAST));
        if (row && pooled && !row->pooled)
            observe(a, row, RELAY_STAGE_POOL);
        if (row && in_block && !row->in_block)
            observe(a, row, RELAY_STAGE_BLOCK);
        if (row && pooled)
            row->pooled = true;
        if (row && in_block)
            row->in_block = true;
        log_state(a, row, &rows[i]);
    }
}

void tally_ends(const struct op *op)
{
    struct account *a = op->account;
    bool finished = op->effect == MANAGER_FX_STORE_FINISH;
    bool requeued = op->effect == MANAGER_FX_STORE_REQUEUE;
    PRE(finished || requeued || op->effect == MANAGER_FX_STORE_REJECT);
    for (size_t i = 0; i < op->count; i++) {
        const struct tx_end *end = &op->rows.ends[i];
        struct tally_row *row = finished || requeued ? find(a, end->nonce) : NULL;
        if (end->has_fee)
            a->counts.fees += (double)end->fee;
        if (requeued) {
            a->counts.requeued++;
            log_step(a, "transaction.requeued", end->id, row, end->nonce, end->hash);
        } else if (end->id) { /* not a filler */
            count_outcome(&a->counts, end->outcome);
            log_end(a, end, finished, row ? row->origin.trace : end->trace);
        }
        if (finished && end->id && end->has_block)
            observe(a, row, RELAY_STAGE_FINALIZED);
        if (row)
            drop(a, row);
    }
}

void tally_ended(struct account *a, const struct store_ended *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tx_end end = {.id = rows[i].id, .outcome = rows[i].outcome};
        snprintf(end.error, sizeof(end.error), "%s", rows[i].error);
        count_outcome(&a->counts, end.outcome);
        log_end(a, &end, false, rows[i].trace);
    }
}

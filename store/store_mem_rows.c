/* Pending rows in memory: schema/migrations/0004_pending.sql is the text that this follows. A batch is
 * checked as a whole before anything changes. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store_mem.h"

void mem__tell(struct store_mem *s, const char *kind, const struct mem_account *a, const struct mem_row *row,
               const char *outcome, const char *error)
{
    static const uint8_t no_hash[32];
    if (!s->config.on_event)
        return;
    const uint8_t *hash = row->attempt_count ? row->attempts[row->attempt_count - 1].hash : no_hash;
    s->config.on_event(s->config.arg, kind, a->number, row->nonce, row->id, row->state, hash, outcome, error);
}

/* ---- the rows of an account ---- */

size_t mem__lower_bound(const struct mem_account *a, int64_t nonce)
{
    size_t lo = 0, hi = a->pending_count;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (a->pending[mid]->nonce < nonce)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct mem_row *mem__pending(const struct mem_account *a, int64_t nonce)
{
    size_t i = mem__lower_bound(a, nonce);
    return i < a->pending_count && a->pending[i]->nonce == nonce ? a->pending[i] : NULL;
}

void mem__pending_insert(struct mem_account *a, struct mem_row *row)
{
    size_t at = mem__lower_bound(a, row->nonce);
    if (a->pending_count == a->pending_cap) {
        a->pending_cap = a->pending_cap ? a->pending_cap * 2 : 64;
        a->pending = xrealloc(a->pending, a->pending_cap * sizeof(struct mem_row *));
    }
    memmove(a->pending + at + 1, a->pending + at, (a->pending_count - at) * sizeof(struct mem_row *));
    a->pending[at] = row;
    a->pending_count++;
    if (a->first_nonce < 0 || row->nonce < a->first_nonce)
        a->first_nonce = row->nonce;
}

/* Those marked as leaving are freed. */
static void remove_leaving(struct mem_account *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->pending_count; i++) {
        if (a->pending[i]->leaving)
            mem__row_free(a->pending[i]);
        else
            a->pending[n++] = a->pending[i];
    }
    a->pending_count = n;
}

bool mem__mid_submission(const struct mem_account *a)
{
    for (size_t i = a->pending_count; i; i--) /* newest first: that is where such rows are */
        if (a->pending[i - 1]->unknown || !strcmp(a->pending[i - 1]->state, "signed"))
            return true;
    return false;
}

static void set_state(struct mem_row *row, const char *state)
{
    size_t n = strlen(state);
    INVARIANT(n < sizeof(row->state));
    memcpy(row->state, state, n + 1);
}

void mem__row_attempt(struct mem_row *row, const struct store_attempts *r, const struct store_attempt_row *in)
{
    row->attempts = xrealloc(row->attempts, (row->attempt_count + 1) * sizeof(*row->attempts));
    struct mem_attempt *t = &row->attempts[row->attempt_count++];
    *t = (struct mem_attempt){.extrinsic = mem__copy_bytes(in->extrinsic.data, in->extrinsic.len),
                              .tip = xstrdup(in->tip ? in->tip : "0"),
                              .era_birth = in->era_birth,
                              .era_death = in->era_death,
                              .spec_version = r->spec_version,
                              .block = r->block};
    memcpy(t->hash, in->hash, 32);
    set_state(row, "signed");
    row->unknown = row->has_block = false;
}

/* The number of the attempt with this hash, 0: none. */
static size_t attempt_of(const struct mem_row *row, const uint8_t hash[32])
{
    for (size_t i = row->attempt_count; i; i--)
        if (!memcmp(row->attempts[i - 1].hash, hash, 32))
            return i;
    return 0;
}

/* ---- attempts ---- */

/* No nonce twice: marks and unmarks the rows; a nonce without a row is for the caller to judge. */
static int check_nonces(const struct mem_account *a, size_t count,
                        int64_t (*nonce_of)(const void *rows, size_t i), const void *rows, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        struct mem_row *row = mem__pending(a, nonce_of(rows, i));
        if (row && row->leaving)
            rc = err_set(err, ERR_BUG, "nonce %lld is given more than once", (long long)row->nonce);
        if (row)
            row->leaving = true;
    }
    for (size_t i = 0; i < count; i++) {
        struct mem_row *row = mem__pending(a, nonce_of(rows, i));
        if (row)
            row->leaving = false;
    }
    return rc;
}

static int64_t attempt_nonce(const void *rows, size_t i)
{
    return ((const struct store_attempt_row *)rows)[i].nonce;
}

static int64_t finish_nonce(const void *rows, size_t i)
{
    return ((const struct store_finish_row *)rows)[i].nonce;
}

void mem__attempt(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || check_nonces(a, r->count, attempt_nonce, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, r->rows[i].nonce);
        if (!row)
            err_set(&r->req.err, ERR_DB_CONFLICT, "nonce %lld is not pending", (long long)r->rows[i].nonce);
        else if (attempt_of(row, r->rows[i].hash))
            err_set(&r->req.err, ERR_BUG, "nonce %lld has these bytes already, as attempt %zu",
                    (long long)row->nonce, attempt_of(row, r->rows[i].hash));
        if (r->req.err.code)
            return;
    }
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, r->rows[i].nonce);
        mem__row_attempt(row, r, &r->rows[i]);
        mem__tell(s, "update", a, row, NULL, NULL);
    }
}

bool mem__ends(const char *outcome)
{
    static const char *const names[] = {"expired", "cancelled", "failed", "usurped"};
    for (size_t i = 0; outcome && i < ARRAY_LEN(names); i++)
        if (!strcmp(outcome, names[i]))
            return true;
    return false;
}

/* Fillers above the next nonce continue the nonces. Returns the next nonce after them, or -1 with the error.
 */
static int64_t check_fill(const struct mem_account *a, const struct store_attempts *r, struct err *err)
{
    int64_t next = mem__next_nonce(a), top = -1;
    size_t above = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        const struct mem_row *row = mem__pending(a, in->nonce);
        if (row && (!mem__ends(in->outcome) || !strcmp(row->state, "finalized"))) {
            err_set(err, ERR_BUG, "nonce %lld (%s) cannot end as %s", (long long)in->nonce, row->state,
                    in->outcome ? in->outcome : "NULL");
            return -1;
        }
        above += next >= 0 && in->nonce >= next;
        top = in->nonce > top ? in->nonce : top;
    }
    if (next < 0)
        return top + 1;
    if (above && top != next + (int64_t)above - 1) {
        err_set(err, ERR_BUG, "fillers up to %lld leave a gap above the next nonce %lld of account %s",
                (long long)top, (long long)next, a->alias);
        return -1;
    }
    return next + (int64_t)above;
}

/* The row goes on as a filler: the attempts made at the nonce stay known. */
static void become_filler(struct mem_row *row, const struct store_attempt_row *in)
{
    free((void *)row->call.data);
    free(row->creator);
    free(row->key);
    row->creator = row->key = NULL;
    row->id = 0;
    row->nonce = in->nonce;
    row->call = mem__copy_bytes(in->call.data, in->call.len);
}

void mem__fill(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || check_nonces(a, r->count, attempt_nonce, r->rows, &r->req.err))
        return;
    int64_t next = check_fill(a, r, &r->req.err);
    if (next < 0)
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        bool fresh = !row;
        if (row)
            mem__tell(s, "finished", a, row, in->outcome, in->reason);
        else
            row = xcalloc(1, sizeof(*row));
        become_filler(row, in);
        mem__row_attempt(row, r, in);
        if (fresh)
            mem__pending_insert(a, row);
        mem__tell(s, "new", a, row, NULL, NULL);
    }
    r->next_nonce = a->next_nonce = next;
}

/* ---- states ---- */

static bool names_block(const char *state)
{
    return !strcmp(state, "in_block") || !strcmp(state, "retracted") || !strcmp(state, "finality_timeout") ||
           !strcmp(state, "finalized");
}

static bool is_state(const char *state)
{
    static const char *const plain[] = {"future",  "ready",   "broadcast", "usurped",
                                        "dropped", "invalid", "unknown"};
    for (size_t i = 0; i < ARRAY_LEN(plain); i++)
        if (!strcmp(state, plain[i]))
            return true;
    return names_block(state);
}

static bool same_block(const struct mem_row *row, const struct store_state_row *in)
{
    if (!row->has_block || !in->block_hash.data)
        return !row->has_block && !in->block_hash.data;
    return in->block_hash.len == 32 && !memcmp(row->block_hash, in->block_hash.data, 32);
}

static int check_state(const struct mem_account *a, const struct store_state_row *in, struct err *err)
{
    const struct mem_row *row = mem__pending(a, in->nonce);
    if (!in->state || !strcmp(in->state, "signed"))
        return err_set(err, ERR_BUG, "nonce %lld cannot go back to signed", (long long)in->nonce);
    if (!is_state(in->state))
        return err_set(err, ERR_DB, "no such state: \"%.40s\"", in->state);
    if (names_block(in->state) && !in->block_hash.data)
        return err_set(err, ERR_ARGUMENT, "nonce %lld: %s names no block", (long long)in->nonce, in->state);
    if (in->block_hash.data && in->block_hash.len != 32)
        return err_set(err, ERR_DB, "block hash has %zu bytes", in->block_hash.len);
    if (row && !attempt_of(row, in->hash))
        return err_set(err, ERR_BUG, "nonce %lld has no attempt with this hash", (long long)in->nonce);
    if (row && !strcmp(row->state, "finalized") && attempt_of(row, in->hash) == row->attempt_count &&
        (strcmp(in->state, "finalized") != 0 || !same_block(row, in)))
        return err_set(err, ERR_BUG, "nonce %lld: what is finalized stays", (long long)in->nonce);
    return 0;
}

static void apply_state(struct store_mem *s, struct mem_account *a, const struct store_state_row *in)
{
    struct mem_row *row = mem__pending(a, in->nonce);
    if (!row || attempt_of(row, in->hash) != row->attempt_count)
        return; /* ended, or another attempt than the current one */
    row->unknown = !strcmp(in->state, "unknown");
    if (row->unknown)
        return;
    bool seen = strcmp(row->state, in->state) != 0 || !same_block(row, in);
    set_state(row, in->state);
    row->has_block = in->block_hash.data != NULL;
    row->block_number = in->block_number;
    if (row->has_block)
        memcpy(row->block_hash, in->block_hash.data, 32);
    if (seen)
        mem__tell(s, "update", a, row, NULL, in->error);
}

void mem__state(struct store_mem *s, struct store_states *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    for (size_t i = 0; a && i < r->count; i++)
        if (check_state(a, &r->rows[i], &r->req.err))
            return;
    for (size_t i = 0; a && i < r->count; i++)
        apply_state(s, a, &r->rows[i]);
}

/* ---- ends ---- */

static int check_finish(const struct mem_account *a, const struct store_finish_row *in, struct err *err)
{
    const struct mem_row *row = mem__pending(a, in->nonce);
    bool chain = in->outcome && (!strcmp(in->outcome, "ok") || !strcmp(in->outcome, "dispatch_error"));
    if (!chain && !mem__ends(in->outcome))
        return err_set(err, ERR_ARGUMENT, "nonce %lld: no such outcome: %s", (long long)in->nonce,
                       in->outcome ? in->outcome : "NULL");
    if (chain && in->block_number < 0)
        return err_set(err, ERR_ARGUMENT, "nonce %lld: %s names no block", (long long)in->nonce, in->outcome);
    if (!row && a->first_nonce >= 0 && in->nonce >= a->first_nonce && in->nonce < a->next_nonce)
        return err_set(err, ERR_BUG, "nonce %lld has ended before", (long long)in->nonce);
    if (!row)
        return err_set(err, ERR_DB_CONFLICT, "nonce %lld is not pending", (long long)in->nonce);
    if (in->block_number >= 0 && !attempt_of(row, in->hash))
        return err_set(err, ERR_BUG, "nonce %lld has no attempt with this hash", (long long)in->nonce);
    return 0;
}

/* The attempt that was included counts as the current one. */
static void make_current(struct mem_row *row, const uint8_t hash[32])
{
    size_t n = attempt_of(row, hash);
    struct mem_attempt t = row->attempts[n - 1];
    memmove(&row->attempts[n - 1], &row->attempts[n], (row->attempt_count - n) * sizeof(t));
    row->attempts[row->attempt_count - 1] = t;
}

void mem__finish(struct store_mem *s, struct store_finish *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || check_nonces(a, r->count, finish_nonce, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++)
        if (check_finish(a, &r->rows[i], &r->req.err))
            return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_finish_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        if (in->block_number >= 0) {
            bool seen = strcmp(row->state, "finalized") != 0;
            make_current(row, in->hash);
            set_state(row, "finalized");
            if (seen)
                mem__tell(s, "update", a, row, NULL, NULL);
        } else if (!strcmp(in->outcome, "usurped")) {
            set_state(row, "usurped");
        }
        mem__tell(s, "finished", a, row, in->outcome, in->error);
        row->leaving = true;
    }
    remove_leaving(a);
}

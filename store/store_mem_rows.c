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

bool mem__mid_submission(const struct mem_account *a)
{
    for (size_t i = a->pending_count; i; i--) /* newest first: that is where such rows are */
        if (a->pending[i - 1]->unknown || !strcmp(a->pending[i - 1]->state, "signed"))
            return true;
    return false;
}

void mem__set_state(struct mem_row *row, const char *state)
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
                              .filler_len = in->filler_len,
                              .block = r->block};
    memcpy(t->hash, in->hash, 32);
    mem__set_state(row, "signed");
    row->unknown = row->has_block = false;
}

size_t mem__attempt_of(const struct mem_row *row, const uint8_t hash[32])
{
    for (size_t i = row->attempt_count; i; i--)
        if (!memcmp(row->attempts[i - 1].hash, hash, 32))
            return i;
    return 0;
}

/* ---- attempts ---- */

int mem__check_nonces(const struct mem_account *a, size_t count,
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

static void replace(char **slot, const char *text)
{
    free(*slot);
    *slot = mem__copy(text);
}

static bool stops(const char *outcome)
{
    return mem__ends(outcome) && strcmp(outcome, "usurped") != 0;
}

static int check_attempt(const struct mem_account *a, const struct store_attempts *r,
                         const struct store_attempt_row *in, struct err *err)
{
    const struct mem_row *row = mem__pending(a, in->nonce);
    if (!row)
        return err_set(err, ERR_DB_CONFLICT, "nonce %lld is not pending", (long long)in->nonce);
    if (mem__attempt_of(row, in->hash))
        return err_set(err, ERR_BUG, "nonce %lld has these bytes already, as attempt %zu",
                       (long long)row->nonce, mem__attempt_of(row, in->hash));
    if (in->filler_len && (in->filler_len > in->extrinsic.len || !stops(in->outcome)))
        return err_set(err, ERR_BUG, "nonce %lld with a filler of %u bytes (in %zu) cannot end as %s",
                       (long long)row->nonce, in->filler_len, in->extrinsic.len,
                       in->outcome ? in->outcome : "NULL");
    if (row->id && !in->filler_len && a->transaction_version &&
        a->transaction_version != r->transaction_version)
        return err_set(err, ERR_DB_CONFLICT, "account %s signs under transaction version %u, not %u",
                       a->alias, a->transaction_version, r->transaction_version);
    return 0;
}

void mem__attempt(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(a, r->count, attempt_nonce, r->rows, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++)
        if (check_attempt(a, r, &r->rows[i], &r->req.err))
            return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        mem__row_attempt(row, r, in);
        if (in->filler_len) {
            replace(&row->stop_outcome, in->outcome);
            replace(&row->stop_reason, in->stop_reason);
        }
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
    char **texts[] = {&row->creator, &row->key,          &row->tip,         &row->max_tip,
                      &row->bump,    &row->stop_outcome, &row->stop_reason, &row->refusal};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        replace(texts[i], NULL);
    free((void *)row->call.data);
    row->not_before = row->deadline = 0;
    row->guard = row->retries = 0;
    row->priority = 0;
    row->cancelled = false;
    row->deadline_block = -1;
    row->id = 0;
    row->nonce = in->nonce;
    row->call = mem__copy_bytes(in->call.data, in->call.len);
}

static void end_for_filler(struct store_mem *s, struct mem_account *a, const struct mem_row *row,
                           const struct store_attempt_row *in)
{
    mem__tell(s, "finished", a, row, in->outcome, in->reason);
    if (!strcmp(in->outcome, "usurped"))
        mem__used(a, in->nonce, -1);
}

void mem__fill(struct store_mem *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || mem__check_nonces(a, r->count, attempt_nonce, r->rows, &r->req.err))
        return;
    int64_t next = check_fill(a, r, &r->req.err);
    if (next < 0)
        return;
    for (size_t i = 0; i < r->count; i++) {
        const struct store_attempt_row *in = &r->rows[i];
        struct mem_row *row = mem__pending(a, in->nonce);
        bool fresh = !row;
        if (row)
            end_for_filler(s, a, row, in);
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
                                        "dropped", "invalid", "unknown",   "refused"};
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
    if (row && !mem__attempt_of(row, in->hash))
        return err_set(err, ERR_BUG, "nonce %lld has no attempt with this hash", (long long)in->nonce);
    if (row && strcmp(in->state, "refused") != 0 && !strcmp(row->state, "finalized") &&
        mem__attempt_of(row, in->hash) == row->attempt_count &&
        (strcmp(in->state, "finalized") != 0 || !same_block(row, in)))
        return err_set(err, ERR_BUG, "nonce %lld: what is finalized stays", (long long)in->nonce);
    return 0;
}

/* The state stays. Followers of a database are not told, they can read the history; whoever reads a memory
 * store's events has nothing else to read, so a new reason is told once. */
static void apply_refusal(struct store_mem *s, struct mem_account *a, struct mem_row *row,
                          const struct store_state_row *in)
{
    const char *why = in->error ? in->error : "";
    if (row->refusal && !strcmp(row->refusal, why))
        return;
    replace(&row->refusal, why);
    mem__tell(s, "update", a, row, NULL, why);
}

static void apply_state(struct store_mem *s, struct mem_account *a, const struct store_state_row *in)
{
    struct mem_row *row = mem__pending(a, in->nonce);
    if (!row || mem__attempt_of(row, in->hash) != row->attempt_count)
        return; /* ended, or another attempt than the current one */
    if (!strcmp(in->state, "refused")) {
        apply_refusal(s, a, row, in);
        return;
    }
    row->unknown = !strcmp(in->state, "unknown");
    if (row->unknown)
        return;
    bool seen = strcmp(row->state, in->state) != 0 || !same_block(row, in);
    mem__set_state(row, in->state);
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

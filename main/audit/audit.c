#include "audit/audit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"

enum { DAY_MS = 86400000 };

const char *audit_class_name(enum audit_class c)
{
    static const char *const names[] = {"ok", "dispatch_error", "filler", "foreign", "open"};
    PRE(c < AUDIT_CLASSES);
    return names[c];
}

/* ---- findings ---- */

__attribute__((format(printf, 6, 7))) static void found(struct audit *a, size_t account,
                                                        int64_t nonce, int64_t id, uint64_t block,
                                                        const char *format, ...)
{
    GROW(a->findings, a->finding_count, a->finding_cap);
    struct audit_finding *f = &a->findings[a->finding_count++];
    *f = (struct audit_finding){.account = account, .nonce = nonce, .id = id, .block = block};
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof(f->text), format, args);
    va_end(args);
}

/* ---- sums ---- */

static struct audit_sum *sum_of(struct audit *a, size_t account, const char *creator, int64_t day)
{
    /* Blocks come in order and their times rise, so the sums of a day follow those of the day
     * before it. */
    for (size_t i = a->sum_count; i-- > 0;) {
        struct audit_sum *s = &a->sums[i];
        if (s->day >= 0 && s->day < day)
            break;
        if (s->account == account && s->day == day && !strcmp(s->creator, creator))
            return s;
    }
    GROW(a->sums, a->sum_count, a->sum_cap);
    struct audit_sum *s = &a->sums[a->sum_count++];
    *s = (struct audit_sum){.account = account, .day = day};
    snprintf(s->creator, sizeof(s->creator), "%s", creator);
    return s;
}

static void add(struct audit *a, const struct audit_chunk *c, const struct audit_extrinsic *x,
                enum audit_class class, const char *creator)
{
    int64_t ms = c->blocks[x->block].time_ms;
    struct audit_sum *s = sum_of(a, x->account, creator, ms < 0 ? -1 : ms / DAY_MS);
    s->count[class]++;
    if (x->result.has_fee && class == AUDIT_FOREIGN)
        s->foreign += x->result.fee;
    else if (x->result.has_fee)
        s->fees += x->result.fee;
}

/* ---- a record against its block ---- */

static const struct audit_extrinsic *extrinsic_at(const struct audit_chunk *c, size_t block,
                                                  const uint8_t hash[32])
{
    size_t low = 0, high = c->extrinsic_count;
    while (low < high) { /* the first one of the block */
        size_t middle = low + (high - low) / 2;
        if (c->extrinsics[middle].block < block)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < c->extrinsic_count && c->extrinsics[i].block == block; i++)
        if (!memcmp(c->extrinsics[i].hash, hash, 32))
            return &c->extrinsics[i];
    return NULL;
}

/* Whose call the record speaks of: the transaction's own, or a filler's in its place. */
static bool own_call(const struct audit_record *r)
{
    return (r->id || r->requeued) &&
           (!strcmp(r->outcome, "ok") || !strcmp(r->outcome, "dispatch_error"));
}

static void check_outcome(struct audit *a, const struct audit_record *r,
                          const struct audit_extrinsic *x)
{
    static const char *const happened[] = {"has no result in the block's events", "succeeded",
                                           "failed"};
    enum dispatch_outcome must = !strcmp(r->outcome, "ok") ? DISPATCH_OK : DISPATCH_FAILED;
    if (own_call(r) && x->result.outcome != must)
        found(a, r->account, r->nonce, r->id, r->block,
              "the record says %s, and the call %s%s%s (extrinsic %u)", r->outcome,
              happened[x->result.outcome], x->result.error[0] ? ": " : "", x->result.error,
              x->index);
}

static void check_fee(struct audit *a, const struct audit_record *r,
                      const struct audit_extrinsic *x)
{
    char mine[40], theirs[40];
    if (!x->result.has_fee || (r->has_fee && r->fee == x->result.fee))
        return;
    found(a, r->account, r->nonce, r->id, r->block,
          "the record says a fee of %s, the chain took %s",
          r->has_fee ? u128_text(r->fee, mine) : "nothing", u128_text(x->result.fee, theirs));
}

static void check_record(struct audit *a, const struct audit_chunk *c, const struct audit_record *r)
{
    size_t at = (size_t)(r->block - c->blocks[0].number);
    const struct audit_block *b = &c->blocks[at];
    a->records++;
    if (memcmp(b->hash, r->block_hash, 32) != 0) {
        found(a, r->account, r->nonce, r->id, r->block,
              "the record names block %s, and the final block of this height is %s",
              hex_log(r->block_hash, 32), hex_log(b->hash, 32));
        return;
    }
    const struct audit_extrinsic *x = extrinsic_at(c, at, r->hash);
    if (!x && b->unread)
        return; /* it may be one of those that do not decode, which are reported */
    if (!x) {
        found(a, r->account, r->nonce, r->id, r->block,
              "the record names extrinsic %s, which is not in the block", hex_log(r->hash, 32));
        return;
    }
    if (x->account != r->account || (int64_t)x->nonce != r->nonce)
        found(a, r->account, r->nonce, r->id, r->block, "extrinsic %s is %s's at nonce %llu",
              hex_log(r->hash, 32), a->accounts[x->account].alias, (unsigned long long)x->nonce);
    else if (x->index != r->index)
        found(a, r->account, r->nonce, r->id, r->block,
              "the record says extrinsic %u of the block, it is %u", r->index, x->index);
    if (b->no_outcomes)
        return;
    check_outcome(a, r, x);
    check_fee(a, r, x);
}

/* ---- an extrinsic against the records ---- */

static const struct audit_record *record_of(const struct audit_chunk *c,
                                            const struct audit_extrinsic *x)
{
    uint64_t number = c->blocks[x->block].number;
    size_t low = 0, high = c->record_count;
    while (low < high) { /* the first one that names the block */
        size_t middle = low + (high - low) / 2;
        if (c->records[middle].block < number)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < c->record_count && c->records[i].block == number; i++) {
        const struct audit_record *r = &c->records[i];
        if (r->account == x->account && !memcmp(r->hash, x->hash, 32))
            return r;
    }
    return NULL;
}

static enum audit_class class_of(const struct audit_record *r)
{
    if (!own_call(r) && strcmp(r->outcome, "unknown") != 0)
        return AUDIT_FILLER;
    return !strcmp(r->outcome, "ok") ? AUDIT_OK : AUDIT_FAILED;
}

/* The chain has it, and no record names it in this block. */
static void check_unrecorded(struct audit *a, const struct audit_chunk *c,
                             const struct audit_extrinsic *x, const struct audit_known *k)
{
    uint64_t block = c->blocks[x->block].number;
    int64_t nonce = (int64_t)x->nonce;
    if (k->same && !k->has_block && strcmp(k->outcome, "unknown") != 0)
        found(a, x->account, nonce, k->id, block,
              "the record says %s, in no block, and extrinsic %s took effect", k->outcome,
              hex_log(x->hash, 32));
    else if (k->same && k->has_block)
        found(a, x->account, nonce, k->id, block,
              "extrinsic %s took effect here, and its record names another block",
              hex_log(x->hash, 32));
    else if (k->attempt && k->recorded && !k->same)
        found(a, x->account, nonce, k->id, block,
              "the record says %s of other bytes, and the attempt %s took effect", k->outcome,
              hex_log(x->hash, 32));
    else if (!k->attempt && k->recorded && k->has_block && !k->same)
        found(a, x->account, nonce, k->id, block,
              "the record says %s, and an extrinsic that is not on record, %s, has the nonce",
              k->outcome, hex_log(x->hash, 32));
    else if (k->pending && block + a->late < a->last)
        found(a, x->account, nonce, k->id, block,
              "extrinsic %s is final since %llu blocks, and its transaction has not ended",
              hex_log(x->hash, 32), (unsigned long long)(a->last - block));
    else if (k->attempt && !k->pending && !k->recorded)
        found(a, x->account, nonce, k->id, block,
              "the attempt %s took effect, and its nonce has no record", hex_log(x->hash, 32));
}

static void check_nonce(struct audit *a, const struct audit_extrinsic *x, uint64_t block)
{
    struct audit_account *account = &a->accounts[x->account];
    if (account->any && x->nonce > account->next_nonce)
        found(a, x->account, (int64_t)x->nonce, 0, block,
              "no extrinsic of the blocks before has nonce %llu",
              (unsigned long long)account->next_nonce);
    account->any = true;
    account->next_nonce = x->nonce + 1; /* a reaped account begins anew */
}

static void check_extrinsic(struct audit *a, const struct audit_chunk *c,
                            const struct audit_extrinsic *x, const struct audit_known *k)
{
    const struct audit_record *r = record_of(c, x);
    a->extrinsics++;
    check_nonce(a, x, c->blocks[x->block].number);
    if (r) {
        add(a, c, x, class_of(r), r->creator);
        return;
    }
    check_unrecorded(a, c, x, k);
    add(a, c, x, k->pending ? AUDIT_OPEN : AUDIT_FOREIGN, "");
}

/* ---- a chunk ---- */

void audit_compare(struct audit *a, const struct audit_chunk *c)
{
    PRE(c->block_count > 0);
    for (size_t i = 0; i < c->block_count; i++) {
        INVARIANT(c->blocks[i].number == c->blocks[0].number + i);
        a->unread += c->blocks[i].unread;
    }
    a->blocks += c->block_count;
    for (size_t i = 0; i < c->record_count; i++) {
        INVARIANT(i == 0 || c->records[i - 1].block <= c->records[i].block);
        check_record(a, c, &c->records[i]);
    }
    for (size_t i = 0; i < c->extrinsic_count; i++)
        check_extrinsic(a, c, &c->extrinsics[i], &c->known[i]);
}

void audit_twice(struct audit *a, size_t account, int64_t id, int64_t records)
{
    found(a, account, -1, id, 0, "%lld records say that it took effect", (long long)records);
}

void audit_chunk_done(struct audit_chunk *c)
{
    free(c->blocks);
    free(c->extrinsics);
    free(c->known);
    free(c->records);
    *c = (struct audit_chunk){0};
}

void audit_done(struct audit *a)
{
    free(a->accounts);
    free(a->sums);
    free(a->findings);
    *a = (struct audit){0};
}

/* Accounts, locks and claims in memory: schema/migrations/0003_leader.sql is the text that this follows. One
 * process has one session, so a lock is always free or its own. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "store_mem.h"

/* ---- accounts ---- */

struct mem_account *mem__account(struct store_mem *s, int32_t number, struct err *err)
{
    if (number >= 1 && (size_t)number <= s->account_count)
        return s->accounts[number - 1];
    err_set(err, ERR_ARGUMENT, "no such account: number %d", number);
    return NULL;
}

struct mem_account *mem__fence(struct store_mem *s, int32_t number, int64_t epoch, struct err *err)
{
    struct mem_account *a = mem__account(s, number, err);
    if (!a || (a->claimant && a->epoch == epoch))
        return a;
    err_set(err, ERR_LOST_LEADERSHIP, "stale epoch %lld for account %s: it is at epoch %lld, held by %s",
            (long long)epoch, a->alias, (long long)a->epoch, a->claimant ? a->claimant : "nobody");
    return NULL;
}

static bool same_bytes(const struct buf *b, const struct store_bytes *v)
{
    return b->len == v->len && !memcmp(b->data, v->data, v->len);
}

struct mem_account *mem__find(struct store_mem *s, const char *name)
{
    struct buf id = {0};
    struct mem_account *found = NULL;
    bool hex = !strncmp(name, "0x", 2) && hex_decode(name, strlen(name), &id);
    const struct store_bytes bytes = {.data = id.data, .len = id.len};
    for (size_t i = 0; i < s->account_count && !found; i++) {
        struct mem_account *a = s->accounts[i];
        if (!strcmp(a->alias, name) || !strcmp(a->address, name) ||
            (hex && id.len && same_bytes(&a->account_id, &bytes)))
            found = a;
    }
    buf_done(&id);
    return found;
}

static struct mem_account *new_account(struct store_mem *s, const struct store_enroll *r)
{
    struct mem_account *a = xcalloc(1, sizeof(*a));
    a->number = (int32_t)s->account_count + 1;
    a->alias = xstrdup(r->alias);
    a->scheme = xstrdup(r->scheme);
    a->address = xstrdup(r->address);
    buf_put(&a->account_id, r->account_id.data, r->account_id.len);
    buf_put(&a->genesis, r->genesis.data, r->genesis.len);
    a->lock_key = r->lock_key;
    a->next_nonce = a->first_nonce = a->used_nonce = a->used_block = -1;
    a->hold = "";
    list_init(&a->outbox);
    s->accounts = xrealloc(s->accounts, (s->account_count + 1) * sizeof(struct mem_account *));
    return s->accounts[s->account_count++] = a;
}

void mem__account_free(struct mem_account *a)
{
    mem__rows_free(a);
    free(a->alias);
    free(a->scheme);
    free(a->address);
    free(a->claimant);
    free(a->claimant_address);
    buf_done(&a->account_id);
    buf_done(&a->genesis);
    free(a);
}

void mem__enroll(struct store_mem *s, struct store_enroll *r)
{
    if ((r->account_id.len != 20 && r->account_id.len != 32) || r->genesis.len != 32) {
        err_set(&r->req.err, ERR_ARGUMENT, "account id has %zu bytes (20 or 32), genesis %zu (32)",
                r->account_id.len, r->genesis.len);
        return;
    }
    for (size_t i = 0; i < s->account_count; i++) {
        struct mem_account *a = s->accounts[i];
        bool alias = !strcmp(a->alias, r->alias);
        bool same = same_bytes(&a->account_id, &r->account_id) && same_bytes(&a->genesis, &r->genesis);
        if (!alias && !same && a->lock_key != r->lock_key)
            continue;
        if (!alias || !same || a->lock_key != r->lock_key || strcmp(a->scheme, r->scheme) != 0) {
            err_set(&r->req.err, ERR_ARGUMENT,
                    "account %s does not fit %s, which is registered: alias, id, genesis, scheme and lock "
                    "key belong "
                    "together",
                    r->alias, a->alias);
            return;
        }
        free(a->address);
        a->address = xstrdup(r->address);
        r->account = a->number;
        return;
    }
    r->account = new_account(s, r)->number;
}

/* ---- locks ---- */

static struct mem_account *by_lock_key(struct store_mem *s, int64_t key)
{
    for (size_t i = 0; i < s->account_count; i++)
        if (s->accounts[i]->lock_key == key)
            return s->accounts[i];
    return NULL;
}

void mem__lock(struct store_mem *s, struct store_lock *r)
{
    struct mem_account *a = by_lock_key(s, r->lock_key);
    if (a)
        a->locked = true;
    r->got = true;
}

void mem__unlock(struct store_mem *s, struct store_lock *r)
{
    struct mem_account *a = by_lock_key(s, r->lock_key);
    if (a)
        a->locked = false;
    r->got = false;
}

void mem__doorbell_arm(struct store_mem *s, struct store_doorbell *r)
{
    (void)s;
    r->armed = true; /* on_wake is called for every enqueue */
}

void mem__doorbell_disarm(struct store_mem *s, struct store_doorbell *r)
{
    (void)s;
    r->armed = false;
}

/* ---- claims ---- */

static bool may_claim(const struct mem_account *a, const struct store_claim *r, uint64_t now)
{
    if (!a->claimant || !strcmp(a->claimant, r->holder))
        return true;
    if (a->lock_held && r->have_lock)
        return true; /* the session that held it is gone */
    if (a->expiry_2 <= now)
        return true;
    return a->expiry_1 <= now && !mem__mid_submission(a);
}

static const char *keep_text(char **at, const char *s)
{
    char *out = *at;
    size_t n = strlen(s) + 1;
    memcpy(out, s, n);
    *at += n;
    return out;
}

static void keep_holder(const struct mem_account *a, struct store_req *req, const char **ret_holder,
                        const char **ret_address)
{
    const char *holder = a->claimant ? a->claimant : "";
    const char *address = a->claimant_address ? a->claimant_address : "";
    char *at = store__arena(req, strlen(holder) + strlen(address) + 2, NULL, NULL);
    *ret_holder = keep_text(&at, holder);
    *ret_address = keep_text(&at, address);
}

void mem__claim(struct store_mem *s, struct store_claim *r)
{
    struct mem_account *a = mem__account(s, r->account, &r->req.err);
    if (!a)
        return;
    if (!r->expiry_1_ms || r->expiry_2_ms < r->expiry_1_ms) {
        err_set(&r->req.err, ERR_ARGUMENT,
                "expiries are %u and %u ms: the first at least 1, the second not shorter", r->expiry_1_ms,
                r->expiry_2_ms);
        return;
    }
    uint64_t now = loop_now_ms(s->base.loop);
    r->granted = may_claim(a, r, now);
    if (r->granted) {
        free(a->claimant);
        free(a->claimant_address);
        a->claimant = xstrdup(r->holder);
        a->claimant_address = xstrdup(r->address ? r->address : "");
        a->lock_held = r->have_lock;
        a->epoch++;
        a->expiry_1 = now + r->expiry_1_ms;
        a->expiry_2 = now + r->expiry_2_ms;
    }
    const char *holder = a->claimant ? a->claimant : "",
               *address = a->claimant_address ? a->claimant_address : "";
    char *at = store__arena(&r->req, strlen(holder) + strlen(address) + 2, NULL, NULL);
    r->current_holder = keep_text(&at, holder);
    r->current_address = keep_text(&at, address);
    r->epoch = a->epoch;
    r->lock_held = a->lock_held;
    r->mid_submission = !r->granted && a->expiry_1 <= now && mem__mid_submission(a);
    r->expiry_1_left_ms = (int64_t)(a->expiry_1 - now);
    r->expiry_2_left_ms = (int64_t)(a->expiry_2 - now);
}

/* There is no other session to end; the answer says who leads. */
void mem__evict(struct store_mem *s, struct store_evict *r)
{
    struct mem_account *a = by_lock_key(s, r->lock_key);
    r->terminated = false;
    r->current_holder = r->current_address = "";
    r->epoch = r->expiry_1_left_ms = 0;
    if (!a)
        return;
    keep_holder(a, &r->req, &r->current_holder, &r->current_address);
    r->epoch = a->epoch;
    r->expiry_1_left_ms = a->claimant ? (int64_t)(a->expiry_1 - loop_now_ms(s->base.loop)) : 0;
}

static bool says_nothing_new(const struct mem_account *a, uint64_t now, int64_t known)
{
    bool in_force = a->claimant && a->expiry_1 > now && (a->locked || !a->lock_held);
    return in_force && a->epoch == known;
}

/* The lock of an account that this process does not hold is free. */
void mem__scan(struct store_mem *s, struct store_scan *r)
{
    uint64_t now = loop_now_ms(s->base.loop);
    size_t size = r->count * sizeof(struct store_seen);
    for (size_t i = 0; i < s->account_count; i++) {
        const struct mem_account *a = s->accounts[i];
        size += 2 + (a->claimant ? strlen(a->claimant) + strlen(a->claimant_address) : 0);
    }
    struct store_seen *seen = store__arena(&r->req, size, NULL, NULL);
    char *texts = (char *)(seen + r->count);
    r->seen = seen;
    r->seen_count = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct err ignored;
        const struct mem_account *a = mem__account(s, r->accounts[i], &ignored);
        if (!a || says_nothing_new(a, now, r->epochs[i]))
            continue;
        seen[r->seen_count++] = (struct store_seen){
            .index = i,
            .taken = a->locked,
            .lock_held = a->lock_held,
            .holder = keep_text(&texts, a->claimant ? a->claimant : ""),
            .address = keep_text(&texts, a->claimant ? a->claimant_address : ""),
            .epoch = a->epoch,
            .expiry_1_left_ms = a->claimant ? (int64_t)(a->expiry_1 - now) : 0,
            .expiry_2_left_ms = a->claimant ? (int64_t)(a->expiry_2 - now) : 0,
        };
    }
}

/* ---- members ---- */

static void member_remove(struct store_mem *s, size_t i)
{
    free(s->members[i].holder);
    s->member_count--;
    memmove(&s->members[i], &s->members[i + 1], (s->member_count - i) * sizeof(*s->members));
}

static void member_beat(struct store_mem *s, const struct store_member *r, uint64_t now)
{
    size_t at = 0;
    while (at < s->member_count && strcmp(s->members[at].holder, r->holder) < 0)
        at++;
    if (at == s->member_count || strcmp(s->members[at].holder, r->holder) != 0) {
        s->members = xrealloc(s->members, (s->member_count + 1) * sizeof(*s->members));
        memmove(&s->members[at + 1], &s->members[at], (s->member_count - at) * sizeof(*s->members));
        s->member_count++;
        s->members[at] = (struct mem_member){.holder = xstrdup(r->holder)};
    }
    s->members[at].serves = r->serves;
    s->members[at].best = r->best;
    s->members[at].heartbeat = now;
}

void mem__member(struct store_mem *s, struct store_member *r)
{
    uint64_t now = loop_now_ms(s->base.loop);
    size_t size = 0;
    r->count = 0;
    r->best_known = -1;
    if (!r->leave)
        member_beat(s, r, now);
    for (size_t i = s->member_count; i-- > 0;) {
        const struct mem_member *m = &s->members[i];
        if ((r->leave && !strcmp(m->holder, r->holder)) || m->heartbeat + r->ttl_ms <= now)
            member_remove(s, i);
        else
            size += sizeof(char *) + strlen(m->holder) + 1;
    }
    const char **holders = store__arena(&r->req, size, NULL, NULL);
    char *texts = (char *)(holders + s->member_count);
    for (size_t i = 0; i < s->member_count; i++)
        if (s->members[i].serves == r->serves) {
            holders[r->count++] = keep_text(&texts, s->members[i].holder);
            if (s->members[i].best > r->best_known)
                r->best_known = s->members[i].best;
        }
    r->holders = holders;
}

/* ---- renewal, release ---- */

void mem__renew(struct store_mem *s, struct store_renew *r)
{
    uint64_t now = loop_now_ms(s->base.loop);
    for (size_t i = 0; i < r->count; i++) {
        struct err ignored;
        struct mem_account *a = mem__fence(s, r->accounts[i], r->epochs[i], &ignored);
        r->renewed[i] = a && !strcmp(a->claimant, r->holder) &&
                        (!r->lock_keys || (a->locked && a->lock_key == r->lock_keys[i]));
        if (!r->renewed[i])
            continue;
        a->expiry_1 = now + r->expiry_1_ms;
        a->expiry_2 = now + r->expiry_2_ms;
    }
}

void mem__release(struct store_mem *s, struct store_release *r)
{
    struct err ignored;
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &ignored);
    r->released = a && !strcmp(a->claimant, r->holder);
    if (!r->released)
        return;
    free(a->claimant);
    free(a->claimant_address);
    a->claimant = a->claimant_address = NULL;
    a->lock_held = false;
}

/* ---- nonces, pauses ---- */

void mem__used(struct mem_account *a, int64_t nonce, int64_t block)
{
    if (nonce >= a->used_nonce)
        a->used_nonce = nonce + 1;
    if (block > a->used_block)
        a->used_block = block;
}

static int check_nonce(const struct mem_account *a, const struct store_nonce *r, struct err *err)
{
    int64_t last = a->pending_count ? a->pending[a->pending_count - 1]->nonce : -1;
    if (r->next_nonce < 0 || r->next_nonce <= last || (r->reborn && (a->pending_count || !a->reborn)) ||
        (r->next_nonce < a->next_nonce && !r->lower && !r->reborn))
        return err_set(err, ERR_BUG, "next nonce %lld for account %s: last pending is %lld, next was %lld",
                       (long long)r->next_nonce, a->alias, (long long)last, (long long)a->next_nonce);
    if (r->next_nonce < a->used_nonce && !r->reborn)
        return err_set(err, ERR_DB_CONFLICT,
                       "nonce %lld or a later one of account %s was used in a finalized block, by what is on "
                       "record",
                       (long long)r->next_nonce, a->alias);
    return 0;
}

void mem__nonce(struct store_mem *s, struct store_nonce *r)
{
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    if (!a || check_nonce(a, r, &r->req.err))
        return;
    if (r->reborn) {
        a->used_nonce = a->used_block = a->first_nonce = -1;
        a->reborn = false;
    }
    a->next_nonce = r->next_nonce;
}

/* Nothing was ever lost of it that could be found. */
void mem__adopt(struct store_mem *s, struct store_adopt *r)
{
    r->adopted = 0;
    mem__fence(s, r->account, r->epoch, &r->req.err);
}

/* A memory store has no operator's pause: only restarting or store_resume ends what the leader ordered. */
void mem__pause(struct store_mem *s, struct store_pause *r)
{
    static const char *const holds[] = {"payment", "reaped", "transaction_version"};
    struct mem_account *a = mem__fence(s, r->account, r->epoch, &r->req.err);
    const char *hold = r->hold ? NULL : "";
    for (size_t i = 0; r->hold && i < ARRAY_LEN(holds); i++)
        if (!strcmp(r->hold, holds[i]))
            hold = holds[i];
    if (a && !hold)
        err_set(&r->req.err, ERR_ARGUMENT, "hold is %.40s; it must be payment, reaped or transaction_version",
                r->hold);
    if (r->req.err.code)
        return;
    a->hold = hold;
    a->paused = *hold != 0;
}

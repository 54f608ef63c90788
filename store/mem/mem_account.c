/* Accounts: their registration and their names, and the fence of every request of a leader
 * (relay_register, fence, mid_submission of 11_leadership.sql; account_of, account_facts and
 * account_fingerprint). */
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "base/key_scheme.h"
#include "mem/mem.h"

struct mem_account *mem__account(const struct mem_db *db, int32_t number)
{
    return number >= 1 && (size_t)number <= db->t.account_count ? db->t.accounts[number - 1] : NULL;
}

struct mem_account *mem__fence(struct mem_db *db, int32_t number, int64_t epoch, struct err *err)
{
    struct mem_account *a = mem__account(db, number);
    if (!a) {
        mem__fail(err, "TR010", "no such account: number %d", number);
        return NULL;
    }
    if (!a->lead.holder || a->lead.epoch != epoch) {
        mem__fail(err, "TR001", "stale epoch %lld for account %s: it is at epoch %lld, held by %s",
                  (long long)epoch, a->alias, (long long)a->lead.epoch,
                  a->lead.holder ? a->lead.holder : "nobody");
        return NULL;
    }
    if (a->lead.timeline != db->timeline) {
        mem__fail(err, "TR001",
                  "stale epoch %lld for account %s: it was claimed on timeline %u of the database, "
                  "and this is timeline %u",
                  (long long)epoch, a->alias, a->lead.timeline, db->timeline);
        return NULL;
    }
    return a;
}

/* Newest first: that is where such rows are. */
bool mem__mid_submission(const struct mem_account *a)
{
    for (size_t i = a->pending_count; i; i--)
        if (a->pending[i - 1]->unknown || a->pending[i - 1]->state == MEM_SIGNED)
            return true;
    return false;
}

int64_t mem__next_nonce(const struct mem_account *a)
{
    if (a->next_nonce >= 0)
        return a->next_nonce;
    return a->pending_count ? mem__last_pending(a) + 1 : -1;
}

/* ---- names ---- */

static bool is_named(const struct mem_account *a, int way, const char *name, const struct buf *id)
{
    if (way == 0)
        return !strcmp(a->alias, name);
    if (way == 1)
        return id->len && mem__same_bytes(a->account_id, (struct store_bytes){id->data, id->len});
    return !strcmp(a->address, name);
}

/* By its alias, else by its id, else by its address as it was registered. That is all that is asked
 * here: the address with another chain's prefix is known to Postgres alone. */
struct mem_account *mem__account_of(const struct mem_db *db, const char *name, struct err *err)
{
    struct buf id = {0};
    struct mem_account *found = NULL;
    size_t count = 0;
    if (!strncmp(name, "0x", 2))
        hex_decode(name, strlen(name), &id);
    for (int way = 0; way < 3 && !count; way++)
        for (size_t i = 0; i < db->t.account_count; i++) {
            if (!is_named(db->t.accounts[i], way, name, &id))
                continue;
            found = found ? found : db->t.accounts[i];
            count++;
        }
    buf_done(&id);
    if (!count)
        mem__fail(err, "TR010", "no such account: \"%.80s\"", name);
    else if (count > 1)
        mem__fail(err, "TR011",
                  "account: \"%.80s\" means more than one account; use the alias, as \"%.64s\"",
                  name, found->alias);
    return count == 1 ? found : NULL;
}

/* ---- registration ---- */

static bool is_alias(const char *s)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char others[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = s ? strlen(s) : 0;
    return n >= 1 && n <= 64 && strchr(first, s[0]) && strspn(s, others) == n &&
           strncmp(s, "0x", 2) != 0;
}

static int check_enroll(const struct store_enroll *r, struct err *err)
{
    size_t address = r->address ? strlen(r->address) : 0;
    if (!is_alias(r->alias))
        return mem__fail(err, "TR011",
                         "alias is \"%.80s\"; 1 to 64 letters, digits, \".\", \"_\", \"-\", not "
                         "beginning with 0x",
                         r->alias ? r->alias : "");
    if (r->account_id.len != 20 && r->account_id.len != 32)
        return mem__fail(err, "TR011", "account id has %zu bytes; it must have 20 or 32",
                         r->account_id.len);
    enum key_scheme scheme;
    if (!r->scheme || !key_scheme_parse(r->scheme, &scheme))
        return mem__fail(err, "TR011",
                         "scheme is \"%.40s\"; it must be sr25519, ed25519, ecdsa or ethereum",
                         r->scheme ? r->scheme : "");
    if (r->genesis.len != 32)
        return mem__fail(err, "TR011", "genesis has %zu bytes; it must have 32", r->genesis.len);
    if (address < 1 || address > 128)
        return mem__fail(err, "TR011", "address has %zu characters; 1 to 128", address);
    if (r->era_longest < 4 || r->era_longest > 4096)
        return mem__fail(err, "TR011", "era is %u; it must be 4 to 4096", r->era_longest);
    return 0;
}

static bool same_key(const struct mem_account *a, const struct store_enroll *r)
{
    return mem__same_bytes(a->account_id, r->account_id) && mem__same_bytes(a->genesis, r->genesis);
}

/* The account that stands in the way of a new one, or is it. */
static struct mem_account *registered(const struct mem_db *db, const struct store_enroll *r)
{
    struct mem_account *by_key = NULL, *by_lock = NULL;
    for (size_t i = 0; i < db->t.account_count; i++) {
        struct mem_account *a = db->t.accounts[i];
        if (!strcmp(a->alias, r->alias))
            return a;
        by_key = by_key || !same_key(a, r) ? by_key : a;
        by_lock = by_lock || a->lead.lock_key != r->lock_key ? by_lock : a;
    }
    return by_key ? by_key : by_lock;
}

static int check_same(const struct mem_account *a, const struct store_enroll *r, struct err *err)
{
    bool alias = !strcmp(a->alias, r->alias);
    if (!alias && a->lead.lock_key == r->lock_key && !mem__same_bytes(a->account_id, r->account_id))
        return mem__fail(err, "TR011", "lock key is %lld for %s, and %s has the same",
                         (long long)r->lock_key, r->alias, a->alias);
    if (!alias)
        return mem__fail(err, "TR011", "alias is \"%s\", and this account is registered as \"%s\"",
                         r->alias, a->alias);
    if (mem__same_bytes(a->account_id, r->account_id) && !mem__same_bytes(a->genesis, r->genesis))
        return mem__fail(err, "TR015", "account %s is registered for another chain", r->alias);
    if (!same_key(a, r))
        return mem__fail(err, "TR011", "alias \"%s\" is registered for another id or genesis",
                         r->alias);
    if (strcmp(a->scheme, r->scheme) != 0)
        return mem__fail(err, "TR011", "scheme is %s, and %s is registered with %s", r->scheme,
                         r->alias, a->scheme);
    if (a->lead.lock_key != r->lock_key)
        return mem__fail(err, "TR011", "lock key is %lld, and %s is registered with %lld",
                         (long long)r->lock_key, r->alias, (long long)a->lead.lock_key);
    if (a->watch_only != r->watch_only)
        return mem__fail(err, "TR011", "watch_only is %d, and %s is registered %s a key",
                         r->watch_only, r->alias, a->watch_only ? "without" : "with");
    return 0;
}

static int check_beside(const struct mem_db *db, const struct store_enroll *r, struct err *err)
{
    for (size_t i = 0; i < db->t.account_count; i++) {
        const struct mem_account *a = db->t.accounts[i];
        for (size_t j = 0; j < r->beside_count; j++)
            if (!strcmp(a->alias, r->beside[j]) && !mem__same_bytes(a->genesis, r->genesis))
                return mem__fail(err, "TR015",
                                 "account %s is new, and %s of the same relay is registered for "
                                 "another chain",
                                 r->alias, a->alias);
    }
    return 0;
}

void mem__enroll(struct mem_session *s, struct store_enroll *r)
{
    if (check_enroll(r, &r->req.err))
        return;
    struct mem_account *a = registered(s->db, r);
    if (a ? check_same(a, r, &r->req.err) : check_beside(s->db, r, &r->req.err))
        return;
    if (!a) {
        a = mem__account_new(&s->db->t);
        a->alias = mem__text(r->alias);
        a->scheme = mem__text(r->scheme);
        a->account_id = mem__bytes(r->account_id);
        a->genesis = mem__bytes(r->genesis);
        a->lead.lock_key = r->lock_key;
        a->watch_only = r->watch_only;
        a->lead.timeline = s->db->timeline; /* the first claim may be among the lost commits */
    }
    if (r->era_longest > a->era_longest)
        a->era_longest = r->era_longest;
    a->era_immortal |= r->era_immortal;
    mem__replace(&a->address, r->address); /* another prefix, the same key */
    r->account = a->number;
}

/* ---- facts ---- */

void mem__facts(const struct mem_account *a, struct mem_answer *answer, struct store_account *ret)
{
    const struct mem_policy *p = &a->policy;
    *ret = (struct store_account){
        .paused = a->paused,
        .suspension = a->suspension,
        .reborn = a->reborn,
        .transaction_version = a->transaction_version,
        .tip_start = p->tip_start ? mem__put_amount(answer, p->tip_start) : "0",
        .tip_step = p->tip_step ? mem__put_amount(answer, p->tip_step) : "0",
        .tip_cap = p->has_tip_cap ? mem__put_amount(answer, p->tip_cap) : NULL,
        .tip_step_percent = p->tip_step_percent,
        .tip_after_blocks = p->tip_after_blocks,
        .skip_after_blocks = p->skip_after_blocks,
        .requeue_usurped = p->requeue_usurped,
        .low_balance = p->has_low_balance ? mem__put_amount(answer, p->low_balance) : NULL,
        .retry_refusals = *p->retry_refusals ? p->retry_refusals : NULL};
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

int64_t mem__fingerprint(const struct mem_account *a)
{
    const struct mem_policy *p = &a->policy;
    const u128 amounts[] = {p->tip_start, p->tip_step, p->tip_cap, p->low_balance};
    const uint64_t numbers[] = {p->has_tip_cap,
                                p->has_low_balance,
                                p->tip_step_percent,
                                p->tip_after_blocks,
                                p->skip_after_blocks,
                                p->requeue_usurped,
                                p->strict,
                                a->paused,
                                a->reborn,
                                a->transaction_version};
    uint64_t h = hash_bytes(a->suspension, strlen(a->suspension));
    h = mix(h, hash_bytes(p->retry_refusals, strlen(p->retry_refusals)));
    for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
        h = mix(mix(h, (uint64_t)amounts[i]), (uint64_t)(amounts[i] >> 64));
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        h = mix(h, numbers[i]);
    return (int64_t)(h & INT64_MAX);
}

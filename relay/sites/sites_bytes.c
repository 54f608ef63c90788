/* Signed bytes of an account that has sites: what this relay signs, and what it reads from those of
 * others. Eras begin some blocks below the last one that was read, so that the nodes of other sites
 * have that block too: who verifies a signature needs its hash. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "chain/codec/hash.h"
#include "chain/keys/extrinsic_sign.h"
#include "sites/sites.h"

enum { ERA_MIN = 4, NOT_SIGNED_MS = 10000 };

/* ---- signing ---- */

/* The room receives it from the loop. */
struct site_signing {
    struct site_signing *next;
    struct site_room_signed done;
    struct buf bytes;
};

static void signing_free(struct site_signing *g)
{
    buf_done(&g->bytes);
    free(g);
}

/* One line for all that were not signed since the last one: after a change of leader hundreds may
 * have the same reason, and each is tried again every second. */
static void tell_not_signed(struct site_host *h)
{
    uint64_t now = loop_now_ms(h->room->room.service->loop);
    if (!h->not_signed.count || now < h->not_signed.tell_at)
        return;
    log_warn("site.not_signed", "account=%s nonce=%llu count=%zu code=%s text=\"%s\"",
             h->account->alias, (unsigned long long)h->not_signed.nonce, h->not_signed.count,
             err_name(h->not_signed.err.code), h->not_signed.err.text);
    h->not_signed.count = 0;
    h->not_signed.tell_at = now + NOT_SIGNED_MS;
}

static void note_not_signed(struct site_host *h, uint64_t nonce, const struct err *err)
{
    h->not_signed.count++;
    h->not_signed.nonce = nonce;
    h->not_signed.err = *err;
}

static void tell_signed(struct loop_task *task)
{
    struct site_host *h = CONTAINER_OF(task, struct site_host, sign_task);
    struct site_signing *first = h->signings;
    struct site_room_signed *all;
    size_t count = 0;
    h->signings = NULL;
    tell_not_signed(h);
    for (const struct site_signing *g = first; g; g = g->next)
        count++;
    all = xcalloc(count + 1, sizeof(*all));
    count = 0;
    for (const struct site_signing *g = first; g; g = g->next)
        all[count++] = g->done;
    if (h->phase == HOST_LED)
        site_account_signed(h->site, all, count);
    free(all);
    for (struct site_signing *g = first, *next; g; g = next) {
        next = g->next;
        signing_free(g);
    }
}

void sites_sign_end(struct site_host *h)
{
    loop_task_cancel(&h->sign_task);
    for (struct site_signing *g = h->signings, *next; g; g = next) {
        next = g->next;
        signing_free(g);
    }
    h->signings = NULL;
    h->not_signed.count = 0;
    h->not_signed.tell_at = 0;
}

/* An era of this length that is over with the block `death` at the latest, and not now. Where that
 * is near, it begins further below the last block that was read. */
static bool fits(const struct site_host *h, uint32_t period, uint64_t death, uint64_t *ret,
                 uint8_t ret_hash[32])
{
    uint64_t near = h->read > ANCHOR_BEHIND ? h->read - ANCHOR_BEHIND : 0;
    if (death + 1 < period)
        return false;
    *ret = death + 1 - period < near ? death + 1 - period : near;
    for (; *ret <= h->read && *ret + period - 1 <= death; (*ret)++)
        if (*ret + period - 1 > h->read && sites_anchor(h, *ret, ret_hash))
            return true;
    return false;
}

/* The longest one. 0: there is none. */
static uint32_t choose_era(const struct site_host *h, uint64_t death, uint64_t *ret_anchor,
                           uint8_t ret_hash[32])
{
    uint32_t period = 4096;
    while (period > h->era_blocks)
        period /= 2;
    while (period >= ERA_MIN && !fits(h, period, death, ret_anchor, ret_hash))
        period /= 2;
    return period >= ERA_MIN ? period : 0;
}

static int sign_bytes(struct site_host *h, const struct site_room_sign *s, const uint8_t *call,
                      size_t call_len, struct site_signing *g, struct err *err)
{
    struct service *service = h->room->room.service;
    const struct node_info *info = node_info(service->node);
    struct extrinsic_params p = {
        .nonce = s->nonce, .tip = s->tip, .metadata_hash = service->config.metadata_hash};
    uint64_t anchor = 0;
    if (h->reaped)
        return err_set(err, ERR_NET, "%s", h->reaped_text);
    if (!info)
        return err_set(err, ERR_NET, "no node is connected");
    bool own = s->sender == h->self && s->call;
    uint32_t period = choose_era(h, s->death, &anchor, p.era_block_hash);
    if (!period)
        return err_set(err, ERR_NET,
                       "block %llu is the last one that was read: no era ends with "
                       "block %llu",
                       (unsigned long long)h->read, (unsigned long long)s->death);
    if (own && !site_tables_allows(h->tables, s->id, info->spec_version,
                                   &(struct site_terms){.tip = s->tip}))
        return err_set(err, ERR_NET, "it was encoded for another runtime than spec version %u",
                       info->spec_version);
    p.era = era_mortal(period, anchor);
    p.spec_version = info->spec_version;
    p.transaction_version = info->transaction_version;
    memcpy(p.genesis, info->genesis, 32);
    g->done.attempt.bytes = (struct site_bytes){
        .key = s->key, .nonce = s->nonce, .death = era_death(p.era, anchor) - 1};
    return extrinsic_sign(info->metadata, &p, h->account->key, call, call_len, &g->bytes,
                          g->done.attempt.bytes.hash.bytes, err);
}

void sites_sign(void *arg, struct site_account *a, const struct site_room_sign *s)
{
    struct site_host *h = site_account_ctx(a);
    struct site_signing *g = xcalloc(1, sizeof(*g));
    struct buf filler = {0};
    struct err err = {0};
    (void)arg;
    g->done.sender = s->sender;
    g->done.id = s->id;
    g->done.attempt.bytes.nonce = s->nonce;
    int rc = s->call ? 0 : sign_filler_call(h->account, &filler, &err);
    if (rc == 0)
        rc = sign_bytes(h, s, s->call ? s->call : filler.data, s->call ? s->call_len : filler.len,
                        g, &err);
    if (rc == 0) {
        g->done.attempt.data = g->bytes.data;
        g->done.attempt.len = g->bytes.len;
    } else {
        note_not_signed(h, s->nonce, &err);
    }
    buf_done(&filler);
    if (!h->signings) {
        loop_post(h->room->room.service->loop, &h->sign_task, tell_signed);
        h->signings_last = &h->signings;
    }
    *h->signings_last = g;
    h->signings_last = &g->next;
}

/* ---- reading ---- */

static bool is_own_call(const struct extrinsic_view *v, const uint8_t *call, size_t len)
{
    return v->call_len == len && !memcmp(v->call, call, len);
}

static bool is_own_signer(const struct account *a, const struct extrinsic_view *v)
{
    return v->is_signed && v->signer_len == a->id_len && !memcmp(v->signer, a->id, a->id_len);
}

/* The last block that was read, or that the node calls final: an era that has begun contains it, or
 * is over. */
static uint64_t now_final(const struct site_host *h, const struct node_info *info)
{
    return info->finalized_number > h->read ? info->finalized_number : h->read;
}

static bool facts_of(const struct site_host *h, const struct node_info *info,
                     const struct extrinsic_view *v, struct extrinsic_params *ret)
{
    uint64_t birth = era_birth(v->era, now_final(h, info));
    *ret = (struct extrinsic_params){.spec_version = info->spec_version,
                                     .transaction_version = info->transaction_version};
    memcpy(ret->genesis, info->genesis, 32);
    return v->era.period && sites_anchor(h, birth, ret->era_block_hash);
}

bool sites_read(void *arg, struct site_account *a, uint64_t own, const uint8_t *data, size_t len,
                const uint8_t *call, size_t call_len, struct site_bytes *ret)
{
    struct site_host *h = site_account_ctx(a);
    const struct node_info *info = node_info(h->room->room.service->node);
    struct extrinsic_view v;
    struct extrinsic_params facts;
    struct err err;
    bool good = false;
    (void)arg;
    if (!info || h->reaped || extrinsic_decode(info->metadata, data, len, &v, &err) ||
        !is_own_signer(h->account, &v) || !v.has_nonce || !is_own_call(&v, call, call_len) ||
        !facts_of(h, info, &v, &facts) || extrinsic_verify(info->metadata, &v, &facts, &good, &err))
        return false;
    *ret = (struct site_bytes){.nonce = v.nonce, .death = era_death(v.era, now_final(h, info)) - 1};
    hash_blake2b_256(data, len, ret->hash.bytes);
    const struct site_terms has = {.last = ret->death, .tip = v.tip};
    return good && (!own || site_tables_allows(h->tables, own, info->spec_version, &has));
}

void sites_describe(void *arg, const uint8_t *data, size_t len, struct store_site_write *ret,
                    char ret_tip[40])
{
    struct site_host *h = arg;
    const struct node_info *info = node_info(h->room->room.service->node);
    struct extrinsic_view v;
    struct err err;
    if (!info || extrinsic_decode(info->metadata, data, len, &v, &err))
        return;
    ret->birth = ret->bytes.death + 1 - (int64_t)v.era.period;
    ret->tip = u128_text(v.tip, ret_tip);
    ret->spec_version = info->spec_version;
    ret->transaction_version = info->transaction_version;
}

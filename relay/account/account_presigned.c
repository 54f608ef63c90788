/* Presigned extrinsics on their way from the outbox to the manager: decoded by the chain's
 * metadata, their signature verified under the chain's present facts. An era says only where it
 * begins within its period, so the block that it is anchored on is one of the last few that fit;
 * their hashes are asked for first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/op.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"
#include "chain/codec/hash.h"
#include "chain/keys/extrinsic_sign.h"

/* How many periods back an era may have begun before the signature counts as wrong. */
enum { ERAS_BACK = 3, AHEAD_MAX = 8 };

struct birth {
    struct node_ask ask;
    struct op *op;
    uint64_t number;
};

struct births {
    uint64_t best;
    size_t count, left;
    bool failed;
    void (*cb)(struct op *op);
    struct birth list[];
};

/* ---- the blocks ---- */

static bool view_of(const struct account *a, const struct store_outbox_row *o,
                    struct extrinsic_view *ret, struct err *err)
{
    const struct node_info *info = node_info(a->service->node);
    return info && extrinsic_decode(info->metadata, o->call.data, o->call.len, ret, err) == 0;
}

/* The k-th latest block that the era may begin with; false: there was none. */
static bool birth_of(struct era era, uint64_t best, unsigned k, uint64_t *ret)
{
    uint64_t latest = era_birth(era, best), back = (uint64_t)k * era.period;
    if (!era.period || latest > best || latest < back)
        return false;
    *ret = latest - back;
    return true;
}

static const struct birth *find(const struct births *b, uint64_t number)
{
    for (size_t i = 0; b && i < b->count; i++)
        if (b->list[i].number == number)
            return &b->list[i];
    return NULL;
}

static void on_hash(struct node_ask *ask)
{
    struct birth *birth = CONTAINER_OF(ask, struct birth, ask);
    struct op *op = birth->op;
    struct births *b = op->births;
    b->failed = b->failed || ask->err.code;
    if (--b->left == 0)
        b->cb(op);
}

static void add(struct births *b, const struct account *a, const struct store_outbox_row *o)
{
    struct extrinsic_view view;
    struct err ignored;
    uint64_t number;
    if (!o->presigned || !view_of(a, o, &view, &ignored))
        return;
    for (unsigned k = 0; k < ERAS_BACK; k++)
        if (birth_of(view.era, b->best, k, &number) && !find(b, number))
            b->list[b->count++].number = number;
}

bool signed_births(struct op *op, void (*cb)(struct op *op))
{
    struct account *a = op->account;
    const struct store_outbox *r = &op->u.outbox;
    size_t presigned = 0;
    for (size_t i = 0; i < r->count; i++)
        presigned += r->rows[i].presigned;
    if (!presigned)
        return false;
    struct births *b = op->births =
        xcalloc(1, sizeof(*b) + presigned * ERAS_BACK * sizeof(b->list[0]));
    b->best = node_info(a->service->node)->best_number;
    b->cb = cb;
    for (size_t i = 0; i < r->count; i++)
        add(b, a, &r->rows[i]);
    b->left = b->count;
    for (size_t i = 0; i < b->count; i++) {
        b->list[i].op = op;
        node_ask_hash(a->service->node, &b->list[i].ask, b->list[i].number, on_hash);
    }
    return b->count > 0;
}

bool signed_births_failed(const struct op *op)
{
    return op->births && op->births->failed;
}

void signed_births_free(struct op *op)
{
    free(op->births);
}

/* ---- the check ---- */

/* Does the signature fit with an era that begins there? */
static int fits(const struct node_info *info, const struct extrinsic_view *view,
                const uint8_t *birth_hash, bool *ret, struct err *err)
{
    struct extrinsic_params params = {.spec_version = info->spec_version,
                                      .transaction_version = info->transaction_version};
    memcpy(params.genesis, info->genesis, 32);
    if (birth_hash)
        memcpy(params.era_block_hash, birth_hash, 32);
    return extrinsic_verify(info->metadata, view, &params, ret, err);
}

static int verify(const struct op *op, const struct node_info *info,
                  const struct extrinsic_view *view, struct manager_presigned *x, bool *ret_good,
                  struct err *err)
{
    uint64_t number;
    int rc = 0;
    x->era_birth = x->era_death = -1;
    *ret_good = false;
    if (!view->era.period)
        return fits(info, view, NULL, ret_good, err);
    for (unsigned k = 0; k < ERAS_BACK && rc == 0 && !*ret_good; k++) {
        if (!birth_of(view->era, op->births->best, k, &number))
            return rc;
        const struct birth *b = find(op->births, number);
        if (b && b->ask.found)
            rc = fits(info, view, b->ask.hash, ret_good, err);
        x->era_birth = (int64_t)number;
        x->era_death = (int64_t)(number + view->era.period);
    }
    return rc;
}

/* The node may be behind the one that it was signed with: then its era begins soon. */
static bool begins_soon(const struct op *op, const struct extrinsic_view *view, uint64_t *ret_block)
{
    uint64_t best = op->births->best, next = era_birth(view->era, best);
    if (view->era.period <= AHEAD_MAX)
        return false;
    *ret_block = next > best ? next : next + view->era.period;
    return *ret_block <= best + AHEAD_MAX;
}

static void no_fit(const struct op *op, const struct node_info *info,
                   const struct extrinsic_view *view, struct manager_presigned *x, struct err *text)
{
    x->era_birth = x->era_death = -1;
    /* Once it has waited, that block is there: an era of so few blocks begins soon again and again.
     * Unless it is another node, which is behind. */
    bool behind = op->births->best < manager_view_of(op->account->manager).processed;
    if (view->era.period && (!x->waited || behind) && begins_soon(op, view, &x->wait_block)) {
        x->waits = "its era begins with a block that this relay's node does not have yet";
        return;
    }
    err_set(text, ERR_ARGUMENT,
            "its signature does not fit this chain (genesis %s, spec version %u, transaction "
            "version %u%s): bad, for another chain or runtime, or its era is long over",
            hex_log(info->genesis, 32), info->spec_version, info->transaction_version,
            view->metadata_hash ? ", metadata hash" : "");
}

void signed_check(const struct op *op, const struct store_outbox_row *o,
                  struct manager_outbox_row *row, struct manager_presigned *x, struct err *text)
{
    const struct account *a = op->account;
    const struct node_info *info = node_info(a->service->node);
    struct extrinsic_view view;
    bool good = false;
    row->presigned = x;
    x->nonce = UINT64_MAX;
    x->waited = o->waited;
    x->era_birth = x->era_death = -1;
    hash_blake2b_256(o->call.data, o->call.len, x->hash);
    if (!view_of(a, o, &view, text)) {
        /* Under an earlier runtime it may have decoded, and used this nonce. */
        uint64_t nonce;
        if (extrinsic_nonce(info->metadata, o->call.data, o->call.len, &nonce) && nonce < INT64_MAX)
            x->nonce = nonce;
        x->spec_version = info->spec_version;
        row->bad = text->text;
        return;
    }
    x->nonce = view.nonce < INT64_MAX ? view.nonce : UINT64_MAX;
    x->call_len = view.call_len;
    x->spec_version = info->spec_version;
    row->tip = view.tip;
    if (view.signer_len != a->id_len || memcmp(view.signer, a->id, a->id_len) != 0)
        err_set(text, ERR_ARGUMENT, "it is signed by %s, which is not this account",
                hex_log(view.signer, view.signer_len));
    else if (view.nonce >= INT64_MAX)
        err_set(text, ERR_ARGUMENT, "its nonce is out of range");
    else if (codec_check_call(info->metadata, view.call, view.call_len, text) == 0 &&
             verify(op, info, &view, x, &good, text) == 0 && !good)
        no_fit(op, info, &view, x, text);
    if (!text->code)
        return;
    row->bad = text->text;
    x->era_birth = x->era_death = -1;
}

/* ---- admission, notes ---- */

int signed_take(struct op *op)
{
    if (!node_info(op->account->service->node))
        return err_set(&op->u.req.err, ERR_NET, "no node is connected");
    for (size_t i = 0; i < op->count; i++) {
        const struct manager_sign_row *row = &op->rows.sign[i];
        struct tx_attempt *t = &op->attempts[i];
        *t = (struct tx_attempt){.nonce = row->nonce,
                                 .id = row->id,
                                 .bytes = op_copy(row->bytes, row->bytes_len, 1),
                                 .bytes_len = row->bytes_len,
                                 .call_len = row->call_len,
                                 .era_birth = row->era_birth,
                                 .era_death = row->era_death,
                                 .spec_version = row->spec_version,
                                 .tip = row->tip};
        memcpy(t->hash, row->hash, 32);
        op->attempt_rows[i] = (struct store_attempt_row){
            .id = row->id,
            .nonce = (int64_t)row->nonce,
            .call = {t->bytes + t->bytes_len - row->call_len, row->call_len},
            .era_birth = t->era_birth,
            .era_death = t->era_death,
            .tip = u128_text(row->tip, op->amounts[i]),
            .block = (int64_t)row->from_block,
        };
        memcpy(op->attempt_rows[i].hash, t->hash, 32);
    }
    return 0;
}

void account_note(struct account *a, const struct manager_effect *fx)
{
    struct op *op = op_new(a, fx->type, fx->notes.count);
    op->rows.notes = op_copy(fx->notes.rows, op->count, sizeof(*op->rows.notes));
    op->u.note = (struct store_note){
        .account = a->store_account, .epoch = a->epoch, .count = op->count, .rows = op->rows.notes};
    store_note_start(a->service->store, &op->u.note, op_stored);
}

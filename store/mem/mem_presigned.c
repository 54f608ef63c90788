/* Extrinsics that were signed elsewhere, until they get their nonce: 08_enqueue_signed.sql,
 * 14_admit.sql. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "mem/mem.h"

/* ---- enqueue_signed ---- */

/* Where the body of the extrinsic begins: behind the length in front of it; 0: that does not say
 * its length. */
static size_t body_of(struct store_bytes x)
{
    unsigned mode = x.data[0] & 3u;
    size_t prefix = (size_t)1 << mode;
    uint64_t length = 0;
    if (mode == 3 || x.len < prefix)
        return 0;
    for (size_t i = 0; i < prefix; i++)
        length |= (uint64_t)x.data[i] << (8 * i);
    return length >> 2 == x.len - prefix ? prefix : 0;
}

static int check_form(const struct mem_signed_call *c, struct err *err)
{
    size_t key = c->key ? strlen(c->key) : 1, creator = c->creator ? strlen(c->creator) : 0;
    if (key < 1 || key > MEM_KEY_MAX)
        return mem__fail(err, "TR011", "key has %zu bytes; it must have 1 to %d", key, MEM_KEY_MAX);
    if (creator > MEM_CREATOR_MAX)
        return mem__fail(err, "TR011", "creator has %zu bytes; at most %d", creator,
                         MEM_CREATOR_MAX);
    if (!c->extrinsic.len || c->extrinsic.len > MEM_CALL_MAX)
        return mem__fail(err, "TR011", "extrinsic has %zu bytes; it must have 1 to %d bytes",
                         c->extrinsic.len, MEM_CALL_MAX);
    if (c->unchecked)
        return 0;
    size_t body = body_of(c->extrinsic);
    if (!body)
        return mem__fail(err, "TR011",
                         "extrinsic does not begin with its length (%zu bytes in all)",
                         c->extrinsic.len);
    if (c->extrinsic.len < body + 90 || c->extrinsic.data[body] != 132)
        return mem__fail(err, "TR011", "extrinsic is not signed, of another form, or too short");
    return 0;
}

/* MultiAddress::Id and 32 bytes, or an account id alone where the chain has no MultiAddress. */
static bool signed_by(const struct mem_account *a, const uint8_t *body)
{
    struct store_bytes id = a->account_id;
    if (id.len == 32 && body[1] == 0 && !memcmp(body + 2, id.data, 32))
        return true;
    return (id.len == 32 || id.len == 20) && !memcmp(body + 1, id.data, id.len);
}

static struct mem_account *signer_of(const struct mem_db *db, const struct mem_signed_call *c,
                                     struct err *err)
{
    const uint8_t *body = c->extrinsic.data + body_of(c->extrinsic);
    struct mem_account *named = c->account ? mem__account_of(db, c->account, err) : NULL,
                       *found = NULL;
    size_t count = 0;
    if (c->account && (!named || c->unchecked || signed_by(named, body)))
        return named;
    for (size_t i = 0; i < db->t.account_count; i++) {
        if (!signed_by(db->t.accounts[i], body))
            continue;
        found = db->t.accounts[i];
        count++;
    }
    if (!c->account && count == 1)
        return found;
    if (c->account)
        mem__fail(err, "TR011", "account is \"%.80s\", and somebody else signed the extrinsic",
                  c->account);
    else if (count)
        mem__fail(err, "TR011",
                  "extrinsic is signed by a key that is registered for several chains");
    else
        mem__fail(err, "TR010", "no such account: the extrinsic is signed by %s",
                  hex_log(body + 2, 32));
    return NULL;
}

static int use_keys(struct mem_session *s, const struct mem_account *a,
                    const struct mem_signed_call *c, int64_t *id, struct err *err)
{
    uint8_t sha[MEM_SHA_LEN];
    struct buf own = {0};
    mem__sha(c->extrinsic, sha);
    buf_puts(&own, "signed ");
    hex_put_0x(&own, sha, sizeof(sha));
    int rc = mem__key_use(s, a, buf_str(&own), sha, id, err);
    if (!rc && c->key)
        rc = mem__key_use(s, a, c->key, sha, id, err);
    buf_done(&own);
    return rc;
}

static int enqueue_signed(struct mem_session *s, const struct mem_signed_call *c, int64_t *ret_id,
                          struct err *err)
{
    int64_t id = *ret_id = mem__new_id(s->db);
    if (check_form(c, err))
        return err->code;
    struct mem_account *a = signer_of(s->db, c, err);
    if (!a)
        return err->code;
    if (a->life_since_us)
        return mem__fail(err, "TR011",
                         "extrinsic is signed by an account that was reaped or rewound once");
    if (use_keys(s, a, c, ret_id, err) || *ret_id != id)
        return err->code;
    struct mem_row *row = mem__row_new(a->number, id);
    row->table = MEM_OUTBOX_SIGNED;
    row->call = mem__bytes(c->extrinsic);
    row->key = mem__text(c->key);
    row->creator = mem__text(c->creator ? c->creator : "");
    row->created_us = mem__stamp(s->db);
    row->presigned = true;
    mem__enqueued(s, a, row);
    return 0;
}

int mem_enqueue_signed(struct mem_session *s, const struct mem_signed_call *call, int64_t *ret_id,
                       struct err *err)
{
    bool alone = !s->open;
    PRE(!call->unchecked || call->account);
    err_clear(err);
    if (alone)
        mem_begin(s);
    int rc = enqueue_signed(s, call, ret_id, err);
    if (alone && rc) {
        mem_rollback(s);
    } else if (alone) {
        mem_commit(s);
        mem_release(s);
    }
    return rc;
}

/* ---- leader_note ---- */

static void note(struct mem_row *row, const struct tx_note *in)
{
    row->nonce = (int64_t)in->nonce;
    row->has_hash = true;
    memcpy(row->hash, in->hash, 32);
    row->era_death = in->era_death;
    row->wait_block = in->wait_block ? (int64_t)in->wait_block : -1;
    row->silent = false; /* a poll finds it */
    mem__replace(&row->waits, store__text(in->text));
}

/* A row that was cancelled meanwhile is no error. */
void mem__note(struct mem_session *s, struct store_note *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    for (size_t i = 0; a && i < r->count; i++) {
        struct mem_row *row = mem__waiting(&s->db->t, MEM_OUTBOX_SIGNED, a, r->rows[i].id);
        if (row && !row->held)
            note(row, &r->rows[i]);
    }
}

/* ---- leader_admit_presigned ---- */

static int by_nonce(const void *x, const void *y)
{
    int64_t a = (*(const struct store_attempt_row *const *)x)->nonce;
    int64_t b = (*(const struct store_attempt_row *const *)y)->nonce;
    return (a > b) - (a < b);
}

static const struct store_attempt_row **in_order(const struct store_attempts *r)
{
    const struct store_attempt_row **rows =
        xcalloc(r->count + 1, sizeof(struct store_attempt_row *));
    for (size_t i = 0; i < r->count; i++)
        rows[i] = &r->rows[i];
    qsort(rows, r->count, sizeof(struct store_attempt_row *), by_nonce);
    return rows;
}

static int check_account(const struct mem_account *a, const struct store_attempts *r,
                         struct err *err)
{
    int64_t next = mem__next_nonce(a);
    if (mem__check_nonces(r->count, mem__attempt_nonce, r->rows, err))
        return err->code;
    if (next >= 0 && next != r->next_nonce)
        return mem__fail(err, "TR003",
                         "the next nonce is given as %lld, and in account %s it is %lld",
                         (long long)r->next_nonce, a->alias, (long long)next);
    if (a->paused)
        return mem__fail(err, "TR002", "account %s is paused", a->alias);
    if (a->transaction_version && a->transaction_version != r->transaction_version)
        return mem__fail(err, "TR002",
                         "signed under transaction version %u, and account %s signs under %u",
                         r->transaction_version, a->alias, a->transaction_version);
    return mem__check_reconciled(a, err);
}

/* In the order of nonces, as they will be admitted. */
static int check_rows(const struct mem_tables *t, const struct mem_account *a,
                      const struct store_attempt_row **rows, size_t count, int64_t *next,
                      struct err *err)
{
    size_t found = 0, i;
    for (i = 0; i < count && !err->code; i++) {
        struct mem_row *row = mem__waiting(t, MEM_OUTBOX_SIGNED, a, rows[i]->id);
        if (rows[i]->nonce > *next)
            mem__fail(err, "TR003", "nonce %lld where %lld is next in account %s",
                      (long long)rows[i]->nonce, (long long)*next, a->alias);
        else if (mem__pending(a, rows[i]->nonce))
            mem__fail(err, "TR002", "nonce %lld is not free", (long long)rows[i]->nonce);
        if (!err->code && rows[i]->nonce >= *next)
            *next = rows[i]->nonce +
                    1; /* also if its row was cancelled meanwhile: no gap of the caller's */
        if (err->code || !row || row->marked || (row->held && !PLANTED(HELD_TAKEN)))
            continue;
        row->marked = true;
        found++;
    }
    while (i--) {
        struct mem_row *row = mem__waiting(t, MEM_OUTBOX_SIGNED, a, rows[i]->id);
        if (row)
            row->marked = false;
    }
    for (i = 0; i < count && !err->code; i++)
        mem__check_rows(1, mem__attempt_nonce, rows[i], err);
    if (!err->code && found != count)
        mem__fail(err, "TR002", "%zu of %zu rows are still in the outbox", found, count);
    return err->code;
}

void mem__admit_signed(struct mem_session *s, struct store_attempts *r)
{
    struct mem_account *a = mem__fence(s->db, r->account, r->epoch, &r->req.err);
    int64_t next = r->next_nonce;
    if (!a || check_account(a, r, &r->req.err))
        return;
    const struct store_attempt_row **rows = in_order(r);
    if (!check_rows(&s->db->t, a, rows, r->count, &next, &r->req.err)) {
        for (size_t i = 0; i < r->count; i++) {
            struct mem_row *row = mem__waiting(&s->db->t, MEM_OUTBOX_SIGNED, a, rows[i]->id);
            struct store_attempt_row in = *rows[i];
            in.extrinsic = row->call;
            struct mem_attempt t = mem__attempt_new(r, &in, r->transaction_version, row->id);
            t.block = in.block;
            mem__signed_pend(s->db, a, row, &t, in.nonce, in.call.len);
        }
        r->next_nonce = a->next_nonce = next;
        if (!a->transaction_version)
            a->transaction_version = r->transaction_version;
    }
    free(rows);
}

/* One row from here to pending_transactions: signed_pend. */
void mem__signed_pend(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                      const struct mem_attempt *t, int64_t nonce, size_t call_len)
{
    struct store_bytes x = row->call;
    mem__waiting_take(a, row);
    if (call_len < x.len) {
        row->call = mem__bytes((struct store_bytes){x.data + (x.len - call_len), call_len});
        mem__drop_bytes(x);
    }
    row->has_hash = false;
    row->era_death = row->wait_block = -1;
    mem__replace(&row->waits, NULL);
    mem__pend(db, a, row, nonce, t);
}

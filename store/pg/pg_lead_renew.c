/* The renewal of all accounts of this relay, on the session that has their locks. */
#include "base/check.h"
#include "pg/pg.h"

/* The session records which locks it has, and a renewal asks the server whether that is so: each
 * one up to VERIFY_EACH accounts, and more rarely above, because the answer reads all locks of the
 * server, those of other relays too (60 ms for 20,000). Other renewals compare the fingerprint of
 * the last one. */
enum { VERIFY_EACH = 200, VERIFY_MOST = 10 /* renewals without the question, at most */ };

static size_t unverified(const struct store_renew *r)
{
    size_t n = r->count / VERIFY_EACH;
    return n < VERIFY_MOST ? n : VERIFY_MOST;
}

/* In the order of the question. True: all were renewed. */
static bool decode_rows(struct store_renew *n, struct pg_row *row, size_t rows)
{
    bool all = true;
    row->bad |= rows != n->count;
    for (size_t i = 0; i < n->count && !row->bad; i++) {
        row->row = (int)i;
        n->renewed[i] = pg_get_bool(row, 0);
        all &= n->renewed[i];
    }
    return all && !row->bad;
}

static void decode_claims(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    decode_rows(CONTAINER_OF(req, struct store_renew, req), &row, (size_t)conn_result_rows(r));
    if (row.bad)
        store_pg__misfit(req, SQL_RENEW_CLAIMS);
}

static void decode_lease(struct store_req *req, const struct conn_result *r)
{
    struct store_renew *n = CONTAINER_OF(req, struct store_renew, req);
    struct store_pg *s = pg_of(req->owner);
    struct pg_row row = {.r = r};
    size_t rows = (size_t)conn_result_rows(r);
    if (rows && pg_get_bool(&row, 1)) { /* unchanged since the last renewal */
        for (size_t i = 0; i < n->count; i++)
            n->renewed[i] = true;
        return;
    }
    const char *fingerprint = rows ? pg_get_text(&row, 2, "") : "";
    if (decode_rows(n, &row, rows) && *fingerprint)
        fingerprint_save(&s->renewal, n->count, n->accounts, n->epochs, fingerprint);
    else
        fingerprint_forget(&s->renewal);
    if (row.bad)
        store_pg__misfit(req, SQL_RENEW_LEASE);
}

/* Accounts whose lock is not recorded are named under an epoch that no relay had. */
static bool put_epochs(struct store_pg *s, struct pg_args *a, const struct store_renew *r)
{
    bool all = true;
    pg_array_begin(a, PG_ELEM_INT8, r->count);
    for (size_t i = 0; i < r->count; i++) {
        bool held = !r->lock_keys || !s->config.use_lock || store_pg__lock_held(s, r->lock_keys[i]);
        pg_elem_int8(a, held ? r->epochs[i] : -1);
        all &= held;
    }
    pg_array_end(a);
    return all;
}

static void put_terms(struct pg_args *a, const struct store_renew *r)
{
    pg_put_int4(a, (int32_t)r->expiry_1_ms);
    pg_put_int4(a, (int32_t)r->expiry_2_ms);
    if (r->block < 0)
        pg_put_null8(a);
    else
        pg_put_int8(a, r->block);
}

void store_pg__renew(struct store *base, struct store_renew *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->req.owner = base;
    for (size_t i = 0; i < r->count; i++)
        r->renewed[i] = false;
    pg_put_text(&a, r->holder);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->accounts[i]));
    bool held = put_epochs(s, &a, r);
    if (s->renewals++ % (1 + unverified(r)) != 0) {
        put_terms(&a, r);
        pg_put_text(&a, held ? fingerprint_of(&s->renewal, r->count, r->accounts, r->epochs) : "");
        store_pg__send(s, &s->control, SQL_RENEW_LEASE, &a, &r->req, decode_lease);
        return;
    }
    if (r->lock_keys && s->config.use_lock) {
        COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->lock_keys[i]));
    } else {
        pg_array_null(&a, PG_ELEM_INT8);
    }
    put_terms(&a, r);
    store_pg__send(s, &s->control, SQL_RENEW_CLAIMS, &a, &r->req, decode_claims);
}

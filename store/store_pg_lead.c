/* Claims of accounts, on the control session: the session that holds the lock is the one that claims. */
#include "base/check.h"
#include "store_pg.h"

/* ---- claim ---- */

static void free_rows(void *rows)
{
    conn_result_free(rows);
}

static void decode_claim(struct store_req *req, const struct conn_result *r)
{
    struct store_claim *c = CONTAINER_OF(req, struct store_claim, req);
    struct conn_result *rows = conn_result_keep(r); /* the texts lie in it */
    struct pg_row row = {.r = rows};
    c->granted = pg_get_bool(&row, 0);
    c->epoch = pg_get_int(&row, 1, 0);
    c->current_holder = pg_get_text(&row, 2, "");
    c->current_address = pg_get_text(&row, 3, "");
    c->lock_held = pg_get_bool(&row, 4);
    c->mid_submission = pg_get_bool(&row, 5);
    c->expiry_1_left_ms = pg_get_int(&row, 6, 0);
    c->expiry_2_left_ms = pg_get_int(&row, 7, 0);
    store__arena(req, 0, rows, free_rows);
    if (row.bad)
        store_pg__misfit(req, SQL_CLAIM_ACCOUNT);
}

void store_pg__claim(struct store *base, struct store_claim *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    pg_put_int4(&a, r->account);
    pg_put_text(&a, r->holder);
    pg_put_text(&a, r->address);
    pg_put_bool(&a, r->have_lock);
    pg_put_int4(&a, (int32_t)r->expiry_1_ms);
    pg_put_int4(&a, (int32_t)r->expiry_2_ms);
    store_pg__send(s, &s->control, SQL_CLAIM_ACCOUNT, &a, &r->req, decode_claim);
}

/* ---- renewal ---- */

static void decode_renew(struct store_req *req, const struct conn_result *r)
{
    struct store_renew *n = CONTAINER_OF(req, struct store_renew, req);
    struct pg_row row = {.r = r, .bad = (size_t)conn_result_rows(r) != n->count};
    for (size_t i = 0; i < n->count && !row.bad; i++) {
        row.row = (int)i;
        n->renewed[i] = pg_get_bool(&row, 0);
    }
    if (row.bad)
        store_pg__misfit(req, SQL_RENEW_CLAIMS);
}

void store_pg__renew(struct store *base, struct store_renew *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    for (size_t i = 0; i < r->count; i++)
        r->renewed[i] = false;
    pg_put_text(&a, r->holder);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->accounts[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->epochs[i]));
    if (r->lock_keys && s->config.use_lock) {
        COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->lock_keys[i]));
    } else {
        pg_array_null(&a, PG_ELEM_INT8);
    }
    pg_put_int4(&a, (int32_t)r->expiry_1_ms);
    pg_put_int4(&a, (int32_t)r->expiry_2_ms);
    if (r->block < 0)
        pg_put_null8(&a);
    else
        pg_put_int8(&a, r->block);
    store_pg__send(s, &s->control, SQL_RENEW_CLAIMS, &a, &r->req, decode_renew);
}

/* ---- the end of a claim ---- */

static void decode_release(struct store_req *req, const struct conn_result *r)
{
    struct pg_row row = {.r = r};
    CONTAINER_OF(req, struct store_release, req)->released = pg_get_bool(&row, 0);
    if (row.bad)
        store_pg__misfit(req, SQL_RELEASE_CLAIM);
}

void store_pg__release(struct store *base, struct store_release *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->released = false;
    pg_put_int4(&a, r->account);
    pg_put_int8(&a, r->epoch);
    pg_put_text(&a, r->holder);
    store_pg__send(s, &s->control, SQL_RELEASE_CLAIM, &a, &r->req, decode_release);
}

static void decode_evict(struct store_req *req, const struct conn_result *r)
{
    struct store_evict *v = CONTAINER_OF(req, struct store_evict, req);
    if (conn_result_rows(r) == 0)
        return;                                     /* the account is not registered: nobody claims it */
    struct conn_result *rows = conn_result_keep(r); /* the texts lie in it */
    struct pg_row row = {.r = rows};
    v->terminated = pg_get_bool(&row, 0);
    v->current_holder = pg_get_text(&row, 1, "");
    v->current_address = pg_get_text(&row, 2, "");
    v->epoch = pg_get_int(&row, 3, 0);
    v->expiry_1_left_ms = pg_get_int(&row, 4, 0);
    store__arena(req, 0, rows, free_rows);
    if (row.bad)
        store_pg__misfit(req, SQL_EVICT_HOLDER);
}

void store_pg__evict(struct store *base, struct store_evict *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->terminated = false;
    r->current_holder = r->current_address = "";
    r->epoch = r->expiry_1_left_ms = 0;
    pg_put_int8(&a, r->lock_key);
    store_pg__send(s, &s->control, SQL_EVICT_HOLDER, &a, &r->req, decode_evict);
}

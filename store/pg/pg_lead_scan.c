/* What a relay looks at beside its own claims, on the control session: the accounts that it
 * follows, and who else is there. */
#include <string.h>

#include "base/check.h"
#include "pg/pg.h"

static void decode_seen(struct pg_row *row, struct store_lock_view *ret)
{
    ret->taken = pg_get_bool(row, 1);
    ret->holder = pg_get_text(row, 2, "");
    ret->address = pg_get_text(row, 3, "");
    ret->epoch = pg_get_int(row, 4, 0);
    ret->lock_held = pg_get_bool(row, 5);
    ret->expiry_1_left_ms = pg_get_int(row, 6, 0);
    ret->expiry_2_left_ms = pg_get_int(row, 7, 0);
}

/* Until then a scan reads only the fingerprint of all claims. That a session gave a lock back and
 * kept its claim shows only when all locks are read. */
enum { FINGERPRINT_MS = 10000 };

/* Nothing changed, by this fingerprint. */
static void remember(struct store_pg *s, const struct store_scan *n, const char *fingerprint)
{
    if (!strcmp(fingerprint_of(&s->scan, n->count, n->accounts, n->epochs), fingerprint))
        return; /* nothing but the fingerprint was compared */
    fingerprint_save(&s->scan, n->count, n->accounts, n->epochs, fingerprint);
    s->scan_until = loop_now_ms(s->base.loop) + FINGERPRINT_MS;
}

/* The rows come in the order of the question, with gaps. Each has the fingerprint; one without an
 * account has nothing else. */
static void decode_scan(struct store_req *req, const struct conn_result *r)
{
    struct store_scan *n = CONTAINER_OF(req, struct store_scan, req);
    struct store_pg *s = pg_of(req->owner);
    size_t rows = (size_t)conn_result_rows(r), at = 0;
    if (rows == 1 && conn_result_is_null(r, 0, 0)) {
        struct pg_row only = {.r = r};
        remember(s, n, pg_get_text(&only, 8, ""));
        return;
    }
    struct conn_result *kept = conn_result_take(r); /* the texts lie in it */
    struct store_lock_view *seen =
        store__arena(req, rows * sizeof(*seen), kept, store_pg__free_rows);
    struct pg_row row = {.r = kept, .bad = !rows || rows > n->count};
    for (size_t i = 0; i < rows && !row.bad; i++, at++) {
        row.row = (int)i;
        int64_t account = pg_get_int(&row, 0, 0);
        while (at < n->count && n->accounts[at] != account)
            at++;
        row.bad |= at == n->count;
        seen[i].index = at;
        decode_seen(&row, &seen[i]);
    }
    if (row.bad) {
        store_pg__misfit(req, SQL_SCAN_CLAIMS);
        return;
    }
    n->seen = seen;
    n->view_count = rows;
    fingerprint_forget(&s->scan);
}

void store_pg__scan(struct store *base, struct store_scan *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->req.owner = base;
    r->seen = NULL;
    r->view_count = 0;
    if (loop_now_ms(s->base.loop) >= s->scan_until)
        fingerprint_forget(&s->scan);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->accounts[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->epochs[i]));
    pg_put_text(&a, fingerprint_of(&s->scan, r->count, r->accounts, r->epochs));
    store_pg__send(s, &s->control, SQL_SCAN_CLAIMS, &a, &r->req, decode_scan);
}

/* ---- members ---- */

static void decode_members(struct store_req *req, const struct conn_result *r)
{
    struct store_member *m = CONTAINER_OF(req, struct store_member, req);
    struct conn_result *kept = conn_result_take(r); /* the texts lie in it */
    m->count = (size_t)conn_result_rows(kept);
    const char **holders =
        store__arena(req, m->count * sizeof(*holders), kept, store_pg__free_rows);
    struct pg_row row = {.r = kept};
    for (size_t i = 0; i < m->count; i++) {
        row.row = (int)i;
        holders[i] = pg_get_text(&row, 0, "");
        int64_t best = pg_get_int(&row, 1, -1);
        if (best > m->best_known)
            m->best_known = best;
    }
    m->holders = holders;
    if (row.bad)
        store_pg__misfit(req, SQL_SEND_HEARTBEAT);
}

void store_pg__member(struct store *base, struct store_member *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->count = 0;
    r->holders = NULL;
    r->best_known = -1;
    pg_put_text(&a, r->holder);
    pg_put_text(&a, r->address);
    pg_put_int8(&a, r->serves);
    pg_put_int4(&a, (int32_t)r->ttl_ms);
    pg_put_bool(&a, s->config.use_lock);
    pg_put_bool(&a, r->leave);
    if (r->best < 0)
        pg_put_null8(&a);
    else
        pg_put_int8(&a, r->best);
    store_pg__send(s, &s->control, SQL_SEND_HEARTBEAT, &a, &r->req, decode_members);
}

/* ---- what keeps accounts from going on, on the work session ---- */

static void decode_none(struct store_req *req, const struct conn_result *r)
{
    (void)req;
    (void)r;
}

void store_pg__obstacles(struct store *base, struct store_obstacles *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->rows[i].account));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].epoch));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].code));
    COLUMN(&a, PG_ELEM_TEXT, r, pg_elem_text(&a, r->rows[i].text));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->rows[i].since_ms));
    store_pg__send(s, &s->work, SQL_NOTE_OBSTACLES, &a, &r->req, decode_none);
}

void store_pg__relay_obstacle(struct store *base, struct store_relay_obstacle *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    pg_put_text(&a, r->holder);
    pg_put_text(&a, r->code);
    pg_put_text(&a, r->text);
    pg_put_int8(&a, r->since_ms);
    store_pg__send(s, &s->work, SQL_NOTE_RELAY, &a, &r->req, decode_none);
}

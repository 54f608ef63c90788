/* What a leader asks for all of its accounts at once, on the work session: there the answer comes in its
 * place among the looks and fetches of each of them. */
#include "base/check.h"
#include "store_pg.h"

/* The rows come in the order of the question, with gaps. */
static void decode_due(struct store_req *req, const struct conn_result *r)
{
    struct store_due *d = CONTAINER_OF(req, struct store_due, req);
    size_t rows = (size_t)conn_result_rows(r), at = 0;
    struct store_want *wants = store__arena(req, rows * sizeof(*wants), NULL, NULL);
    struct pg_row row = {.r = r, .bad = rows > d->count};
    for (size_t i = 0; i < rows && !row.bad; i++, at++) {
        row.row = (int)i;
        int64_t account = pg_get_int(&row, 0, 0);
        while (at < d->count && d->accounts[at] != account)
            at++;
        row.bad |= at == d->count;
        wants[i] = (struct store_want){.index = at,
                                       .lost = pg_get_bool(&row, 1),
                                       .look = pg_get_bool(&row, 2),
                                       .ripe = pg_get_bool(&row, 3),
                                       .next_ms = pg_get_int(&row, 4, -1)};
    }
    if (row.bad) {
        store_pg__misfit(req, SQL_FIND_DUE);
        return;
    }
    d->wants = wants;
    d->want_count = rows;
}

void store_pg__due(struct store *base, struct store_due *r)
{
    struct store_pg *s = pg_of(base);
    struct pg_args a;
    store_pg__args(s, &a);
    r->wants = NULL;
    r->want_count = 0;
    COLUMN(&a, PG_ELEM_INT4, r, pg_elem_int4(&a, r->accounts[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_int8(&a, r->epochs[i]));
    COLUMN(&a, PG_ELEM_INT8, r, pg_elem_opt(&a, r->marks[i]));
    pg_put_int4(&a, (int32_t)r->ahead_ms);
    store_pg__send(s, &s->work, SQL_FIND_DUE, &a, &r->req, decode_due);
}

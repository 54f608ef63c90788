/* Sites, on a connection of their own: the session, and the writes. pg_sites_read.c has the
 * reads. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "pg/pg_sites.h"

struct store_sites *store_sites_new(struct loop *l, const char *dsn, const char *name)
{
    struct store_sites *s = xcalloc(1, sizeof(*s));
    pg_session_open(&s->session, l, dsn, name, "sites", s);
    return s;
}

void store_sites_close(struct store_sites *s, void (*cb)(void *arg), void *arg)
{
    pg_session_close(&s->session, cb, arg);
}

/* ---- statements ---- */

void store_sites__begin(struct store_sites *s, struct pg_args *a, int32_t account, int64_t epoch)
{
    pg_args_begin(a, &s->session.scratch);
    pg_put_int4(a, account);
    pg_put_int8(a, epoch);
}

static void put_int8s(struct pg_args *a, const int64_t *values, size_t count)
{
    pg_array_begin(a, PG_ELEM_INT8, count);
    for (size_t i = 0; i < count; i++)
        pg_elem_int8(a, values[i]);
    pg_array_end(a);
}

/* One array argument: `put` writes the element of row i. */
#define COLUMN(a, elem, count, put)                                                                \
    do {                                                                                           \
        pg_array_begin(a, elem, count);                                                            \
        for (size_t i = 0; i < (count); i++)                                                       \
            put;                                                                                   \
        pg_array_end(a);                                                                           \
    } while (0)

/* ---- the configuration ---- */

static void on_setup(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_setup *r = CONTAINER_OF(q, struct store_site_setup, query);
    (void)result;
    r->err = q->err;
    r->cb(r);
}

void store_site_setup_start(struct store_sites *s, struct store_site_setup *r,
                            void (*cb)(struct store_site_setup *r))
{
    struct pg_args a;
    const struct store_site_member *m = r->members;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, m[i].name));
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, m[i].address));
    COLUMN(&a, PG_ELEM_BYTES, r->count, pg_elem_bytes(&a, m[i].key, m[i].key_len));
    pg_put_int4(&a, (int32_t)r->self);
    pg_put_bool(&a, r->own_keys);
    pg_put_bool(&a, r->sticky);
    pg_put_bool(&a, r->silence_is_down);
    pg_put_int4(&a, (int32_t)r->range_blocks);
    pg_put_int4(&a, (int32_t)r->era_blocks);
    pg_put_int4(&a, (int32_t)r->approvals);
    pg_put_int8(&a, r->final);
    put_int8s(&a, r->next, r->count);
    pg_session_ask(&s->session, &r->query, SQL_SET_SITES, &a, on_setup);
}

/* ---- the effects of a step ---- */

static const char *kind_name(enum store_site_kind kind)
{
    switch (kind) {
    case STORE_SITE_GRANT:
        return "grant";
    case STORE_SITE_DISPATCH:
        return "dispatch";
    case STORE_SITE_NOTED:
        return "noted";
    case STORE_SITE_DROP:
        return "drop";
    case STORE_SITE_STATE:
        return "state";
    case STORE_SITE_END:
        return "end";
    case STORE_SITE_FINAL:
        return "final";
    case STORE_SITE_WAIT:
        return "wait";
    }
    UNREACHABLE();
}

/* Whether a row names bytes by their hash. */
static bool has_hash(const struct store_site_write *w)
{
    return w->kind != STORE_SITE_FINAL && w->kind != STORE_SITE_WAIT &&
           (w->kind != STORE_SITE_END || w->block);
}

static void put_bytes(struct pg_args *a, const struct store_site_apply *r)
{
    const struct store_site_write *w = r->rows;
    COLUMN(a, PG_ELEM_BYTES, r->count,
           pg_elem_bytes(a, has_hash(&w[i]) ? w[i].bytes.hash : NULL, 32));
    COLUMN(a, PG_ELEM_INT4, r->count, pg_elem_int4(a, (int32_t)w[i].bytes.key));
    COLUMN(a, PG_ELEM_INT8, r->count, pg_elem_int8(a, w[i].bytes.nonce));
    COLUMN(a, PG_ELEM_INT8, r->count, pg_elem_opt(a, w[i].birth));
    COLUMN(a, PG_ELEM_INT8, r->count, pg_elem_int8(a, w[i].bytes.death));
    COLUMN(a, PG_ELEM_BYTES, r->count,
           pg_elem_bytes(a, w[i].bytes.extrinsic.data, w[i].bytes.extrinsic.len));
    COLUMN(a, PG_ELEM_TEXT, r->count, pg_elem_text(a, w[i].tip));
    COLUMN(a, PG_ELEM_INT8, r->count, pg_elem_int8(a, w[i].spec_version));
    COLUMN(a, PG_ELEM_INT8, r->count, pg_elem_int8(a, w[i].transaction_version));
}

static void on_applied(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_apply *r = CONTAINER_OF(q, struct store_site_apply, query);
    (void)result;
    r->err = q->err;
    r->cb(r);
}

void store_site_apply_start(struct store_sites *s, struct store_site_apply *r,
                            void (*cb)(struct store_site_apply *r))
{
    struct pg_args a;
    const struct store_site_write *w = r->rows;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, kind_name(w[i].kind)));
    COLUMN(&a, PG_ELEM_INT4, r->count, pg_elem_int4(&a, (int32_t)w[i].member));
    COLUMN(&a, PG_ELEM_INT8, r->count, pg_elem_int8(&a, w[i].id));
    put_bytes(&a, r);
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, w[i].outcome));
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, w[i].error));
    COLUMN(&a, PG_ELEM_BYTES, r->count, pg_elem_bytes(&a, w[i].block, 32));
    COLUMN(&a, PG_ELEM_INT8, r->count, pg_elem_opt(&a, w[i].number));
    COLUMN(&a, PG_ELEM_INT4, r->count, pg_elem_opt4(&a, (int32_t)w[i].index));
    COLUMN(&a, PG_ELEM_TEXT, r->count, pg_elem_text(&a, w[i].fee));
    put_int8s(&a, r->next, r->next_count);
    pg_session_ask(&s->session, &r->query, SQL_WRITE_SITES, &a, on_applied);
    buf_done(&s->session.scratch); /* of a large batch: libpq has copied it */
}

/* ---- for operators ---- */

static void on_noted(struct conn_query *q, const struct conn_result *result)
{
    struct store_site_note *r = CONTAINER_OF(q, struct store_site_note, query);
    (void)result;
    r->err = q->err;
    r->cb(r);
}

void store_site_note_start(struct store_sites *s, struct store_site_note *r,
                           void (*cb)(struct store_site_note *r))
{
    struct pg_args a;
    r->cb = cb;
    store_sites__begin(s, &a, r->account, r->epoch);
    pg_put_text(&a, r->state);
    pg_put_int4(&a, r->coordinator);
    pg_put_int8(&a, r->height);
    pg_put_text(&a, r->reason);
    pg_put_int8(&a, r->down);
    pg_session_ask(&s->session, &r->query, SQL_NOTE_SITE, &a, on_noted);
}

/* Binary form of the few types that the statements use (src/backend/utils/adt/arrayfuncs.c,
 * array_recv: dimensions, null flag, element type, then per dimension size and lower bound, then
 * the elements). */
#include "conn/pg_codec.h"

#include <string.h>

#include "base/check.h"

enum { OID_BOOL = 16, OID_BYTEA = 17, OID_INT8 = 20, OID_INT4 = 23, OID_TEXT = 25 };
enum {
    OID_BYTEA_ARRAY = 1001,
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_INT8_ARRAY = 1016
};

static const struct {
    uint32_t elem, array;
} oids[] = {
    [PG_ELEM_INT4] = {OID_INT4, OID_INT4_ARRAY},
    [PG_ELEM_INT8] = {OID_INT8, OID_INT8_ARRAY},
    [PG_ELEM_TEXT] = {OID_TEXT, OID_TEXT_ARRAY},
    [PG_ELEM_BYTES] = {OID_BYTEA, OID_BYTEA_ARRAY},
};

static void be32(uint8_t *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put32(struct buf *b, uint32_t v)
{
    be32(buf_grow(b, 4), v);
    b->len += 4;
}

static void put64(struct buf *b, uint64_t v)
{
    put32(b, (uint32_t)(v >> 32));
    put32(b, (uint32_t)v);
}

static uint64_t read_be(const char *data, int len)
{
    uint64_t v = 0;
    for (int i = 0; i < len; i++)
        v = v << 8 | (uint8_t)data[i];
    return v;
}

/* ---- parameters ---- */

void pg_args_begin(struct pg_args *a, struct buf *scratch)
{
    buf_clear(scratch);
    a->buf = scratch;
    a->count = 0;
}

static size_t open_param(struct pg_args *a, uint32_t oid, bool null)
{
    PRE(a->count < CONN_PARAMS_MAX);
    a->param[a->count] = (struct conn_param){.format = 1, .oid = oid, .len = null ? -1 : 0};
    a->offset[a->count] = a->buf->len;
    return a->buf->len;
}

static void close_param(struct pg_args *a)
{
    struct conn_param *p = &a->param[a->count];
    size_t len = a->buf->len - a->offset[a->count];
    INVARIANT(len < INT32_MAX);
    if (p->len == 0)
        p->len = (int)len;
    a->count++;
}

/* The buffer no longer moves now. */
const struct conn_param *pg_args_end(struct pg_args *a)
{
    for (int i = 0; i < a->count; i++) {
        struct conn_param *p = &a->param[i];
        bool null = p->len < 0;
        p->len = null ? 0 : p->len;
        p->data = null ? NULL : p->len ? (const char *)a->buf->data + a->offset[i] : "";
    }
    return a->param;
}

void pg_put_bool(struct pg_args *a, bool v)
{
    open_param(a, OID_BOOL, false);
    buf_put_u8(a->buf, v);
    close_param(a);
}

void pg_put_int4(struct pg_args *a, int32_t v)
{
    open_param(a, OID_INT4, false);
    put32(a->buf, (uint32_t)v);
    close_param(a);
}

void pg_put_int8(struct pg_args *a, int64_t v)
{
    open_param(a, OID_INT8, false);
    put64(a->buf, (uint64_t)v);
    close_param(a);
}

void pg_put_null8(struct pg_args *a)
{
    open_param(a, OID_INT8, true);
    close_param(a);
}

void pg_put_text(struct pg_args *a, const char *s)
{
    open_param(a, OID_TEXT, !s);
    if (s)
        buf_puts(a->buf, s);
    close_param(a);
}

void pg_put_bytes(struct pg_args *a, const void *data, size_t len)
{
    open_param(a, OID_BYTEA, !data);
    if (data)
        buf_put(a->buf, data, len);
    close_param(a);
}

void pg_array_begin(struct pg_args *a, enum pg_elem elem, size_t count)
{
    PRE(count < INT32_MAX / 4);
    a->array_at = open_param(a, oids[elem].array, false);
    put32(a->buf, count ? 1 : 0);
    put32(a->buf, 0);
    put32(a->buf, oids[elem].elem);
    if (count) {
        put32(a->buf, (uint32_t)count);
        put32(a->buf, 1);
    }
}

void pg_array_null(struct pg_args *a, enum pg_elem elem)
{
    open_param(a, oids[elem].array, true);
    close_param(a);
}

static void elem_null(struct pg_args *a)
{
    put32(a->buf, UINT32_MAX);
    be32(a->buf->data + a->array_at + 4, 1);
}

void pg_elem_int4(struct pg_args *a, int32_t v)
{
    put32(a->buf, 4);
    put32(a->buf, (uint32_t)v);
}

void pg_elem_int8(struct pg_args *a, int64_t v)
{
    put32(a->buf, 8);
    put64(a->buf, (uint64_t)v);
}

void pg_elem_amount(struct pg_args *a, u128 v)
{
    char text[40];
    pg_elem_text(a, u128_text(v, text));
}

void pg_elem_opt(struct pg_args *a, int64_t v)
{
    if (v < 0)
        elem_null(a);
    else
        pg_elem_int8(a, v);
}

void pg_elem_opt4(struct pg_args *a, int32_t v)
{
    if (v < 0)
        elem_null(a);
    else
        pg_elem_int4(a, v);
}

void pg_elem_bytes(struct pg_args *a, const void *data, size_t len)
{
    if (!data) {
        elem_null(a);
        return;
    }
    INVARIANT(len < INT32_MAX);
    put32(a->buf, (uint32_t)len);
    buf_put(a->buf, data, len);
}

void pg_elem_text(struct pg_args *a, const char *s)
{
    pg_elem_bytes(a, s, s ? strlen(s) : 0);
}

void pg_array_end(struct pg_args *a)
{
    close_param(a);
}

/* ---- rows ---- */

static const char *cell(struct pg_row *r, int col, int *ret_len)
{
    *ret_len = 0;
    if (col >= conn_result_columns(r->r) || r->row >= conn_result_rows(r->r)) {
        r->bad = true;
        return NULL;
    }
    if (conn_result_is_null(r->r, r->row, col))
        return NULL;
    return conn_result_get(r->r, r->row, col, ret_len);
}

bool pg_get_bool(struct pg_row *r, int col)
{
    int len;
    const char *data = cell(r, col, &len);
    if (data && len != 1)
        r->bad = true;
    return data && len == 1 && *data;
}

int64_t pg_get_int(struct pg_row *r, int col, int64_t null_value)
{
    int len;
    const char *data = cell(r, col, &len);
    if (!data)
        return null_value;
    if (len == 8)
        return (int64_t)read_be(data, 8);
    if (len == 4)
        return (int32_t)(uint32_t)read_be(data, 4);
    r->bad = true;
    return 0;
}

const char *pg_get_text(struct pg_row *r, int col, const char *null_value)
{
    int len;
    const char *data = cell(r, col, &len);
    return data ? data : null_value;
}

u128 pg_get_amount(struct pg_row *r, int col, u128 null_value)
{
    const char *text = pg_get_text(r, col, NULL);
    u128 v;
    return text && u128_parse(text, &v) ? v : null_value;
}

const uint8_t *pg_get_bytes(struct pg_row *r, int col, size_t *ret_len)
{
    int len;
    const char *data = cell(r, col, &len);
    *ret_len = (size_t)len;
    return (const uint8_t *)data;
}

void pg_get_hash(struct pg_row *r, int col, uint8_t out[32])
{
    size_t len;
    const uint8_t *data = pg_get_bytes(r, col, &len);
    if (data && len == 32)
        memcpy(out, data, 32);
    else
        r->bad = true;
}

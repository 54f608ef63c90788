/* Parameters and rows in Postgres' binary form. Private to store/.
 * All parameters of a call are laid out in one buffer; libpq copies them when it sends. */
#ifndef STORE_PG_CODEC_H
#define STORE_PG_CODEC_H

#include "base/buf.h"
#include "base/u128.h"
#include "store/conn.h"

struct pg_args {
    struct buf *buf;
    int count;
    struct conn_param param[CONN_PARAMS_MAX];
    size_t offset[CONN_PARAMS_MAX];
    size_t array_at; /* open array: where its header is */
};

void pg_args_begin(struct pg_args *a, struct buf *scratch); /* scratch is cleared */
const struct conn_param *pg_args_end(struct pg_args *a);

void pg_put_bool(struct pg_args *a, bool v);
void pg_put_int4(struct pg_args *a, int32_t v);
void pg_put_int8(struct pg_args *a, int64_t v);
void pg_put_null8(struct pg_args *a);                               /* bigint */
void pg_put_text(struct pg_args *a, const char *s);                 /* NULL: SQL NULL */
void pg_put_bytes(struct pg_args *a, const void *data, size_t len); /* data NULL: SQL NULL */

enum pg_elem { PG_ELEM_INT4, PG_ELEM_INT8, PG_ELEM_TEXT, PG_ELEM_BYTES };
void pg_array_begin(struct pg_args *a, enum pg_elem elem, size_t count);
void pg_array_null(struct pg_args *a, enum pg_elem elem); /* the whole parameter */
void pg_elem_int4(struct pg_args *a, int32_t v);
void pg_elem_int8(struct pg_args *a, int64_t v);
void pg_elem_opt(struct pg_args *a, int64_t v);  /* bigint, -1: NULL */
void pg_elem_opt4(struct pg_args *a, int32_t v); /* int, -1: NULL */
void pg_elem_amount(struct pg_args *a, u128 v);  /* decimal text */
void pg_elem_text(struct pg_args *a, const char *s);
void pg_elem_bytes(struct pg_args *a, const void *data, size_t len);
void pg_array_end(struct pg_args *a);

/* Reads cells; one that has another size than its type sets `bad` and reads as 0. NULL cells read
 * as given. */
struct pg_row {
    const struct conn_result *r;
    int row;
    bool bad;
};
bool pg_get_bool(struct pg_row *r, int col);
int64_t pg_get_int(struct pg_row *r, int col, int64_t null_value); /* int4 or int8 */
/* From decimal text; what is no number of 128 bits reads like NULL. */
u128 pg_get_amount(struct pg_row *r, int col, u128 null_value);
const char *pg_get_text(struct pg_row *r, int col, const char *null_value);
const uint8_t *pg_get_bytes(struct pg_row *r, int col, size_t *ret_len); /* NULL: SQL NULL */
void pg_get_hash(struct pg_row *r, int col, uint8_t out[32]);

#endif

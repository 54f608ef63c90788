/* The accounts of the database: notifications contain the id, readers get the alias. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "listen_internal.h"

void listen__accounts_free(struct listen *s)
{
    struct account_row *a, *next;
    HASH_CLEAR(by_id, s->account_ids);
    HASH_ITER(by_number, s->accounts, a, next)
    {
        HASH_DELETE(by_number, s->accounts, a);
        free(a->alias);
        free(a->address);
        free(a);
    }
}

static void add(struct listen *s, struct account_row *a)
{
    struct account_row *same;
    HASH_ADD(by_number, s->accounts, number, sizeof(a->number), a);
    HASH_FIND(by_id, s->account_ids, a->id, a->id_len, same);
    if (same)
        same->ambiguous = true;
    else
        HASH_ADD_KEYPTR(by_id, s->account_ids, a->id, a->id_len, a);
}

bool listen__number_at(const struct conn_result *r, int row, int column, int64_t *ret)
{
    const char *text =
        conn_result_is_null(r, row, column) ? "" : conn_result_get(r, row, column, NULL);
    char *end;
    *ret = strtoll(text, &end, 10);
    return *text && !*end;
}

static bool take(struct listen *s, const struct conn_result *r, int row)
{
    int64_t number;
    int hex_len = 0;
    const char *hex = conn_result_get(r, row, 2, &hex_len);
    size_t len = (size_t)hex_len / 2;
    struct account_row *a = xcalloc(1, sizeof(*a));
    if (!listen__number_at(r, row, 0, &number) || (len != 20 && len != 32) ||
        !hex_decode_fixed(hex, (size_t)hex_len, a->id, len)) {
        free(a);
        return false;
    }
    a->number = (int32_t)number;
    a->id_len = (unsigned)len;
    a->alias = xstrdup(conn_result_get(r, row, 1, NULL));
    a->address = xstrdup(conn_result_get(r, row, 3, NULL));
    add(s, a);
    return true;
}

bool listen__accounts_take(struct listen *s, const struct conn_result *r, int64_t *ret_now_us,
                           int64_t *ret_kept_us)
{
    int rows = conn_result_rows(r);
    listen__accounts_free(s);
    if (rows < 1 || conn_result_columns(r) != 6 || !listen__number_at(r, 0, 4, ret_now_us) ||
        !listen__number_at(r, 0, 5, ret_kept_us))
        return false;
    for (int i = 0; i < rows; i++) {
        if (conn_result_is_null(r, i, 0))
            continue; /* no account: the row only carries the clock */
        if (!take(s, r, i))
            return false;
    }
    return true;
}

const struct account_row *listen__account(const struct listen *s, int32_t number)
{
    struct account_row *a;
    HASH_FIND(by_number, s->accounts, &number, sizeof(number), a);
    return a;
}

const struct account_row *listen__account_by_id(const struct listen *s, const uint8_t *id,
                                                size_t len)
{
    struct account_row *a;
    HASH_FIND(by_id, s->account_ids, id, (unsigned)len, a);
    return a && !a->ambiguous ? a : NULL;
}

const struct account_row *listen__account_by_name(const struct listen *s, const char *name)
{
    struct account_row *a, *next;
    uint8_t id[LISTEN_ACCOUNT_ID_MAX];
    size_t len = strlen(name);
    size_t id_len = len > 2 && !strncmp(name, "0x", 2) ? (len - 2) / 2 : 0;
    bool by_id = (id_len == 20 || id_len == 32) && hex_decode_fixed(name, len, id, id_len);
    HASH_ITER(by_number, s->accounts, a, next)
    {
        if (!strcmp(a->alias, name) || !strcmp(a->address, name) ||
            (by_id && a->id_len == id_len && !memcmp(a->id, id, id_len)))
            return a;
    }
    return NULL;
}

/* Notifications of both sides, as lines of the fields that they have. Those of some calls are
 * compared as a set: one statement tells of its rows in an order of its own. */
#include "diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"

static const char *const channels[] = {"leader_change", "outbox_wake", "pending_tx_new",
                                       "pending_tx_update", "pending_tx_removed"};

static void add(struct notices *n, const char *line)
{
    n->lines = xrealloc(n->lines, (n->count + 1) * sizeof(char *));
    n->lines[n->count++] = xstrdup(line);
}

static void clear(struct notices *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->lines[i]);
    free(n->lines);
    *n = (struct notices){0};
}

/* ---- Postgres ---- */

/* A member of a flat JSON object, without its quotes; "" for null and for one that is missing. */
static void put_member(struct buf *b, const char *json, const char *name)
{
    char quoted[40];
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    const char *at = strstr(json, quoted);
    buf_puts(b, " ");
    if (!at)
        return;
    at += strlen(quoted);
    at += strspn(at, " :\"");
    size_t n = strcspn(at, "\",}");
    if (n != 4 || strncmp(at, "null", 4) != 0)
        buf_put(b, at, n);
}

void diff_hear(void *arg, const char *channel, const char *payload, int from_pid)
{
    static const char *const leader[] = {"account", "holder", "address", "epoch"};
    static const char *const row[] = {"account_id", "nonce",      "id",      "hash",
                                      "state",      "creator_id", "outcome", "block_hash"};
    struct diff *d = arg;
    struct buf b = {0};
    bool leads = !strcmp(channel, "leader_change"), wakes = !strcmp(channel, "outbox_wake");
    (void)from_pid;
    buf_puts(&b, channel);
    if (wakes)
        buf_printf(&b, " %s", payload);
    for (size_t i = 0; leads && i < ARRAY_LEN(leader); i++)
        put_member(&b, payload, leader[i]);
    for (size_t i = 0; !leads && !wakes && i < ARRAY_LEN(row); i++)
        put_member(&b, payload, row[i]);
    add(&d->pg_notices, buf_str(&b));
    buf_done(&b);
}

/* ---- memory ---- */

static void put_hex(struct buf *b, const uint8_t *data, size_t n)
{
    buf_puts(b, " ");
    if (data)
        hex_put_0x(b, data, n);
}

static void put_text(struct buf *b, const char *text)
{
    buf_printf(b, " %s", text ? text : "");
}

static void put_number(struct buf *b, int64_t v, int64_t null)
{
    if (v == null)
        buf_puts(b, " ");
    else
        buf_printf(b, " %lld", (long long)v);
}

static void put_row(struct buf *b, const struct mem_notice *n)
{
    bool removed = n->channel == MEM_TX_REMOVED, update = n->channel == MEM_TX_UPDATE;
    put_hex(b, n->account_id.data, n->account_id.len);
    put_number(b, n->nonce, -1);
    put_number(b, n->id, 0);
    put_hex(b, removed ? NULL : n->hash, 32);
    put_text(b, removed ? NULL : n->state);
    put_text(b, removed ? NULL : n->creator);
    put_text(b, n->outcome);
    put_hex(b, update ? n->block_hash : NULL, 32);
}

void diff_notice(void *arg, struct mem_session *to, const struct mem_notice *n)
{
    struct diff *d = arg;
    struct buf b = {0};
    size_t channel = 0;
    (void)to;
    while (1u << channel != (unsigned)n->channel)
        channel++;
    buf_puts(&b, channels[channel]);
    if (n->channel == MEM_OUTBOX_WAKE) {
        buf_printf(&b, " %d", n->account);
    } else if (n->channel == MEM_LEADER_CHANGE) {
        buf_printf(&b, " %d", n->account);
        put_text(&b, n->holder);
        put_text(&b, n->address);
        put_number(&b, n->epoch, -1);
    } else {
        put_row(&b, n);
    }
    add(&d->mem_notices, buf_str(&b));
    buf_done(&b);
}

/* ---- both ---- */

void diff_notices_clear(struct diff *d)
{
    clear(&d->pg_notices);
    clear(&d->mem_notices);
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static void sort(struct notices *n)
{
    if (n->count)
        qsort(n->lines, n->count, sizeof(char *), by_text);
}

/* The listener has heard all that was committed before its own statement. */
void diff_notices_compare(struct diff *d)
{
    char state[6];
    free(diff_sql(d, DIFF_LISTENER, state, "SELECT 1"));
    sort(&d->pg_notices);
    sort(&d->mem_notices);
    size_t most =
        d->pg_notices.count > d->mem_notices.count ? d->pg_notices.count : d->mem_notices.count;
    for (size_t i = 0; i < most && !d->differs; i++) {
        const char *pg = i < d->pg_notices.count ? d->pg_notices.lines[i] : "nothing";
        const char *mem = i < d->mem_notices.count ? d->mem_notices.lines[i] : "nothing";
        if (strcmp(pg, mem) != 0)
            diff_found(d, "notifications differ", pg, mem);
    }
    diff_notices_clear(d);
}

void diff_listen(struct diff *d)
{
    char state[6];
    for (size_t i = 0; i < ARRAY_LEN(channels); i++)
        free(diff_sql(d, DIFF_LISTENER, state, "LISTEN %s", channels[i]));
}

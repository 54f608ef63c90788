/* Notifications on their way to the cursor and to the owner. They are buffered while pending rows
 * or the sessions of relays are being read: the answer decides what becomes of them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "listen/payload.h"
#include "listen_internal.h"

enum {
    BUFFERED_MAX = 65536,
    BUFFERED_BYTES_MAX = 8 << 20,
    SOURCES_MS = 1000, /* least interval between questions for the sessions of relays */
};

static bool find_account(struct listen *s, struct listen_event *ev)
{
    const struct account_row *a =
        ev->account ? listen__account(s, ev->account)
                    : listen__account_by_id(s, ev->account_id, ev->account_id_len);
    if (a)
        ev->account = a->number;
    return a != NULL;
}

static void pass_row(struct listen *s, enum listen_kind kind, const char *text, size_t len,
                     bool believed)
{
    struct listen_payload p;
    if (!listen_payload_row(text, len, kind, &p)) {
        if (believed)
            log_warn("listen.bad_payload",
                     "kind=%s bytes=%zu text=\"ignored; the table is read again\"",
                     listen_kind_name(kind), len);
        listen__rescan(s);
        return;
    }
    if (find_account(s, &p.event))
        listen__step(s, &(struct cursor_event){.type = CURSOR_EV_NOTIFY,
                                               .notify = {.row = &p.event,
                                                          .now_us = listen__clock_us(s),
                                                          .believed = believed}});
    else
        listen__rescan(s); /* an account registered since, or whose id several chains have */
    listen_payload_done(&p);
}

void listen__drop_buffered(struct listen *s)
{
    for (struct list *n = list_first(&s->held); n; n = list_first(&s->held)) {
        list_remove(n);
        free(CONTAINER_OF(n, struct held, node));
    }
    s->buffered_count = 0;
    s->buffered_bytes = 0;
}

static void buffer(struct listen *s, enum listen_kind kind, const char *text, size_t len, int pid)
{
    /* What is dropped here the next scan delivers. */
    if (s->buffered_count == BUFFERED_MAX || s->buffered_bytes + len > BUFFERED_BYTES_MAX) {
        listen__drop_buffered(s);
        listen__rescan(s);
    }
    struct held *h = xmalloc(sizeof(*h) + len + 1);
    h->node = (struct list){0};
    h->kind = kind;
    h->from_pid = pid;
    h->len = len;
    memcpy(h->text, text, len + 1);
    list_append(&s->held, &h->node);
    s->buffered_count++;
    s->buffered_bytes += len;
}

/* False if the notifications have to wait: the pending rows or the sessions of relays are being
 * read. A sender that is not among these may be a relay's new session: they are read again. */
static bool try_pass(struct listen *s, int pid)
{
    if (!s->scan_pending && !s->sources.busy && !listen__believes(s, pid) &&
        loop_now_ms(s->loop) >= s->sources_at + SOURCES_MS)
        listen__read_sources(s);
    return !s->scan_pending && !s->sources.busy;
}

void listen__drain_buffered(struct listen *s)
{
    struct list *n;
    while (!listen__closing(s) && (n = list_first(&s->held))) {
        struct held *h = CONTAINER_OF(n, struct held, node);
        if (!try_pass(s, h->from_pid))
            return;
        list_remove(n);
        s->buffered_count--;
        s->buffered_bytes -= h->len;
        pass_row(s, h->kind, h->text, h->len, listen__believes(s, h->from_pid));
        free(h);
    }
}

static void pass_signal(struct listen *s, const char *channel, const char *text, size_t len)
{
    struct listen_payload p;
    int32_t account;
    if (!strcmp(channel, "outbox_wake")) {
        if (listen_payload_wake(text, len, &account) && s->config.on_wake)
            s->config.on_wake(s->config.arg, account);
    } else if (listen_payload_leader(text, len, &p)) {
        if (s->config.on_leader_change)
            s->config.on_leader_change(s->config.arg, &p.leader);
        listen_payload_done(&p);
    }
}

void listen__notified(void *arg, const char *channel, const char *payload, int from_pid)
{
    static const char *const rows[] = {[LISTEN_NEW] = "pending_tx_new",
                                       [LISTEN_UPDATE] = "pending_tx_update",
                                       [LISTEN_REMOVED] = "pending_tx_removed"};
    struct listen *s = arg;
    size_t len = strlen(payload);
    if (listen__closing(s))
        return;
    for (int kind = LISTEN_NEW; kind <= LISTEN_REMOVED; kind++) {
        if (strcmp(channel, rows[kind]) != 0)
            continue;
        if (cursor_state(s->cursor) == CURSOR_DOWN)
            return; /* before the scan, which will deliver it */
        if (list_empty(&s->held) && try_pass(s, from_pid))
            pass_row(s, (enum listen_kind)kind, payload, len, listen__believes(s, from_pid));
        else
            buffer(s, (enum listen_kind)kind, payload, len, from_pid);
        return;
    }
    pass_signal(s, channel, payload, len);
}

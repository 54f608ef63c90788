/* See subs.h. Notifications are printed by hand: this is the hot path of a busy chain. */
#include "subs.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/rng.h"
#include "server.h"

static const char *const NOTIFICATION[] = {
    [SUB_EXTRINSIC] = "author_extrinsicUpdate",
    [SUB_NEW_HEADS] = "chain_newHead",
    [SUB_ALL_HEADS] = "chain_allHead",
    [SUB_FINALIZED_HEADS] = "chain_finalizedHead",
    [SUB_RUNTIME] = "state_runtimeVersion",
    [SUB_STORAGE] = "state_storage",
    [SUB_ARCHIVE_STORAGE] = "archive_v1_storageEvent",
    [SUB_FOLLOW] = "chainHead_v1_followEvent",
    [SUB_TRANSACTION] = "transactionWatch_v1_watchEvent",
    [SUB_BROADCAST] = "",
};

static void make_id(struct app *a, char id[17])
{
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    do {
        for (unsigned i = 0; i < 16; i++)
            id[i] = LETTERS[rng_below(&a->rng, sizeof LETTERS - 1)];
        id[16] = '\0';
    } while (map_get(&a->sub_ids, id));
}

struct sub *sub_new(struct call *c, enum sub_kind kind)
{
    struct app *a = c->app;
    if (!c->conn) {
        call_error(c, RPC_INTERNAL, "Internal error", NULL);
        return NULL;
    }
    if (conn_sub_count(c->conn) >= a->options.subscriptions_max) {
        char text[64];
        snprintf(text, sizeof text, "Exceeded max limit of %u", a->options.subscriptions_max);
        call_error(c, RPC_TOO_MANY_SUBSCRIPTIONS, "Too many subscriptions on the connection", text);
        return NULL;
    }
    struct sub *s = xcalloc(1, sizeof *s);
    s->app = a;
    s->conn = c->conn;
    s->kind = kind;
    s->held = true;
    make_id(a, s->id);
    map_put(&a->sub_ids, s->id, s);
    list_append(conn_subs(c->conn), &s->conn_node);
    conn_subs_changed(c->conn, 1);
    if (kind != SUB_EXTRINSIC && kind != SUB_TRANSACTION)
        list_append(&a->subs[kind], &s->kind_node);
    return s;
}

void sub_free(struct sub *s)
{
    listener_unwatch(&s->app->core.listener, &s->watch);
    map_del(&s->app->sub_ids, s->id);
    list_remove(&s->conn_node);
    conn_subs_changed(s->conn, -1);
    list_remove(&s->kind_node);
    buf_done(&s->held_items);
    buf_done(&s->pins);
    json_decref(s->keys);
    tx_unref(s->tx);
    free(s);
}

struct sub *sub_find(const struct app *a, const struct conn *conn, const char *id,
                     enum sub_kind kind)
{
    if (strlen(id) != 16)
        return NULL;
    struct sub *s = map_get(&a->sub_ids, id);
    return s && s->conn == conn && s->kind == kind && !s->ended && !s->muted ? s : NULL;
}

static void put_notification(struct buf *b, const struct sub *s, const void *result, size_t len)
{
    buf_puts(b, "{\"jsonrpc\":\"2.0\",\"method\":\"");
    buf_puts(b, NOTIFICATION[s->kind]);
    buf_puts(b, "\",\"params\":{\"subscription\":\"");
    buf_put(b, s->id, 16);
    buf_puts(b, "\",\"result\":");
    buf_put(b, result, len);
    buf_puts(b, "}}");
}

/* The connection holds 64 messages and a subscription `subscription_buffer` more; then the
 * subscription ends silently. */
static bool reader_too_slow(struct sub *s)
{
    uint32_t limit = s->app->options.subscription_buffer;
    if (!limit || s->held)
        return false;
    s->backlog = conn_backed_up(s->conn) ? s->backlog + 1 : 0;
    s->muted = s->muted || s->backlog > limit;
    return s->muted;
}

void sub_notify(struct sub *s, const void *result, size_t len)
{
    struct buf b = {0};
    if (s->muted || reader_too_slow(s))
        return;
    if (s->held) {
        uint32_t at = (uint32_t)s->held_items.len, n;
        scale_put_u32(&s->held_items, 0);
        put_notification(&s->held_items, s, result, len);
        n = (uint32_t)s->held_items.len - at - 4;
        memcpy(s->held_items.data + at, &n, 4);
        return;
    }
    put_notification(&b, s, result, len);
    conn_send(s->conn, b.data, b.len);
    buf_done(&b);
}

void sub_release(struct sub *s)
{
    s->held = false;
    for (size_t at = 0; at < s->held_items.len;) {
        uint32_t n;
        memcpy(&n, s->held_items.data + at, 4);
        conn_send(s->conn, s->held_items.data + at + 4, n);
        at += 4 + n;
    }
    buf_done(&s->held_items);
    if (s->ended)
        sub_free(s);
}

/* A status that a script keeps back for a while. */
struct late_status {
    struct list node;
    struct app *app;
    struct loop_timer *timer;
    char sub_id[17];
    struct buf json;
    bool final;
};

static void late_free(struct late_status *l)
{
    list_remove(&l->node);
    loop_timer_close(l->timer);
    buf_done(&l->json);
    free(l);
}

static void tell_late(void *arg)
{
    struct late_status *l = arg;
    struct sub *s = map_get(&l->app->sub_ids, l->sub_id);
    if (s) {
        sub_notify(s, l->json.data, l->json.len);
        if (l->final)
            sub_free(s);
    }
    late_free(l);
}

static void tell_later(struct sub *s, const struct buf *json, bool final, uint32_t delay_ms)
{
    struct late_status *l = xcalloc(1, sizeof *l);
    l->app = s->app;
    l->final = final;
    memcpy(l->sub_id, s->id, sizeof l->sub_id);
    buf_put(&l->json, json->data, json->len);
    list_append(&s->app->late, &l->node);
    l->timer = loop_timer_new(s->app->loop, tell_late, l);
    loop_timer_at(l->timer, loop_now_ms(s->app->loop) + delay_ms);
}

void subs_late_done(struct app *a)
{
    while (!list_empty(&a->late))
        late_free(CONTAINER_OF(list_first(&a->late), struct late_status, node));
}

static void put_status(struct buf *b, bool chopsticks, enum pool_status status, const uint8_t *hash)
{
    if (!hash && !chopsticks) {
        buf_printf(b, "\"%s\"", pool_status_name(status));
        return;
    }
    buf_printf(b, "{\"%s\":", pool_status_name(status));
    if (hash)
        put_json_hex(b, hash, 32);
    else
        buf_puts(b, "null");
    buf_put_u8(b, '}');
}

/* After a final status the subscription is gone without a closing frame. */
static void end_sub(struct sub *s)
{
    if (s->held)
        s->ended = true;
    else
        sub_free(s);
}

void subs_on_status(void *arg, struct watch *w, enum pool_status status, const uint8_t *hash)
{
    struct app *a = arg;
    struct sub *s = CONTAINER_OF(w, struct sub, watch);
    bool final = pool_status_final(status);
    if (s->kind == SUB_BROADCAST) {
        broadcast_on_status(s, status);
        return;
    }
    struct script_rule *r =
        s->muted || list_empty(&a->script.rules) ? NULL : script_status(&a->script, status, s->tx);
    enum script_action action = r ? r->action : ACTION_NONE;
    if (r)
        a->stats.faults++;
    struct buf b = {0};
    if (s->kind == SUB_TRANSACTION)
        put_watch_event(&b, a, s, status, hash);
    else
        put_status(&b, a->options.chopsticks_shapes, status, hash);
    if (!b.len)
        action = ACTION_OMIT;
    if (action == ACTION_DELAY)
        tell_later(s, &b, final, r->delay_ms);
    else if (action == ACTION_END)
        s->muted = true; /* the client receives nothing more (behaviour.md, line 43) */
    else if (action != ACTION_OMIT)
        sub_notify(s, b.data, b.len);
    buf_done(&b);
    if (final && action != ACTION_DELAY)
        end_sub(s);
}

void put_header_json(struct buf *b, const struct block *block)
{
    static const uint8_t none[32];
    struct buf log = {0};
    buf_puts(b, "{\"parentHash\":");
    put_json_hex(b, block->parent ? block->parent->hash : none, 32);
    buf_printf(b, ",\"number\":\"0x%llx\",\"stateRoot\":", (unsigned long long)block->number);
    put_json_hex(b, block->state_root, 32);
    buf_puts(b, ",\"extrinsicsRoot\":");
    put_json_hex(b, block->extrinsics_root, 32);
    buf_puts(b, ",\"digest\":{\"logs\":[");
    if (block->parent) {
        chain_digest_scale(block, &log);
        put_json_hex(b, log.data, log.len);
    }
    buf_puts(b, "]}}");
    buf_done(&log);
}

/* Does a script keep this notification from this subscriber? */
static bool scripted_away(struct sub *s)
{
    struct app *a = s->app;
    struct script_rule *r =
        list_empty(&a->script.rules) ? NULL : script_notify(&a->script, NOTIFICATION[s->kind]);
    if (!r)
        return false;
    a->stats.faults++;
    s->muted = s->muted || r->action == ACTION_END;
    return r->action == ACTION_OMIT || r->action == ACTION_END;
}

static void notify_heads(struct app *a, enum sub_kind kind, const struct block *block)
{
    if (list_empty(&a->subs[kind]))
        return;
    struct buf b = {0};
    put_header_json(&b, block);
    LIST_EACH (n, &a->subs[kind]) {
        struct sub *s = CONTAINER_OF(n, struct sub, kind_node);
        if (!scripted_away(s))
            sub_notify(s, b.data, b.len);
    }
    buf_done(&b);
}

/* Keys whose value differs from the one at the parent; all of them when `all`. */
static void notify_storage(struct sub *s, const struct block *block, bool all)
{
    struct buf b = {0}, key = {0}, now = {0}, before = {0};
    size_t i, changes = 0;
    json_t *item;
    buf_puts(&b, "{\"block\":");
    put_json_hex(&b, block->hash, 32);
    buf_puts(&b, ",\"changes\":[");
    json_array_foreach(s->keys, i, item)
    {
        buf_clear(&key);
        buf_clear(&now);
        buf_clear(&before);
        if (!hex_decode(json_string_value(item), json_string_length(item), &key))
            continue;
        bool has = storage_get(&s->app->core, block, key.data, key.len, &now);
        bool had =
            block->parent && storage_get(&s->app->core, block->parent, key.data, key.len, &before);
        if (!all && has == had && now.len == before.len &&
            (!now.len || memcmp(now.data, before.data, now.len) == 0))
            continue;
        buf_puts(&b, changes++ ? ",[" : "[");
        put_json_hex(&b, key.data, key.len);
        buf_put_u8(&b, ',');
        if (has)
            put_json_hex(&b, now.data, now.len);
        else
            buf_puts(&b, "null");
        buf_put_u8(&b, ']');
    }
    buf_puts(&b, "]}");
    if (changes)
        sub_notify(s, b.data, b.len);
    buf_done(&b);
    buf_done(&key);
    buf_done(&now);
    buf_done(&before);
}

static void broadcasts_due(struct loop_task *task)
{
    broadcast_again(CONTAINER_OF(task, struct app, broadcasts));
}

void subs_on_block(void *arg, const struct block *b, bool best)
{
    struct app *a = arg;
    notify_heads(a, SUB_ALL_HEADS, b);
    LIST_EACH (n, &a->subs[SUB_FOLLOW])
        follow_on_block(CONTAINER_OF(n, struct sub, kind_node), b, best);
    if (!best)
        return;
    if (!list_empty(&a->subs[SUB_BROADCAST]) && !list_linked(&a->broadcasts.node))
        loop_post(a->loop, &a->broadcasts, broadcasts_due);
    notify_heads(a, SUB_NEW_HEADS, b);
    LIST_EACH (n, &a->subs[SUB_STORAGE])
        notify_storage(CONTAINER_OF(n, struct sub, kind_node), b, false);
}

void subs_on_finalized(void *arg, const struct block *b)
{
    struct app *a = arg;
    notify_heads(a, SUB_FINALIZED_HEADS, b);
    LIST_EACH (n, &a->subs[SUB_FOLLOW])
        follow_on_finalized(CONTAINER_OF(n, struct sub, kind_node), b);
}

void put_version_json(struct buf *b, const struct app *a, struct chain_version v)
{
    (void)a;
    buf_printf(
        b,
        "{\"specName\":\"devchain\",\"implName\":\"txrelay-devchain\",\"authoringVersion\":1,"
        "\"specVersion\":%u,\"implVersion\":1,\"apis\":[",
        v.spec);
    for (size_t i = 0; i < RUNTIME_API_COUNT; i++)
        buf_printf(b, "%s[\"0x%s\",%u]", i ? "," : "", RUNTIME_APIS[i].id, RUNTIME_APIS[i].version);
    buf_printf(b, "],\"transactionVersion\":%u,\"systemVersion\":1,\"stateVersion\":1}", v.tx);
}

void put_runtime_json(struct buf *b, struct chain_version v)
{
    buf_printf(
        b,
        "{\"type\":\"valid\",\"spec\":{\"specName\":\"devchain\",\"implName\":\"txrelay-devchain\""
        ",\"specVersion\":%u,\"implVersion\":1,\"transactionVersion\":%u,\"apis\":{",
        v.spec, v.tx);
    for (size_t i = 0; i < RUNTIME_API_COUNT; i++)
        buf_printf(b, "%s\"0x%s\":%u", i ? "," : "", RUNTIME_APIS[i].id, RUNTIME_APIS[i].version);
    buf_puts(b, "}}}");
}

static void notify_runtime(struct sub *s)
{
    struct buf b = {0};
    put_version_json(&b, s->app, s->app->core.rt.version);
    sub_notify(s, b.data, b.len);
    buf_done(&b);
}

void subs_on_runtime(void *arg)
{
    struct app *a = arg;
    app_metadata_forget(a);
    if (a->silent_upgrade)
        return;
    LIST_EACH (n, &a->subs[SUB_RUNTIME]) {
        struct sub *s = CONTAINER_OF(n, struct sub, kind_node);
        if (!scripted_away(s))
            notify_runtime(s);
    }
}

void sub_answer(struct call *c, struct sub *s)
{
    put_json_str(call_begin(c), s->id);
    call_end(c);
    c->started = s;
}

void subs_start_heads(struct call *c, enum sub_kind kind)
{
    struct sub *s = sub_new(c, kind);
    if (!s)
        return;
    sub_answer(c, s);
    struct buf b = {0};
    put_header_json(&b, kind == SUB_FINALIZED_HEADS ? c->app->core.chain.finalized
                                                    : c->app->core.chain.best);
    sub_notify(s, b.data, b.len);
    buf_done(&b);
}

void subs_start_runtime(struct call *c)
{
    struct sub *s = sub_new(c, SUB_RUNTIME);
    if (!s)
        return;
    sub_answer(c, s);
    notify_runtime(s);
}

void subs_start_storage(struct call *c)
{
    const json_t *keys = call_param(c, 0);
    if (!json_is_array(keys) || json_array_size(keys) == 0) {
        call_error(c, RPC_METHOD_NOT_FOUND, "RPC call is unsafe to be called externally", NULL);
        return;
    }
    struct sub *s = sub_new(c, SUB_STORAGE);
    if (!s)
        return;
    s->keys = json_deep_copy(keys);
    sub_answer(c, s);
    notify_storage(s, c->app->core.chain.best, true);
}

/* true once; an unknown id, one of another connection or of another kind is false, never an
 * error. */
void subs_stop(struct call *c, enum sub_kind kind)
{
    const char *id = json_string_value(call_param(c, 0));
    struct sub *s = id && c->conn ? sub_find(c->app, c->conn, id, kind) : NULL;
    if (s)
        sub_free(s);
    call_result(c, s ? "true" : "false");
}

/* chainHead_v1_*: the newest blocks and their states, pinned for a subscriber, in the newer
 * JSON-RPC (paritytech/json-rpc-interface-spec). Only with --newer-rpc. Operations end at once:
 * their events go out behind the answer. */
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "server.h"
#include "subs.h"

enum {
    FOLLOWS_MAX = 4,      /* of a connection */
    FINAL_BLOCKS_MAX = 16 /* that "initialized" names */
};

/* ---- pins ---- */

static struct pin *pins(const struct sub *s, size_t *ret_count)
{
    *ret_count = s->pins.len / sizeof(struct pin);
    return (struct pin *)(void *)s->pins.data;
}

static struct pin *pin_find(const struct sub *s, const uint8_t hash[32])
{
    size_t count;
    struct pin *all = pins(s, &count);
    for (size_t i = 0; i < count; i++)
        if (memcmp(all[i].hash, hash, 32) == 0)
            return &all[i];
    return NULL;
}

/* False: it was one too many, and the subscription is over. */
static bool pin(struct sub *s, const uint8_t hash[32])
{
    static const char stop[] = "{\"event\":\"stop\"}";
    struct pin p = {.pruned = false};
    if (s->pins.len / sizeof p >= s->app->options.follow_pins_max) {
        sub_notify(s, stop, sizeof stop - 1);
        s->muted = true;
        return false;
    }
    memcpy(p.hash, hash, 32);
    buf_put(&s->pins, &p, sizeof p);
    return true;
}

/* ---- events ---- */

void follow_on_block(struct sub *s, const struct block *b, bool best)
{
    struct buf e = {0};
    if (s->muted || pin_find(s, b->hash) || !pin(s, b->hash))
        return;
    bool upgraded = b->parent && (b->version.spec != b->parent->version.spec ||
                                  b->version.tx != b->parent->version.tx);
    buf_puts(&e, "{\"event\":\"newBlock\",\"blockHash\":");
    put_json_hex(&e, b->hash, 32);
    buf_puts(&e, ",\"parentBlockHash\":");
    put_json_hex(&e, b->parent->hash, 32);
    buf_puts(&e, ",\"newRuntime\":");
    if (upgraded && s->with_runtime)
        put_runtime_json(&e, b->version);
    else
        buf_puts(&e, "null");
    buf_put_u8(&e, '}');
    sub_notify(s, e.data, e.len);
    if (best) {
        buf_clear(&e);
        buf_puts(&e, "{\"event\":\"bestBlockChanged\",\"bestBlockHash\":");
        put_json_hex(&e, b->hash, 32);
        buf_put_u8(&e, '}');
        sub_notify(s, e.data, e.len);
    }
    buf_done(&e);
}

void follow_on_finalized(struct sub *s, const struct block *b)
{
    const struct chain *chain = &s->app->core.chain;
    struct buf e = {0};
    size_t count, pruned = 0;
    if (s->muted || s->final >= b->number)
        return;
    buf_puts(&e, "{\"event\":\"finalized\",\"finalizedBlockHashes\":[");
    for (uint64_t n = s->final + 1; n <= b->number; n++) {
        buf_puts(&e, n > s->final + 1 ? "," : "");
        put_json_hex(&e, chain_canonical(chain, n)->hash, 32);
    }
    s->final = b->number;
    buf_puts(&e, "],\"prunedBlockHashes\":[");
    struct pin *all = pins(s, &count);
    for (size_t i = 0; i < count; i++) {
        const struct block *pinned = chain_block(chain, all[i].hash);
        if (all[i].pruned || pinned->canonical || pinned->number > b->number)
            continue;
        all[i].pruned = true;
        buf_puts(&e, pruned++ ? "," : "");
        put_json_hex(&e, all[i].hash, 32);
    }
    buf_puts(&e, "]}");
    sub_notify(s, e.data, e.len);
    buf_done(&e);
}

static void initialized(struct sub *s)
{
    const struct chain *chain = &s->app->core.chain;
    struct buf e = {0};
    uint64_t last = chain->finalized->number;
    uint64_t n = last >= FINAL_BLOCKS_MAX ? last + 1 - FINAL_BLOCKS_MAX : 0;
    s->final = last;
    buf_puts(&e, "{\"event\":\"initialized\",\"finalizedBlockHashes\":");
    for (const char *before = "["; n <= last; n++, before = ",") {
        buf_puts(&e, before);
        put_json_hex(&e, chain_canonical(chain, n)->hash, 32);
        pin(s, chain_canonical(chain, n)->hash);
    }
    buf_puts(&e, "],\"finalizedBlockRuntime\":");
    if (s->with_runtime)
        put_runtime_json(&e, chain->finalized->version);
    else
        buf_puts(&e, "null");
    buf_put_u8(&e, '}');
    sub_notify(s, e.data, e.len);
    buf_done(&e);
    for (n = last + 1; n <= chain->best->number; n++)
        follow_on_block(s, chain_canonical(chain, n), n == chain->best->number);
}

/* ---- methods ---- */

static void follow(struct call *c)
{
    struct app *a = c->app;
    size_t mine = 0;
    LIST_EACH (n, &a->subs[SUB_FOLLOW])
        mine += CONTAINER_OF(n, struct sub, kind_node)->conn == c->conn &&
                !CONTAINER_OF(n, struct sub, kind_node)->muted;
    if (mine >= FOLLOWS_MAX) {
        call_error(c, RPC_FOLLOW_LIMIT, "Maximum number of chainHead_follow has been reached",
                   NULL);
        return;
    }
    struct sub *s = sub_new(c, SUB_FOLLOW);
    if (!s)
        return;
    s->with_runtime = json_is_true(call_param(c, 0));
    sub_answer(c, s);
    initialized(s);
}

static void unfollow(struct call *c)
{
    const char *id = json_string_value(call_param(c, 0));
    struct sub *s = id && c->conn ? sub_find(c->app, c->conn, id, SUB_FOLLOW) : NULL;
    if (s)
        sub_free(s);
    call_result(c, "null");
}

/* The subscription and the pinned block of the first two parameters. NULL: answered, with `stale`
 * if there is no such subscription. */
static struct sub *subscriber(struct call *c, const char *stale, struct block **ret_block)
{
    const char *id = json_string_value(call_param(c, 0));
    struct sub *s = id && c->conn ? sub_find(c->app, c->conn, id, SUB_FOLLOW) : NULL;
    uint8_t hash[32];
    if (!s) {
        call_result(c, stale);
        return NULL;
    }
    if (!call_hash(c, 1, hash))
        return NULL;
    if (!pin_find(s, hash)) {
        call_error(c, RPC_NOT_PINNED, "The provided block is not pinned", NULL);
        return NULL;
    }
    *ret_block = chain_block(&c->app->core.chain, hash);
    return s;
}

static void header(struct call *c)
{
    struct block *block;
    struct buf scale = {0};
    if (!subscriber(c, "null", &block))
        return;
    chain_header_scale(block, &scale);
    put_json_hex(call_begin(c), scale.data, scale.len);
    call_end(c);
    buf_done(&scale);
}

static const char limit[] = "{\"result\":\"limitReached\"}";

/* Answer with a new operation; what is notified now goes out behind the answer. */
static uint64_t operation(struct call *c, struct sub *s)
{
    uint64_t id = ++c->app->operations;
    buf_printf(call_begin(c), "{\"result\":\"started\",\"operationId\":\"%llu\"}",
               (unsigned long long)id);
    call_end(c);
    s->held = true;
    c->started = s;
    return id;
}

static void put_event(struct buf *e, const char *name, uint64_t id)
{
    buf_printf(e, "{\"event\":\"%s\",\"operationId\":\"%llu\"", name, (unsigned long long)id);
}

static void fail(struct sub *s, uint64_t id, const char *why)
{
    struct buf e = {0};
    put_event(&e, "operationError", id);
    buf_printf(&e, ",\"error\":\"%s\"}", why);
    sub_notify(s, e.data, e.len);
    buf_done(&e);
}

static void body(struct call *c)
{
    struct block *block;
    struct buf e = {0};
    struct sub *s = subscriber(c, limit, &block);
    if (!s)
        return;
    uint64_t id = operation(c, s);
    if (block->pruned) {
        fail(s, id, "UnknownBlock: the body is gone");
        return;
    }
    put_event(&e, "operationBodyDone", id);
    buf_puts(&e, ",\"value\":");
    put_body_json(&e, block);
    buf_put_u8(&e, '}');
    sub_notify(s, e.data, e.len);
    buf_done(&e);
}

static void call(struct call *c)
{
    struct block *block;
    struct buf args = {0}, value = {0}, e = {0};
    struct sub *s = subscriber(c, limit, &block);
    if (s && call_bytes(c, 3, &args)) {
        const char *name = json_string_value(call_param(c, 2));
        uint64_t id = operation(c, s);
        if (runtime_api_call(c->app, block, name ? name : "", &args, &value)) {
            put_event(&e, "operationCallDone", id);
            buf_puts(&e, ",\"output\":");
            put_json_hex(&e, value.data, value.len);
            buf_put_u8(&e, '}');
            sub_notify(s, e.data, e.len);
        } else {
            fail(s, id, "Execution failed");
        }
    }
    buf_done(&args);
    buf_done(&value);
    buf_done(&e);
}

static void storage(struct call *c)
{
    struct block *block;
    struct buf key = {0}, value = {0}, e = {0};
    struct sub *s = subscriber(c, limit, &block);
    const json_t *items = call_param(c, 2), *item;
    size_t i, found = 0;
    if (!s)
        return;
    uint64_t id = operation(c, s);
    put_event(&e, "operationStorageItems", id);
    buf_puts(&e, ",\"items\":[");
    json_array_foreach(items, i, item)
    {
        const json_t *k = json_object_get(item, "key");
        buf_clear(&key);
        buf_clear(&value);
        if (!k || !hex_decode(json_string_value(k), json_string_length(k), &key) ||
            !storage_get(&c->app->core, block, key.data, key.len, &value))
            continue;
        buf_puts(&e, found++ ? ",{\"key\":" : "{\"key\":");
        put_json_hex(&e, key.data, key.len);
        buf_puts(&e, ",\"value\":");
        put_json_hex(&e, value.data, value.len);
        buf_put_u8(&e, '}');
    }
    buf_puts(&e, "]}");
    if (found)
        sub_notify(s, e.data, e.len);
    buf_clear(&e);
    put_event(&e, "operationStorageDone", id);
    buf_put_u8(&e, '}');
    sub_notify(s, e.data, e.len);
    buf_done(&key);
    buf_done(&value);
    buf_done(&e);
}

/* One hash, or a list of them. */
static void unpin(struct call *c)
{
    const char *id = json_string_value(call_param(c, 0));
    struct sub *s = id && c->conn ? sub_find(c->app, c->conn, id, SUB_FOLLOW) : NULL;
    const json_t *hashes = call_param(c, 1);
    size_t n = json_is_array(hashes) ? json_array_size(hashes) : 1;
    for (size_t i = 0; s && i < n; i++) {
        const json_t *v = json_is_array(hashes) ? json_array_get(hashes, i) : hashes;
        uint8_t hash[32];
        struct pin *p = json_is_string(v) && hex_decode_fixed(json_string_value(v),
                                                              json_string_length(v), hash, 32)
                            ? pin_find(s, hash)
                            : NULL;
        if (!p) {
            call_error(c, RPC_NOT_PINNED, "The provided block is not pinned", NULL);
            return;
        }
        size_t count;
        *p = pins(s, &count)[s->pins.len / sizeof *p - 1];
        s->pins.len -= sizeof *p;
    }
    call_result(c, "null");
}

/* Operations have ended when their ids are known. */
static void nothing(struct call *c)
{
    call_result(c, "null");
}

const struct method METHODS_HEAD[] = {
    {"chainHead_v1_body", body},        {"chainHead_v1_call", call},
    {"chainHead_v1_continue", nothing}, {"chainHead_v1_follow", follow},
    {"chainHead_v1_header", header},    {"chainHead_v1_stopOperation", nothing},
    {"chainHead_v1_storage", storage},  {"chainHead_v1_unfollow", unfollow},
    {"chainHead_v1_unpin", unpin},      {NULL, NULL},
};

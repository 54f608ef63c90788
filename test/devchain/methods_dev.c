/* dev_*: the tester's hand on the chain. README.md lists parameters and results. Every method takes
 * one object (or nothing). */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "chain/codec/ss58.h"
#include "server.h"
#include "subs.h"

static const json_t *arg(const struct call *c, const char *key)
{
    const json_t *v = json_object_get(call_param(c, 0), key);
    return json_is_null(v) ? NULL : v;
}

static uint64_t arg_u64(const struct call *c, const char *key, uint64_t otherwise)
{
    const json_t *v = arg(c, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
                                                            : otherwise;
}

static bool arg_true(const struct call *c, const char *key, bool otherwise)
{
    const json_t *v = arg(c, key);
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static void refuse(struct call *c, const char *text)
{
    call_error(c, RPC_INVALID_PARAMS, text, NULL);
}

static void put_head(struct buf *b, const char *name, const struct block *block)
{
    buf_printf(b, "\"%s\":{\"number\":%llu,\"hash\":", name, (unsigned long long)block->number);
    put_json_hex(b, block->hash, 32);
    buf_puts(b, "}");
}

static void answer_heads(struct call *c)
{
    struct buf *b = call_begin(c);
    buf_put_u8(b, '{');
    put_head(b, "best", c->app->core.chain.best);
    buf_put_u8(b, ',');
    put_head(b, "finalized", c->app->core.chain.finalized);
    buf_printf(b, ",\"ready\":%zu,\"future\":%zu}", c->app->core.pool.ready.count,
               c->app->core.pool.future.count);
    call_end(c);
}

/* {count=1, empty=false, burst=false} or [count] */
static void new_block(struct call *c)
{
    const json_t *plain = call_param(c, 0);
    uint64_t count =
        json_is_integer(plain) ? (uint64_t)json_integer_value(plain) : arg_u64(c, "count", 1);
    if (count > 1000000) {
        refuse(c, "dev_newBlock: count is above 1000000");
        return;
    }
    if (arg_true(c, "burst", false))
        app_author_burst(c->app, (size_t)count);
    else
        for (uint64_t i = 0; i < count; i++)
            app_author(c->app, arg_true(c, "empty", false));
    answer_heads(c);
}

/* {number} or [number]; nothing: up to best */
static void finalize(struct call *c)
{
    const json_t *plain = call_param(c, 0);
    uint64_t best = c->app->core.chain.best->number;
    core_finalize(&c->app->core, json_is_integer(plain) ? (uint64_t)json_integer_value(plain)
                                                        : arg_u64(c, "number", best));
    answer_heads(c);
}

/* {depth=1, length=depth+1, keep=true, from_pool=false, resubmit=true} */
static void reorg(struct call *c)
{
    struct core_reorg r = {
        .depth = arg_u64(c, "depth", 1),
        .length = arg_u64(c, "length", 0),
        .keep_txs = arg_true(c, "keep", true),
        .from_pool = arg_true(c, "from_pool", false),
        .no_resubmit = !arg_true(c, "resubmit", true),
    };
    if (r.length > 1000 || !app_reorg(c->app, &r))
        refuse(c, "dev_reorg: depth reaches a final block, or length is above 1000");
    else
        answer_heads(c);
}

/* {block_ms, finality_lag, finality, paused, instant, min_tip, false_in_block, pool_blind_nonce,
 * silent_upgrade, block_extrinsics_max, ban_ms, ready_max, future_max}: what is given is changed */
static void set_options(struct call *c)
{
    struct app *a = c->app;
    struct pool_config *p = &a->core.pool.config;
    u128 tip;
    a->options.block_ms = (uint32_t)arg_u64(c, "block_ms", a->options.block_ms);
    a->options.finality_lag = arg_u64(c, "finality_lag", a->options.finality_lag);
    a->options.instant = arg_true(c, "instant", a->options.instant);
    a->finality_paused = !arg_true(c, "finality", !a->finality_paused);
    a->paused = arg_true(c, "paused", a->paused);
    a->pool_blind_nonce = arg_true(c, "pool_blind_nonce", a->pool_blind_nonce);
    a->silent_upgrade = arg_true(c, "silent_upgrade", a->silent_upgrade);
    a->core.false_in_block = arg_true(c, "false_in_block", a->core.false_in_block);
    a->core.config.block_extrinsics_max =
        (uint32_t)arg_u64(c, "block_extrinsics_max", a->core.config.block_extrinsics_max);
    p->ban_ms = arg_u64(c, "ban_ms", p->ban_ms);
    p->ready_count_max = (size_t)arg_u64(c, "ready_max", p->ready_count_max);
    p->future_count_max = (size_t)arg_u64(c, "future_max", p->future_count_max);
    const json_t *min_tip = arg(c, "min_tip");
    if (json_is_integer(min_tip))
        a->core.min_tip = (u128)(uint64_t)json_integer_value(min_tip);
    else if (json_is_string(min_tip) && u128_parse(json_string_value(min_tip), &tip))
        a->core.min_tip = tip;
    app_schedule(a);
    answer_heads(c);
}

static void set_block_ms(struct call *c)
{
    const json_t *v = call_param(c, 0);
    c->app->options.block_ms =
        (uint32_t)(json_is_integer(v) ? json_integer_value(v) : (json_int_t)arg_u64(c, "ms", 0));
    app_schedule(c->app);
    answer_heads(c);
}

static void set_finality_lag(struct call *c)
{
    const json_t *v = call_param(c, 0);
    c->app->options.finality_lag =
        json_is_integer(v) ? (uint64_t)json_integer_value(v) : arg_u64(c, "lag", 0);
    app_follow_finality(c->app);
    answer_heads(c);
}

static void pause_blocks(struct call *c)
{
    c->app->paused = true;
    app_schedule(c->app);
    answer_heads(c);
}

static void resume_blocks(struct call *c)
{
    c->app->paused = false;
    app_schedule(c->app);
    answer_heads(c);
}

/* {spec, tx, silent=false}: the next block carries it; {block=true} makes that block now, without
 * transactions */
static void upgrade(struct call *c)
{
    struct chain_version v = c->app->core.rt.version;
    v.spec = (uint32_t)arg_u64(c, "spec", v.spec + 1);
    v.tx = (uint32_t)arg_u64(c, "tx", v.tx);
    c->app->silent_upgrade = arg_true(c, "silent", c->app->silent_upgrade);
    core_upgrade(&c->app->core, v);
    if (arg_true(c, "block", true))
        app_author(c->app, true);
    answer_heads(c);
}

/* {account, free?, nonce?}: by the next block; {block=true} makes that block now, without
 * transactions */
static void set_balance(struct call *c)
{
    struct core_change ch = {0};
    const json_t *free_amount = arg(c, "free"), *nonce = arg(c, "nonce");
    const char *account = json_string_value(arg(c, "account"));
    size_t len;
    uint8_t id[ACCOUNT_ID_MAX];
    if (!account || !account_id_parse(account, id, &len) || len != 32) {
        refuse(c, "dev_setBalance: account is not an SS58 address or 0x with 64 digits");
        return;
    }
    memcpy(ch.id, id, 32);
    ch.set_free = free_amount != NULL;
    if (json_is_integer(free_amount))
        ch.free = (u128)(uint64_t)json_integer_value(free_amount);
    else if (free_amount && (!json_is_string(free_amount) ||
                             !u128_parse(json_string_value(free_amount), &ch.free))) {
        refuse(c, "dev_setBalance: free is neither a number nor a decimal string");
        return;
    }
    ch.set_nonce = json_is_integer(nonce);
    ch.nonce = (uint32_t)json_integer_value(nonce);
    core_change_account(&c->app->core, &ch);
    if (arg_true(c, "block", true))
        app_author(c->app, true);
    answer_heads(c);
}

/* {hash?, silent=true} */
static void drop_pool(struct call *c)
{
    uint8_t hash[32];
    const char *text = json_string_value(arg(c, "hash"));
    if (text && !hex_decode_fixed(text, strlen(text), hash, 32)) {
        refuse(c, "dev_dropPool: hash is not 0x with 64 digits");
        return;
    }
    size_t n = pool_drop(&c->app->core.pool, text ? hash : NULL, arg_true(c, "silent", true));
    buf_printf(call_begin(c), "{\"dropped\":%zu}", n);
    call_end(c);
}

/* {hash}: told invalid and banned, with its ready dependants told too */
static void invalidate(struct call *c)
{
    uint8_t hash[32];
    const char *text = json_string_value(arg(c, "hash"));
    if (!text || !hex_decode_fixed(text, strlen(text), hash, 32)) {
        refuse(c, "dev_invalidate: hash is not 0x with 64 digits");
        return;
    }
    pool_remove_invalid(&c->app->core.pool, loop_now_ms(c->app->loop), hash, NULL);
    answer_heads(c);
}

/* All of them, at once: a real node would wait for time and a block. */
static void clear_bans(struct call *c)
{
    pool_clear_bans(&c->app->core.pool);
    call_result(c, "true");
}

/* {peers: [..]}: `broadcast` to every watcher of a ready transaction */
static void broadcast(struct call *c)
{
    const json_t *peers = arg(c, "peers");
    char *text = peers ? json_dumps(peers, JSON_COMPACT) : NULL;
    struct buf status = {0};
    size_t told = 0, pos = 0;
    buf_printf(&status, "{\"broadcast\":%s}", text ? text : "[]");
    for (struct sub *s; (s = map_next(&c->app->sub_ids, &pos));) {
        const struct pool_tx *t =
            s->kind == SUB_EXTRINSIC ? pool_find(&c->app->core.pool, s->watch.hash) : NULL;
        if (!t || !t->ready)
            continue;
        sub_notify(s, status.data, status.len);
        told++;
    }
    buf_done(&status);
    free(text);
    buf_printf(call_begin(c), "{\"told\":%zu}", told);
    call_end(c);
}

/* one rule object, or {rules: [..]} */
static void script(struct call *c)
{
    struct err err = {0};
    const json_t *rules = arg(c, "rules");
    size_t i, count = rules ? json_array_size(rules) : 1;
    struct buf ids = {0};
    for (i = 0; i < count; i++) {
        uint64_t id;
        if (script_add(&c->app->script, rules ? json_array_get(rules, i) : call_param(c, 0), &id,
                       &err)) {
            refuse(c, err.text);
            buf_done(&ids);
            return;
        }
        buf_printf(&ids, "%s%llu", i ? "," : "", (unsigned long long)id);
    }
    buf_printf(call_begin(c), "{\"ids\":[%s]}", buf_str(&ids));
    call_end(c);
    buf_done(&ids);
}

static void clear_script(struct call *c)
{
    buf_printf(call_begin(c), "{\"cleared\":%zu}",
               script_clear(&c->app->script, arg_u64(c, "id", 0)));
    call_end(c);
}

static void list_script(struct call *c)
{
    call_result_json(c, script_json(&c->app->script));
}

/* {from=0, limit=0}: limit submissions in order from that one on */
static void stats(struct call *c)
{
    json_t *o =
        stats_json(&c->app->stats, (size_t)arg_u64(c, "from", 0), (size_t)arg_u64(c, "limit", 0));
    const struct core *core = &c->app->core;
    json_object_set_new(o, "ready", json_integer((json_int_t)core->pool.ready.count));
    json_object_set_new(o, "future", json_integer((json_int_t)core->pool.future.count));
    json_object_set_new(o, "bans", json_integer((json_int_t)core->pool.bans.count));
    json_object_set_new(o, "best", json_integer((json_int_t)core->chain.best->number));
    json_object_set_new(o, "finalized", json_integer((json_int_t)core->chain.finalized->number));
    json_object_set_new(o, "spec", json_integer(core->rt.version.spec));
    json_object_set_new(o, "subscriptions", json_integer((json_int_t)c->app->sub_ids.count));
    json_object_set_new(o, "open_connections",
                        json_integer((json_int_t)server_conn_count(c->app->server)));
    call_result_json(c, o);
}

/* What clients hold: subscriptions by kind, pinned blocks. */
static void held(struct call *c)
{
    static const char *const names[SUB_KINDS] = {
        [SUB_EXTRINSIC] = "extrinsic",
        [SUB_NEW_HEADS] = "new_heads",
        [SUB_ALL_HEADS] = "all_heads",
        [SUB_FINALIZED_HEADS] = "finalized_heads",
        [SUB_RUNTIME] = "runtime",
        [SUB_STORAGE] = "storage",
        [SUB_ARCHIVE_STORAGE] = "archive_storage",
        [SUB_FOLLOW] = "follow",
        [SUB_TRANSACTION] = "transaction",
        [SUB_BROADCAST] = "broadcast",
    };
    json_int_t counts[SUB_KINDS] = {0}, pins = 0;
    size_t pos = 0;
    json_t *o = json_object();
    for (const struct sub *s = map_next(&c->app->sub_ids, &pos); s;
         s = map_next(&c->app->sub_ids, &pos)) {
        counts[s->kind] += !s->muted;
        pins += (json_int_t)(s->pins.len / sizeof(struct pin));
    }
    for (size_t i = 0; i < SUB_KINDS; i++)
        if (counts[i])
            json_object_set_new(o, names[i], json_integer(counts[i]));
    json_object_set_new(o, "pins", json_integer(pins));
    call_result_json(c, o);
}

static void reset_stats(struct call *c)
{
    stats_done(&c->app->stats);
    stats_init(&c->app->stats);
    call_result(c, "true");
}

/* Every connection, the asking one too: nobody gets an answer that was not sent yet. */
static void cut_connections(struct call *c)
{
    size_t n = server_cut_all(c->app->server);
    buf_printf(call_begin(c), "{\"cut\":%zu}", n);
    call_end(c);
}

/* {blocks | finalized | submits: n}: answered when that many are reached. Not over HTTP. */
static void wait_for(struct call *c)
{
    if (!c->conn) {
        refuse(c, "dev_waitFor needs a WebSocket; over HTTP ask dev_stats again");
        return;
    }
    app_wait(c->app, conn_number(c->conn), c->id, arg_u64(c, "blocks", 0),
             arg_u64(c, "finalized", 0), arg_u64(c, "submits", 0));
}

const struct method METHODS_DEV[] = {
    {"dev_newBlock", new_block},
    {"dev_finalize", finalize},
    {"dev_reorg", reorg},
    {"dev_set", set_options},
    {"dev_setBlockMs", set_block_ms},
    {"dev_setFinalityLag", set_finality_lag},
    {"dev_pause", pause_blocks},
    {"dev_resume", resume_blocks},
    {"dev_upgrade", upgrade},
    {"dev_setBalance", set_balance},
    {"dev_dropPool", drop_pool},
    {"dev_invalidate", invalidate},
    {"dev_clearBans", clear_bans},
    {"dev_broadcast", broadcast},
    {"dev_script", script},
    {"dev_clearScript", clear_script},
    {"dev_listScript", list_script},
    {"dev_stats", stats},
    {"dev_held", held},
    {"dev_resetStats", reset_stats},
    {"dev_cutConnections", cut_connections},
    {"dev_waitFor", wait_for},
    {NULL, NULL},
};

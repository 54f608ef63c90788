/* Messages from a node, one per line, against calls and subscriptions that wait for them. Bytes
 * under 32 stand for pieces of messages, so that any input contains a well-formed message now and
 * then; all other bytes stand for themselves. Every callback fires once, an ended subscription
 * receives nothing, everything is freed at the end. The WebSocket client is replaced by the one
 * below: no socket, every frame is written. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/node/rpc.h"
#include "net/ws_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 4, SUBS = 3, FRAMES = 64 };

static const char *const pieces[32] = {
    "{\"jsonrpc\":\"2.0\",\"id\":",
    ",\"result\":",
    (",\"error\":{\"code\":1010,\"message\":\"Invalid Transaction\",\"data\":\"Transaction is "
     "outdated\"}}"),
    "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":{\"subscription\":",
    "\"S1\"",
    "\"S2\"",
    "1",
    "2",
    "3",
    "4",
    "\n",
    "5",
    "6",
    "7",
    "}",
    "}}",
    "null",
    "\"ready\"",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"S1\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"S1\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":\"S2\"}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":42}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"subscription\":\"S1\",\"result\":1}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"subscription\":\"S2\",\"result\":2}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"subscription\":42,\"result\":null}}\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"subscription\":\"S1\",\"error\":{}}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32007}}\n",
    "8",
    "9",
    "[",
    "]",
    ",",
};

struct sub {
    struct rpc_sub sub;
    bool replied, ended, gone;
    unsigned items;
};

static struct loop *loop;
static struct rpc *rpc;
static struct rpc_call calls[CALLS];
static unsigned call_ends[CALLS];
static struct sub subs[SUBS];
static bool closed;

static void call_ended(struct rpc_call *call)
{
    INVARIANT(call_ends[call - calls] == 0);
    call_ends[call - calls]++;
    INVARIANT((call->err.code == 0) == (call->result != NULL));
}

static struct sub *of(struct rpc_sub *sub)
{
    return CONTAINER_OF(sub, struct sub, sub);
}

static void sub_replied(struct rpc_call *call)
{
    struct sub *s = of(CONTAINER_OF(call, struct rpc_sub, call));
    INVARIANT(!s->replied && !s->gone);
    s->replied = true;
}

static void sub_item(struct rpc_sub *sub, const struct jv *item)
{
    struct sub *s = of(sub);
    INVARIANT(s->replied && !s->ended && !s->gone && item);
    if (++s->items % 3 == 0) {
        s->gone = true;
        rpc_unsubscribe(rpc, sub, "unsubscribe");
    }
}

static void sub_ended(struct rpc_sub *sub, const struct err *err)
{
    struct sub *s = of(sub);
    INVARIANT(s->replied && !s->ended && !s->gone && err->code);
    s->ended = true;
}

static void on_closed(void *arg)
{
    (void)arg;
    closed = true;
    loop_stop(loop);
}

/* ---- the WebSocket client, in place of net/ ---- */

struct ws_frame {
    struct list node;
    void (*cb)(void *arg, enum ws_frame_end end);
    void *cb_arg;
    char text[];
};

struct ws_client {
    struct ws_client_config config;
    struct list frames;
    struct loop_task task;
    void (*close_cb)(void *arg);
    void *close_arg;
};

static struct ws_client ws;

struct ws_client *ws_client_new(struct loop *l, const struct ws_client_config *config,
                                struct err *ret_err)
{
    (void)l, (void)ret_err;
    ws = (struct ws_client){.config = *config};
    list_init(&ws.frames);
    return &ws;
}

void ws_client_open(struct ws_client *c)
{
    (void)c; /* start() reports it open */
}

uint64_t ws_client_retry_after_ms(const struct ws_client *c)
{
    (void)c;
    return 0;
}

void ws_client_drop(struct ws_client *c)
{
    (void)c; /* frames end with ws_client_close */
}

struct ws_frame *ws_frame_new(size_t len)
{
    struct ws_frame *f = xmalloc(sizeof(*f) + len);
    *f = (struct ws_frame){0};
    return f;
}

char *ws_frame_text(struct ws_frame *f)
{
    return f->text;
}

void ws_frame_cancel(struct ws_frame *f)
{
    list_remove(&f->node);
    free(f);
}

void ws_client_send(struct ws_client *c, struct ws_frame *f, bool (*gate)(void *arg),
                    void *gate_arg, void (*cb)(void *arg, enum ws_frame_end end), void *cb_arg)
{
    (void)gate, (void)gate_arg;
    f->cb = cb;
    f->cb_arg = cb_arg;
    list_append(&c->frames, &f->node);
}

static void end_frames(enum ws_frame_end end)
{
    for (struct list *n = list_first(&ws.frames); n; n = list_first(&ws.frames)) {
        struct ws_frame *f = CONTAINER_OF(n, struct ws_frame, node);
        void (*cb)(void *arg, enum ws_frame_end) = f->cb;
        void *arg = f->cb_arg;
        ws_frame_cancel(f);
        if (cb)
            cb(arg, end);
    }
}

static void ws_closed(struct loop_task *task)
{
    (void)task;
    end_frames(WS_FRAME_UNSENT);
    ws.close_cb(ws.close_arg);
}

void ws_client_close(struct ws_client *c, void (*cb)(void *arg), void *arg)
{
    c->close_cb = cb;
    c->close_arg = arg;
    loop_post(loop, &c->task, ws_closed);
}

/* ---- the rpc under test ---- */

static void start(void)
{
    struct rpc_config config = {.url = "ws://127.0.0.1:1"};
    struct err err;
    if (!loop)
        loop = loop_new();
    rpc = rpc_new(loop, &config, &err);
    INVARIANT(rpc);
    rpc_open(rpc);
    ws.config.on_open(ws.config.arg);
    memset(calls, 0, sizeof(calls));
    memset(call_ends, 0, sizeof(call_ends));
    memset(subs, 0, sizeof(subs));
    closed = false;
    for (size_t i = 0; i < CALLS; i++) /* ids 1..4 */
        rpc_call_start(rpc, &calls[i], "call", "[]", 0, NULL, NULL, call_ended);
    for (size_t i = 0; i < SUBS; i++) /* ids 5..7 */
        rpc_subscribe_start(rpc, &subs[i].sub, "subscribe", "[]", NULL, NULL, sub_replied, sub_item,
                            sub_ended);
    end_frames(WS_FRAME_WRITTEN);
}

static void feed(const struct buf *text)
{
    if (!text->len)
        return;
    const char *p = (const char *)text->data;
    const char *end = p + text->len;
    for (unsigned frames = 0; p < end && frames < FRAMES; frames++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
        ws.config.on_text(ws.config.arg, p, len);
        end_frames(WS_FRAME_WRITTEN);
        if (frames == 8 && !subs[1].replied &&
            !subs[1].gone) { /* forgotten while its answer is out */
            subs[1].gone = true;
            rpc_unsubscribe(rpc, &subs[1].sub, "unsubscribe");
            memset(&subs[1].sub, 0xee, sizeof(subs[1].sub));
        }
        p += len + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0};
    if (size > 4096)
        return 0;
    for (size_t i = 0; i < size; i++) {
        if (data[i] < 32)
            buf_puts(&text, pieces[data[i]]);
        else
            buf_put_u8(&text, data[i]);
    }
    start();
    feed(&text);
    rpc_close(rpc, on_closed, NULL);
    while (!closed)
        loop_run(loop);
    for (size_t i = 0; i < CALLS; i++)
        INVARIANT(call_ends[i] == 1);
    for (size_t i = 0; i < SUBS; i++)
        INVARIANT(subs[i].replied || subs[i].gone);
    buf_done(&text);
    return 0;
}

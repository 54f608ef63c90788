/* Frames from a node, one a line, against calls and subscriptions that wait for them. Bytes under 32 stand
 * for pieces of frames, so that any input makes well-formed ones now and then; all others are themselves.
 * Every callback fires once, no ended subscription hears anything, everything is freed at the end. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "rpc_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CALLS = 4, SUBS = 3, FRAMES = 64 };

static const char *const pieces[32] = {
    "{\"jsonrpc\":\"2.0\",\"id\":",
    ",\"result\":",
    ",\"error\":{\"code\":1010,\"message\":\"Invalid Transaction\",\"data\":\"Transaction is outdated\"}}",
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

/* As the door does when the socket takes all of it. */
static void write_frames(void)
{
    for (struct list *n = list_first(&rpc->frames); n; n = list_first(&rpc->frames)) {
        struct rpc_frame *frame = CONTAINER_OF(n, struct rpc_frame, node);
        list_remove(n);
        if (frame->call) {
            frame->call->frame = NULL;
            frame->call->written = true;
        }
        free(frame);
    }
}

static void start(void)
{
    struct rpc_config config = {.url = "ws://127.0.0.1:1"};
    struct err err;
    if (!loop)
        loop = loop_new();
    rpc = rpc_new(loop, &config, &err);
    INVARIANT(rpc);
    rpc->phase = RPC_PHASE_OPEN;
    memset(calls, 0, sizeof(calls));
    memset(call_ends, 0, sizeof(call_ends));
    memset(subs, 0, sizeof(subs));
    closed = false;
    for (size_t i = 0; i < CALLS; i++) /* ids 1..4 */
        rpc_call_start(rpc, &calls[i], "call", "[]", 0, NULL, NULL, call_ended);
    for (size_t i = 0; i < SUBS; i++) /* ids 5..7 */
        rpc_subscribe_start(rpc, &subs[i].sub, "subscribe", "[]", NULL, NULL, sub_replied, sub_item,
                            sub_ended);
    write_frames();
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
        rpc__on_text(rpc, p, len);
        write_frames();
        if (frames == 8 && !subs[1].replied && !subs[1].gone) { /* forgotten while its answer is out */
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

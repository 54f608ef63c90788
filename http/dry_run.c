/* What would be enqueued: the call as its bytes and as the chain reads it, and the fee. */
#include <stdlib.h>

#include "api_internal.h"
#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/codec.h"

void api__no_chain(struct ask *k, const char *detail)
{
    api__problem(k, 503, "no_chain", "Retry-After: 5\r\n", detail);
}

static void answer(struct ask *k, bool known, u128 fee)
{
    struct buf out = {0};
    char amount[40];
    buf_puts(&out, "{\"dry_run\":true,\"call\":\"0x");
    hex_put(&out, k->call.data, k->call.len);
    buf_printf(&out, "\",\"decoded\":%s,\"fee\":", k->text);
    if (known)
        buf_printf(&out, "\"%s\"}", u128_text(fee, amount));
    else
        buf_puts(&out, "null}");
    api__answer(k, 200, NULL, (const char *)out.data, out.len);
    buf_done(&out);
}

static void on_fee(void *arg, bool known, u128 fee)
{
    struct ask *k = arg;
    list_remove(&k->fees);
    answer(k, known, fee);
}

void api__dry_run(struct ask *k, const struct metadata *md)
{
    struct api *a = k->api;
    struct err err = {0};
    struct buf decoded = {0};
    if (!md) {
        api__no_chain(k, "no node of the chain answers now, so the call cannot be decoded");
    } else if (codec_call_to_json(md, k->call.data, k->call.len, &decoded, &err)) {
        api__problem(k, 422, "bad_call", NULL, err.text);
    } else {
        k->text = xstrdup(buf_str(&decoded));
        list_append(&a->fees, &k->fees);
        k->fee = a->fee(a->arg, k->call.data, k->call.len, on_fee, k);
    }
    buf_done(&decoded);
}

void api__dry_runs_end(struct api *a)
{
    for (struct list *n = list_first(&a->fees); n; n = list_first(&a->fees)) {
        struct ask *k = CONTAINER_OF(n, struct ask, fees);
        a->fee_forget(k->fee);
        on_fee(k, false, 0);
    }
}

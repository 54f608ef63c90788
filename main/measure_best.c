/* The best block of several endpoints at the same time: how far each of them lags. */
#include <stdlib.h>

#include "base/alloc.h"
#include "measure.h"

struct look {
    struct ws_client *ws;
    struct loop_timer *timer;
    struct jv_doc doc;
    bool closing;
    bool *has;
    uint64_t *best;
};

static void look_closed(void *arg)
{
    struct look *k = arg;
    k->ws = NULL;
}

static void look_end(void *arg)
{
    struct look *k = arg;
    if (k->closing)
        return;
    k->closing = true;
    k->timer = loop_timer_close(k->timer);
    ws_client_close(k->ws, look_closed, k);
}

static void look_open(void *arg)
{
    struct look *k = arg;
    measure_send(k->ws, measure_call(1, "chain_getHeader", "[]"));
}

static void look_text(void *arg, const char *text, size_t len)
{
    struct look *k = arg;
    if (!k->closing)
        *k->has = measure_number(jv_get(jv_read(&k->doc, text, len, NULL), "result"), k->best);
    look_end(k);
}

static void look_lost(void *arg, const struct err *why)
{
    (void)why;
    look_end(arg);
}

void measure_best(const struct measure_endpoint *at, size_t count, bool *has, uint64_t *best)
{
    struct loop *l = loop_new();
    struct look *looks = xcalloc(count, sizeof(*looks));
    for (size_t i = 0; i < count; i++) {
        struct look *k = &looks[i];
        struct err err;
        has[i] = false;
        *k = (struct look){.has = &has[i], .best = &best[i]};
        const struct ws_client_config config = {.url = at[i].url,
                                                .peer = "node",
                                                .ca_file = at[i].ca_file,
                                                .insecure = at[i].insecure,
                                                .on_open = look_open,
                                                .on_text = look_text,
                                                .on_closed = look_lost,
                                                .arg = k};
        k->ws = ws_client_new(l, &config, &err);
        if (!k->ws)
            continue;
        k->timer = loop_timer_new(l, look_end, k);
        loop_timer_at(k->timer, loop_now_ms(l) + MEASURE_ANSWER_MS);
        ws_client_open(k->ws);
    }
    loop_run(l);
    for (size_t i = 0; i < count; i++)
        jv_done(&looks[i].doc);
    free(looks);
    loop_free(l);
}

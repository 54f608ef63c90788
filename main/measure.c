/* One connection to an endpoint and one question after another: the list of methods, each method,
 * then blocks further and further back. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "loop/loop.h"
#include "net/ws_client.h"

enum {
    PAUSE_MS = 1000, /* after "too many" */
    TRIES = 4,
    SILENT_MOST = 4, /* in a row: it answers nothing */
    TIMES_MOST = 128,
};

#define NUMBER_KEY "0x26aa394eea5630e07c48ae0c9558cef702a5c1b19ab7a04f536c519aca4983ac"

enum stage { STAGE_LIST, STAGE_METHODS, STAGE_FINAL, STAGE_REACH, STAGE_END };
enum part { PART_HASH, PART_HEADER, PART_BODY, PART_STATE, PART_END };

static const uint64_t depths[MEASURE_DEPTHS] = {1, 16, 64, 256, 1024, 4096, 16384, UINT64_MAX};

struct run {
    struct loop *loop;
    struct ws_client *ws;
    struct loop_timer *timer; /* an answer is late, or a pause is over */
    struct measured *m;
    struct jv_doc doc;
    enum stage stage;
    size_t at; /* the question, the depth */
    enum part part;
    bool paused, closing;
    unsigned tries, silent;
    uint64_t id, sent_ms;
    const char *method; /* that was asked; NULL: none is open */
    char final[67], hash[67];
    uint64_t final_number, height;
    bool lacks[PART_END];
    uint32_t times[TIMES_MOST];
};

static void next(struct run *r);

static void closed(void *arg)
{
    struct run *r = arg;
    r->ws = NULL;
}

static void end(struct run *r)
{
    if (r->closing)
        return;
    r->closing = true;
    r->stage = STAGE_END;
    r->timer = loop_timer_close(r->timer);
    ws_client_close(r->ws, closed, r);
}

void measure_send(struct ws_client *ws, char *text)
{
    struct ws_frame *f = ws_frame_new(strlen(text));
    memcpy(ws_frame_text(f), text, strlen(text));
    free(text);
    ws_client_send(ws, f, NULL, NULL, NULL, NULL);
}

char *measure_call(uint64_t id, const char *method, const char *params)
{
    return xasprintf("{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":%s}",
                     (unsigned long long)id, method, params);
}

static void ask(struct run *r, const char *method, const char *params)
{
    r->method = method;
    r->sent_ms = loop_now_ms(r->loop);
    measure_send(r->ws, measure_call(++r->id, method, params));
    loop_timer_at(r->timer, r->sent_ms + MEASURE_ANSWER_MS);
}

/* ---- the questions ---- */

static void ask_reach(struct run *r)
{
    static const char *const methods[PART_END] = {"chain_getBlockHash", "chain_getHeader",
                                                  "chain_getBlock", "state_getStorage"};
    char params[200];
    if (r->part == PART_HASH) {
        bool whole = r->final_number <= depths[r->at] + 1 || depths[r->at] == UINT64_MAX;
        r->height = whole ? 1 : r->final_number - depths[r->at];
        snprintf(params, sizeof(params), "[%llu]", (unsigned long long)r->height);
    } else if (r->part == PART_STATE) {
        snprintf(params, sizeof(params), "[\"" NUMBER_KEY "\",\"%s\"]", r->hash);
    } else {
        snprintf(params, sizeof(params), "[\"%s\"]", r->hash);
    }
    ask(r, methods[r->part], params);
}

static void next(struct run *r)
{
    char params[80];
    switch (r->stage) {
    case STAGE_LIST:
        ask(r, "rpc_methods", "[]");
        return;
    case STAGE_METHODS:
        ask(r, measure_questions[r->at].method, measure_questions[r->at].params);
        return;
    case STAGE_FINAL:
        snprintf(params, sizeof(params), r->final[0] ? "[\"%s\"]" : "[]%s", r->final);
        ask(r, "chain_getHeader", params);
        return;
    case STAGE_REACH:
        ask_reach(r);
        return;
    case STAGE_END:
        end(r);
        return;
    }
    UNREACHABLE();
}

/* ---- the answers ---- */

static void got_list(struct run *r, const struct jv *result)
{
    const struct jv *list = jv_get(result, "methods");
    r->m->lists = jv_is(list, JV_ARRAY);
    for (const struct jv *x = jv_first(list); x; x = jv_next(list, x)) {
        r->m->listed++;
        for (size_t i = 0; i < measure_question_count(); i++)
            if (jv_equals(x, measure_questions[i].method))
                r->m->methods[i].listed = true;
    }
    r->stage = STAGE_METHODS;
}

/* What it began ends with it. */
static void stop(struct run *r, const char *method, const struct jv *result)
{
    char id[120], params[140];
    if (!method || !(jv_is(result, JV_STRING) || jv_is(result, JV_NUMBER)))
        return;
    jv_text(result, id, sizeof(id));
    snprintf(params, sizeof(params), "[%s]", id);
    measure_send(r->ws, measure_call(++r->id, method, params));
}

static void got_method(struct run *r, enum measure_is is, const struct jv *result,
                       const struct jv *error)
{
    const struct measure_question *q = &measure_questions[r->at];
    struct measured_method *to = &r->m->methods[r->at];
    to->is = is;
    to->ms = (uint32_t)(loop_now_ms(r->loop) - r->sent_ms);
    jv_copy(jv_get(error, "message"), to->text, sizeof(to->text));
    if (!strcmp(q->method, "chain_getFinalizedHead") &&
        jv_copy(result, r->final, sizeof(r->final)) != sizeof(r->final) - 1)
        r->final[0] = 0;
    stop(r, q->stop, result);
    if (++r->at == measure_question_count())
        r->stage = STAGE_FINAL;
}

bool measure_number(const struct jv *header, uint64_t *ret)
{
    char text[24];
    jv_copy(jv_get(header, "number"), text, sizeof(text));
    *ret = strtoull(text, NULL, 16);
    return !strncmp(text, "0x", 2);
}

static void got_final(struct run *r, const struct jv *result)
{
    struct measured_reach *reach = &r->m->reach;
    *reach = (struct measured_reach){.headers = -1, .bodies = -1, .states = -1};
    reach->known = measure_number(result, &r->final_number) && r->final_number > 0;
    r->stage = reach->known ? STAGE_REACH : STAGE_END;
    r->at = 0;
}

static void reached(struct run *r, enum part part)
{
    struct measured_reach *reach = &r->m->reach;
    int64_t *to[] = {&reach->headers, &reach->bodies, &reach->states};
    size_t i = (size_t)(part - PART_HEADER);
    *to[i] = (int64_t)(r->final_number - r->height);
    reach->whole[i] = r->height == 1;
}

static void got_reach(struct run *r, const struct jv *result)
{
    bool has = result && !jv_is(result, JV_NULL);
    if (r->part == PART_HASH && has)
        has = jv_copy(result, r->hash, sizeof(r->hash)) == sizeof(r->hash) - 1;
    if (r->part == PART_HASH && !has)
        r->lacks[PART_HEADER] = r->lacks[PART_BODY] = r->lacks[PART_STATE] = true;
    else if (r->part != PART_HASH && has)
        reached(r, r->part);
    else if (!has)
        r->lacks[r->part] = true;
    do
        r->part++;
    while (r->part < PART_END && r->lacks[r->part]);
    if (r->part < PART_END)
        return;
    r->part = PART_HASH;
    bool nothing = r->lacks[PART_HEADER] && r->lacks[PART_BODY] && r->lacks[PART_STATE];
    if (nothing || r->height == 1 || ++r->at == MEASURE_DEPTHS)
        r->stage = STAGE_END;
}

static void answered(struct run *r, enum measure_is is, const struct jv *result,
                     const struct jv *error)
{
    r->tries = 0;
    switch (r->stage) {
    case STAGE_LIST:
        got_list(r, result);
        break;
    case STAGE_METHODS:
        got_method(r, is, result, error);
        break;
    case STAGE_FINAL:
        got_final(r, result);
        break;
    case STAGE_REACH:
        got_reach(r, result);
        break;
    case STAGE_END:
        break;
    }
    next(r);
}

/* ---- figures ---- */

static void count(struct run *r, const struct jv *error, size_t bytes)
{
    struct measured *m = r->m;
    char message[200], data[200];
    int64_t code = 0;
    uint32_t ms = (uint32_t)(loop_now_ms(r->loop) - r->sent_ms);
    if (m->answers < TIMES_MOST)
        r->times[m->answers] = ms;
    m->answers++;
    if (!m->slowest || ms > m->slowest_ms) {
        m->slowest = r->method;
        m->slowest_ms = ms;
    }
    if (bytes > m->largest_bytes) {
        m->largest = r->method;
        m->largest_bytes = bytes;
    }
    if (!error)
        return;
    jv_copy(jv_get(error, "message"), message, sizeof(message));
    jv_copy(jv_get(error, "data"), data, sizeof(data));
    jv_int(jv_get(error, "code"), &code);
    m->refused[rpc_error_of(code, message, data)]++;
}

static int by_time(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void finish(struct run *r)
{
    size_t n = r->m->answers < TIMES_MOST ? r->m->answers : TIMES_MOST;
    qsort(r->times, n, sizeof(r->times[0]), by_time);
    r->m->median_ms = n ? r->times[n / 2] : 0;
}

/* ---- the connection ---- */

static void on_timer(void *arg)
{
    struct run *r = arg;
    if (r->paused) {
        r->paused = false;
        next(r);
        return;
    }
    r->method = NULL;
    if (++r->silent < SILENT_MOST) {
        answered(r, MEASURE_SILENT, NULL, NULL);
        return;
    }
    err_set(&r->m->err, ERR_TIMEOUT, "%u questions in a row were not answered", r->silent);
    end(r);
}

static void on_text(void *arg, const char *text, size_t len)
{
    static const struct measure_question read = {0};
    struct run *r = arg;
    const struct jv *message = jv_read(&r->doc, text, len, NULL), *error;
    int64_t id = 0;
    if (r->closing || !r->method || !jv_int(jv_get(message, "id"), &id) || (uint64_t)id != r->id)
        return; /* a notification, or the answer to a stop */
    error = jv_is(jv_get(message, "error"), JV_OBJECT) ? jv_get(message, "error") : NULL;
    count(r, error, len);
    r->silent = 0;
    r->method = NULL;
    enum measure_is is =
        measure_judge(r->stage == STAGE_METHODS ? &measure_questions[r->at] : &read, error);
    if (is == MEASURE_TOO_MANY && ++r->tries < TRIES) {
        r->paused = true;
        loop_timer_at(r->timer, loop_now_ms(r->loop) + PAUSE_MS);
        return;
    }
    answered(r, is, error ? NULL : jv_get(message, "result"), error);
}

static void on_open(void *arg)
{
    next(arg);
}

static void on_closed(void *arg, const struct err *why)
{
    struct run *r = arg;
    r->m->err = *why;
    end(r);
}

void measure(const struct measure_endpoint *at, struct measured *ret)
{
    *ret = (struct measured){0};
    for (size_t i = 0; i < MEASURE_METHODS; i++)
        ret->methods[i].is = MEASURE_SILENT;
    struct run r = {.loop = loop_new(), .m = ret};
    const struct ws_client_config config = {.url = at->url,
                                            .peer = "node",
                                            .ca_file = at->ca_file,
                                            .insecure = at->insecure,
                                            .on_open = on_open,
                                            .on_text = on_text,
                                            .on_closed = on_closed,
                                            .arg = &r};
    r.ws = ws_client_new(r.loop, &config, &ret->err);
    if (r.ws) {
        r.timer = loop_timer_new(r.loop, on_timer, &r);
        ws_client_open(r.ws);
        loop_run(r.loop);
    }
    finish(&r);
    jv_done(&r.doc);
    loop_free(r.loop);
}

/* txrelay check: what was measured of an endpoint, as lines or as one line of JSON. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/check.h"
#include "check.h"
#include "measure.h"

static bool same_feature(size_t i, const char *feature)
{
    return !strcmp(measure_questions[i].feature, feature);
}

/* "chain_getHeader 2 ms, ...; closed: chain_subscribeNewHeads (Method not found)". Returns how many
 * are open. */
static size_t put_feature(struct buf *out, const struct measured *m, const char *feature)
{
    struct buf refused = {0};
    size_t open = 0;
    for (size_t i = 0; i < measure_question_count(); i++) {
        const struct measured_method *x = &m->methods[i];
        const char *method = measure_questions[i].method;
        if (!same_feature(i, feature))
            continue;
        if (x->is == MEASURE_OPEN)
            buf_printf(out, "%s%s %u ms", open++ ? ", " : "", method, x->ms);
        else
            buf_printf(&refused, "; %s: %s%s%s%s", measure_is_name(x->is), method,
                       x->text[0] ? " (" : "", x->text, x->text[0] ? ")" : "");
    }
    if (!open)
        buf_puts(out, "none");
    buf_put(out, refused.data, refused.len);
    buf_done(&refused);
    return open;
}

static void show_features(const struct measured *m)
{
    const char *last = "";
    for (size_t i = 0; i < measure_question_count(); i++) {
        const char *feature = measure_questions[i].feature;
        struct buf text = {0};
        if (!strcmp(feature, last))
            continue;
        last = feature;
        size_t open = put_feature(&text, m, feature);
        check_line(open || !strcmp(feature, "newer") ? "ok" : "warn", feature, buf_str(&text));
        buf_done(&text);
    }
}

static void put_back(struct buf *out, const char *what, int64_t back, bool whole)
{
    if (back < 0)
        buf_printf(out, "no %s", what);
    else
        buf_printf(out, "%s of %lld blocks%s", what, (long long)back, whole ? " (all)" : "");
}

static void show_reach(const struct measured_reach *r)
{
    struct buf text = {0};
    if (!r->known) {
        check_line("warn", "reach", "not measured: it does not tell its final block");
        return;
    }
    put_back(&text, "headers", r->headers, r->whole[0]);
    buf_puts(&text, ", ");
    put_back(&text, "bodies", r->bodies, r->whole[1]);
    buf_puts(&text, ", ");
    put_back(&text, "states", r->states, r->whole[2]);
    buf_puts(&text, " before the final one, at least");
    check_line(r->bodies < 0 || r->states < 0 ? "warn" : "ok", "reach", buf_str(&text));
    buf_done(&text);
}

static void show_answers(const struct measured *m)
{
    struct buf text = {0};
    buf_printf(&text,
               "%zu, half of them within %u ms, the slowest %u ms (%s); the largest %zu bytes (%s)",
               m->answers, m->median_ms, m->slowest_ms, m->slowest ? m->slowest : "none",
               m->largest_bytes, m->largest ? m->largest : "none");
    for (int i = RPC_ERROR_NONE + 1; i <= RPC_ERROR_OTHER; i++)
        if (m->refused[i])
            buf_printf(&text, "; %s: %zu", rpc_error_name((enum rpc_error)i), m->refused[i]);
    check_line("ok", "answers", buf_str(&text));
    buf_done(&text);
}

static json_t *methods_json(const struct measured *m)
{
    json_t *list = json_array();
    for (size_t i = 0; i < measure_question_count(); i++) {
        const struct measure_question *q = &measure_questions[i];
        const struct measured_method *x = &m->methods[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:o, s:i, s:s}", "feature", q->feature,
                                        "method", q->method, "is", measure_is_name(x->is), "listed",
                                        m->lists ? json_boolean(x->listed) : json_null(), "ms",
                                        (int)x->ms, "text", x->text));
    }
    return list;
}

static json_t *back_json(int64_t back, bool whole)
{
    return json_pack("{s:o, s:b}", "blocks", back < 0 ? json_null() : json_integer(back), "all",
                     whole);
}

static json_t *refused_json(const struct measured *m)
{
    json_t *kinds = json_object();
    for (int i = RPC_ERROR_NONE + 1; i <= RPC_ERROR_OTHER; i++)
        if (m->refused[i])
            json_object_set_new(kinds, rpc_error_name((enum rpc_error)i),
                                json_integer((json_int_t)m->refused[i]));
    return kinds;
}

static void show_json(const char *endpoint, const struct measured *m)
{
    const struct measured_reach *r = &m->reach;
    json_t *all =
        json_pack("{s:s, s:b, s:I, s:o, s:o, s:I, s:i, s:i, s:s, s:I, s:s, s:s}", "endpoint",
                  endpoint, "rpc_methods", m->lists, "listed", (json_int_t)m->listed, "methods",
                  methods_json(m), "refused", refused_json(m), "answers", (json_int_t)m->answers,
                  "median_ms", (int)m->median_ms, "slowest_ms", (int)m->slowest_ms, "slowest",
                  m->slowest ? m->slowest : "", "largest_bytes", (json_int_t)m->largest_bytes,
                  "largest", m->largest ? m->largest : "", "error", m->err.code ? m->err.text : "");
    if (r->known)
        json_object_set_new(all, "reach",
                            json_pack("{s:o, s:o, s:o}", "headers",
                                      back_json(r->headers, r->whole[0]), "bodies",
                                      back_json(r->bodies, r->whole[1]), "states",
                                      back_json(r->states, r->whole[2])));
    check_json(all);
}

static bool takes_submissions(const struct measured *m)
{
    for (size_t i = 0; i < measure_question_count(); i++)
        if (measure_questions[i].submits && m->methods[i].is == MEASURE_OPEN)
            return true;
    return false;
}

bool check_measure(const char *shown, const struct measure_endpoint *at)
{
    struct measured m;
    char text[120];
    measure(at, &m);
    if (check_is_json()) {
        show_json(shown, &m);
        return takes_submissions(&m);
    }
    if (m.err.code)
        check_line("warn", "measured", m.err.text);
    snprintf(text, sizeof(text), "it lists %zu methods", m.listed);
    check_line(m.lists ? "ok" : "warn", "rpc_methods",
               m.lists ? text : "it is not answered: each method was tried");
    show_features(&m);
    show_reach(&m.reach);
    show_answers(&m);
    return takes_submissions(&m);
}

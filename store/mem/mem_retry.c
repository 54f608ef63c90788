/* retry of 10_cancel.sql: what ended without effect is enqueued again, once, with the options that
 * its record keeps (finished_options). */
#include <stdio.h>
#include <string.h>

#include "mem/mem.h"
#include "store/operator.h"

struct mem_options mem__options_of(const struct mem_row *row)
{
    return (struct mem_options){.priority = row->priority,
                                .not_before_us = row->not_before_us,
                                .deadline_us = row->deadline_us,
                                .guard = row->guard,
                                .retries = row->retries,
                                .has_tip = row->has_tip,
                                .has_max_tip = row->has_max_tip,
                                .presigned = row->presigned,
                                .tip = row->tip,
                                .max_tip = row->max_tip,
                                .deadline_block = row->deadline_block,
                                .trace = mem__share(row->trace)};
}

/* NULL with the error. */
static struct mem_finished *find(const struct mem_session *s, struct store_ask *r)
{
    const struct mem_id *x = mem__id(&s->db->t, r->id);
    struct mem_finished *f = x && !x->row ? mem__finished(&s->db->t, x->end) : NULL;
    const char *why = x && x->row            ? "which has not ended"
                      : !f                   ? "there is no such transaction"
                      : f->outcome == MEM_OK ? "which took effect"
                      : f->outcome == MEM_ENDED_UNKNOWN
                          ? "and nobody can tell whether it took effect"
                      : f->options.presigned ? "which was signed elsewhere"
                                             : NULL;
    if (!why)
        return f;
    mem__fail(&r->req.err, "TR011", "retry: id is %lld, %s", (long long)r->id, why);
    return NULL;
}

/* In place of its own; its own must not have passed. */
static int check_deadlines(const struct mem_session *s, const struct store_ask *r,
                           const struct mem_finished *f, struct err *err)
{
    const struct mem_options *o = &f->options;
    const struct mem_account *a = mem__account(s->db, f->account);
    if (!r->deadline_ms && o->deadline_us && o->deadline_us <= mem_db_now_us(s->db))
        return mem__fail(err, "TR011", "retry: the deadline of transaction %lld has passed",
                         (long long)f->id);
    if (!r->deadline_block && o->deadline_block > 0 && o->deadline_block <= a->seen_block)
        return mem__fail(err, "TR011",
                         "retry: deadline_block of transaction %lld was %lld, and block %lld is "
                         "final",
                         (long long)f->id, (long long)o->deadline_block, (long long)a->seen_block);
    return 0;
}

static int64_t chosen(int64_t given, int64_t own)
{
    return given == STORE_ASK_NONE ? 0 : given ? given : own;
}

/* The new id; 0 with the error. */
static int64_t enqueue_again(struct mem_session *s, struct store_ask *r,
                             const struct mem_finished *f)
{
    const struct mem_options *o = &f->options;
    int64_t now = mem_db_now_us(s->db), block = o->deadline_block < 0 ? 0 : o->deadline_block;
    char tip[40], max_tip[40];
    struct store_enqueue again = {
        .account = mem__account(s->db, f->account)->alias,
        .call = f->call,
        .priority = o->priority,
        .creator = f->creator,
        .not_before_ms = o->not_before_us > now ? mem__wall_ms(s->db, o->not_before_us) : 0,
        .deadline_ms =
            chosen(r->deadline_ms, o->deadline_us ? mem__wall_ms(s->db, o->deadline_us) : 0),
        .guard = o->guard,
        .tip = o->has_tip ? u128_text(o->tip, tip) : NULL,
        .max_tip = o->has_max_tip ? u128_text(o->max_tip, max_tip) : NULL,
        .deadline_block = chosen(r->deadline_block, block),
        .retries = o->retries,
        .traceparent = o->trace};
    mem__enqueue(s, &again);
    int64_t id = again.req.err.code ? 0 : again.id;
    r->req.err = again.req.err;
    store_req_done(&again.req);
    return id;
}

void mem__retry(struct mem_session *s, struct store_ask *r)
{
    char text[24];
    r->answer = "";
    struct mem_finished *f = find(s, r);
    if (!f || (!f->retried && check_deadlines(s, r, f, &r->req.err)))
        return;
    if (!f->retried)
        f->retried = enqueue_again(s, r, f);
    if (!f->retried)
        return;
    snprintf(text, sizeof(text), "%lld", (long long)f->retried);
    r->answer = mem__put_text(mem__answer(&r->req), text);
}

/* Messages: items are gathered into one message for each receiver and kind of a step, and letters
 * are sent again until they are acknowledged. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "site_internal.h"

static struct site_out *open_out(struct site_core *c, enum site_message_type type, uint32_t to,
                                 uint64_t answers)
{
    for (size_t i = c->out_count; i > 0; i--) {
        struct site_out *o = &c->outs[i - 1];
        if (o->type == type && o->to == to && o->answers == answers)
            /* A heartbeat is whole: what it does not list is not there. */
            return o->count < c->config.batch_max || type == SITE_MSG_HEARTBEAT ? o : NULL;
    }
    return NULL;
}

uint64_t site__put(struct site_core *c, enum site_message_type type, uint32_t to, uint64_t answers,
                   const struct site_item *item)
{
    PRE(to < c->config.members && to != c->config.self);
    struct site_out *o = open_out(c, type, to, answers);
    if (!o) {
        if (c->out_count == c->out_cap) {
            size_t cap = c->out_cap ? c->out_cap * 2 : 8;
            c->outs = xrealloc(c->outs, cap * sizeof(*c->outs));
            memset(c->outs + c->out_cap, 0, (cap - c->out_cap) * sizeof(*c->outs));
            c->out_cap = cap;
        }
        o = &c->outs[c->out_count++];
        o->type = type;
        o->to = to;
        o->answers = answers;
        o->number = ++c->number;
        o->count = 0;
    }
    if (item) {
        if (o->count == o->cap) {
            o->cap = o->cap ? o->cap * 2 : 16;
            o->items = xrealloc(o->items, o->cap * sizeof(*o->items));
        }
        o->items[o->count++] = *item;
    }
    return o->number;
}

void site__flush(struct site_core *c, uint64_t now)
{
    for (size_t i = 0; i < c->out_count; i++) {
        const struct site_out *o = &c->outs[i];
        struct site_effect *fx = site__emit(c, SITE_FX_SEND);
        fx->message = (struct site_message){
            .type = o->type,
            .from = c->config.self,
            .to = o->to,
            .life = c->config.life,
            .number = o->number,
            .answers = o->answers,
            .height = c->height,
            .final = c->final,
            .state = c->state,
            .down = c->down,
            .blind = site__blind(c, now),
            .items = o->items,
            .count = o->count,
        };
        c->counts.sent[o->type]++;
        c->counts.items[o->type] += o->count;
    }
    c->out_count = 0;
}

static bool same_item(const struct site_item *a, const struct site_item *b)
{
    return a->sender == b->sender && a->id == b->id && a->has_bytes == b->has_bytes &&
           (!a->has_bytes || site__same(&a->bytes.hash, &b->bytes.hash));
}

void site__letter(struct site_core *c, uint64_t now, enum site_message_type type, uint32_t to,
                  const struct site_item *item)
{
    for (size_t i = 0; i < c->letter_count; i++)
        if (c->letters[i].type == type && c->letters[i].to == to &&
            same_item(&c->letters[i].item, item))
            return;
    if (c->letter_count == c->letter_cap) {
        c->letter_cap = c->letter_cap ? c->letter_cap * 2 : 16;
        c->letters = xrealloc(c->letters, c->letter_cap * sizeof(*c->letters));
    }
    c->letters[c->letter_count++] = (struct site_letter){.type = type,
                                                         .to = to,
                                                         .item = *item,
                                                         .retry_at = now + c->config.retry_ms,
                                                         .until = now + c->config.letter_ms};
    site__put(c, type, to, 0, item);
}

void site__acknowledge(struct site_core *c, const struct site_message *m,
                       const struct site_item *item)
{
    struct site_item ack = *item;
    ack.acked = m->type;
    site__put(c, SITE_MSG_ACK, m->from, 0, &ack);
}

void site__acked(struct site_core *c, uint32_t from, const struct site_item *item)
{
    for (size_t i = 0; i < c->letter_count; i++)
        if (c->letters[i].to == from && c->letters[i].type == item->acked &&
            same_item(&c->letters[i].item, item)) {
            memmove(&c->letters[i], &c->letters[i + 1],
                    (--c->letter_count - i) * sizeof(*c->letters));
            return;
        }
}

void site__resend_letters(struct site_core *c, uint64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->letter_count; i++) {
        struct site_letter *l = &c->letters[i];
        if (now >= l->until)
            continue;
        if (now >= l->retry_at) {
            site__put(c, l->type, l->to, 0, &l->item);
            l->retry_at = now + c->config.retry_ms;
        }
        c->letters[kept++] = *l;
    }
    c->letter_count = kept;
}

void site__forget_letters(struct site_core *c)
{
    c->letter_count = 0;
}

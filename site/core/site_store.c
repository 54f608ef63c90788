/* Effects, and the answers of the database to those that store. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "site_internal.h"

struct site_effect *site__emit(struct site_core *c, enum site_effect_type type)
{
    if (c->effect_count == c->effect_cap) {
        c->effect_cap = c->effect_cap ? c->effect_cap * 2 : 32;
        c->effects = xrealloc(c->effects, c->effect_cap * sizeof(*c->effects));
    }
    struct site_effect *fx = &c->effects[c->effect_count++];
    *fx = (struct site_effect){.type = type};
    return fx;
}

struct site_effect *site__store(struct site_core *c, enum site_effect_type type, uint32_t sender,
                                uint64_t id, const struct site_bytes *bytes)
{
    if (!c->batch_used) {
        c->batch_used = true;
        c->batch++;
    }
    if (c->write_count == c->write_cap) {
        c->write_cap = c->write_cap ? c->write_cap * 2 : 32;
        c->writes = xrealloc(c->writes, c->write_cap * sizeof(*c->writes));
    }
    struct site_write *w = &c->writes[c->write_count++];
    *w = (struct site_write){.batch = c->batch, .type = type, .sender = sender, .id = id};
    struct site_effect *fx = site__emit(c, type);
    fx->batch = c->batch;
    fx->sender = sender;
    fx->id = id;
    if (bytes)
        w->bytes = fx->bytes = *bytes;
    return fx;
}

void site__submit(struct site_core *c, const struct site_bytes *bytes)
{
    site__emit(c, SITE_FX_SUBMIT)->bytes = *bytes;
}

/* ---- answers of the database ---- */

static void written(struct site_core *c, uint64_t now, const struct site_write *w)
{
    struct site_item item = {
        .sender = c->config.self, .id = w->id, .has_bytes = true, .bytes = w->bytes};
    switch (w->type) {
    case SITE_FX_STORE_GRANT:
        site__on_granted(c, now, w);
        return;
    case SITE_FX_STORE_DISPATCH:
        site__on_dispatched(c, now, w);
        return;
    case SITE_FX_STORE_NOTED:
        item.acked = SITE_MSG_DISPATCHED;
        site__put(c, SITE_MSG_ACK, w->sender, 0, &item);
        return;
    case SITE_FX_STORE_END:
        site__ended(c, w->id);
        return;
    case SITE_FX_STORE_WAIT:
        c->lost = false;
        return;
    case SITE_FX_STORE_DROP:
    case SITE_FX_STORE_FINAL:
        return; /* nothing follows */
    case SITE_FX_LOAD:
    case SITE_FX_SEND:
    case SITE_FX_SIGN:
    case SITE_FX_SUBMIT:
        break; /* not stored */
    }
    UNREACHABLE();
}

void site__on_stored(struct site_core *c, uint64_t now, const struct site_event *ev)
{
    size_t count = 0;
    if (ev->stored.outcome == SITE_STORED_LOST) {
        site__clear(c);
        c->led = false;
        return;
    }
    if (ev->stored.outcome == SITE_STORED_UNKNOWN) {
        site__reload(c);
        return;
    }
    if (ev->stored.batch <= c->stray) {
        site__stray_stored(c, ev->stored.batch);
        return;
    }
    PRE(c->write_count && c->writes[0].batch == ev->stored.batch);
    while (count < c->write_count && c->writes[count].batch == ev->stored.batch)
        count++;
    for (size_t i = 0; i < count; i++) {
        const struct site_write w = c->writes[i];
        written(c, now, &w);
    }
    memmove(c->writes, c->writes + count, (c->write_count - count) * sizeof(*c->writes));
    c->write_count -= count;
}

#include "service/entry.h"

#include "base/log.h"
#include "service/service_internal.h"

enum {
    AGAIN_MS = 10000, /* from one try to the next */
    LOG_TRIES = 6,    /* one in so many is logged */
};

static void try_open(void *arg)
{
    struct entry *e = arg;
    struct loop *l = e->service->loop;
    struct err err = {0};
    if (e->open(e, &err) == 0) {
        e->is_open = true;
        e->timer = loop_timer_close(e->timer);
        return;
    }
    if (e->tries++ % LOG_TRIES == 0)
        log_error("entry.closed", "entry=%s text=\"%s\"", e->name, err.text);
    if (!e->timer)
        e->timer = loop_timer_new(l, try_open, e);
    loop_timer_at(e->timer, loop_now_ms(l) + AGAIN_MS);
}

void entry_begin(struct entry *e)
{
    try_open(e);
}

void entry_end(struct entry *e)
{
    e->timer = loop_timer_close(e->timer);
    e->is_open = false;
}

bool entry_is_open(const struct entry *e)
{
    return e->is_open;
}

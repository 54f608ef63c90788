/* The list of effects of one step, and the memory they point into: both live until the next
 * step. */
#include "effects.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

void manager__effects_reset(struct manager *m)
{
    for (size_t i = 0; i < m->fx.garbage_count; i++)
        free(m->fx.garbage[i]);
    m->fx.garbage_count = 0;
    m->fx.count = 0;
}

void *manager__arena_add(struct manager *m, void *p)
{
    GROW(m->fx.garbage, m->fx.garbage_count, m->fx.garbage_cap);
    m->fx.garbage[m->fx.garbage_count++] = p;
    return p;
}

struct manager_effect *manager__fx(struct manager *m, enum manager_effect_type type)
{
    GROW(m->fx.list, m->fx.count, m->fx.cap);
    struct manager_effect *fx = &m->fx.list[m->fx.count++];
    memset(fx, 0, sizeof(*fx));
    fx->type = type;
    return fx;
}

__attribute__((format(printf, 2, 0))) static void alert(struct manager *m, const char *fmt,
                                                        va_list ap)
{
    char text[sizeof(((struct manager_effect *)0)->text)];
    vsnprintf(text, sizeof(text), fmt, ap);
    struct manager_effect *fx = manager__fx(m, MANAGER_FX_ALERT);
    plain_text(fx->text, sizeof(fx->text), text);
}

void manager__alert(struct manager *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    alert(m, fmt, ap);
    va_end(ap);
}

void manager__alert_once(struct manager *m, unsigned kind, const char *fmt, ...)
{
    if (m->alerted & kind)
        return;
    m->alerted |= kind;
    va_list ap;
    va_start(ap, fmt);
    alert(m, fmt, ap);
    va_end(ap);
}

/* What a step asks of the adapters: effects, alerts, and writes with their answers. What an effect
 * points to lives until the next step. */
#ifndef RELAY_CORE_TX_EFFECTS_H
#define RELAY_CORE_TX_EFFECTS_H

#include "state.h"

/* ---- effects.c ---- */
void manager__effects_reset(struct manager *m);
/* freed at the next step */
void *manager__arena_add(struct manager *m, void *p);
/* A new effect, zeroed. Another one may move it. */
struct manager_effect *manager__fx(struct manager *m, enum manager_effect_type type);
void manager__alert(struct manager *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What these alerts reported is over: the next time they are raised again. */
static inline void manager__alert_over(struct manager *m, unsigned kinds)
{
    m->alerted &= ~kinds;
}
void manager__alert_once(struct manager *m, unsigned kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- writes.c ---- */
void manager__batch_put(struct batch *b, uint64_t nonce);
/* The effect of a write; none of its kind is in flight. */
struct manager_effect *manager__write(struct manager *m, enum manager_effect_type write);
bool manager__writing(const struct manager *m);
void manager__write_failed(struct manager *m, const struct manager_event *ev);
void manager__stored(struct manager *m, const struct manager_event *ev);

#endif

/* A follower: a process with the product's listener, and a reader that keeps what it is told. */
#include <stdio.h>
#include <string.h>

#include "listen_internal.h"
#include "sim.h"
#include "sim_memory.h"

enum { SCAN_ROWS = 12, REPAIR_MS = 20000 };

static void copy_word(char *out, size_t size, const char *word)
{
    snprintf(out, size, "%s", word);
}

static void on_event(void *arg, const struct listen_event *ev)
{
    struct follower *f = arg;
    struct world *w = f->world;
    if (!ev->id)
        return; /* fillers belong to nobody */
    struct view *v = &f->views[ev->id];
    note(w, "  follower %d told %lld kind %d nonce %lld %s %s", f->index, (long long)ev->id,
         (int)ev->kind, (long long)ev->nonce, ev->state, ev->outcome);
    if (ev->kind == LISTEN_FINISHED) {
        HOLDS(w, !v->finished || w->db.lossy, "I8",
              "a follower is told twice that transaction %lld ended", (long long)ev->id);
        v->finished = true;
        v->known = false;
        copy_word(v->outcome, sizeof(v->outcome), ev->outcome);
        return;
    }
    HOLDS(w, !is_forged(ev), "I8", "a follower is told what a stranger made up of %lld",
          (long long)ev->id);
    HOLDS(w, !v->finished || w->db.lossy, "I8",
          "a follower read transaction %lld at nonce %lld after its end", (long long)ev->id,
          (long long)ev->nonce);
    if (ev->kind == LISTEN_REMOVED) {
        v->known = false;
        return;
    }
    HOLDS(w,
          !v->known || v->nonce != ev->nonce || ev->updated_at_us >= v->updated_us || w->db.lossy,
          "I8", "a follower read that transaction %lld is %s, which is older than %s",
          (long long)ev->id, ev->state, v->state);
    HOLDS(w, !v->known || v->nonce == ev->nonce || w->db.lossy, "I8",
          "a follower read transaction %lld at nonce %lld and not that it left %lld",
          (long long)ev->id, (long long)ev->nonce, (long long)v->nonce);
    v->known = true;
    v->nonce = ev->nonce;
    v->tx = tx_of_hash(w, ev->hash);
    v->updated_us = ev->updated_at_us;
    copy_word(v->state, sizeof(v->state), ev->state);
}

/* Nothing is on its way to it and nothing is open: what it was told is all there is. */
bool follower_quiet(const struct follower *f)
{
    const struct listen *s = f->listen;
    const struct link *l = &f->link;
    return l->up && l->session && l->session->serial == l->serial && s->state == LISTEN_LIVE &&
           cursor_state(s->cursor) == CURSOR_LIVE && !f->in_flight && !listen__asking(s) &&
           !s->rescan && !s->buffered_count;
}

void follower_start(struct world *w, struct follower *f)
{
    int index = (int)(f - w->followers);
    struct process *p = &w->processes[RELAYS + index];
    uint32_t number = f->link.number;
    memset(f, 0, sizeof(*f));
    f->world = w;
    f->index = index;
    f->process = p;
    f->link.number = number;
    list_init(&f->link.sent);
    process_start(w, p);
    memory_use(p->memory);
    f->listen = listen_new(p->loop, &(struct listen_config){.dsn = "follow",
                                                            .name = "follower",
                                                            .since_us = 1,
                                                            .scan_rows = SCAN_ROWS,
                                                            .repair_ms = REPAIR_MS,
                                                            .on_event = on_event,
                                                            .arg = f});
    listen_open(f->listen);
    memory_use(NULL);
}

void follower_end(struct world *w, struct follower *f)
{
    link_close(w, &f->link, false);
    process_end(w, f->process);
    f->listen = NULL;
}

/* What applications see of granted bytes before they are final: that a node refused them, the
 * block of the best chain that has them, or that they have left. Whichever site sent them, each
 * sender reads its own node's blocks. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "tables_internal.h"

/* A request on its way. */
struct states {
    struct site_tables *tables;
    uint64_t generation;
    struct store_site_apply apply;
};

static void add(struct store_site_write *rows, size_t *count, const struct granted *g,
                const char *state)
{
    struct store_site_write *w = &rows[(*count)++];
    *w = (struct store_site_write){.kind = STORE_SITE_STATE,
                                   .id = (int64_t)g->known->id,
                                   .birth = -1,
                                   .outcome = state,
                                   .block = g->block,
                                   .number = (int64_t)g->number,
                                   .index = -1};
    memcpy(w->bytes.hash, g->hash.bytes, sizeof(w->bytes.hash));
}

/* Those that the blocks have, then those that were in a block that these have replaced. */
static size_t changes(struct site_tables *t, const struct site_tables_best *b,
                      struct store_site_write *rows)
{
    uint64_t round = ++t->rounds;
    size_t count = 0;
    for (size_t i = 0; i < b->seen_count; i++) {
        const struct site_tables_seen *s = &b->seen[i];
        struct granted *g = knowledge_bytes(&t->knowledge, s->hash);
        if (!g)
            continue;
        g->round = round;
        if (g->number == s->number && !memcmp(g->block, s->block, sizeof(g->block)))
            continue;
        g->number = s->number;
        memcpy(g->block, s->block, sizeof(g->block));
        add(rows, &count, g, "in_block");
    }
    for (struct granted *g = t->knowledge.granted; g; g = g->hh.next) {
        if (!g->number || g->number < b->first || g->round == round)
            continue;
        add(rows, &count, g, "retracted");
        g->number = 0;
    }
    return count;
}

static void on_applied(struct store_site_apply *a)
{
    struct states *r = CONTAINER_OF(a, struct states, apply);
    struct site_tables *t = r->tables;
    if (a->err.code && r->generation == t->generation) {
        tables_forget_best(t); /* all of it is read and stored again; a refusal may come again */
        t->config.failed(t->config.arg, "store", &a->err);
    }
    free(r);
}

static void apply(struct site_tables *t, struct store_site_write *rows, size_t count)
{
    struct states *r = xcalloc(1, sizeof(*r));
    r->tables = t;
    r->generation = t->generation;
    r->apply = (struct store_site_apply){
        .account = t->config.row, .epoch = t->epoch, .count = count, .rows = rows};
    store_site_apply_start(t->config.store, &r->apply, on_applied);
}

void site_tables_best(struct site_tables *t, const struct site_tables_best *b)
{
    if (!t->loaded)
        return;
    struct store_site_write *rows =
        xcalloc(b->seen_count + HASH_COUNT(t->knowledge.granted) + 1, sizeof(*rows));
    size_t count = changes(t, b, rows);
    best_take(&t->best, b->first, b->hashes, b->count);
    if (count)
        apply(t, rows, count);
    free(rows);
}

void site_tables_refused(struct site_tables *t, const struct site_tables_refusal *all, size_t count)
{
    struct store_site_write *rows = xcalloc(count + 1, sizeof(*rows));
    size_t used = 0;
    for (size_t i = 0; t->loaded && i < count; i++) {
        const struct granted *g = knowledge_bytes(&t->knowledge, all[i].hash);
        if (!g)
            continue;
        rows[used] = (struct store_site_write){.kind = STORE_SITE_STATE,
                                               .id = (int64_t)g->known->id,
                                               .birth = -1,
                                               .outcome = "refused",
                                               .error = all[i].text,
                                               .number = -1,
                                               .index = -1};
        memcpy(rows[used++].bytes.hash, g->hash.bytes, sizeof(g->hash.bytes));
    }
    if (used)
        apply(t, rows, used);
    free(rows);
}

bool site_tables_best_has(const struct site_tables *t, const uint8_t hash[SITE_HASH_BYTES])
{
    return best_has(&t->best, hash);
}

void tables_forget_best(struct site_tables *t)
{
    best_clear(&t->best);
    for (struct granted *g = t->knowledge.granted; g; g = g->hh.next)
        g->number = 0;
}

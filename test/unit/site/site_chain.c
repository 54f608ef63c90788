#include "site_chain.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

void chain_begin(struct chain *ch, struct rng *rng)
{
    ch->rng = rng;
    ch->best = ch->final = 1;
}

void chain_done(struct chain *ch)
{
    free(ch->all);
}

struct signed_bytes *chain_sign(struct chain *ch, int sender, uint64_t id, uint32_t key,
                                uint64_t nonce, uint64_t death)
{
    if (ch->count == ch->cap) {
        ch->cap = ch->cap ? ch->cap * 2 : 256;
        ch->all = xrealloc(ch->all, ch->cap * sizeof(*ch->all));
    }
    struct signed_bytes *b = &ch->all[ch->count++];
    *b = (struct signed_bytes){.number = (uint32_t)ch->count, .sender = sender, .id = id};
    b->bytes = (struct site_bytes){.key = key, .nonce = nonce, .death = death};
    memcpy(b->bytes.hash.bytes, &b->number, sizeof(b->number));
    return b;
}

struct signed_bytes *chain_find(struct chain *ch, const struct site_hash *hash)
{
    uint32_t number;
    memcpy(&number, hash->bytes, sizeof(number));
    return number && number <= ch->count ? &ch->all[number - 1] : NULL;
}

static void include(struct chain *ch, struct signed_bytes *b)
{
    b->block = ch->best;
    b->pooled = false;
    ch->next[ch->best][b->bytes.key]++;
}

static struct signed_bytes *candidate(struct chain *ch, uint32_t key)
{
    struct signed_bytes *found = NULL;
    unsigned n = 0;
    for (size_t i = 0; i < ch->count; i++) {
        struct signed_bytes *b = &ch->all[i];
        if (b->pooled && !b->block && b->bytes.key == key &&
            b->bytes.nonce == ch->next[ch->best][key] && b->bytes.death >= ch->best &&
            rng_below(ch->rng, ++n) == 0)
            found = b;
    }
    return found;
}

static void begin_block(struct chain *ch)
{
    PRE(ch->best + 1 < CHAIN_HEIGHTS);
    ch->best++;
    memcpy(ch->next[ch->best], ch->next[ch->best - 1], sizeof(ch->next[0]));
}

static void finalize(struct chain *ch)
{
    while (ch->final + CHAIN_FINALITY < ch->best)
        ch->final++;
}

void chain_build(struct chain *ch)
{
    begin_block(ch);
    unsigned room = CHAIN_BLOCK_MAX;
    for (uint32_t key = 0; key < CHAIN_SITES; key++)
        for (struct signed_bytes *b; room && (b = candidate(ch, key)); room--)
            include(ch, b);
    finalize(ch);
}

void chain_reorganise(struct chain *ch)
{
    for (size_t i = 0; i < ch->count; i++)
        if (ch->all[i].block > ch->final) {
            ch->all[i].block = 0;
            ch->all[i].pooled = true;
        }
    ch->best = ch->final;
    begin_block(ch); /* empty: what it had may come in another order */
}

void chain_stranger(struct chain *ch, uint32_t key)
{
    begin_block(ch);
    include(ch, chain_sign(ch, -1, 0, key, ch->next[ch->best][key], UINT64_MAX));
    finalize(ch);
}

bool chain_has(const struct signed_bytes *b, uint64_t height)
{
    return b->block && b->block <= height;
}

bool chain_dead(const struct chain *ch, const struct signed_bytes *b)
{
    return !chain_has(b, ch->final) &&
           (b->bytes.death <= ch->final || b->bytes.nonce < ch->next[ch->final][b->bytes.key]);
}

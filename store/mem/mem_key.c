/* Idempotency keys: each stands for the bytes that it came with first. */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"

void mem__sha(struct store_bytes b, uint8_t out[MEM_SHA_LEN])
{
    SHA256(b.data, b.len, out);
}

static void drop(struct mem_tables *t, struct mem_key *k)
{
    HASH_DELETE(hh, t->keys, k);
    free(k);
}

int mem__key_use(struct mem_session *s, const struct mem_account *a, const char *key,
                 const uint8_t sha[MEM_SHA_LEN], int64_t *id, struct err *err)
{
    struct mem_tables *t = &s->db->t;
    size_t len = strlen(key) + 16;
    struct mem_key *k = xcalloc(1, sizeof(*k) + len), *known;
    snprintf(k->name, len, "%d:%s", a->number, key);
    HASH_FIND_STR(t->keys, k->name, known);
    if (known) {
        free(k);
        if (known->open && known->open != s)
            return mem__fail(err, "55P03", "another open transaction has the key \"%.80s\"", key);
        if (memcmp(known->sha, sha, MEM_SHA_LEN) != 0)
            return mem__fail(
                err, "TR012",
                "idempotency key \"%.80s\" was used before with another call, for transaction %lld",
                key, (long long)known->id);
        *id = known->id;
        return 0;
    }
    k->id = *id;
    k->open = s;
    memcpy(k->sha, sha, MEM_SHA_LEN);
    HASH_ADD_STR(t->keys, name, k);
    struct mem_staged *g = &s->staged;
    g->keys = xrealloc(g->keys, (g->key_count + 1) * sizeof(struct mem_key *));
    g->keys[g->key_count++] = k;
    return 0;
}

void mem__keys_settle(struct mem_session *s, bool committed)
{
    struct mem_tables *t = &s->db->t;
    struct mem_staged *g = &s->staged;
    for (size_t i = 0; i < g->key_count; i++)
        if (committed)
            g->keys[i]->open = NULL;
        else
            drop(t, g->keys[i]);
    g->key_count = 0;
    while (s->db->config.keys_most && HASH_COUNT(t->keys) > s->db->config.keys_most)
        drop(t, t->keys);
}

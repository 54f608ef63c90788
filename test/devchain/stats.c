/* See stats.h. */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/ss58.h"

void stats_init(struct stats *s)
{
    *s = (struct stats){0};
    map_init(&s->slot_index, 40);
}

void stats_done(struct stats *s)
{
    for (size_t i = 0; i < s->slot_count; i++)
        free(s->slots[i].hashes);
    free(s->slots);
    free(s->submits);
    map_done(&s->slot_index);
}

static uint32_t slot_of(struct stats *s, const struct tx *tx)
{
    uint8_t key[40] = {0};
    memcpy(key, tx->signer, 32);
    memcpy(key + 32, &tx->nonce, sizeof tx->nonce);
    uintptr_t at = (uintptr_t)map_get(&s->slot_index, key);
    if (at)
        return (uint32_t)(at - 1);
    if (s->slot_count == s->slot_cap) {
        s->slot_cap = s->slot_cap ? s->slot_cap * 2 : 64;
        s->slots = xrealloc(s->slots, s->slot_cap * sizeof *s->slots);
    }
    struct nonce_slot *slot = &s->slots[s->slot_count++];
    *slot = (struct nonce_slot){.nonce = tx->nonce};
    memcpy(slot->signer, tx->signer, 32);
    map_put(&s->slot_index, key, (void *)(uintptr_t)s->slot_count);
    return (uint32_t)(s->slot_count - 1);
}

static void slot_add(struct nonce_slot *slot, const uint8_t hash[32])
{
    slot->submits++;
    for (uint32_t i = 0; i < slot->hash_count; i++)
        if (memcmp(slot->hashes[i], hash, 32) == 0)
            return;
    slot->hashes = xrealloc(slot->hashes, (slot->hash_count + 1) * sizeof *slot->hashes);
    memcpy(slot->hashes[slot->hash_count++], hash, 32);
}

static void count_result(struct stats *s, int code)
{
    for (size_t i = 0; i < s->result_count; i++)
        if (s->results[i].code == code) {
            s->results[i].count++;
            return;
        }
    if (s->result_count < ARRAY_LEN(s->results)) {
        s->results[s->result_count].code = code;
        s->results[s->result_count++].count = 1;
    }
}

void stats_submit(struct stats *s, uint64_t now_ms, const struct tx *tx, int code)
{
    count_result(s, code);
    if (s->submit_count == s->submit_cap) {
        s->submit_cap = s->submit_cap ? s->submit_cap * 2 : 256;
        s->submits = xrealloc(s->submits, s->submit_cap * sizeof *s->submits);
    }
    struct submit_record *r = &s->submits[s->submit_count++];
    *r = (struct submit_record){.at_ms = now_ms, .slot = UINT32_MAX, .code = code};
    if (!tx)
        return;
    memcpy(r->hash, tx->hash, 32);
    if (tx->signer_kind == TX_SIGNED) {
        r->slot = slot_of(s, tx);
        slot_add(&s->slots[r->slot], tx->hash);
    }
}

static json_t *hex_json(const uint8_t hash[32])
{
    char text[67] = "0x";
    for (unsigned i = 0; i < 32; i++) {
        text[2 + 2 * i] = "0123456789abcdef"[hash[i] >> 4];
        text[3 + 2 * i] = "0123456789abcdef"[hash[i] & 15];
    }
    text[66] = '\0';
    return json_string(text);
}

static json_t *signer_json(const uint8_t id[32])
{
    char text[SS58_TEXT_MAX];
    ss58_encode(id, 42, text);
    return json_string(text);
}

static json_t *record_json(const struct stats *s, const struct submit_record *r)
{
    json_t *o = json_pack("{s:o, s:I, s:i}", "hash", hex_json(r->hash), "at_ms",
                          (json_int_t)r->at_ms, "code", r->code);
    if (r->slot != UINT32_MAX) {
        json_object_set_new(o, "signer", signer_json(s->slots[r->slot].signer));
        json_object_set_new(o, "nonce", json_integer(s->slots[r->slot].nonce));
    }
    return o;
}

static json_t *slot_json(const struct nonce_slot *slot)
{
    json_t *hashes = json_array();
    for (uint32_t i = 0; i < slot->hash_count; i++)
        json_array_append_new(hashes, hex_json(slot->hashes[i]));
    return json_pack("{s:o, s:i, s:i, s:o}", "signer", signer_json(slot->signer), "nonce",
                     (int)slot->nonce, "submits", (int)slot->submits, "hashes", hashes);
}

json_t *stats_json(const struct stats *s, size_t from, size_t limit)
{
    json_t *results = json_object(), *several = json_array(), *submits = json_array();
    for (size_t i = 0; i < s->result_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", s->results[i].code);
        json_object_set_new(results, s->results[i].code ? name : "ok",
                            json_integer((json_int_t)s->results[i].count));
    }
    uint32_t most = 0;
    for (size_t i = 0; i < s->slot_count; i++) {
        if (s->slots[i].hash_count > most)
            most = s->slots[i].hash_count;
        if (s->slots[i].hash_count > 1 && json_array_size(several) < 10000)
            json_array_append_new(several, slot_json(&s->slots[i]));
    }
    for (size_t i = from; i < s->submit_count && i - from < limit; i++)
        json_array_append_new(submits, record_json(s, &s->submits[i]));
    return json_pack("{s:I, s:o, s:I, s:i, s:o, s:o, s:I, s:I, s:I, s:I}", "submit_count",
                     (json_int_t)s->submit_count, "results", results, "nonces",
                     (json_int_t)s->slot_count, "max_hashes_per_nonce", (int)most, "several_hashes",
                     several, "submits", submits, "connections", (json_int_t)s->connections, "cut",
                     (json_int_t)s->cut, "faults", (json_int_t)s->faults, "pool_asked",
                     (json_int_t)s->pool_asked);
}

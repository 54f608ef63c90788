/* What nodes said: leader_record_status, attempts_note, retractions_note and refusals_note of
 * 15_attempts.sql. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "mem/mem.h"

enum { REFUSAL_MAX = 500 };

/* The states that are none of a row's: the outcome of the bytes is not known; a node refused
 * them, or answered something else that is no acceptance. */
static bool is_unknown(const struct tx_report *in)
{
    return !strcmp(in->state, "unknown");
}

static bool is_refused(const struct tx_report *in)
{
    return !strcmp(in->state, "refused");
}

/* It goes into the history, and the row's state stays. */
static bool is_told(const struct tx_report *in)
{
    return is_refused(in) || !strcmp(in->state, "tried");
}

static bool same_block(const struct mem_row *row, const struct tx_report *in)
{
    if (!row->in.known || !in->has_block)
        return !row->in.known && !in->has_block;
    return !memcmp(row->in.hash, in->block_hash, 32);
}

/* ---- checks ---- */

static int check_names(const struct store_states *r, struct err *err)
{
    enum mem_state state;
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_report *in = &r->rows[i];
        if (in->state && !is_unknown(in) && !is_told(in) && !mem__state_of(in->state, &state))
            return mem__fail(err, "22P02", "invalid input value for enum tx_state: \"%.40s\"",
                             in->state);
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_report *in = &r->rows[i];
        bool known = in->state && mem__state_of(in->state, &state);
        if (known && state == MEM_SIGNED)
            return mem__fail(err, "TR003", "nonce %lld cannot go back to signed",
                             (long long)in->nonce);
        if (!in->state || (known && mem__names_block(state) && !in->has_block))
            return mem__fail(err, "TR011", "nonce %lld: state %s names no block",
                             (long long)in->nonce, in->state ? in->state : "NULL");
    }
    return 0;
}

static int check_rows(const struct mem_account *a, const struct store_states *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        if (row && !mem__attempt_of(row->at, r->rows[i].hash))
            return mem__fail(err, "TR003", "nonce %lld has no attempt with this hash",
                             (long long)row->nonce);
    }
    return 0;
}

/* Of several elements for one current attempt the last counts. */
static bool is_last(const struct store_states *r, size_t i)
{
    for (size_t k = i + 1; k < r->count; k++)
        if (r->rows[k].nonce == r->rows[i].nonce && !is_told(&r->rows[k]) &&
            !memcmp(r->rows[k].hash, r->rows[i].hash, 32))
            return false;
    return true;
}

static bool is_current(const struct mem_row *row, const struct tx_report *in)
{
    return row && !memcmp(row->hash, in->hash, 32);
}

static int check_final(const struct mem_account *a, const struct store_states *r, struct err *err)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct tx_report *in = &r->rows[i];
        const struct mem_row *row = mem__pending(a, (int64_t)in->nonce);
        if (!is_current(row, in) || is_told(in) || !is_last(r, i))
            continue;
        if (row->state == MEM_FINALIZED && !is_unknown(in) &&
            (strcmp(in->state, "finalized") != 0 || !same_block(row, in)))
            return mem__fail(err, "TR003", "nonce %lld: what is finalized stays",
                             (long long)row->nonce);
    }
    return 0;
}

/* ---- attempts ---- */

static enum mem_attempt_outcome outcome_of(const struct tx_report *in)
{
    enum mem_state state;
    if (is_unknown(in))
        return MEM_ATTEMPT_UNKNOWN;
    mem__state_of(in->state, &state);
    return state == MEM_DROPPED   ? MEM_ATTEMPT_DROPPED
           : state == MEM_INVALID ? MEM_ATTEMPT_INVALID
           : state == MEM_USURPED ? MEM_ATTEMPT_USURPED
                                  : MEM_ATTEMPT_LIVE;
}

static bool ends(enum mem_state state)
{
    return state == MEM_DROPPED || state == MEM_INVALID || state == MEM_USURPED;
}

/* An attempt that is not current, or a current one whose outcome changes by it. */
static void note_attempt(struct mem_row *row, const struct tx_report *in)
{
    enum mem_attempt_outcome outcome = outcome_of(in);
    size_t number = mem__attempt_of(row->at, in->hash);
    struct mem_attempt *t = &row->at->attempts[number - 1];
    bool current = number == row->at->count;
    bool asked = !current || outcome != MEM_ATTEMPT_LIVE || row->unknown || ends(row->state);
    if (!asked || (current && t->outcome == outcome))
        return;
    if (!is_unknown(in))
        mem__state_of(in->state, &t->state);
    t->in.known = in->has_block;
    if (t->in.known)
        memcpy(t->in.hash, in->block_hash, 32);
    t->block_number = in->block_number;
    if (in->error[0])
        mem__replace(&t->error, in->error);
    t->outcome = current ? outcome : t->outcome;
}

/* ---- rows ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void apply(struct mem_db *db, struct mem_account *a, struct mem_row *row,
                  const struct tx_report *in)
{
    enum mem_state state = row->state;
    bool said = !is_unknown(in);
    if (said)
        mem__state_of(in->state, &state);
    bool seen = said && (row->state != state || !same_block(row, in));
    bool changed = row->unknown == said || !same_text(row->error, store__text(in->error)) || seen ||
                   (said && row->block_number != in->block_number);
    if (!changed)
        return;
    row->unknown = !said;
    row->epoch = a->lead.epoch;
    row->updated_us = mem__stamp(db);
    mem__replace(&row->error, store__text(in->error));
    if (said) {
        row->state = state;
        row->in.known = in->has_block;
        if (row->in.known)
            memcpy(row->in.hash, in->block_hash, 32);
        row->block_number = in->block_number;
        bool better = state == MEM_READY || state == MEM_BROADCAST || state == MEM_IN_BLOCK ||
                      state == MEM_FINALIZED;
        row->blocked = row->blocked && !better;
        if (!row->in_block_us && (state == MEM_IN_BLOCK || state == MEM_FINALIZED))
            row->in_block_us = row->updated_us;
    }
    if (seen)
        mem__notify_row(db, MEM_TX_UPDATE, row);
}

/* ---- refusals ---- */

static void count_refusal(struct mem_attempt *t, const char *error)
{
    char text[REFUSAL_MAX + 1];
    snprintf(text, sizeof(text), "%.*s", REFUSAL_MAX, error);
    for (size_t i = 0; i < t->refusal_count; i++)
        if (!strcmp(t->refusals[i].error, text)) {
            t->refusals[i].count++;
            return;
        }
    t->refusals = xrealloc(t->refusals, (t->refusal_count + 1) * sizeof(*t->refusals));
    t->refusals[t->refusal_count++] = (struct mem_refusal){.error = mem__text(text), .count = 1};
}

/* ---- retractions ---- */

void mem__retracted(struct mem_row *row, const uint8_t block[32])
{
    struct buf text = {0};
    buf_puts(&text, "block 0x");
    for (size_t i = 0; i < 32; i++)
        buf_printf(&text, "%02x", block[i]);
    buf_puts(&text, " was retracted");
    count_refusal(&row->at->attempts[row->at->count - 1], buf_str(&text));
    buf_done(&text);
}

bool mem__has_block(const struct mem_row *row)
{
    return row->in.known && (row->state == MEM_IN_BLOCK || row->state == MEM_FINALITY_TIMEOUT);
}

/* The block that the row leaves by this report; NULL: none. */
static const uint8_t *left_block(const struct mem_row *row, const struct tx_report *in)
{
    enum mem_state state;
    if (is_unknown(in) || is_told(in))
        return NULL;
    mem__state_of(in->state, &state);
    bool other = !row->in.known || memcmp(row->in.hash, in->block_hash, 32) != 0;
    if (state == MEM_RETRACTED)
        return row->state != MEM_RETRACTED || (row->in.known && other) ? in->block_hash : NULL;
    return mem__names_block(state) && mem__has_block(row) && other ? row->in.hash : NULL;
}

/* Of several that say the same of a row one counts. */
static void note_retraction(struct mem_row *row, const struct store_states *r, size_t i)
{
    const uint8_t *block = left_block(row, &r->rows[i]);
    for (size_t k = 0; k < i && block; k++) {
        const struct tx_report *in = &r->rows[k];
        const uint8_t *before =
            in->nonce == r->rows[i].nonce && is_current(row, in) ? left_block(row, in) : NULL;
        if (before && !memcmp(before, block, 32))
            return;
    }
    if (block)
        mem__retracted(row, block);
}

/* Nothing but tries comes after it for the same bytes. */
static bool is_last_word(const struct store_states *r, size_t i)
{
    for (size_t k = i + 1; k < r->count; k++)
        if (r->rows[k].nonce == r->rows[i].nonce && strcmp(r->rows[k].state, "tried") != 0 &&
            !memcmp(r->rows[k].hash, r->rows[i].hash, 32))
            return false;
    return true;
}

/* Every refusal is counted, of whichever attempt. The row itself is blocked where it is the last
 * word on its current one. */
static void refuse(struct mem_db *db, struct mem_account *a, const struct store_states *r, size_t i)
{
    const struct tx_report *in = &r->rows[i];
    struct mem_row *row = mem__pending(a, (int64_t)in->nonce);
    const char *why = in->error[0] ? in->error : "refused";
    if (!row)
        return;
    struct mem_attempt *t = &row->at->attempts[mem__attempt_of(row->at, in->hash) - 1];
    count_refusal(t, why);
    if (!is_refused(in))
        return;
    mem__replace(&t->error, why);
    if (!is_current(row, in) || row->state == MEM_FINALIZED || !is_last_word(r, i))
        return;
    if (!row->blocked || !same_text(row->error, why))
        mem__notify_refused(db, row, why);
    mem__replace(&row->error, why);
    row->blocked = true;
    row->epoch = a->lead.epoch;
    row->updated_us = mem__stamp(db);
}

void mem__state(struct mem_session *s, struct store_states *r)
{
    bool unfenced = PLANTED(NO_FENCE);
    struct mem_account *a = unfenced ? mem__account(s->db, r->account)
                                     : mem__fence(s->db, r->account, r->epoch, &r->req.err);
    if (!a || check_names(r, &r->req.err) || check_rows(a, r, &r->req.err) ||
        check_final(a, r, &r->req.err))
        return;
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        if (row && !is_told(&r->rows[i]) && is_last(r, i))
            note_attempt(row, &r->rows[i]);
    }
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        if (is_current(row, &r->rows[i]))
            note_retraction(row, r, i);
    }
    for (size_t i = 0; i < r->count; i++) {
        struct mem_row *row = mem__pending(a, (int64_t)r->rows[i].nonce);
        if (is_current(row, &r->rows[i]) && !is_told(&r->rows[i]) && is_last(r, i))
            apply(s->db, a, row, &r->rows[i]);
    }
    for (size_t i = 0; i < r->count; i++)
        if (is_told(&r->rows[i]))
            refuse(s->db, a, r, i);
}

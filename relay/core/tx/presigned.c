/* Presigned transactions: bytes that the relay cannot make again, at given nonces.
 *
 * Such a row is admitted when its nonce is the next one. One below it is admitted too: at a nonce
 * that was given back, or at one that the chain has used, where the row's own bytes may have been
 * what used it (the signer may have submitted them): finalized blocks are looked through again and
 * tell. One above it waits in the outbox; the gap below it is reported and never filled for its
 * sake.
 *
 * The bytes are out in the world before they come here, so the row ends only with a finalized
 * block: one that used its nonce, or one past which they can never get in. Then its nonce is
 * free again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admit.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/heard.h"
#include "effects.h"
#include "ends.h"
#include "sign.h"

bool manager__presigned(const struct row *row)
{
    return row->presigned && !row->filler && !row->racing && !PLANTED(SIGNED_ANEW);
}

bool manager__hole_ours(const struct manager *m, const struct row *hole)
{
    for (uint64_t nonce = hole->nonce + 1; m->line.presigned_rows && nonce < m->line.next;
         nonce++) {
        const struct row *row = line_at(&m->line, nonce);
        if (row && row->bytes && !row->presigned)
            return true;
    }
    return !m->line.presigned_rows;
}

/* ---- from the outbox ---- */

enum fate { FATE_LATER, FATE_ADMIT, FATE_END, FATE_WAIT };

struct judged {
    const struct manager_outbox_row *o;
    enum fate fate;
    const char *outcome;
    uint64_t from_block, wait_block;
    char text[200];
};

static enum fate ends(struct judged *j, const char *outcome)
{
    j->outcome = outcome;
    return FATE_END;
}

/* For this block to be final; a node that lags may not have one yet that another one showed. 0: for
 * its turn. The table keeps it, so it must not be one that a node invented. */
static enum fate waits(const struct manager *m, struct judged *j, uint64_t block)
{
    if (m->final.read && !heard_is_near(m->final.read, block) && !PLANTED(HEIGHT_KEPT))
        block = m->final.read + HEARD_JUMP;
    j->wait_block = block && block <= m->chain.finalized ? m->chain.finalized + 1 : block;
    return FATE_WAIT;
}

/* The last final block at which its nonce was unused for certain: later ones may hold it, where the
 * account's nonce could not be read. */
static uint64_t unused_at(const struct manager *m)
{
    return m->final.nonce_read < m->final.processed ? m->final.nonce_read : m->final.processed;
}

/* Its nonce is used in a final block. */
static enum fate judge_used(const struct manager *m, struct judged *j)
{
    const struct manager_presigned *x = j->o->presigned;
    uint64_t from = m->final.processed > SEARCH_BLOCKS ? m->final.processed - SEARCH_BLOCKS : 0;
    if (m->line.next - x->nonce > SEARCH_NONCES || PLANTED(SIGNED_UNSEEN)) {
        snprintf(j->text, sizeof(j->text),
                 "nonce %llu was used long ago: the account's next one is %llu",
                 (unsigned long long)x->nonce, (unsigned long long)m->line.next);
        return ends(j, "usurped");
    }
    if (x->era_birth >= 0 && m->final.processed - (uint64_t)x->era_birth < SEARCH_NONCES)
        from = (uint64_t)x->era_birth;
    j->from_block = from < m->final.processed ? from : m->final.processed;
    return FATE_ADMIT;
}

static enum fate judge_below(const struct manager *m, struct judged *j)
{
    const struct manager_presigned *x = j->o->presigned;
    const struct row *row = line_at(&m->line, x->nonce);
    unsigned long long nonce = x->nonce;
    if (row && manager__hole(row)) {
        j->from_block = unused_at(m);
        return FATE_ADMIT;
    }
    if (row && row->id && !row->end) {
        snprintf(j->text, sizeof(j->text), "nonce %llu is taken by transaction %lld", nonce,
                 (long long)row->id);
        return ends(j, "failed");
    }
    if (!row && x->nonce < m->final.nonce)
        return judge_used(m, j);
    snprintf(j->text, sizeof(j->text), "nonce %llu is taken: finalized blocks will tell by what",
             nonce);
    return waits(m, j, m->chain.finalized + 1);
}

/* Under another runtime it may have been good: it is looked for where the chain has used its
 * nonce, and ends only when what was best when it came is final. */
static enum fate judge_bad(const struct manager *m, struct judged *j)
{
    const struct manager_presigned *x = j->o->presigned;
    if (x->nonce < m->line.next && !line_at(&m->line, x->nonce))
        return judge_below(m, j);
    /* A block that does not decode shows no nonce, and may have used this one. */
    if (!manager__nonce_settled(m) && m->chain.finalized) {
        snprintf(j->text, sizeof(j->text), "finalized blocks will tell whether it is used; %s",
                 j->o->bad);
        return waits(m, j, m->chain.finalized + 1);
    }
    snprintf(j->text, sizeof(j->text), "%s", j->o->bad);
    return x->waited || m->chain.best <= m->chain.finalized ? ends(j, "failed")
                                                            : waits(m, j, m->chain.best);
}

static enum fate judge(const struct manager *m, struct judged *j, uint64_t next)
{
    PRE(j->o->presigned);
    const struct manager_presigned *x = j->o->presigned;
    unsigned long long nonce = x->nonce, death = (unsigned long long)x->era_death;
    bool mortal = x->era_death >= 0;
    if (j->o->bad)
        return judge_bad(m, j);
    if (x->waits || (!m->final.known && m->chain.finalized)) {
        snprintf(j->text, sizeof(j->text), "%s",
                 x->waits ? x->waits : "the account's nonce is not known yet");
        return waits(m, j, x->waits ? x->wait_block : m->chain.finalized + 1);
    }
    if (mortal && x->nonce >= m->final.nonce && m->final.processed >= death) {
        if (m->final.nonce_read < death) {
            snprintf(
                j->text, sizeof(j->text),
                "its era ended before block %llu: finalized blocks will tell whether its nonce "
                "%llu was used",
                death, nonce);
            return waits(m, j, m->chain.finalized + 1);
        }
        snprintf(j->text, sizeof(j->text),
                 "its era ended before block %llu and its nonce %llu was not used", death, nonce);
        return ends(j, "expired");
    }
    if (mortal && x->nonce >= m->final.nonce && manager__plausible_best(m) + 1 >= death) {
        snprintf(j->text, sizeof(j->text), "its era ends before block %llu: too near to be sent",
                 death);
        return waits(m, j, death);
    }
    if (x->nonce > next) {
        snprintf(j->text, sizeof(j->text),
                 "its nonce is %llu and the account's next was %llu when it came: what is missing "
                 "below it is not filled",
                 nonce, (unsigned long long)next);
        return waits(m, j, 0);
    }
    if (x->nonce < m->line.next)
        return judge_below(m, j);
    j->from_block = unused_at(m);
    return FATE_ADMIT;
}

static int by_nonce(const void *a, const void *b)
{
    const struct manager_outbox_row *x = ((const struct judged *)a)->o,
                                    *y = ((const struct judged *)b)->o;
    if (x->presigned->nonce != y->presigned->nonce)
        return x->presigned->nonce < y->presigned->nonce ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* One of two rows with the same nonce is checked again when the other one has the nonce. */
static void judge_rows(const struct manager *m, struct judged *rows, size_t count)
{
    uint64_t next = m->line.next, last = 0;
    bool any = false;
    uint32_t room = manager__room(m);
    for (size_t i = 0; i < count; i++) {
        uint64_t nonce = rows[i].o->presigned->nonce;
        if (!any || nonce != last)
            rows[i].fate = judge(m, &rows[i], next);
        if (rows[i].fate != FATE_ADMIT)
            continue;
        any = true;
        last = nonce;
        if (!room--) {
            rows[i].fate = FATE_LATER;
            return; /* as are those behind it */
        }
        if (nonce == next)
            next++;
    }
}

static size_t count_of(const struct judged *rows, size_t count, enum fate fate)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += rows[i].fate == fate;
    return n;
}

static void put_sign(struct manager *m, const struct judged *j, struct manager_sign_row *row)
{
    const struct manager_presigned *x = j->o->presigned;
    uint8_t *bytes = manager__arena_add(m, xmalloc(j->o->call_len));
    memcpy(bytes, j->o->call, j->o->call_len);
    *row = (struct manager_sign_row){.nonce = x->nonce,
                                     .id = j->o->id,
                                     .bytes = bytes,
                                     .bytes_len = j->o->call_len,
                                     .call_len = x->call_len,
                                     .era_birth = x->era_birth,
                                     .era_death = x->era_death,
                                     .spec_version = x->spec_version,
                                     .tip = j->o->tip,
                                     .from_block = j->from_block,
                                     .origin = j->o->origin};
    memcpy(row->hash, x->hash, 32);
}

static void put_note(const struct judged *j, struct tx_note *row)
{
    const struct manager_presigned *x = j->o->presigned;
    *row = (struct tx_note){
        .nonce = x->nonce, .id = j->o->id, .era_death = x->era_death, .wait_block = j->wait_block};
    memcpy(row->hash, x->hash, 32);
    plain_text(row->text, sizeof(row->text), j->text);
}

static void put_end(const struct judged *j, struct tx_end *row)
{
    *row = (struct tx_end){.id = j->o->id, .outcome = j->outcome};
    memcpy(row->trace, j->o->origin.trace, sizeof(row->trace));
    plain_text(row->error, sizeof(row->error), j->text);
}

static void admit(struct manager *m, const struct judged *rows, size_t count, size_t good)
{
    m->admit.first = m->line.next;
    m->admit.runtimes = m->chain.runtimes;
    m->admit.presigned = true;
    if (!m->account.transaction_version)
        m->account.transaction_version = m->chain.transaction_version;
    m->admit.rows = xrealloc(m->admit.rows, good * sizeof(*m->admit.rows));
    struct manager_effect *fx = manager__write(m, MANAGER_FX_ADMIT);
    fx->sign.rows = manager__arena_add(m, xcalloc(good, sizeof(*fx->sign.rows)));
    fx->sign.presigned = true;
    fx->sign.next_nonce = m->line.next;
    fx->sign.block = m->final.processed;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].fate != FATE_ADMIT)
            continue;
        uint64_t nonce = rows[i].o->presigned->nonce;
        struct row *hole = line_at(&m->line, nonce);
        if (hole)
            line_remove(&m->line, hole);
        m->admit.rows[fx->sign.count] =
            (struct admitting){.nonce = nonce, .from_block = rows[i].from_block};
        m->admit.ahead += nonce >= m->line.next;
        put_sign(m, &rows[i], &fx->sign.rows[fx->sign.count++]);
    }
    m->admit.count = (uint32_t)fx->sign.count;
    manager__alert_over(m, ALERT_BELOW);
}

static void note(struct manager *m, const struct judged *rows, size_t count, size_t waiting)
{
    struct manager_effect *fx = manager__write(m, MANAGER_FX_STORE_NOTE);
    struct tx_note *out = manager__arena_add(m, xcalloc(waiting, sizeof(*out)));
    fx->notes.rows = out;
    fx->notes.count = waiting; /* fx is not used below: an alert may move the list of effects */
    for (size_t i = 0; i < count; i++) {
        if (rows[i].fate != FATE_WAIT)
            continue;
        put_note(&rows[i], out++);
        if (!rows[i].wait_block)
            manager__alert_once(m, ALERT_BELOW, "transaction %lld: %s", (long long)rows[i].o->id,
                                rows[i].text);
    }
}

static struct tx_end *rejects(struct manager *m, const struct judged *rows, size_t count,
                              size_t *ret_count)
{
    struct tx_end *out = manager__arena_add(m, xcalloc(count + 1, sizeof(*out)));
    *ret_count = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].fate == FATE_END)
            put_end(&rows[i], &out[(*ret_count)++]);
    return out;
}

uint64_t manager__presigned_rows(struct manager *m, const struct manager_event *ev,
                                 struct tx_end **ret_rejects, size_t *ret_count)
{
    PRE(m->phase == MANAGER_LEADING && !m->admit.count);
    struct judged *rows = manager__arena_add(m, xcalloc(ev->outbox.count + 1, sizeof(*rows)));
    uint64_t below = ev->outbox.has_reserved && ev->outbox.reserved >= m->line.next
                         ? ev->outbox.reserved
                         : UINT64_MAX;
    size_t count = 0;
    for (size_t i = 0; i < ev->outbox.count; i++)
        if (ev->outbox.rows[i].presigned)
            rows[count++].o = &ev->outbox.rows[i];
    if (count)
        qsort(rows, count, sizeof(*rows), by_nonce);
    judge_rows(m, rows, count);
    for (size_t i = 0; i < count; i++)
        if (rows[i].fate == FATE_WAIT && !rows[i].wait_block && rows[i].o->presigned->nonce < below)
            below = rows[i].o->presigned->nonce;
    *ret_rejects = rejects(m, rows, count, ret_count);
    size_t good = count_of(rows, count, FATE_ADMIT), waiting = count_of(rows, count, FATE_WAIT);
    if (waiting)
        note(m, rows, count, waiting);
    if (good)
        admit(m, rows, count, good);
    return good ? m->line.next : below;
}

/* ---- no other bytes ---- */

/* A former version of the runtime never comes back. That the best block, or what a node says of
 * itself, is under a later one proves nothing for the final blocks that are not read yet: one of
 * these may hold the bytes. A lower version is no change: the node begins anew, or lags. */
static bool runtime_is_over(const struct manager *m, const struct row *row)
{
    const struct final_view *f = &m->final;
    if (PLANTED(RUNTIME_EARLY))
        return row->spec_version < m->chain.spec_version;
    return row->spec_version < f->spec_version && manager__searched(m) >= f->spec_block;
}

/* Its bytes can never be included any more, and no final block used its nonce. */
static bool try_end_over(struct manager *m, struct row *row)
{
    uint64_t height = PLANTED(SIGNED_EARLY) ? m->chain.best + 1 : manager__searched(m);
    bool era = row->era_death >= 0 && height >= (uint64_t)row->era_death;
    bool runtime = runtime_is_over(m, row);
    if (!manager__presigned(row) || row->end || row->stop || !m->final.known ||
        m->final.nonce > row->nonce || m->suspension.why == MANAGER_SUSPENSION_REAPED ||
        (!era && !runtime))
        return false;
    if (row->state == ROW_SUBMITTED || row->state == ROW_SIGNING)
        return false; /* its answer first */
    char why[sizeof(row->end->tx.error)];
    if (era)
        snprintf(why, sizeof(why),
                 "its era ended before block %lld, and it was signed elsewhere%s%s",
                 (long long)row->era_death, row->note ? "; the last refusal: " : "",
                 row->note ? row->note : "");
    else
        snprintf(why, sizeof(why),
                 "it was signed elsewhere for runtime spec version %u and the chain has %u%s%s",
                 row->spec_version, m->final.spec_version, row->note ? "; the last refusal: " : "",
                 row->note ? row->note : "");
    manager__end_unused(m, row, era ? "expired" : "failed", why);
    return true;
}

void manager__presigned_retry(struct manager *m, struct row *row, enum row_reason reason)
{
    PRE(row->presigned && !row->end);
    enum { GAP_MAX_LOG2 = 3 };
    if (try_end_over(m, row))
        return;
    row->reason = (uint8_t)reason;
    row->not_before_tick =
        m->chain_tick.count + (1u << (row->resigns < GAP_MAX_LOG2 ? row->resigns : GAP_MAX_LOG2));
    if (row->resigns < UINT8_MAX)
        row->resigns++;
    line_move(&m->line, row, ROW_UNSENT);
}

void manager__presigned_dead(struct manager *m)
{
    struct row *row;
    for (uint64_t at = 0; m->line.presigned_rows && (row = line_first(&m->line, SET_LIVE, at));
         at = row->nonce + 1)
        try_end_over(m, row);
}

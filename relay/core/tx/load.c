/* From promotion, or a write with unknown outcome, to CHAIN_WAIT: the rows of the table. */
#include "load.h"

#include <string.h>

#include "admit.h"
#include "base/error.h"
#include "chain.h"
#include "effects.h"
#include "phase.h"
#include "reconcile.h"
#include "sign.h"
#include "stop.h"
#include "submit.h"
#include "suspend.h"

/* Drops everything that came from the table or from queries; keeps what the chain reported. */
void manager__forget(struct manager *m)
{
    line_clear(&m->line);
    manager__found_clear(m);
    m->line.probe_seq++;
    m->probe.now = m->probe.at_tick = m->probe.probe_head_back = m->probe.node_unverified =
        m->probe.used_unfinal = false;
    m->probe.probe_head = UINT64_MAX;
    m->probe.foreign_answers = 0;
    m->probe.certain = 0;
    m->probe.discard = m->probe.question != PROBE_NONE;
    if (m->probe.question == PROBE_NONE)
        m->probe.at = UINT64_MAX;
    m->final = (struct final_view){.read = m->final.read};
    m->nonces = (struct next_nonce){.given_back = UINT64_MAX};
    manager__send_forget(m);
    m->admit.wanted = false;
    manager__admit_over(m);
    m->writes.sign_after_tick = 0;
    m->load.after = m->load.next_nonce = -1;
    m->load.min_submitted = UINT64_MAX;
    m->load.max_submitted = 0;
    m->alerted = 0;
    manager__life_forget(m);
    m->head.nonce = UINT64_MAX;
    m->head.gap_since = 0;
}

void manager__promote(struct manager *m, int64_t epoch)
{
    manager__forget(m);
    memset(m->writes.out, 0, sizeof(m->writes.out));
    m->probe.question = PROBE_NONE;
    m->probe.discard = false;
    m->fenced = m->load.out = false;
    manager__gate_open(m);
    /* A follower is not told; the adapter says CHAIN_UP after PROMOTED when it is. */
    manager__chain_forget(m);
    m->rng.state = (uint64_t)epoch;
    manager__window_reset(m);
    m->admit.conflicts = 0;
    m->load.refused = false;
    m->reconcile.done = false;
    m->line.blocks = m->chain_tick.count = 1;
    manager__suspension_reset(m);
    m->head.gap_longest = 0;
    m->phases.illegal = m->line.moves.illegal = 0;
    m->load.at = m->now;
    manager__phase(m, MANAGER_LOAD_WAIT);
    backoff_reset(&m->load.backoff);
    backoff_reset(&m->probe.backoff);
}

/* The manager never guesses the outcome of a write: it drops its rows and reads the table. */
void manager__reload(struct manager *m, bool at_once)
{
    PRE(m->phase != MANAGER_IDLE);
    manager__fx(m, MANAGER_FX_UNWATCH_ALL);
    manager__forget(m);
    manager__phase(m, MANAGER_LOAD_WAIT);
    m->load.at = at_once ? m->now : m->now + backoff_next(&m->load.backoff, &m->rng);
}

void manager__load_new(struct manager *m)
{
    m->load.backoff = (struct backoff){.base_ms = 200, .cap_ms = 10000};
}

void manager__load_drop(struct manager *m)
{
    m->load.out = false;
}

void manager__load_reaches(struct manager *m, uint64_t block)
{
    if (block > m->load.max_submitted)
        m->load.max_submitted = block;
}

void manager__load_write_refused(struct manager *m, enum manager_effect_type write)
{
    PRE(write < MANAGER_WRITE_COUNT);
    m->load.refused = true;
    m->load.refused_write = write;
}

void manager__load_write_stored(struct manager *m, enum manager_effect_type write)
{
    PRE(write < MANAGER_WRITE_COUNT);
    if (!m->load.refused || m->load.refused_write != write)
        return;
    m->load.refused = false;
    backoff_reset(&m->load.backoff);
}

/* Every write in flight is answered first: one that commits after the snapshot would be missed
 * by it. */
void manager__load_pump(struct manager *m)
{
    if (m->phase != MANAGER_LOAD_WAIT || m->load.out || manager__writing(m) || m->now < m->load.at)
        return;
    m->load.out = true;
    manager__fx(m, MANAGER_FX_LOAD)->after_nonce = m->load.after;
}

void manager__load_failed(struct manager *m, int code)
{
    m->load.out = false;
    if (m->phase != MANAGER_LOAD_WAIT)
        return;
    if (err_is_refused(code))
        manager__alert(m, "pending rows could not be read: %s; trying again", err_text(code));
    manager__forget(m);
    m->load.at = m->now + backoff_next(&m->load.backoff, &m->rng);
}

static void load_terms(struct row *row, const struct tx_pending *s)
{
    bool deadline = s->deadline_block && s->deadline_block != UINT64_MAX;
    row->filler = s->filler_len && s->stop_outcome;
    if (s->stop_outcome)
        manager__stop(row, s->stop_outcome, "%s", s->stop_reason ? s->stop_reason : "");
    manager__tip_paid(row, s->tip);
    if (deadline)
        manager__terms(row)->deadline_block = s->deadline_block;
    if (s->has_max_tip)
        manager__terms(row)->max_tip = s->max_tip;
    if (s->retries)
        manager__terms(row)->retries = s->retries;
}

/* Earlier attempts may live longer than the current one: eras become shorter towards a deadline,
 * and a node that lags anchors them lower. */
static void earlier_eras(struct row *row, const struct tx_pending *s)
{
    int64_t last = s->earlier_death < 0 ? INT64_MAX : s->earlier_death;
    if (s->earlier_count && last > row->out_death)
        row->out_death = last;
    row->own_death = row->out_death; /* which of them were its own is unknown */
}

static void load_row(struct manager *m, const struct tx_pending *s)
{
    PRE(m->phase == MANAGER_LOAD_WAIT && s->bytes);
    struct row *row = line_add(&m->line, s->nonce, ROW_UNSURE);
    row->id = s->id;
    line_bytes(&m->line, row, s->hash, s->bytes, s->bytes_len,
               s->filler_len ? s->filler_len : s->call_len, s->era_death, s->spec_version);
    for (size_t i = 0; i < s->earlier_count; i++) {
        row->filler = i >= s->earlier_own && s->stop_outcome;
        if (memcmp(s->earlier[i], s->hash, 32))
            line_earlier(&m->line, row, s->earlier[i]);
    }
    load_terms(row, s);
    /* SIGNED rows too: the last leader may have died between the socket and the table, or may have
     * been stopped after it asked its gate and write to the socket only now. */
    bool sent = strcmp(s->state, "signed") != 0;
    if (!PLANTED(RECORD_UNSENT) || sent)
        row_went_out(row);
    earlier_eras(row, s);
    row->was_pooled = sent;
    if (!strcmp(s->state, "in_block") || !strcmp(s->state, "finalized"))
        row->status = TX_IN_BLOCK;
    else if (sent)
        row->status = TX_BROADCAST;
    row->guard = s->guard;
    if (s->presigned)
        line_set_presigned(&m->line, row);
    row->submitted_block = s->submitted_block;
    if (s->submitted_block < m->load.min_submitted)
        m->load.min_submitted = s->submitted_block;
    if (s->submitted_block > m->load.max_submitted)
        m->load.max_submitted = s->submitted_block;
}

static bool try_load_rows(struct manager *m, const struct manager_event *ev)
{
    for (size_t i = 0; i < ev->snapshot.count; i++) {
        uint64_t nonce = ev->snapshot.rows[i].nonce;
        PRE((int64_t)nonce > m->load.after);
        if (!m->line.rows)
            line_cover(&m->line, nonce, nonce);
        if (nonce - m->line.low >= SPAN_MAX) {
            manager__alert(
                m, "pending rows at nonces %llu and %llu are too far apart to be one account's",
                (unsigned long long)m->line.low, (unsigned long long)nonce);
            return false;
        }
        line_cover(&m->line, m->line.low, nonce + 1);
        load_row(m, &ev->snapshot.rows[i]);
        m->load.after = (int64_t)nonce;
    }
    return true;
}

size_t manager__to_load(const struct manager *m)
{
    bool known =
        m->phase == MANAGER_LOAD_WAIT && m->line.rows && m->load.next_nonce > (int64_t)m->line.low;
    return known ? (size_t)((uint64_t)m->load.next_nonce - m->line.low) : 0;
}

void manager__snapshot(struct manager *m, const struct manager_event *ev)
{
    if (m->phase != MANAGER_LOAD_WAIT || !m->load.out)
        return;
    m->load.out = false;
    if (!try_load_rows(m, ev)) {
        manager__forget(m);
        m->load.at = m->now + backoff_next(&m->load.backoff, &m->rng);
        return;
    }
    m->load.next_nonce = ev->snapshot.next_nonce;
    manager__account_loaded(m, ev);
    if (!ev->snapshot.last && ev->snapshot.count)
        return; /* the pump requests the next chunk */
    manager__reconcile_loaded(m, ev);
    if (!m->load.refused)
        backoff_reset(&m->load.backoff);
    manager__phase(m, PLANTED(ILLEGAL_PHASE) ? MANAGER_LEADING : MANAGER_CHAIN_WAIT);
    manager__poll_requests(m); /* the rows know nothing of what was asked for meanwhile */
    if (m->chain.up)
        manager__chain_ready(m);
}

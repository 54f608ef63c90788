/* What keeps the account from going on, as its manager sees it (obstacle.h): what the others follow
 * from comes first. */
#include "relay/core/tx/obstacle.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "ends.h"
#include "load.h"
#include "reconcile.h"
#include "sign.h"
#include "stop.h"

enum { NO_BLOCKS_MS = 30000, NO_FINAL_MS = 60000, SIGN_TICKS = 2 };

typedef unsigned long long ull;

static bool found(struct obstacle *ret, enum obstacle_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool found(struct obstacle *ret, enum obstacle_code code, const char *fmt, ...)
{
    char text[sizeof(ret->text) + 1]; /* one more, so that plain_text sees a cut */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    plain_text(ret->text, sizeof(ret->text), text);
    ret->code = code;
    return true;
}

/* ---- it is not ready ---- */

static bool reading(const struct manager *m, struct obstacle *ret)
{
    size_t all = manager__to_load(m);
    if (!all)
        return found(ret, OBSTACLE_LOAD, "its pending rows are being read from the database");
    return found(ret, OBSTACLE_LOAD,
                 "its pending rows are being read from the database: %zu of %zu so far",
                 (size_t)m->line.rows, all);
}

static bool loading(const struct manager *m, struct obstacle *ret)
{
    if (m->load.refused)
        return found(ret, OBSTACLE_WRITE,
                     "the database refuses to store what the leader decided (%s), again and again; "
                     "the relay's log has its error",
                     manager_write_name(m->load.refused_write));
    if (!m->chain.up)
        return found(ret, OBSTACLE_NODE, "no endpoint is usable");
    if (m->phase == MANAGER_LOAD_WAIT)
        return reading(m, ret);
    return false;
}

/* Without a text of its own: an operator had paused it before, or ordered it to go on. */
static bool suspended(const struct manager *m, struct obstacle *ret)
{
    enum manager_suspension why = m->suspension.why;
    if (why == MANAGER_SUSPENSION_NONE)
        return false;
    if (m->suspension.text[0])
        return found(ret, OBSTACLE_SUSPENDED, "%s", m->suspension.text);
    if (why == MANAGER_SUSPENSION_REAPED && m->account.reborn)
        return found(ret, OBSTACLE_SUSPENDED,
                     "the account was removed and an operator resumed it: what is pending of its "
                     "former life ends first");
    return found(ret, OBSTACLE_SUSPENDED, "an earlier leader suspended it: %s",
                 manager_suspension_name(why));
}

static bool lost_commits(const struct manager *m, struct obstacle *ret)
{
    uint64_t left = manager__era_wait_left(m);
    if (!m->era_wait.on && !m->reconcile.on)
        return false;
    if (m->final.stuck_at)
        return found(
            ret, OBSTACLE_LOST_COMMITS,
            "commits may be lost: block %llu may hold what they sent, and no endpoint has it",
            (ull)m->final.stuck_at);
    if (left)
        return found(ret, OBSTACLE_LOST_COMMITS,
                     "commits may be lost: %llu blocks are left in which what they sent may still "
                     "be included",
                     (ull)left);
    return found(ret, OBSTACLE_LOST_COMMITS,
                 "commits may be lost: the chain is searched for what they sent; it is read up to "
                 "block %llu",
                 (ull)m->final.processed);
}

/* A node behind what is known elsewhere is asked nothing. */
static bool behind(const struct manager *m, struct obstacle *ret)
{
    if (m->phase == MANAGER_LEADING && !m->probe.now && !m->probe.node_unverified)
        return false;
    if (m->chain.finalized < m->load.max_submitted)
        return found(
            ret, OBSTACLE_BEHIND,
            "the node's finalized block %llu is behind block %llu, which a pending row was "
            "signed at",
            (ull)m->chain.finalized, (ull)m->load.max_submitted);
    if (m->chain.best < m->chain.best_known)
        return found(
            ret, OBSTACLE_BEHIND,
            "the node's best block %llu is behind block %llu, which another node had; where "
            "no node has that block any more, this ends by itself",
            (ull)m->chain.best, (ull)m->chain.best_known);
    return false;
}

static const char *question_text(enum probe question)
{
    static const char *const texts[] = {
        [PROBE_NONE] = "its pool and the account's nonce",
        [PROBE_POOL] = "what its pool holds",
        [PROBE_NONCE] = "the account's nonce at its best block",
        [PROBE_UNFINAL] = "what its blocks hold that are not final",
    };
    PRE((size_t)question < ARRAY_LEN(texts));
    return texts[question];
}

/* Nothing is sent before the node has answered. */
static bool question(const struct manager *m, struct obstacle *ret)
{
    if (m->phase == MANAGER_LEADING && !m->probe.node_unverified)
        return false;
    if (m->probe.question == PROBE_NONE && m->final.processed < m->chain.finalized &&
        (m->line.rows || m->reconcile.on))
        return found(ret, OBSTACLE_QUESTION,
                     "the finalized blocks up to %llu are read first; %llu was the last one",
                     (ull)m->chain.finalized, (ull)m->final.processed);
    return found(ret, OBSTACLE_QUESTION, "the node has not told %s",
                 question_text(m->probe.question ? m->probe.question : m->probe.unanswered));
}

/* ---- it is ready, and makes no progress ---- */

static bool gate(const struct manager *m, struct obstacle *ret)
{
    if (!m->send.gate_shut || !line_count(&m->line, ROW_UNSENT))
        return false;
    return found(ret, OBSTACLE_GATE,
                 "the relay is not sure that it still leads, and sends nothing meanwhile");
}

static bool no_blocks(const struct manager *m, uint64_t now, struct obstacle *ret)
{
    if (!m->line.rows || now < m->chain_tick.block_at + NO_BLOCKS_MS)
        return false;
    return found(
        ret, OBSTACLE_NO_BLOCKS,
        "the chain makes no blocks, or the node hears of none: block %llu was the last one",
        (ull)m->chain.best);
}

static bool finality(const struct manager *m, uint64_t now, struct obstacle *ret)
{
    if (manager__unborn(m, m->final.nonce))
        return found(ret, OBSTACLE_FINALITY,
                     "finality lags by an era and nothing can be signed: block %llu is finalized, "
                     "%llu is the best one, %llu was the last one read",
                     (ull)m->chain.finalized, (ull)m->chain.best, (ull)m->final.read);
    if (line_count(&m->line, ROW_IN_BLOCK) && now >= m->final.at + NO_FINAL_MS)
        return found(
            ret, OBSTACLE_FINALITY,
            "no block becomes final, or final blocks cannot be read: %llu was the last one read, "
            "%llu is finalized, %llu is the best one",
            (ull)m->final.processed, (ull)m->chain.finalized, (ull)m->chain.best);
    if (!manager__unborn(m, UINT64_MAX))
        return false;
    return found(ret, OBSTACLE_FINALITY,
                 "finality lags by an era and nothing can be signed behind the account's first "
                 "transaction: block %llu is finalized, %llu is the best one",
                 (ull)m->chain.finalized, (ull)m->chain.best);
}

/* Its nonce is used, and no block that can be read holds it: it waits until its bytes are dead. */
static bool unread(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = m->final.unread_to ? line_first(&m->line, ROW_IN_BLOCK, 0) : NULL;
    while (row && !manager__may_be_unread(m, row))
        row = line_first(&m->line, ROW_IN_BLOCK, row->nonce + 1);
    if (!row)
        return false;
    return found(ret, OBSTACLE_UNREAD,
                 "block %llu, which may hold nonce %llu, cannot be read from any endpoint; the "
                 "transaction ends as unknown if no other block shows it before its bytes are dead",
                 (ull)m->final.unread_to, (ull)row->nonce);
}

/* It ends when no block can take its bytes any more (manager__consumed). */
static bool unseen(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = line_first(&m->line, SET_LIVE, 0);
    if (!row || row->end || !row->refollowed || row->nonce >= m->final.nonce)
        return false;
    if (m->final.processed < m->final.nonce_block)
        return found(ret, OBSTACLE_UNSEEN,
                     "nonce %llu is used, and finalized blocks are read once more to see by what: "
                     "%llu of %llu",
                     (ull)row->nonce, (ull)m->final.processed, (ull)m->final.nonce_block);
    return found(ret, OBSTACLE_UNSEEN,
                 "nonce %llu is used, and no final block shows by what; its transaction ends when "
                 "no block can hold it any more%s",
                 (ull)row->nonce, row->out_death == INT64_MAX ? "" : ", after its era");
}

static bool signature(const struct manager *m, struct obstacle *ret)
{
    /* Each tick tries again while there is something to sign. */
    if (!m->writes.unsigned_since_stored ||
        m->chain_tick.count > m->writes.sign_after_tick + SIGN_TICKS)
        return false;
    return found(ret, OBSTACLE_SIGNATURE,
                 "nothing can be signed at this node, which knows less than the one before or has "
                 "no metadata yet; the relay's log has the reason");
}

/* It is over, or a suspension, when a later block is final; a chain may make none by itself. */
static bool version(const struct manager *m, struct obstacle *ret)
{
    if (m->suspension.version_since == UINT64_MAX)
        return false;
    return found(
        ret, OBSTACLE_SIGNATURE,
        "transaction_version is %u and calls were accepted for %u: nothing is signed; if it "
        "still is when a block after %llu is final, or in ten minutes, the account is suspended, "
        "and account_resume accepts the new one",
        m->chain.transaction_version, m->account.transaction_version,
        (ull)m->suspension.version_since);
}

/* Where the row is can only be known by submitting it again, or by the next blocks. */
static bool pool(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = line_first(&m->line, ROW_UNSURE, 0);
    if (!row || !m->probe.pool_untold)
        return false;
    return found(ret, OBSTACLE_POOL,
                 "no endpoint tells what its pool holds, so it is not known where nonce %llu is",
                 (ull)row->nonce);
}

static const char *place(const struct row *row)
{
    switch ((int)row->state) {
    case ROW_POOLED:
        return "it waits in the pool, and no block takes it";
    case ROW_UNSENT:
    case ROW_SUBMITTED:
        return "no node has taken it";
    case ROW_RESIGN:
    case ROW_FILL:
    case ROW_SIGNING:
        return "it waits for new bytes";
    default:
        return "no node knows it for certain";
    }
}

static const struct row *watched_head(const struct manager *m)
{
    const struct row *row = m->head.nonce == UINT64_MAX ? NULL : line_at(&m->line, m->head.nonce);
    return row && !row->end ? row : NULL;
}

static bool gap(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = watched_head(m);
    uint32_t age = row && m->head.gap_since ? m->line.blocks - m->head.gap_since : 0;
    if (!row || age < m->config.gap_blocks)
        return false;
    return found(ret, OBSTACLE_GAP,
                 "nonce %llu is missing for %u blocks below transactions that wait in the pool: "
                 "%s%s%s",
                 (ull)row->nonce, age, place(row), row->note ? "; the last refusal: " : "",
                 row->note ? row->note : "");
}

/* Before its age shows it: a block may come rarely. */
static bool refused(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = manager__head(m);
    if (!row || !row->turned_away || !row->note)
        return false;
    return found(ret, OBSTACLE_REFUSED,
                 "nodes refuse nonce %llu, the first that is in no block: %s", (ull)row->nonce,
                 row->note);
}

static bool head(const struct manager *m, struct obstacle *ret)
{
    const struct row *row = watched_head(m);
    uint32_t age = row ? m->line.blocks - m->head.since : 0;
    if (!row || age < m->config.gap_blocks)
        return false;
    return found(ret, OBSTACLE_HEAD, "nonce %llu holds up the account for %u blocks: %s%s%s",
                 (ull)row->nonce, age, place(row), row->note ? "; the last refusal: " : "",
                 row->note ? row->note : "");
}

/* What is pending goes on meanwhile: whatever keeps that comes first. */
static bool paused(const struct manager *m, struct obstacle *ret)
{
    if (!m->account.paused)
        return false;
    return found(ret, OBSTACLE_PAUSED,
                 "an operator paused it: what is pending goes on, and nothing new is sent");
}

void manager_obstacle(const struct manager *m, uint64_t now, struct obstacle *ret)
{
    *ret = (struct obstacle){0};
    if (m->fenced || m->phase == MANAGER_IDLE || PLANTED(SILENT) || loading(m, ret))
        return;
    if (suspended(m, ret) || lost_commits(m, ret) || behind(m, ret) || question(m, ret) ||
        gate(m, ret) || no_blocks(m, now, ret) || finality(m, now, ret) || unread(m, ret) ||
        unseen(m, ret) || version(m, ret) || signature(m, ret) || gap(m, ret) || refused(m, ret) ||
        head(m, ret) || pool(m, ret))
        return;
    paused(m, ret);
}

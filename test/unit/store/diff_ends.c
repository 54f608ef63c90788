/* Random requests: what nodes said of pending rows, and their ends. */
#include "diff.h"

#include <stdio.h>
#include <string.h>

static const uint8_t blocks[4][32] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};

/* ---- states ---- */

void diff_state(struct diff *d, const struct diff_target *t)
{
    static const char *const names[] = {"ready",    "broadcast",        "future",    "in_block",
                                        "in_block", "retracted",        "finalized", "refused",
                                        "refused",  "unknown",          "dropped",   "invalid",
                                        "usurped",  "finality_timeout", "tried"};
    struct tx_report rows[NEW_ROWS];
    size_t n = diff_below(d, NEW_ROWS);
    for (size_t i = 0; i < n; i++) {
        const char *name = names[diff_below(d, ARRAY_LEN(names))];
        bool in = strstr(name, "in_block") || !strcmp(name, "retracted") || strstr(name, "final");
        rows[i] = (struct tx_report){
            .nonce = i && diff_chance(d, 15) ? rows[i - 1].nonce : (uint64_t)diff_nonce(d, t->a),
            .state = name,
            .block_number = in ? (int64_t)diff_below(d, 80) : -1};
        if (diff_chance(d, 20) || !strcmp(name, "refused") || !strcmp(name, "tried"))
            snprintf(rows[i].error, sizeof(rows[i].error), "why %d", (int)diff_below(d, 3));
        rows[i].has_block = in != diff_chance(d, 3);
        if (rows[i].has_block)
            memcpy(rows[i].block_hash, blocks[diff_below(d, 2)], 32);
        if (diff_chance(d, 1))
            rows[i].state = diff_chance(d, 50) ? "signed" : "nonsense";
        diff_hash(d, t->a, (int64_t)rows[i].nonce, rows[i].hash);
    }
    union any_request u = {
        .state = {.account = t->number, .epoch = t->epoch, .count = n, .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_state, &u);
}

/* ---- ends ---- */

static void fill_end(struct diff *d, const struct diff_target *t, struct tx_end *row, int64_t nonce)
{
    static const char *const by_chain[] = {"ok", "ok", "ok", "dispatch_error", "unknown"};
    bool chain = diff_chance(d, 60);
    const struct mem_row *pending = mem__pending(t->a, nonce);
    *row = (struct tx_end){.nonce = (uint64_t)nonce,
                           .has_block = chain || diff_chance(d, 10),
                           .block_number = (int64_t)diff_below(d, 80),
                           .index = (uint32_t)diff_below(d, 5),
                           .used_block = diff_chance(d, 40) ? (int64_t)diff_below(d, 80) : 0,
                           .outcome = chain ? by_chain[diff_below(d, 5)] : diff_outcome(d),
                           .has_fee = diff_chance(d, 30),
                           .fee = 12345};
    if (diff_chance(d, 40))
        snprintf(row->error, sizeof(row->error), "an error");
    diff_hash(d, t->a, nonce, row->hash);
    const struct mem_nonce *n = pending ? pending->at : NULL;
    size_t number = n ? mem__attempt_of(n, row->hash) : 0;
    if (chain && number && n->attempts[number - 1].filler_len && diff_chance(d, 80))
        row->outcome = "cancelled";
    memcpy(row->block_hash, blocks[diff_below(d, 2)], 32);
    if (pending && pending->state == MEM_FINALIZED && diff_chance(d, 80)) {
        memcpy(row->hash, pending->hash, 32);
        memcpy(row->block_hash, pending->in.hash, 32);
    }
}

void diff_finish(struct diff *d, const struct diff_target *t)
{
    struct tx_end rows[NEW_ROWS];
    int64_t nonces[NEW_ROWS];
    size_t n = diff_nonces(d, t->a, nonces);
    for (size_t i = 0; i < n; i++)
        fill_end(d, t, &rows[i], nonces[i]);
    union any_request u = {
        .finish = {.account = t->number, .epoch = t->epoch, .count = n, .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_finish, &u);
}

void diff_requeue(struct diff *d, const struct diff_target *t)
{
    static const char *const names[] = {"usurped", "dispatch_error", "failed"};
    struct tx_end rows[NEW_ROWS];
    int64_t nonces[NEW_ROWS];
    size_t n = diff_nonces(d, t->a, nonces);
    for (size_t i = 0; i < n; i++) {
        fill_end(d, t, &rows[i], nonces[i]);
        if (!diff_chance(d, 5))
            rows[i].outcome = names[diff_below(d, 3)];
        bool in = rows[i].outcome && !strcmp(rows[i].outcome, "dispatch_error");
        if (!diff_chance(d, 5))
            rows[i].has_block = in;
    }
    union any_request u = {
        .requeue = {.account = t->number, .epoch = t->epoch, .count = n, .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_requeue, &u);
}

void diff_reject(struct diff *d, const struct diff_target *t)
{
    struct tx_end rows[NEW_ROWS];
    size_t n = 1 + diff_below(d, 2);
    for (size_t i = 0; i < n; i++) {
        bool presigned = diff_chance(d, 30);
        rows[i] =
            (struct tx_end){.id = diff_waiting(d, presigned ? &t->a->signed_rows : &t->a->outbox),
                            .outcome = diff_outcome(d)};
        if (diff_chance(d, 80))
            snprintf(rows[i].error, sizeof(rows[i].error), "refused");
    }
    union any_request u = {
        .reject = {.account = t->number, .epoch = t->epoch, .count = n, .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_reject, &u);
}

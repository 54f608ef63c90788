/* Random requests: the leader's writes. Nonces, hashes and ids that fit, by what the memory
 * database knows, and now and then ones that do not. */
#include "diff.h"

#include <stdio.h>
#include <string.h>

/* ---- choices ---- */

static void new_hash(struct diff *d, uint8_t out[32])
{
    fx_hash(out, (int)++d->last_hash);
}

static int64_t next_nonce(const struct mem_account *a)
{
    int64_t next = mem__next_nonce(a);
    return next < 0 ? 5 : next;
}

/* Of a row that is pending, mostly; else near the next one. */
int64_t diff_nonce(struct diff *d, const struct mem_account *a)
{
    if (a->pending_count && !diff_chance(d, 8))
        return a->pending[diff_below(d, a->pending_count)]->nonce;
    int64_t nonce = next_nonce(a) + (int64_t)diff_below(d, 6) - 4;
    return nonce < 0 ? 0 : nonce;
}

/* Of an attempt at the nonce, the current one mostly; seldom one that nobody made. */
void diff_hash(struct diff *d, const struct mem_account *a, int64_t nonce, uint8_t out[32])
{
    const struct mem_nonce *n = mem__nonce_at(a, nonce);
    if (!n || diff_chance(d, 3)) {
        fx_hash(out, 999999);
        return;
    }
    memcpy(out, n->attempts[diff_chance(d, 75) ? n->count - 1 : diff_below(d, n->count)].hash, 32);
}

static struct store_bytes bytes_of(const char *text)
{
    return (struct store_bytes){(const uint8_t *)text, strlen(text)};
}

int64_t diff_waiting(struct diff *d, const struct list *rows)
{
    size_t n = 0, pick;
    LIST_EACH (p, rows)
        n++;
    if (!n || diff_chance(d, 3))
        return 1 + (int64_t)diff_below(d, (uint64_t)mem_last_id(d->db) + 2);
    pick = diff_chance(d, 60) ? 0 : diff_below(d, n);
    LIST_EACH (p, rows)
        if (!pick--)
            return CONTAINER_OF(p, struct mem_row, node)->id;
    return 0;
}

/* ---- attempts ---- */

static void fill_attempt(struct diff *d, struct store_attempt_row *row, int64_t nonce)
{
    *row = (struct store_attempt_row){
        .nonce = nonce,
        .extrinsic = bytes_of(diff_text(d, "bytes %d", (int)diff_below(d, 1000))),
        .tip = diff_chance(d, 50) ? diff_text(d, "%d", (int)diff_below(d, 60)) : NULL,
        .era_birth = -1,
        .era_death = -1,
        .block = (int64_t)diff_below(d, 60)};
    if (diff_chance(d, 70)) {
        row->era_birth = (int64_t)diff_below(d, 50);
        row->era_death = row->era_birth + 64;
    }
    new_hash(d, row->hash);
}

static struct store_attempts attempts_by(struct diff *d, const struct diff_target *t,
                                         const struct store_attempt_row *rows, size_t count)
{
    uint32_t version = t->a->transaction_version ? t->a->transaction_version : 26;
    return (struct store_attempts){.account = t->number,
                                   .epoch = t->epoch,
                                   .spec_version = 1000 + (uint32_t)diff_below(d, 3),
                                   .transaction_version = diff_chance(d, 4) ? version + 1 : version,
                                   .block = (int64_t)diff_below(d, 60),
                                   .count = count,
                                   .rows = rows};
}

static void admit(struct diff *d, const struct diff_target *t)
{
    struct store_attempt_row rows[NEW_ROWS];
    size_t count = diff_below(d, NEW_ROWS), n = 0;
    int64_t nonce = next_nonce(t->a) + (diff_chance(d, 5) ? (int64_t)diff_below(d, 3) - 1 : 0);
    LIST_EACH (p, &t->a->outbox) {
        if (n >= count)
            break;
        fill_attempt(d, &rows[n], nonce + (int64_t)n);
        rows[n++].id = CONTAINER_OF(p, struct mem_row, node)->id;
    }
    if (n && diff_chance(d, 5))
        rows[n - 1].id = diff_waiting(d, &t->a->outbox);
    if (n && diff_chance(d, 6)) /* one that may have ended */
        rows[n - 1].id = 1 + (int64_t)diff_below(d, (uint64_t)mem_last_id(d->db) + 1);
    if (n && diff_chance(d, 3))
        rows[n - 1].nonce++;
    union any_request u = {.admit = attempts_by(d, t, rows, n)};
    diff_request(d, t->relay, MEM_REQUEST_admit, &u);
}

/* Different nonces, mostly. */
size_t diff_nonces(struct diff *d, const struct mem_account *a, int64_t nonces[NEW_ROWS])
{
    size_t count = 1 + diff_below(d, 3), n = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t nonce = diff_nonce(d, a);
        bool twice = false;
        for (size_t k = 0; k < n; k++)
            twice |= nonces[k] == nonce;
        if (!twice || diff_chance(d, 5))
            nonces[n++] = nonce;
    }
    return n;
}

const char *diff_outcome(struct diff *d)
{
    static const char *const names[] = {"cancelled",      "expired",  "failed",
                                        "usurped",        "unknown",  "ok",
                                        "dispatch_error", "nonsense", NULL};
    return names[diff_below(d, diff_chance(d, 90) ? 5 : ARRAY_LEN(names))];
}

static void attempt(struct diff *d, const struct diff_target *t)
{
    struct store_attempt_row rows[NEW_ROWS];
    int64_t nonces[NEW_ROWS];
    size_t n = diff_nonces(d, t->a, nonces);
    for (size_t i = 0; i < n; i++) {
        const struct mem_row *row = mem__pending(t->a, nonces[i]);
        fill_attempt(d, &rows[i], nonces[i]);
        rows[i].reason = diff_chance(d, 80) ? "era" : NULL;
        if (diff_chance(d, row && row->presigned ? 90 : 20)) {
            rows[i].filler_len = diff_chance(d, 4) ? 500 : 3;
            rows[i].outcome = diff_outcome(d);
            rows[i].stop_reason = diff_chance(d, 70) ? "stopped" : NULL;
        }
        if (diff_chance(d, 2))
            diff_hash(d, t->a, nonces[i], rows[i].hash);
    }
    union any_request u = {.attempt = attempts_by(d, t, rows, n)};
    diff_request(d, t->relay, MEM_REQUEST_attempt, &u);
}

static void fill(struct diff *d, const struct diff_target *t)
{
    struct store_attempt_row rows[NEW_ROWS];
    int64_t nonces[NEW_ROWS];
    size_t n = diff_chance(d, 50) ? diff_nonces(d, t->a, nonces) : 0;
    int64_t next = next_nonce(t->a);
    for (size_t i = diff_below(d, 3); i > 0 && n < NEW_ROWS; i--)
        nonces[n++] = next++;
    for (size_t i = 0; i < n; i++) {
        fill_attempt(d, &rows[i], nonces[i]);
        rows[i].call = bytes_of("filler");
        rows[i].outcome = diff_outcome(d);
        rows[i].reason = diff_chance(d, 80) ? "filled" : NULL;
    }
    union any_request u = {.fill = attempts_by(d, t, rows, n)};
    diff_request(d, t->relay, MEM_REQUEST_fill, &u);
}

/* ---- the account ---- */

static void nonce(struct diff *d, const struct diff_target *t)
{
    union any_request u = {.nonce = {.account = t->number,
                                     .epoch = t->epoch,
                                     .next_nonce = next_nonce(t->a) + (int64_t)diff_below(d, 4) - 2,
                                     .lower = diff_chance(d, 30),
                                     .reborn = diff_chance(d, t->a->reborn ? 60 : 4)}};
    diff_request(d, t->relay, MEM_REQUEST_nonce, &u);
}

static void pause_account(struct diff *d, const struct diff_target *t)
{
    static const char *const holds[] = {"payment", "reaped", "transaction_version", "signing",
                                        "nonsense"};
    union any_request u = {
        .pause = {.account = t->number,
                  .epoch = t->epoch,
                  .suspension = diff_chance(d, 50) ? holds[diff_below(d, 5)] : NULL,
                  .reason = diff_chance(d, 50) ? "a reason" : NULL}};
    diff_request(d, t->relay, MEM_REQUEST_pause, &u);
}

/* ---- what was signed elsewhere ---- */

static void note(struct diff *d, const struct diff_target *t)
{
    struct tx_note rows[NEW_ROWS];
    size_t n = 1 + diff_below(d, 2);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (struct tx_note){
            .id = diff_waiting(d, &t->a->signed_rows),
            .nonce = diff_chance(d, 10) ? UINT64_MAX : (uint64_t)diff_nonce(d, t->a) + 1,
            .era_death = diff_chance(d, 50) ? (int64_t)diff_below(d, 80) : -1,
            .wait_block = diff_chance(d, 30) ? diff_below(d, 80) : 0};
        snprintf(rows[i].text, sizeof(rows[i].text), "%s", diff_chance(d, 80) ? "waits" : "");
        new_hash(d, rows[i].hash);
        if (i && rows[i].id == rows[i - 1].id)
            n = i;
    }
    union any_request u = {
        .note = {.account = t->number, .epoch = t->epoch, .count = n, .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_note, &u);
}

static void admit_signed(struct diff *d, const struct diff_target *t)
{
    struct store_attempt_row rows[NEW_ROWS];
    int64_t next = mem__next_nonce(t->a);
    size_t n = 1 + diff_below(d, 2);
    for (size_t i = 0; i < n; i++) {
        int64_t at = next_nonce(t->a) + (int64_t)i -
                     (diff_chance(d, 30) ? 1 + (int64_t)diff_below(d, 3) : 0);
        fill_attempt(d, &rows[i], at < 0 ? 0 : at);
        rows[i].id = diff_waiting(d, &t->a->signed_rows);
        rows[i].call.len = 4;
    }
    union any_request u = {.admit_signed = attempts_by(d, t, rows, n)};
    u.admit_signed.next_nonce = next < 0 ? 5 : diff_chance(d, 5) ? next + 1 : next;
    diff_request(d, t->relay, MEM_REQUEST_admit_signed, &u);
}

/* ---- adoption ---- */

static struct store_bytes adopted_bytes(struct diff *d, const struct diff_target *t, int64_t at,
                                        size_t *call_len)
{
    const struct mem_row *row = mem__pending(t->a, at);
    struct store_bytes call = row ? row->call : bytes_of("nobody's");
    if (!row && !list_empty(&t->a->outbox) && diff_chance(d, 70))
        call = CONTAINER_OF(t->a->outbox.next, struct mem_row, node)->call;
    if (!row && !list_empty(&t->a->signed_rows) && diff_chance(d, 40)) {
        struct store_bytes x = CONTAINER_OF(t->a->signed_rows.next, struct mem_row, node)->call;
        char *copy = (char *)diff_text(d, "%s", ""); /* the row goes if another one adopts it */
        assert_true(x.len <= sizeof(d->texts[0]));
        memcpy(copy, x.data, x.len);
        *call_len = 4;
        return (struct store_bytes){(uint8_t *)copy, x.len};
    }
    *call_len = call.len < 200 ? call.len : 200;
    return bytes_of(diff_text(d, "front %.*s", (int)*call_len, (const char *)call.data));
}

static void adopt(struct diff *d, const struct diff_target *t)
{
    struct tx_found rows[NEW_ROWS];
    int64_t nonces[NEW_ROWS];
    size_t n = diff_nonces(d, t->a, nonces);
    for (size_t i = 0; i < n; i++) {
        if (diff_chance(d, 40))
            nonces[i] = next_nonce(t->a) + (int64_t)i;
        bool mortal = diff_chance(d, 50);
        rows[i] = (struct tx_found){.nonce = (uint64_t)nonces[i],
                                    .tip = 3,
                                    .era_birth = mortal ? (int64_t)diff_below(d, 60) : -1,
                                    .era_death = mortal ? 90 : -1,
                                    .time_ms = diff_chance(d, 60)   ? -1
                                               : diff_chance(d, 50) ? 1000
                                                                    : 4000000000000};
        struct store_bytes bytes = adopted_bytes(d, t, nonces[i], &rows[i].call_len);
        rows[i].bytes = (uint8_t *)bytes.data;
        rows[i].bytes_len = bytes.len;
        new_hash(d, rows[i].hash);
        if (diff_chance(d, 20))
            diff_hash(d, t->a, nonces[i], rows[i].hash);
    }
    union any_request u = {.adopt = {.account = t->number,
                                     .epoch = t->epoch,
                                     .spec_version = 1000,
                                     .transaction_version = 26,
                                     .block = (int64_t)diff_below(d, 2000),
                                     .done = diff_chance(d, 50),
                                     .read = diff_chance(d, 40) ? -1 : (int64_t)diff_below(d, 300),
                                     .count = n,
                                     .rows = rows}};
    diff_request(d, t->relay, MEM_REQUEST_adopt, &u);
}

static void heard(struct diff *d, const struct diff_target *t)
{
    union any_request u = {.heard = {.account = t->number,
                                     .epoch = t->epoch,
                                     .heard = (int64_t)diff_below(d, 100) - 2}};
    diff_request(d, t->relay, MEM_REQUEST_heard, &u);
}

void diff_write(struct diff *d)
{
    static void (*const writes[])(struct diff * d, const struct diff_target *t) = {
        admit,       admit,       admit,        admit,        attempt,    attempt,
        fill,        diff_state,  diff_state,   diff_state,   diff_state, diff_finish,
        diff_finish, diff_finish, diff_requeue, diff_reject,  nonce,      pause_account,
        note,        note,        admit_signed, admit_signed, adopt,      heard};
    struct diff_target t = {.account = diff_below(d, ACCOUNTS)};
    if (diff_chance(d, 80))
        diff_take(d, t.account);
    t.relay = diff_leader(d, t.account);
    t.a = diff_account(d, t.account);
    t.number = diff_chance(d, 1) ? 99 : t.a->number;
    t.epoch = diff_epoch(d, t.relay, t.account);
    writes[diff_below(d, ARRAY_LEN(writes))](d, &t);
}

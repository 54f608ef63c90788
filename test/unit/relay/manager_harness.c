#include "manager_harness.h"
#include "base/alloc.h"

static void *copy_of(const void *p, size_t n)
{
    return memcpy(xcalloc(n + 1, 1), n ? p : "", n);
}

/* What an effect points to is another one's with the next step: the script keeps copies. */
static void copy_effect(struct manager_effect *fx)
{
    switch ((int)fx->type) {
    case MANAGER_FX_ADMIT:
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
        fx->sign.rows = copy_of(fx->sign.rows, fx->sign.count * sizeof(*fx->sign.rows));
        return;
    case MANAGER_FX_STORE_STATES:
        fx->states.rows = copy_of(fx->states.rows, fx->states.count * sizeof(*fx->states.rows));
        return;
    case MANAGER_FX_STORE_FINISH:
    case MANAGER_FX_STORE_REJECT:
    case MANAGER_FX_STORE_REQUEUE:
        fx->ends.rows = copy_of(fx->ends.rows, fx->ends.count * sizeof(*fx->ends.rows));
        return;
    case MANAGER_FX_STORE_NOTE:
        fx->notes.rows = copy_of(fx->notes.rows, fx->notes.count * sizeof(*fx->notes.rows));
        return;
    case MANAGER_FX_SUBMIT:
        fx->submit.bytes = copy_of(fx->submit.bytes, fx->submit.bytes_len);
        return;
    default:
        return;
    }
}

static void free_effect(struct manager_effect *fx)
{
    switch ((int)fx->type) {
    case MANAGER_FX_ADMIT:
    case MANAGER_FX_RESIGN:
    case MANAGER_FX_FILL:
        free(fx->sign.rows);
        return;
    case MANAGER_FX_STORE_STATES:
        free(fx->states.rows);
        return;
    case MANAGER_FX_STORE_FINISH:
    case MANAGER_FX_STORE_REJECT:
    case MANAGER_FX_STORE_REQUEUE:
        free(fx->ends.rows);
        return;
    case MANAGER_FX_STORE_NOTE:
        free(fx->notes.rows);
        return;
    case MANAGER_FX_SUBMIT:
        free((void *)fx->submit.bytes);
        return;
    default:
        return;
    }
}

static void forget_effects(struct script *s)
{
    for (size_t i = 0; i < s->count; i++)
        free_effect(&s->fx[i]);
    free(s->fx);
    free(s->taken);
    s->fx = NULL;
    s->taken = NULL;
    s->count = 0;
}

struct script *script_new(const struct manager_config *config)
{
    struct script *s = xcalloc(1, sizeof(*s));
    struct manager_config c = config ? *config : (struct manager_config){0};
    s->m = manager_new(&c);
    s->now = 1000;
    s->next_id = 1;
    s->spec = SPEC;
    s->finalized = 100;
    s->best = 102;
    s->era = 64;
    s->used_nonce = s->used_block = -1;
    return s;
}

/* For moves.sh: what the scenarios of a program do not do, those of another one may. */
static void record_moves(const struct manager *m)
{
    const char *path = getenv("TXRELAY_MOVES");
    if (!path)
        return;
    struct manager_moves moved = manager_moved(m);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fprintf(f, "%llx %llx\n", (unsigned long long)moved.phases, (unsigned long long)moved.rows);
    fclose(f);
}

void script_free(struct script *s)
{
    record_moves(s->m);
    forget_effects(s);
    manager_free(s->m);
    free(s);
}

/* One step; its effects come behind those that are there. */
static void step(struct script *s, const struct manager_event *ev)
{
    const struct manager_effect *fx;
    size_t count;
    manager_step(s->m, s->now, ev, &fx, &count);
    manager_check(s->m);
    s->fx = xrealloc(s->fx, (s->count + count + 1) * sizeof(*s->fx));
    s->taken = xrealloc(s->taken, s->count + count + 1);
    for (size_t i = 0; i < count; i++) {
        struct manager_effect *copy = &s->fx[s->count];
        s->taken[s->count++] = false;
        *copy = fx[i];
        if (fx[i].type == MANAGER_FX_FOLLOW)
            s->follow = fx[i].number;
        if (fx[i].type == MANAGER_FX_POLL_REQUESTS)
            s->request_poll = fx[i].number;
        copy_effect(copy);
    }
}

/* Refusals go into the history before anything else happens to their rows: stored at once, and
 * remembered. */
static bool store_refusals(struct script *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct manager_effect *fx = &s->fx[i];
        if (s->taken[i] || fx->type != MANAGER_FX_STORE_STATES ||
            strcmp(fx->states.rows[0].state, "refused") != 0)
            continue;
        for (size_t k = 0; k < fx->states.count; k++)
            assert_string_equal(fx->states.rows[k].state, "refused");
        s->refusals += (unsigned)fx->states.count;
        snprintf(s->refusal, sizeof(s->refusal), "%s", fx->states.rows[fx->states.count - 1].error);
        s->taken[i] = true;
        return true;
    }
    return false;
}

void feed(struct script *s, struct manager_event ev)
{
    forget_effects(s);
    if (ev.type == MANAGER_EV_REQUESTS && !ev.requests.number)
        ev.requests.number = s->request_poll; /* it began after the last wish */
    step(s, &ev);
    while (store_refusals(s))
        step(s, &(struct manager_event){.type = MANAGER_EV_STORED,
                                        .stored = {.write = MANAGER_FX_STORE_STATES}});
}

/* ---- looking ---- */

static uint8_t *buffer(void)
{
    static uint8_t buffers[16][32];
    static unsigned n;
    return memset(buffers[n++ % 16], 0, 32);
}

const uint8_t *hash_of(uint64_t nonce, unsigned attempt)
{
    uint8_t *h = buffer();
    memcpy(h, &nonce, 8);
    memcpy(h + 8, &attempt, sizeof(attempt));
    h[31] = 0xaa;
    return h;
}

const uint8_t *current(const struct script *s, uint64_t nonce)
{
    return hash_of(nonce, s->attempts[nonce]);
}

const uint8_t *block_of(unsigned n)
{
    uint8_t *h = buffer();
    memcpy(h, &n, sizeof(n));
    h[31] = 0xbb;
    return h;
}

static void bytes_of(uint64_t nonce, unsigned attempt, uint8_t out[BYTES_LEN])
{
    memset(out, 0xee, BYTES_LEN);
    memcpy(out, &nonce, 8);
    memcpy(out + 8, &attempt, sizeof(attempt));
    memset(out + BYTES_LEN - CALL_LEN, (int)nonce, CALL_LEN);
}

const struct manager_effect *expect(struct script *s, enum manager_effect_type type)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->fx[i].type == type && !s->taken[i]) {
            s->taken[i] = true;
            return &s->fx[i];
        }
    fail_msg("no effect of type %d among %zu", (int)type, s->count);
    return NULL;
}

size_t count_of(const struct script *s, enum manager_effect_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < s->count; i++)
        n += s->fx[i].type == type && !s->taken[i];
    return n;
}

void none(struct script *s, enum manager_effect_type type)
{
    if (count_of(s, type))
        fail_msg("unexpected effect of type %d: %s", (int)type, s->fx[0].text);
}

void quiet(struct script *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->taken[i])
            fail_msg("unexpected effect of type %d: %s", (int)s->fx[i].type, s->fx[i].text);
}

void expect_submit(struct script *s, uint64_t nonce)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_SUBMIT);
    uint8_t bytes[BYTES_LEN];
    bytes_of(nonce, s->attempts[nonce], bytes);
    assert_int_equal(fx->submit.nonce, nonce);
    assert_memory_equal(fx->submit.hash, current(s, nonce), 32);
    assert_int_equal(fx->submit.bytes_len, BYTES_LEN);
    assert_memory_equal(fx->submit.bytes, bytes, BYTES_LEN);
}

void expect_alert(struct script *s, const char *words)
{
    const struct manager_effect *fx = expect(s, MANAGER_FX_ALERT);
    if (!strstr(fx->text, words))
        fail_msg("alert \"%s\" does not say \"%s\"", fx->text, words);
}

/* ---- feeding ---- */

void promote(struct script *s)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_PROMOTED, .epoch = 7});
}

void chain_up(struct script *s)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_UP,
                                   .chain = {.finalized = s->finalized,
                                             .best = s->best,
                                             .spec_version = s->spec,
                                             .transaction_version = 6}});
}

void chain_down(struct script *s)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_CHAIN_DOWN});
}

void best(struct script *s)
{
    s->best++;
    s->now += 1000;
    feed(s,
         (struct manager_event){
             .type = MANAGER_EV_BEST,
             .best = {.number = s->best, .best_known = s->best_known, .finalized = s->finalized}});
}

static void pool_list(struct script *s, unsigned count, va_list ap)
{
    uint8_t(*hashes)[32] = xcalloc(count, 32);
    for (unsigned i = 0; i < count; i++)
        memcpy(hashes[i], va_arg(ap, const uint8_t *), 32);
    feed(s,
         (struct manager_event){.type = MANAGER_EV_POOL,
                                .pool = {.hashes = (const uint8_t(*)[32])hashes, .count = count}});
    free(hashes);
}

/* Rows that were loaded are not asked about before all final blocks were seen; here they say a
 * nonce of 1. */
static void first_blocks(struct script *s)
{
    while (manager_phase(s->m) == MANAGER_CHAIN_WAIT && !count_of(s, MANAGER_FX_ASK_POOL) &&
           s->follow <= s->finalized)
        finalized_at(s, s->follow++, 1, 0, NULL);
}

void pool_is(struct script *s, unsigned count, ...)
{
    first_blocks(s);
    va_list ap;
    va_start(ap, count);
    pool_list(s, count, ap);
    va_end(ap);
}

void pool_failed(struct script *s)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_POOL, .pool = {.failed = true}});
}

/* What seems to be lost is not in a block that is not final either. */
void nonce_is(struct script *s, uint64_t nonce)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = nonce}});
    if (count_of(s, MANAGER_FX_ASK_UNFINAL)) {
        expect(s, MANAGER_FX_ASK_UNFINAL);
        unfinal_is(s, NULL);
    }
}

void unfinal_is(struct script *s, const uint8_t *hash)
{
    feed(s, (struct manager_event){
                .type = MANAGER_EV_UNFINAL,
                .unfinal = {.hashes = (const uint8_t(*)[32])hash, .count = hash ? 1 : 0}});
}

void probe(struct script *s, uint64_t nonce, unsigned count, ...)
{
    first_blocks(s);
    expect(s, MANAGER_FX_ASK_POOL);
    none(s, MANAGER_FX_ASK_NONCE);
    va_list ap;
    va_start(ap, count);
    pool_list(s, count, ap);
    va_end(ap);
    expect(s, MANAGER_FX_ASK_NONCE);
    nonce_is(s, nonce);
}

void probe_foreign(struct script *s, uint64_t nonce)
{
    for (unsigned i = 0; i < 3; i++) {
        probe(s, nonce, 0);
        none(s, MANAGER_FX_READY);
        none(s, MANAGER_FX_STORE_NONCE);
        none(s, MANAGER_FX_STORE_ADOPT);
        while (!count_of(s, MANAGER_FX_ASK_POOL))
            tick(s);
    }
    probe(s, nonce, 0);
}

void outbox(struct script *s, unsigned count)
{
    struct manager_outbox_row *rows = xcalloc(count, sizeof(*rows));
    static const uint8_t call[CALL_LEN] = {1};
    for (unsigned i = 0; i < count; i++)
        rows[i] =
            (struct manager_outbox_row){.id = s->next_id++, .call = call, .call_len = CALL_LEN};
    feed(s, (struct manager_event){.type = MANAGER_EV_OUTBOX,
                                   .outbox = {.rows = rows, .count = count}});
    free(rows);
}

static void written(struct script *s, enum manager_effect_type write)
{
    const struct manager_effect *fx = expect(s, write);
    size_t count = fx->sign.count;
    struct tx_attempt *rows = xcalloc(count, sizeof(*rows));
    uint8_t(*bytes)[BYTES_LEN] = xcalloc(count, BYTES_LEN);
    for (size_t i = 0; i < count; i++) {
        uint64_t nonce = fx->sign.rows[i].nonce;
        s->attempts[nonce]++;
        bytes_of(nonce, s->attempts[nonce], bytes[i]);
        rows[i] = (struct tx_attempt){.nonce = nonce,
                                      .id = write == MANAGER_FX_FILL ? 0 : fx->sign.rows[i].id,
                                      .bytes = bytes[i],
                                      .bytes_len = BYTES_LEN,
                                      .call_len = CALL_LEN,
                                      .era_death = s->era < 0 ? -1 : (int64_t)s->finalized + s->era,
                                      .spec_version = s->spec,
                                      .guard = fx->sign.rows[i].guard,
                                      .tip = fx->sign.rows[i].tip};
        memcpy(rows[i].hash, current(s, nonce), 32);
    }
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = write, .attempts = {.rows = rows, .count = count}}});
    free(rows);
    free(bytes);
}

void admitted(struct script *s)
{
    written(s, MANAGER_FX_ADMIT);
}

void resigned(struct script *s)
{
    written(s, MANAGER_FX_RESIGN);
}

void filled(struct script *s)
{
    written(s, MANAGER_FX_FILL);
}

void stored(struct script *s, enum manager_effect_type write)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_STORED, .stored = {.write = write}});
}

void write_failed(struct script *s, enum manager_effect_type write, int code)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_WRITE_FAILED,
                                   .write_failed = {.write = write, .code = code}});
}

static void reply(struct script *s, uint64_t nonce, int code, int64_t rpc_code, const char *text)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_SUBMIT_REPLY,
                                   .reply = {.nonce = nonce,
                                             .hash = current(s, nonce),
                                             .code = code,
                                             .rpc_code = rpc_code,
                                             .text = text}});
}

void accept(struct script *s, uint64_t nonce)
{
    reply(s, nonce, 0, 0, NULL);
}

void refuse(struct script *s, uint64_t nonce, int64_t rpc_code, const char *text)
{
    reply(s, nonce, ERR_RPC, rpc_code, text);
}

void refuse_code(struct script *s, uint64_t nonce, int code)
{
    reply(s, nonce, code, 0, err_text(code));
}

void status_of(struct script *s, uint64_t nonce, const uint8_t *hash, enum tx_status st,
               const uint8_t *block_hash)
{
    feed(s, (struct manager_event){
                .type = MANAGER_EV_STATUS,
                .status = {.nonce = nonce, .hash = hash, .status = st, .block_hash = block_hash}});
}

void status(struct script *s, uint64_t nonce, enum tx_status st, const uint8_t *block_hash)
{
    status_of(s, nonce, current(s, nonce), st, block_hash);
}

void watch_lost(struct script *s, uint64_t nonce)
{
    feed(s, (struct manager_event){.type = MANAGER_EV_WATCH_LOST,
                                   .lost = {.nonce = nonce, .hash = current(s, nonce)}});
}

void runtime(struct script *s, uint32_t spec)
{
    s->spec = spec;
    feed(s, (struct manager_event){.type = MANAGER_EV_RUNTIME,
                                   .chain = {.spec_version = spec, .transaction_version = 6}});
}

void tick(struct script *s)
{
    assert_int_not_equal(manager_deadline(s->m), UINT64_MAX);
    if (manager_deadline(s->m) > s->now)
        s->now = manager_deadline(s->m);
    feed(s, (struct manager_event){.type = MANAGER_EV_TICK});
}

void unread_at(struct script *s, uint64_t number)
{
    struct manager_block block = {.number = number, .unread = true, .account_nonce = UINT64_MAX};
    feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block});
}

void finalized_at(struct script *s, uint64_t number, uint64_t account_nonce, unsigned count,
                  const struct in_block *x)
{
    struct tx_included *rows = xcalloc(count, sizeof(*rows));
    struct manager_block block = {.number = number,
                                  .account_nonce = account_nonce,
                                  .spec_version = s->block_spec,
                                  .included = rows,
                                  .included_count = count};
    memcpy(block.hash, block_of((unsigned)number), 32);
    for (unsigned i = 0; i < count; i++) {
        rows[i].index = i + 2;
        rows[i].nonce = x[i].nonce;
        rows[i].own_signer = x[i].own;
        rows[i].signature = s->unverified ? TX_SIGNATURE_UNKNOWN : TX_SIGNATURE_GOOD;
        rows[i].result.outcome = x[i].outcome;
        rows[i].result.has_fee = true;
        rows[i].result.fee = 12345;
        rows[i].result.inner = s->inner;
        memcpy(rows[i].hash, x[i].hash, 32);
        if (x[i].error)
            snprintf(rows[i].result.error, sizeof(rows[i].result.error), "%s", x[i].error);
    }
    feed(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block});
    free(rows);
}

void finalized(struct script *s, uint64_t account_nonce, unsigned count, const struct in_block *x)
{
    s->finalized++;
    if (s->best < s->finalized)
        s->best = s->finalized;
    finalized_at(s, s->finalized, account_nonce, count, x);
}

void finals(struct script *s, uint64_t from, uint64_t nonce)
{
    for (s->follow = from; s->follow <= s->finalized; s->follow++)
        finalized_at(s, s->follow, nonce, 0, NULL);
}

void finalized_ours(struct script *s, uint64_t nonce)
{
    finalized(s, nonce + 1, 1,
              &(struct in_block){current(s, nonce), nonce, true, DISPATCH_OK, NULL});
}

/* ---- starting ---- */

struct tx_pending loaded_row(struct script *s, uint64_t nonce, const char *state)
{
    static uint8_t bytes[NONCES][BYTES_LEN];
    s->attempts[nonce] = 1;
    bytes_of(nonce, 1, bytes[nonce]);
    struct tx_pending row = {.nonce = nonce,
                             .id = (int64_t)nonce + 500,
                             .bytes = bytes[nonce],
                             .bytes_len = BYTES_LEN,
                             .call_len = CALL_LEN,
                             .era_death = 160,
                             .spec_version = SPEC,
                             .submitted_block = 96};
    row.state = state;
    memcpy(row.hash, hash_of(nonce, 1), 32);
    return row;
}

void load(struct script *s, const struct tx_pending *rows, size_t count, int64_t next)
{
    promote(s);
    assert_int_equal(expect(s, MANAGER_FX_LOAD)->after_nonce, -1);
    feed(s, (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                   .snapshot = {.rows = rows,
                                                .count = count,
                                                .last = true,
                                                .next_nonce = next,
                                                .used_nonce = s->used_nonce,
                                                .used_block = s->used_block,
                                                .suspension_text = s->suspension_text,
                                                .account = &s->account}});
}

struct script *leading_with(const struct manager_config *config, uint64_t next)
{
    struct script *s = script_new(config);
    load(s, NULL, 0, (int64_t)next);
    chain_up(s);
    probe(s, next, 0);
    expect(s, MANAGER_FX_READY);
    assert_int_equal(manager_phase(s->m), MANAGER_LEADING);
    assert_int_equal(manager_view_of(s->m).next_nonce, next);
    finalized_at(s, s->finalized, next, 0, NULL); /* the block that FOLLOW asked for */
    return s;
}

struct script *leading(uint64_t next)
{
    return leading_with(NULL, next);
}

struct script *leading_pooled(uint64_t first, unsigned count)
{
    struct script *s = leading(first);
    outbox(s, count);
    admitted(s);
    for (unsigned i = 0; i < count; i++)
        accept(s, first + i);
    return s;
}

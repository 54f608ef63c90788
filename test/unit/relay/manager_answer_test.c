/* The answers to a submission and the statuses that follow: by none of them does a transaction end,
 * move to another nonce or free its nonce, except where nothing was written to a socket. Each is
 * given in each state in which it may come, whether or not the transaction is cancelled; then a
 * final block holds the bytes, or the filler that raced them. */
#include "base/buf.h"
#include "manager_harness.h"
#include "page.h"
#include "relay/core/tx/answer.h"

enum { NONCE = 5, ID = 1, LOADED_ID = 505, FIRST_DEATH = 160 };

/* ---- one case: a row of the table in a state ---- */

struct work {
    enum manager_effect_type type;
    struct manager_sign_row row;
};

/* What is said. */
struct said {
    const struct answer *answer; /* to each submission; NULL: a status */
    int status;                  /* after it was accepted; -1: the end of the watch */
};

/* What the manager wants and is not given yet. */
struct course {
    struct script *s;
    struct said said;
    const char *state;
    struct work queue[64];
    size_t head, tail;
    unsigned fills, races; /* fillers that end the transaction; fillers that race it */
    bool unwritten;        /* nothing of it was written to a socket */
    bool given_back;       /* so it ended as cancelled, without a filler, and its nonce is free */
};

__attribute__((format(printf, 2, 3))) static void wrong(const struct course *c, const char *fmt,
                                                        ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fail_msg("%s, answered \"%s\" (status %d) at block %llu: %s", c->state,
             c->said.answer ? c->said.answer->text : "", c->said.status,
             (unsigned long long)c->s->finalized, text);
}

/* Takes the effects of the last step; what may not happen fails here. */
static void collect(struct course *c)
{
    for (size_t i = 0; i < c->s->count; i++) {
        const struct manager_effect *fx = &c->s->fx[i];
        if (c->s->taken[i])
            continue;
        c->s->taken[i] = true;
        switch ((int)fx->type) {
        case MANAGER_FX_STORE_FINISH:
            c->given_back = c->unwritten && !strcmp(fx->ends.rows[0].outcome, "cancelled") &&
                            !fx->ends.rows[0].has_block;
            if (c->given_back)
                break;
            __attribute__((fallthrough));
        case MANAGER_FX_STORE_REQUEUE:
        case MANAGER_FX_STORE_REJECT:
            wrong(c, "it ends as %s and no block says so", fx->ends.rows[0].outcome);
            break;
        case MANAGER_FX_STORE_NONCE:
            wrong(c, "the next nonce becomes %llu", (unsigned long long)fx->next.nonce);
            break;
        case MANAGER_FX_ADMIT:
            wrong(c, "nonce %llu is given", (unsigned long long)fx->sign.rows[0].nonce);
            break;
        case MANAGER_FX_RESIGN:
        case MANAGER_FX_FILL:
            assert_int_equal(fx->sign.count, 1);
            if (fx->sign.rows[0].nonce != NONCE)
                wrong(c, "signed at nonce %llu", (unsigned long long)fx->sign.rows[0].nonce);
            __attribute__((fallthrough));
        case MANAGER_FX_SUBMIT:
        case MANAGER_FX_ASK_POOL:
        case MANAGER_FX_ASK_NONCE:
        case MANAGER_FX_ASK_UNFINAL:
        case MANAGER_FX_STORE_STATES:
        case MANAGER_FX_STORE_PAUSE:
            assert_true(c->tail < ARRAY_LEN(c->queue));
            c->queue[c->tail] = (struct work){.type = fx->type};
            if (fx->type == MANAGER_FX_RESIGN || fx->type == MANAGER_FX_FILL)
                c->queue[c->tail].row = fx->sign.rows[0];
            c->tail++;
            break;
        default:
            break;
        }
    }
}

static void give(struct course *c, struct manager_event ev)
{
    feed(c->s, ev);
    collect(c);
}

static void give_answer(struct course *c)
{
    const struct answer *a = c->said.answer;
    struct script *s = c->s;
    if (!a) {
        accept(s, NONCE);
        collect(c);
        return;
    }
    bool node = a->from == ANSWER_OF_NODE;
    int64_t code = a->first == INT64_MIN ? (node ? -7 : ERR_IO) : a->first;
    give(c, (struct manager_event){.type = MANAGER_EV_SUBMIT_REPLY,
                                   .reply = {.nonce = NONCE,
                                             .hash = current(s, NONCE),
                                             .code = node ? ERR_RPC : (int)code,
                                             .rpc_code = node ? code : 0,
                                             .text = a->text}});
}

static void give_status(struct course *c)
{
    enum tx_status st = (enum tx_status)c->said.status;
    bool block = c->said.status >= TX_IN_BLOCK && c->said.status <= TX_FINALIZED;
    if (c->said.status < 0)
        watch_lost(c->s, NONCE);
    else
        status(c->s, NONCE, st, block ? block_of(7) : NULL);
    collect(c);
}

static void cancel(struct course *c, int64_t id)
{
    struct tx_stop x = {
        .nonce = NONCE, .id = id, .outcome = "cancelled", .reason = "so it was said"};
    give(c, (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                   .requests = {.stops = &x, .count = 1}});
}

static void sign(struct course *c, const struct work *w)
{
    static const uint8_t bytes[BYTES_LEN] = {1};
    bool fill = w->type == MANAGER_FX_FILL;
    struct script *s = c->s;
    c->fills += fill;
    c->races += w->row.filler;
    if (!fill && !w->row.filler && w->row.id != ID && w->row.id != LOADED_ID)
        wrong(c, "signed for transaction %lld", (long long)w->row.id);
    s->attempts[NONCE]++;
    struct tx_attempt row = {.nonce = NONCE,
                             .id = fill ? 0 : w->row.id,
                             .bytes = bytes,
                             .bytes_len = BYTES_LEN,
                             .call_len = CALL_LEN,
                             .era_death = (int64_t)s->finalized + 64,
                             .spec_version = s->spec,
                             .tip = w->row.tip};
    memcpy(row.hash, current(s, NONCE), 32);
    give(c, (struct manager_event){
                .type = MANAGER_EV_STORED,
                .stored = {.write = w->type, .attempts = {.rows = &row, .count = 1}}});
}

/* Every question finds nothing, and every write succeeds. */
static void work(struct course *c, const struct work *w)
{
    switch ((int)w->type) {
    case MANAGER_FX_SUBMIT:
        give_answer(c);
        return;
    case MANAGER_FX_ASK_POOL:
        give(c, (struct manager_event){.type = MANAGER_EV_POOL});
        return;
    case MANAGER_FX_ASK_NONCE:
        give(c, (struct manager_event){.type = MANAGER_EV_NONCE, .used = {.nonce = NONCE}});
        return;
    case MANAGER_FX_ASK_UNFINAL:
        give(c, (struct manager_event){.type = MANAGER_EV_UNFINAL});
        return;
    case MANAGER_FX_STORE_STATES:
    case MANAGER_FX_STORE_PAUSE:
        give(c, (struct manager_event){.type = MANAGER_EV_STORED, .stored = {.write = w->type}});
        return;
    default:
        sign(c, w);
    }
}

static void settle(struct course *c)
{
    for (unsigned i = 0; c->head < c->tail; i++) {
        struct work w = c->queue[c->head++];
        assert_true(i < 200);
        if (c->head == c->tail)
            c->head = c->tail = 0;
        work(c, &w);
    }
    c->head = c->tail = 0;
}

static void next_block(struct course *c)
{
    finalized(c->s, NONCE, 0, NULL);
    collect(c);
    settle(c);
    c->s->best = c->s->finalized + 1;
    best(c->s);
    collect(c);
    settle(c);
    give(c, (struct manager_event){.type = MANAGER_EV_GATE_OPEN});
    settle(c);
}

/* ---- the states in which an answer comes ---- */

static struct script *first(void)
{
    struct script *s = leading(NONCE);
    s->era = 60;
    outbox(s, 1);
    admitted(s);
    expect_submit(s, NONCE);
    return s;
}

static struct script *refused_before(void)
{
    struct script *s = first();
    refuse(s, NONCE, 1018, "Unactionable");
    best(s);
    expect_submit(s, NONCE);
    return s;
}

static void found_nowhere(struct script *s)
{
    probe(s, NONCE, 0);
    if (!count_of(s, MANAGER_FX_SUBMIT)) {
        best(s);
        probe(s, NONCE, 0);
    }
    expect_submit(s, NONCE);
}

static struct script *silence_before(void)
{
    struct script *s = first();
    refuse_code(s, NONCE, ERR_NET);
    found_nowhere(s);
    return s;
}

static struct script *internal_error_before(void)
{
    struct script *s = first();
    refuse(s, NONCE, -32603, "Internal error");
    best(s);
    expect_submit(s, NONCE);
    return s;
}

static struct script *gateway_before(void)
{
    struct script *s = first();
    refuse(s, NONCE, -32000, "504 Gateway Timeout");
    best(s);
    expect_submit(s, NONCE);
    return s;
}

static struct script *dropped_before(void)
{
    struct script *s = first();
    accept(s, NONCE);
    status(s, NONCE, TX_DROPPED, NULL);
    found_nowhere(s);
    return s;
}

static struct script *at_another_node(void)
{
    struct script *s = first();
    accept(s, NONCE);
    chain_down(s);
    chain_up(s);
    found_nowhere(s);
    return s;
}

static struct script *connection_lost(void)
{
    struct script *s = first();
    chain_down(s);
    refuse_code(s, NONCE, ERR_NET);
    chain_up(s);
    found_nowhere(s);
    return s;
}

static struct script *signed_anew(void)
{
    struct script *s = first();
    accept(s, NONCE);
    runtime(s, SPEC + 1);
    probe(s, NONCE, 0);
    resigned(s);
    expect_submit(s, NONCE);
    return s;
}

static struct script *loaded(const char *state)
{
    struct script *s = script_new(NULL);
    struct tx_pending row = loaded_row(s, NONCE, state);
    load(s, &row, 1, NONCE + 1);
    chain_up(s);
    while (s->follow <= s->finalized)
        finalized_at(s, s->follow++, NONCE, 0, NULL);
    found_nowhere(s);
    return s;
}

static struct script *loaded_signed(void)
{
    return loaded("signed");
}

static struct script *loaded_sent(void)
{
    return loaded("broadcast");
}

static const struct {
    const char *name;
    struct script *(*make)(void);
    bool first; /* nothing of the transaction may be in a pool before the answer */
} states[] = {
    {"submitted for the first time", first, true},
    {"submitted again after a refusal", refused_before, false},
    {"submitted again after silence", silence_before, false},
    {"submitted again after an internal error", internal_error_before, false},
    {"submitted again after a gateway's timeout", gateway_before, false},
    {"submitted again after it was dropped", dropped_before, false},
    {"submitted to another node", at_another_node, false},
    {"submitted again after the connection was lost", connection_lost, false},
    {"signed anew", signed_anew, false},
    {"submitted by a successor, never stored as sent", loaded_signed, false},
    {"submitted by a successor", loaded_sent, false},
};

/* ---- the cases ---- */

enum cancelled { NEVER, BEFORE, AFTER };

/* The block holds this attempt. */
static void included(struct course *c, const uint8_t *hash, const char *outcome)
{
    struct script *s = c->s;
    finalized(s, NONCE + 1, 1, &(struct in_block){hash, NONCE, true, DISPATCH_OK, NULL});
    for (unsigned i = 0; i < 10 && !count_of(s, MANAGER_FX_STORE_FINISH); i++)
        stored(s, MANAGER_FX_STORE_STATES); /* a refusal is stored first */
    const struct manager_effect *fx = expect(s, MANAGER_FX_STORE_FINISH);
    assert_int_equal(fx->ends.count, 1);
    if (strcmp(fx->ends.rows[0].outcome, outcome) != 0 || !fx->ends.rows[0].has_block)
        wrong(c, "it is in a block, which says %s, and ends as %s", outcome,
              fx->ends.rows[0].outcome);
}

static bool is_invalid(const struct answer *a)
{
    return a && (a->means == REFUSAL_INVALID || a->means == REFUSAL_TRAPPED);
}

/* A filler is signed against it. A runtime that traps is asked a second time first: a transaction
 * that is cancelled meanwhile waits if its tip may not rise. */
static bool must_race(const struct answer *a, enum cancelled cancelled, bool tips)
{
    return is_invalid(a) && (a->means == REFUSAL_INVALID || cancelled == NEVER || tips);
}

static void allow_tips(struct course *c)
{
    static const struct manager_account account = {.tip_cap = MANAGER_NO_CAP};
    give(c,
         (struct manager_event){.type = MANAGER_EV_REQUESTS,
                                .requests = {.number = c->s->request_poll, .account = &account}});
}

static void go(struct course *c, enum cancelled cancelled, bool tips)
{
    struct script *s = c->s;
    int64_t id = s->next_id == 1 ? LOADED_ID : ID;
    collect(c);
    give(c, (struct manager_event){.type = MANAGER_EV_STORED,
                                   .stored = {.write = MANAGER_FX_STORE_STATES}});
    if (tips)
        allow_tips(c);
    if (cancelled == BEFORE)
        cancel(c, id);
    give_answer(c);
    if (!c->said.answer)
        give_status(c);
    if (cancelled == AFTER)
        cancel(c, id);
    settle(c);
    while (s->finalized < FIRST_DEATH - 2 && !c->fills && !c->given_back)
        next_block(c);
}

/* Nothing of it ends before its bytes are dead or in a block, unless nothing was written: then it
 * can be cancelled at once, and its nonce is given back. What is refused as invalid is raced by a
 * filler in any case. */
static struct course one(struct said said, size_t state, enum cancelled cancelled, bool tips)
{
    struct course c = {.said = said, .state = states[state].name};
    struct script *s = c.s = states[state].make();
    const struct answer *a = said.answer;
    c.unwritten = states[state].first && a && a->means == REFUSAL_GATE;
    go(&c, cancelled, tips);
    if (c.fills)
        wrong(&c, "it is ended while its bytes may be in a pool");
    if (c.given_back != (c.unwritten && cancelled != NEVER))
        wrong(&c, "its nonce is not given back");
    if (must_race(a, cancelled, tips) && !c.races)
        wrong(&c, "no filler races it");
    if (!c.given_back)
        included(&c, hash_of(NONCE, 1), "ok");
    script_free(s);
    return c;
}

/* The same, but the filler gets in. */
static void filler_gets_in(struct said said, size_t state, enum cancelled cancelled, bool tips)
{
    struct course c = {.said = said, .state = states[state].name};
    c.s = states[state].make();
    go(&c, cancelled, tips);
    bool first =
        cancelled == BEFORE || (cancelled == AFTER && said.answer->means == REFUSAL_TRAPPED);
    included(&c, current(c.s, NONCE), first ? "cancelled" : "failed");
    script_free(c.s);
}

static size_t every_way(struct said said)
{
    size_t races = 0;
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        for (unsigned way = 0; way < 6; way++) {
            enum cancelled cancelled = (enum cancelled)(way / 2);
            races += one(said, i, cancelled, way & 1).races;
            if (must_race(said.answer, cancelled, way & 1))
                filler_gets_in(said, i, cancelled, way & 1);
        }
    return races;
}

static void every_answer_in_every_state(void **state)
{
    (void)state;
    size_t rows = 0, races = 0;
    for (const struct answer *a; (a = answer_at(rows)); rows++)
        races += every_way((struct said){.answer = a});
    assert_true(rows > 40 && races > rows);
}

static void every_status_in_every_state(void **state)
{
    (void)state;
    size_t races = 0;
    for (int status = -1; status <= TX_INVALID; status++)
        races += every_way((struct said){.status = status});
    assert_true(races > 0);
}

/* The gate was closed, and a status says that a pool has the bytes all the same. */
static void status_after_the_gate(void **state)
{
    (void)state;
    struct course c = {
        .s = first(), .said = {.answer = answer_of(ERR_NOT_LEADER, 0, "")}, .state = "not sent"};
    give_answer(&c);
    status(c.s, NONCE, TX_DROPPED, NULL);
    collect(&c);
    cancel(&c, ID);
    settle(&c);
    while (c.s->finalized < FIRST_DEATH - 2)
        next_block(&c);
    assert_int_equal(c.fills, 0);
    included(&c, hash_of(NONCE, 1), "ok");
    script_free(c.s);
}

/* ---- the table itself ---- */

/* Each text is found again as the row's own; the last row of a source takes everything else. */
static void rows_are_found(void **state)
{
    (void)state;
    bool last[2] = {false};
    const struct answer *a;
    for (size_t i = 0; (a = answer_at(i)); i++) {
        bool any = a->first == INT64_MIN;
        assert_false(last[a->from]);
        last[a->from] = any;
        assert_true(*a->text && *a->reason && a->first <= a->last);
        if (any)
            assert_true(a->means == REFUSAL_BUSY || a->means == REFUSAL_TRANSPORT);
        else if (a->from == ANSWER_OF_NODE)
            assert_ptr_equal(answer_of(ERR_RPC, a->last, a->text), a);
        else
            assert_ptr_equal(answer_of((int)a->first, 0, a->text), a);
    }
    assert_true(last[ANSWER_OF_RELAY] && last[ANSWER_OF_NODE]);
}

/* No code but these gives a transaction up: what polkadot-sdk answers for bytes that can never be
 * good. Their codes come with other texts too. */
static void unknown_codes_give_nothing_up(void **state)
{
    (void)state;
    static const int64_t given_up[] = {-32007, 1001, 1002, 1010, 1011, 1019, 1040};
    size_t found = 0;
    for (int64_t code = -40000; code <= 40000; code++) {
        bool listed = found < ARRAY_LEN(given_up) && given_up[found] == code;
        const char *text = code == 1002   ? "wasm trap"
                           : code == 1010 ? "Custom error: 7"
                           : code == 1040 ? "Codec error"
                                          : "";
        assert_int_equal(is_invalid(answer_of(ERR_RPC, code, text)), listed);
        found += listed;
    }
    assert_int_equal(found, ARRAY_LEN(given_up));
    assert_int_equal(answer_of(ERR_RPC, INT64_MAX, NULL)->means, REFUSAL_BUSY);
    assert_int_equal(answer_of(ERR_RPC, INT64_MIN, NULL)->means, REFUSAL_BUSY);
}

/* A text that the sdk does not have, under a code that it has. */
static void unknown_texts_give_nothing_up(void **state)
{
    (void)state;
    static const int64_t codes[] = {1002, 1010, 1040};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        assert_int_equal(answer_of(ERR_RPC, codes[i], "upstream timed out")->means, REFUSAL_BUSY);
        assert_int_equal(answer_of(ERR_RPC, codes[i], NULL)->means, REFUSAL_BUSY);
    }
}

/* Only the gate, which is asked before the write, says that nothing was written. */
static void only_the_gate_says_unwritten(void **state)
{
    (void)state;
    static const int codes[] = {
#define X(name, value, class, text) value,
        ERR_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] != ERR_OK && codes[i] != ERR_RPC)
            assert_int_equal(answer_of(codes[i], 0, NULL)->means == REFUSAL_GATE,
                             codes[i] == ERR_NOT_LEADER);
    const struct answer *a;
    for (size_t i = 0; (a = answer_at(i)); i++)
        assert_true(a->means != REFUSAL_GATE || a->from == ANSWER_OF_RELAY);
}

static void page_shows_the_table(void **state)
{
    (void)state;
    struct buf table = {0};
    answers_dump(&table);
    page_shows(ANSWERS_MD, buf_str(&table));
    buf_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found),
        cmocka_unit_test(unknown_codes_give_nothing_up),
        cmocka_unit_test(unknown_texts_give_nothing_up),
        cmocka_unit_test(only_the_gate_says_unwritten),
        cmocka_unit_test(page_shows_the_table),
        cmocka_unit_test(status_after_the_gate),
        cmocka_unit_test(every_answer_in_every_state),
        cmocka_unit_test(every_status_in_every_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

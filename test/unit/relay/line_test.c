/* The rows of an account and their indexes, without a manager: random calls against a plain array,
 * with all invariants checked on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "relay/core/line/line.h"

enum { NONCES = 300, FIRST = 1000, STEPS = 20000 };

struct model {
    struct line line;
    struct rng rng;
    int state[NONCES];         /* -1: no row */
    unsigned attempts[NONCES]; /* bytes that the row has had */
};

static const uint8_t *hash_of(unsigned i, unsigned attempt)
{
    static uint8_t hashes[4][32];
    static unsigned n;
    uint8_t *h = hashes[n++ % 4];
    memset(h, 0, 32);
    memcpy(h, &i, sizeof(i));
    memcpy(h + 4, &attempt, sizeof(attempt));
    return h;
}

static uint32_t below(struct model *x, uint32_t n)
{
    return (uint32_t)rng_below(&x->rng, n);
}

/* The states that a move of the table leads to, from this one. */
static unsigned moves_from(int from, uint8_t out[ROW_STATES])
{
    static const struct {
        uint8_t from, to;
    } some[] = {
        {ROW_UNSENT, ROW_SUBMITTED}, {ROW_UNSENT, ROW_ENDING},   {ROW_SUBMITTED, ROW_POOLED},
        {ROW_SUBMITTED, ROW_UNSENT}, {ROW_POOLED, ROW_IN_BLOCK}, {ROW_POOLED, ROW_UNSURE},
        {ROW_UNSURE, ROW_UNSENT},    {ROW_UNSURE, ROW_RESIGN},   {ROW_IN_BLOCK, ROW_UNSURE},
        {ROW_IN_BLOCK, ROW_ENDING},  {ROW_RESIGN, ROW_SIGNING},  {ROW_SIGNING, ROW_UNSENT},
        {ROW_ENDING, ROW_FINISHING},
    };
    unsigned count = 0;
    for (size_t i = 0; i < ARRAY_LEN(some); i++)
        if (some[i].from == from)
            out[count++] = some[i].to;
    return count;
}

static void sign(struct model *x, struct row *row, unsigned i)
{
    static const uint8_t bytes[40] = {1};
    line_bytes(&x->line, row, hash_of(i, ++x->attempts[i]), bytes, sizeof(bytes), 8,
               50 + (int64_t)i, 1);
}

static void add(struct model *x, unsigned i)
{
    uint64_t nonce = FIRST + i, low = x->line.rows && x->line.low < nonce ? x->line.low : nonce;
    line_cover(&x->line, low, x->line.next > nonce ? x->line.next : nonce + 1);
    sign(x, line_add(&x->line, nonce, ROW_UNSENT), i);
    x->state[i] = ROW_UNSENT;
}

static void step(struct model *x)
{
    unsigned i = below(x, NONCES);
    struct row *row = line_at(&x->line, FIRST + i);
    uint8_t to[ROW_STATES];
    assert_int_equal(row != NULL, x->state[i] >= 0);
    if (!row) {
        x->attempts[i] = 0;
        add(x, i);
        return;
    }
    if (row->state == ROW_FINISHING) {
        line_remove(&x->line, row);
        x->state[i] = -1;
        return;
    }
    if (row->state == ROW_SIGNING)
        sign(x, row, i);
    unsigned count = moves_from(row->state, to);
    assert_true(count > 0);
    x->state[i] = to[below(x, count)];
    if (x->state[i] == ROW_POOLED)
        row_went_out(row);
    line_move(&x->line, row, (enum row_state)x->state[i]);
    x->line.blocks += below(x, 10) == 0;
}

static void compare(struct model *x)
{
    line_check(&x->line);
    for (unsigned set = 0; set < ROW_STATES; set++) {
        uint64_t from = FIRST + below(x, NONCES);
        unsigned i = (unsigned)(from - FIRST), count = 0;
        for (unsigned k = 0; k < NONCES; k++)
            count += x->state[k] == (int)set;
        assert_int_equal(line_count(&x->line, set), count);
        while (i < NONCES && x->state[i] != (int)set)
            i++;
        const struct row *first = line_first(&x->line, set, from);
        assert_int_equal(first != NULL, i < NONCES);
        assert_true(!first || first->nonce == FIRST + i);
    }
    unsigned i = below(x, NONCES);
    for (unsigned attempt = 1; attempt <= x->attempts[i]; attempt++)
        assert_ptr_equal(line_by_hash(&x->line, hash_of(i, attempt)), line_at(&x->line, FIRST + i));
}

static struct model *model_new(uint64_t seed)
{
    struct model *x = test_calloc(1, sizeof(*x));
    x->rng.state = seed;
    for (unsigned i = 0; i < NONCES; i++)
        x->state[i] = -1;
    line_clear(&x->line);
    return x;
}

static void random_calls(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct model *x = model_new(seed);
        for (unsigned n = 0; n < STEPS; n++) {
            step(x);
            if (n % 50 == 0)
                compare(x);
        }
        assert_true(x->line.rows > 0);
        line_clear(&x->line);
        assert_int_equal(x->line.rows, 0);
        line_check(&x->line);
        line_done(&x->line);
        test_free(x);
    }
}

/* The state follows the caller also where the table has no such move, which is recorded: the owner
 * decides. */
static void illegal_move(void **state)
{
    (void)state;
    struct model *x = model_new(1);
    add(x, 0);
    struct row *row = line_at(&x->line, FIRST);
    assert_int_equal(x->line.moves.illegal, 0);
    line_move(&x->line, row, ROW_FINISHING);
    assert_int_equal(row->state, ROW_FINISHING);
    assert_int_equal(x->line.moves.illegal, 1);
    assert_int_equal(x->line.moves.from, ROW_UNSENT);
    assert_int_equal(x->line.moves.to, ROW_FINISHING);
    assert_int_equal(x->line.illegal_nonce, FIRST);
    line_done(&x->line);
    test_free(x);
}

/* Eras come out in the order of their ends, each once. */
static void eras(void **state)
{
    (void)state;
    struct model *x = model_new(7);
    for (unsigned i = 0; i < NONCES; i++)
        add(x, (i * 7) % NONCES);
    struct era_entry e;
    assert_false(line_era_next(&x->line, 49, &e));
    for (unsigned i = 0; i < NONCES; i++) {
        assert_true(line_era_next(&x->line, 10000, &e));
        assert_int_equal(e.death, 50 + i);
        assert_int_equal(e.nonce, FIRST + i);
    }
    assert_false(line_era_next(&x->line, 10000, &e));
    line_done(&x->line);
    test_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_calls),
        cmocka_unit_test(illegal_move),
        cmocka_unit_test(eras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

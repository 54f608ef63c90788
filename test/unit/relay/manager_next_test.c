/* What the manager does next: each function over its whole input space. The bits of a number are
 * the inputs of a view, in the order of its members, which are all bools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "next.h"

static void fill(void *view, size_t size, unsigned bits)
{
    for (size_t i = 0; i < size; i++)
        ((bool *)view)[i] = bits >> i & 1;
}

#define BIT(type, member) (1u << offsetof(struct type, member))
#define ALL(type)         (1u << sizeof(struct type))

/* Exactly what is needed holds; what is in `any` does not count. */
static bool only(unsigned bits, unsigned needed, unsigned any)
{
    return (bits & ~any) == needed;
}

/* A probe begins when all of its conditions hold and none of its obstacles does. */
static void probe(void **state)
{
    (void)state;
    unsigned begun = 0;
    for (unsigned bits = 0; bits < ALL(probe_view); bits++) {
        struct probe_view v;
        fill(&v, sizeof(v), bits);
        bool begins = probe_next(&v) == PROBE_BEGIN;
        assert_int_equal(
            begins,
            only(bits, BIT(probe_view, wanted) | BIT(probe_view, phase) | BIT(probe_view, node_up),
                 0));
        begun += begins;
    }
    assert_int_equal(begun, 1);
}

/* A suspension for lack of funds ends before anything is stored of it. */
static void suspension(void **state)
{
    (void)state;
    const unsigned ends = BIT(suspension_view, payment) | BIT(suspension_view, leading);
    for (unsigned bits = 0; bits < ALL(suspension_view); bits++) {
        struct suspension_view v;
        fill(&v, sizeof(v), bits);
        enum suspension_action a = suspension_next(&v);
        bool end = (bits & (ends | BIT(suspension_view, rows_open))) == ends;
        assert_int_equal(a == SUSPENSION_END, end);
        const unsigned needed = BIT(suspension_view, loaded) | BIT(suspension_view, unstored);
        bool store = only(bits, needed, ends | BIT(suspension_view, rows_open));
        assert_int_equal(a == SUSPENSION_STORE, store && !end);
    }
}

/* A new life never begins while a row of the former one is left or one of its bytes could be
 * included. */
static void life(void **state)
{
    (void)state;
    const unsigned led =
        BIT(life_view, ordered) | BIT(life_view, leading) | BIT(life_view, node_up);
    for (unsigned bits = 0; bits < ALL(life_view); bits++) {
        struct life_view v;
        fill(&v, sizeof(v), bits);
        enum life_action a = life_next(&v);
        assert_int_equal(a == LIFE_BURY, (bits & led) == led && v.rows);
        assert_int_equal(a == LIFE_BEGIN, only(bits, led | BIT(life_view, nonce_known), 0));
    }
}

static void adopt(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < ALL(adopt_view); bits++) {
        struct adopt_view v;
        fill(&v, sizeof(v), bits);
        assert_int_equal(adopt_next(&v) == ADOPT_STORE,
                         only(bits, BIT(adopt_view, due) | BIT(adopt_view, loaded), 0));
    }
}

/* The wait begins before a probe does, and ends by what was read alone. */
static void era_wait(void **state)
{
    (void)state;
    const unsigned waits = BIT(era_wait_view, waiting), in = BIT(era_wait_view, in_wait),
                   unprobed = BIT(era_wait_view, unprobed);
    for (unsigned bits = 0; bits < ALL(era_wait_view); bits++) {
        struct era_wait_view v;
        fill(&v, sizeof(v), bits);
        enum era_wait_action a = era_wait_next(&v);
        bool begins = (bits & waits) && (bits & unprobed), ends = !(bits & waits) && (bits & in);
        assert_int_equal(a == ERA_WAIT_BEGIN, begins);
        assert_int_equal(a == ERA_WAIT_END, ends);
        bool stores = only(bits, BIT(era_wait_view, loaded) | BIT(era_wait_view, unstored),
                           waits | in | unprobed);
        assert_int_equal(a == ERA_WAIT_STORE, stores && !begins && !ends);
    }
}

/* One that has changed is stored before another one is given back. */
static void nonce(void **state)
{
    (void)state;
    const unsigned others = BIT(nonce_view, given_back) | BIT(nonce_view, admitting) |
                            BIT(nonce_view, rewinding) | BIT(nonce_view, final_known);
    for (unsigned bits = 0; bits < ALL(nonce_view); bits++) {
        struct nonce_view v;
        fill(&v, sizeof(v), bits);
        enum nonce_action a = nonce_next(&v);
        assert_int_equal(a == NONCE_STORE,
                         only(bits, BIT(nonce_view, leading) | BIT(nonce_view, unstored), others));
        assert_int_equal(a == NONCE_GIVE_BACK,
                         only(bits,
                              BIT(nonce_view, leading) | BIT(nonce_view, given_back) |
                                  BIT(nonce_view, final_known),
                              0));
    }
}

/* Bytes leave in one of the 2,048 situations; in one more they are replaced, because their era
 * ends. */
static void send(void **state)
{
    (void)state;
    unsigned submitted = 0, resigned = 0;
    const unsigned needed = BIT(send_view, leading) | BIT(send_view, node_up);
    for (unsigned bits = 0; bits < ALL(send_view); bits++) {
        struct send_view v;
        fill(&v, sizeof(v), bits);
        enum send_action a = send_next(&v);
        assert_int_equal(a != SEND_WAIT, only(bits, needed, BIT(send_view, era_ends)));
        assert_false(a == SEND_SUBMIT && v.era_ends);
        submitted += a == SEND_SUBMIT;
        resigned += a == SEND_RESIGN;
    }
    assert_int_equal(ALL(send_view), 2048);
    assert_int_equal(submitted, 1);
    assert_int_equal(resigned, 1);
}

static void sign(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < ALL(sign_view); bits++) {
        struct sign_view v;
        fill(&v, sizeof(v), bits);
        assert_int_equal(
            sign_next(&v) == SIGN_ROWS,
            only(bits, BIT(sign_view, wanted) | BIT(sign_view, leading) | BIT(sign_view, node_up),
                 0));
    }
}

/* Nonces are given when the account leads at a node, has room, and nothing at all is in the way. */
static void admit(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < ALL(admit_view); bits++) {
        struct admit_view v;
        fill(&v, sizeof(v), bits);
        assert_int_equal(
            admit_next(&v) == ADMIT_ROWS,
            only(bits, BIT(admit_view, leading) | BIT(admit_view, node_up) | BIT(admit_view, room),
                 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probe), cmocka_unit_test(suspension), cmocka_unit_test(life),
        cmocka_unit_test(adopt), cmocka_unit_test(era_wait),   cmocka_unit_test(nonce),
        cmocka_unit_test(send),  cmocka_unit_test(sign),       cmocka_unit_test(admit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The tables of phases and of a row's states: what the documents show, and what a released program
 * does at a move that they do not have. Built with planted faults, which make such moves. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/plant.h"
#include "design_page.h"
#include "manager_harness.h"

enum plant plant;

static void each_move_once(void (*dump)(struct buf *out))
{
    struct buf b = {0};
    dump(&b);
    size_t count = 0;
    for (const char *line = buf_str(&b), *end; (end = strchr(line, '\n'));
         line = end + 1, count++) {
        const char *colon = memchr(line, ':', (size_t)(end - line));
        if (!colon)
            continue; /* the head, and where it begins */
        struct buf move = {0};
        buf_put(&move, line, (size_t)(colon + 1 - line));
        assert_non_null(strstr(line, buf_str(&move)));
        assert_null(strstr(end, buf_str(&move)));
        buf_done(&move);
    }
    assert_true(count > 10);
    buf_done(&b);
}

static void no_move_is_there_twice(void **state)
{
    (void)state;
    each_move_once(manager_phases_dump);
    each_move_once(manager_rows_dump);
}

static void document_shows_the_tables(void **state)
{
    (void)state;
    design_page_shows(manager_phases_dump);
    design_page_shows(manager_rows_dump);
}

/* ---- a move that is not in its table ---- */

/* Steps without the harness: it checks the whole state, which is what this manager does not stand
 * any more. */
static size_t step(struct script *s, struct manager_event ev, const struct manager_effect **ret_fx)
{
    size_t count;
    manager_step(s->m, s->now, &ev, ret_fx, &count);
    return count;
}

static bool check_fails(const struct manager *m)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        manager_check(m);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static struct manager_event snapshot_of(const struct tx_pending *row)
{
    return (struct manager_event){.type = MANAGER_EV_SNAPSHOT,
                                  .snapshot = {.rows = row,
                                               .count = 1,
                                               .last = true,
                                               .next_nonce = (int64_t)row->nonce + 1,
                                               .used_nonce = -1,
                                               .used_block = -1}};
}

/* The step alerts with these words and otherwise only drops watches and asks for blocks and
 * requests. The rows are then loaded again under the same leadership. */
static void recovers(struct script *s, const struct manager_effect *fx, size_t count,
                     const char *words)
{
    size_t alerts = 0;
    for (size_t i = 0; i < count; i++) {
        enum manager_effect_type t = fx[i].type;
        bool harmless = t == MANAGER_FX_ALERT || t == MANAGER_FX_UNWATCH ||
                        t == MANAGER_FX_UNWATCH_ALL || t == MANAGER_FX_FOLLOW ||
                        t == MANAGER_FX_POLL_REQUESTS;
        assert_true(harmless);
        alerts += fx[i].type == MANAGER_FX_ALERT && strstr(fx[i].text, words);
    }
    assert_int_equal(alerts, 1);
    assert_int_equal(manager_phase(s->m), MANAGER_LOAD_WAIT);
    assert_int_equal(manager_view_of(s->m).open, 0);
    assert_true(check_fails(s->m));

    plant = PLANT_NONE;
    s->now = manager_deadline(s->m);
    assert_int_equal(step(s, (struct manager_event){.type = MANAGER_EV_TICK}, &fx), 1);
    assert_int_equal(fx[0].type, MANAGER_FX_LOAD);
    assert_int_equal(fx[0].after_nonce, -1);
}

/* In the same step an end would be stored: its write is dropped, and the load does not wait for its
 * answer. */
static void row_that_makes_an_illegal_move(void **state)
{
    (void)state;
    struct script *s = leading(5);
    outbox(s, 2);
    admitted(s);
    refuse_code(s, 5, ERR_NET);
    refuse(s, 6, 1016, "Immediately Dropped");
    stored(s, MANAGER_FX_STORE_STATES);
    stored(s, MANAGER_FX_STORE_STATES);
    best(s); /* 6 waits for 5, about which nothing is known */
    none(s, MANAGER_FX_SUBMIT);
    assert_false(check_fails(s->m));

    plant = PLANT_ILLEGAL_STATE;
    struct tx_included x = {.nonce = 5, .own_signer = true, .result = {.outcome = DISPATCH_OK}};
    memcpy(x.hash, current(s, 5), 32);
    struct manager_block block = {
        .number = s->finalized + 1, .account_nonce = 6, .included = &x, .included_count = 1};
    const struct manager_effect *fx;
    size_t count =
        step(s, (struct manager_event){.type = MANAGER_EV_FINALIZED, .block = &block}, &fx);
    recovers(s, fx, count, "nonce 6 went from UNSENT to FINISHING");

    struct tx_pending row = loaded_row(s, 6, "signed");
    step(s, snapshot_of(&row), &fx);
    assert_int_equal(manager_phase(s->m), MANAGER_CHAIN_WAIT);
    assert_int_equal(manager_view_of(s->m).unsure, 1);
    script_free(s);
}

static void manager_that_makes_an_illegal_move(void **state)
{
    (void)state;
    struct script *s = script_new(NULL);
    promote(s);
    expect(s, MANAGER_FX_LOAD);
    chain_up(s);

    plant = PLANT_ILLEGAL_PHASE;
    struct tx_pending row = loaded_row(s, 5, "broadcast");
    const struct manager_effect *fx;
    size_t count = step(s, snapshot_of(&row), &fx);
    recovers(s, fx, count, "the manager went from LOAD_WAIT to LEADING");

    count = step(s, snapshot_of(&row), &fx);
    assert_int_equal(manager_phase(s->m), MANAGER_CHAIN_WAIT);
    script_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_move_is_there_twice),
        cmocka_unit_test(document_shows_the_tables),
        cmocka_unit_test(row_that_makes_an_illegal_move),
        cmocka_unit_test(manager_that_makes_an_illegal_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

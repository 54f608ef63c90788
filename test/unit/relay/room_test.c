/* Rooms call back once, from the loop, whether they have something to wait for or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "service/room.h"
#include "service/service_internal.h"

static char told[100];

static void note(const char *word)
{
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s ", word);
}

static void on_drained(struct room *r)
{
    (void)r;
    note("drained");
}

static void on_closed(struct room *r)
{
    (void)r;
    note("closed");
}

static void opens(struct room *r)
{
    (void)r;
    note("open");
}

static void closes_at_once(struct room *r)
{
    note("close");
    room_ended(r);
}

static void closes_later(struct room *r)
{
    (void)r;
    note("close");
}

static void run(struct loop *l, struct room *r)
{
    told[0] = 0;
    room_open(r);
    room_drain(r, on_drained);
    assert_null(strstr(told, "drained")); /* never inside the start */
    loop_run(l);
    room_close(r, on_closed);
    assert_null(strstr(told, "closed"));
    loop_run(l);
}

static void test_callbacks(void **state)
{
    (void)state;
    struct service s = {.loop = loop_new()};
    const struct room_ops nothing = {.name = "nothing"};
    const struct room_ops now = {.name = "now", .open = opens, .close = closes_at_once};
    const struct room_ops later = {.name = "later", .close = closes_later};
    struct room a = {.ops = &nothing, .service = &s}, b = {.ops = &now, .service = &s},
                c = {.ops = &later, .service = &s};
    run(s.loop, &a);
    assert_string_equal(told, "drained closed ");
    run(s.loop, &b);
    assert_string_equal(told, "open drained close closed ");
    run(s.loop, &c);
    assert_string_equal(told, "drained close ");
    room_ended(&c);
    assert_string_equal(told, "drained close ");
    loop_run(s.loop);
    assert_string_equal(told, "drained close closed ");
    loop_free(s.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_callbacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Names and numeric addresses, while the resolver answers, fails or hangs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "loop/loop.h"

static char folder[] = "/tmp/txrelay-names-XXXXXX", names[64], pipe_path[64];

static void say(const char *text)
{
    FILE *file = fopen(names, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

struct asked {
    struct loop_resolve resolve;
    struct loop *loop;
    bool done, stop;
};

static void on_resolved(struct loop_resolve *r)
{
    struct asked *a = CONTAINER_OF(r, struct asked, resolve);
    a->done = true;
    if (a->stop)
        loop_stop(a->loop);
}

static void ask(struct loop *l, struct asked *a, const char *host)
{
    *a = (struct asked){.loop = l};
    loop_resolve_start(l, &a->resolve, host, on_resolved);
    assert_false(a->done); /* never inside the call */
}

static void each_answer(void **state)
{
    (void)state;
    static const struct {
        const char *host, *addresses; /* NULL: an error */
    } cases[] = {
        {"two.test", "127.0.0.2 127.0.0.3 "},
        {"six.test", "::1 2001:db8::1 "},
        {"again.test", NULL},
        {"none.test", NULL},
        {"127.0.0.9", "127.0.0.9 "},
        {"::1", "::1 "},
        {"2001:DB8:0:0::7", "2001:db8::7 "},
        {"127.0.0.9.", NULL},
    };
    say("two.test 127.0.0.2 127.0.0.3\nsix.test ::1 2001:db8::1\nagain.test !again\nnone.test "
        "!none\n"
        "127.0.0.9. !none\n");
    struct loop *l = loop_new();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char found[256] = "";
        struct asked a;
        ask(l, &a, cases[i].host);
        loop_run(l);
        assert_true(a.done);
        for (int k = 0; k < a.resolve.count; k++)
            snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s ",
                     a.resolve.addr[k]);
        assert_int_equal(a.resolve.err.code, cases[i].addresses ? 0 : ERR_NET);
        assert_string_equal(found, cases[i].addresses ? cases[i].addresses : "");
    }
    loop_free(l);
}

/* However many names hang, a numeric address is answered; so is none that was given up. */
static void a_resolver_that_hangs(void **state)
{
    (void)state;
    enum { HANGING = 8 };
    struct asked hanging[HANGING], numeric, given_up;
    char text[128];
    snprintf(text, sizeof(text), "hangs.test !hang %s\n", pipe_path);
    say(text);
    struct loop *l = loop_new();
    for (int i = 0; i < HANGING; i++)
        ask(l, &hanging[i], "hangs.test");
    ask(l, &given_up, "127.0.0.1");
    loop_resolve_cancel(&given_up.resolve);
    ask(l, &numeric, "127.0.0.1");
    numeric.stop = true;
    loop_run(l);
    assert_true(numeric.done);
    assert_false(given_up.done);
    assert_string_equal(numeric.resolve.addr[0], "127.0.0.1");
    say("hangs.test !again\n");
    int fd = open(pipe_path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    loop_run(l); /* until nothing is left */
    close(fd);
    for (int i = 0; i < HANGING; i++)
        assert_true(hanging[i].done && hanging[i].resolve.err.code);
    loop_free(l);
}

static int make(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(names, sizeof(names), "%s/names", folder);
    snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
    return mkfifo(pipe_path, 0600) || setenv("TEST_NAMES", names, 1);
}

static int clean(void **state)
{
    (void)state;
    unlink(names);
    unlink(pipe_path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer),
        cmocka_unit_test(a_resolver_that_hangs),
    };
    return cmocka_run_group_tests(tests, make, clean);
}

/* The table of commands: what a reader may rely on in every one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli.h"
#include "command.h"

struct letters {
    const char *name[128]; /* what each letter means */
};

static void note(void *arg, const struct argp_option *o)
{
    struct letters *l = arg;
    assert_non_null(o->doc);
    if (o->key <= 0 || o->key >= 128 || !isalpha(o->key))
        return;
    if (l->name[o->key])
        assert_string_equal(l->name[o->key], o->name);
    l->name[o->key] = o->name;
}

static void test_one_letter_has_one_meaning(void **state)
{
    (void)state;
    struct letters l = {0};
    for (const struct command *const *c = commands; *c; c++)
        command_each_option(*c, note, &l);
    assert_string_equal(l.name['N'], "limit");
    assert_string_equal(l.name['s'], "since");
}

static void is_endpoint(void *arg, const struct argp_option *o)
{
    bool *found = arg;
    *found = *found || !strcmp(o->name, "endpoint");
}

static void test_commands_that_ask_no_node_take_no_endpoint(void **state)
{
    (void)state;
    int with = 0, without = 0;
    for (const struct command *const *c = commands; *c; c++) {
        bool found = false;
        command_each_option(*c, is_endpoint, &found);
        assert_int_equal(found, !(*c)->local && !((*c)->without & COMMAND_WITHOUT_CHAIN));
        with += found;
        without += !found;
    }
    assert_true(with > 0 && without > with);
}

/* ---- wrong usage ---- */

/* What the command says and returns, in a process of its own: usage ends it. */
static int run(const struct command *c, const char *const *argv, char *ret_said, size_t size)
{
    int pipes[2], status, argc = 0;
    char *words[8] = {NULL};
    assert_int_equal(pipe(pipes), 0);
    for (; argv[argc]; argc++)
        words[argc] = xstrdup(argv[argc]);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        dup2(pipes[1], STDERR_FILENO);
        dup2(pipes[1], STDOUT_FILENO);
        close(pipes[0]);
        exit(command_execute(c, argc, words));
    }
    close(pipes[1]);
    size_t len = 0;
    for (ssize_t n; len + 1 < size && (n = read(pipes[0], ret_said + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    ret_said[len] = 0;
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    while (argc)
        free(words[--argc]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_usage(const struct command *c, const char *const *argv, const char *names)
{
    char said[2000];
    int rc = run(c, argv, said, sizeof(said));
    if (rc != EXIT_USAGE || !strstr(said, names))
        fail_msg("txrelay %s %s '%s': exit status %d: %s", argv[0], argv[1] ? argv[1] : "",
                 argv[1] && argv[2] ? argv[2] : "", rc, said);
}

/* Values that are none, by how the help writes the value. */
static const struct {
    const char *word, *value;
} nonsense[] = {
    {"N", "ten"},
    {"N", "-3x"},
    {"N", "99999999999999999999999"},
    {"BLOCK", "first"},
    {"SECONDS", "soon"},
    {"PLANCK", "1.5"},
    {"TIME", "tomorrow"},
    {"STATE", "readyy"},
    {"OUTCOME", "okay"},
    {"WHAT", "done"},
    {"ID", "x7"},
    {"POSITION", "yesterday"},
    {"0xHASH", "0x12"},
    {"NAME=N", "a=b"},
    {"LEVEL", "verbose"},
    {"ADDRESS", "nowhere"},
    {"SCOPE[,SCOPE]", "all"},
    {"OUTCOME[,OUTCOME]", "okay"},
};

struct trying {
    const struct command *command;
    unsigned tried;
};

/* The database reads them in many forms; test_commands.py has these. */
static bool only_the_database_knows(const struct command *c, const struct argp_option *o)
{
    bool time = !strcmp(o->arg, "TIME"), span = !strcmp(o->arg, "SPAN");
    return span || (time && c == &command_enqueue) || (time && !strcmp(o->name, "deadline"));
}

static void try_option(void *arg, const struct argp_option *o)
{
    struct trying *t = arg;
    char name[80], said[80], value[40];
    if (!o->arg)
        return;
    snprintf(name, sizeof(name), "--%s", o->name);
    snprintf(said, sizeof(said), "--%s is empty", o->name);
    expect_usage(t->command, (const char *[]){t->command->name, name, "", NULL}, said);
    expect_usage(t->command, (const char *[]){t->command->name, name, NULL},
                 "requires an argument");
    t->tried++;
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++) {
        if (strcmp(nonsense[i].word, o->arg) != 0 || only_the_database_knows(t->command, o))
            continue;
        snprintf(value, sizeof(value), "%s", nonsense[i].value);
        expect_usage(t->command, (const char *[]){t->command->name, name, value, NULL}, value);
    }
}

static void test_wrong_values_are_usage(void **state)
{
    (void)state;
    unsigned tried = 0;
    for (const struct command *const *c = commands; *c; c++) {
        struct trying t = {.command = *c};
        command_each_option(*c, try_option, &t);
        expect_usage(*c, (const char *[]){(*c)->name, "--nonesuch", NULL}, "nonesuch");
        if ((*c)->words_max)
            expect_usage(*c, (const char *[]){(*c)->name, "", NULL}, "argument 1 is empty");
        else
            expect_usage(*c, (const char *[]){(*c)->name, "word", NULL}, "word");
        if ((*c)->words_min)
            expect_usage(*c, (const char *[]){(*c)->name, NULL},
                         (*c)->missing ? (*c)->missing : "an argument is missing");
        tried += t.tried;
    }
    assert_true(tried > 100);
}

/* ---- keys and passwords stay out of files ---- */

enum { HARDENED = 42 };

static bool hardening, no_core;

int __real_setrlimit(int resource, const struct rlimit *limit);
int __wrap_setrlimit(int resource, const struct rlimit *limit);
int __wrap_prctl(int option, ...);

/* The address sanitizer calls it too, before it can check what this function reads. */
__attribute__((no_sanitize("address"), no_sanitize("undefined"))) int
__wrap_setrlimit(int resource, const struct rlimit *limit)
{
    if (!hardening)
        return __real_setrlimit(resource, limit);
    no_core = no_core || (resource == RLIMIT_CORE && limit->rlim_cur == 0 && limit->rlim_max == 0);
    return 0;
}

int __wrap_prctl(int option, ...)
{
    va_list ap;
    va_start(ap, option);
    unsigned value = (unsigned)va_arg(ap, int);
    va_end(ap);
    if (hardening && no_core && option == PR_SET_DUMPABLE && value == 0)
        _exit(HARDENED);
    return 0;
}

/* Each command may read a key or a password, of the database too: none leaves a core dump, or is
 * read by another process of its user, from its first line on. */
static void test_no_command_can_be_dumped(void **state)
{
    (void)state;
    for (const struct command *const *c = commands; *c; c++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            char *argv[] = {(char *)(uintptr_t)(*c)->name, (char *)(uintptr_t) "--help", NULL};
            hardening = true;
            freopen("/dev/null", "w", stdout);
            command_execute(*c, 2, argv);
            _exit(1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != HARDENED)
            fail_msg("%s can be dumped", (*c)->name);
    }
}

int main(void)
{
    unsetenv("TXRELAY_CONFIG");
    unsetenv("TXRELAY_CONTROL");
    setenv("TXRELAY_DATABASE", "host=/nonesuch", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_letter_has_one_meaning),
        cmocka_unit_test(test_commands_that_ask_no_node_take_no_endpoint),
        cmocka_unit_test(test_wrong_values_are_usage),
        cmocka_unit_test(test_no_command_can_be_dumped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* txrelay: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/near.h"
#include "cli.h"
#include "command.h"
#include "schema/schema.h"

static int usage(FILE *out, int code)
{
    fputs("txrelay: a transactional outbox and pending-transaction relay for Substrate chains\n\n"
          "usage: txrelay COMMAND [OPTION...]\n\n",
          out);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(out, "  %-9s %s\n", (*c)->name, (*c)->what);
    fputs(
        "\ntxrelay COMMAND --help lists the options of a command, man txrelay explains exit codes "
        "and\nenvironment, txrelay --version prints the version.\n",
        out);
    return code;
}

static const struct command *find(const char *name)
{
    for (const struct command *const *c = commands; *c; c++)
        if (!strcmp((*c)->name, name))
            return *c;
    return NULL;
}

static int unknown(const char *name)
{
    char near[NEAREST_TEXT];
    struct nearest_names n = nearest_names_of(name);
    for (const struct command *const *c = commands; *c; c++)
        nearest_names_offer(&n, (*c)->name);
    fprintf(stderr, "txrelay: there is no command '%s'%s\n\n", name, nearest_names_text(&n, near));
    return usage(stderr, EXIT_USAGE);
}

static int run(const struct command *c, int argc, char **argv)
{
    static char name[64];
    snprintf(name, sizeof(name), "txrelay %s", c->name);
    argv[0] = name;
    return command_execute(c, argc, argv);
}

static int help(int argc, char **argv)
{
    static char option[] = "--help";
    char *line[] = {argv[0], option, NULL};
    const struct command *c = argc > 1 ? find(argv[1]) : NULL;
    if (c)
        return run(c, 2, line);
    if (argc < 2)
        return usage(stdout, EXIT_OK);
    return unknown(argv[1]);
}

/* A descriptor that the caller closed would be given to the next file or socket, and what is
 * printed would go there: into a new key file, or to the database. Reading finds an end, writing
 * fails. */
static void hold_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
            _exit(EXIT_FAILED);
}

/* Also when the line that failed is long gone, and errno is another one's. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

/* What was printed and is lost must not look done: a full disk, a closed descriptor. A reader that
 * had enough (head) closes the pipe, and that is no failure. */
static void flush_stdout(void)
{
    bool gone = reader_is_gone();
    bool failed = ferror(stdout) != 0;
    bool lost = fclose(stdout) != 0;
    if ((!failed && !lost) || gone || errno == EPIPE)
        return;
    fprintf(stderr, "txrelay: standard output could not be written: %s\n",
            errno ? strerror(errno) : "an earlier line was lost; is its disk full?");
    _exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
    hold_descriptors();
    signal(SIGPIPE, SIG_IGN);
    atexit(flush_stdout);
    if (argc < 2)
        return usage(stderr, EXIT_USAGE);
    const char *first = argv[1];
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help"))
        return help(argc - 1, argv + 1);
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        printf("txrelay %s, database schema version %zu\n", TXRELAY_VERSION, schema_set()->count);
        return EXIT_OK;
    }
    const struct command *c = find(first);
    if (c)
        return run(c, argc - 1, argv + 1);
    return unknown(first);
}

/* txrelay: the command line. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"run", cmd_run, "run a relay"},
    {"migrate", cmd_migrate, "install or update the database schema"},
    {"enqueue", cmd_enqueue, "put a transaction into the outbox (or hand it to a relay: --to)"},
    {"encode", cmd_encode, "make a call's bytes from pallet, call and JSON arguments"},
    {"decode", cmd_decode, "show a call or an extrinsic as JSON"},
    {"status", cmd_status, "show one transaction by id or hash, or the latest ones"},
    {"tail", cmd_tail, "print statuses as they arrive"},
    {"wait", cmd_wait, "wait until a transaction is finalized, in a block, or ended"},
    {"cancel", cmd_cancel, "take a transaction back"},
    {"bump", cmd_bump, "raise a transaction's tip"},
    {"history", cmd_history, "every attempt of one transaction, with all errors"},
    {"accounts", cmd_accounts, "accounts, their leaders and epochs"},
    {"blocked", cmd_blocked, "list blocked accounts, and why"},
    {"policy", cmd_policy, "show or set the policy of an account"},
    {"keys", cmd_keys, "create and inspect key files"},
    {"drain", cmd_drain, "make a relay hand over its accounts and end"},
    {"check", cmd_check, "explain the configuration and try every connection"},
};

static int usage(FILE *out, int code)
{
    fputs("txrelay: a transactional outbox and pending-transaction relay for Substrate chains\n\n"
          "usage: txrelay COMMAND [OPTION...]      (txrelay COMMAND --help says more)\n\n",
          out);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].what);
    return code;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return usage(stderr, EXIT_USAGE);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help"))
        return usage(stdout, EXIT_OK);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name))
            continue;
        static char name[64];
        snprintf(name, sizeof(name), "txrelay %s", commands[i].name);
        argv[1] = name;
        return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "txrelay: there is no command '%s'\n\n", argv[1]);
    return usage(stderr, EXIT_USAGE);
}

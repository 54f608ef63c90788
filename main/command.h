/* How every command reads its command line: the options that all commands have, the command's own
 * options, and its words. Wrong usage ends the process with EXIT_USAGE and a message that names the
 * argument. */
#ifndef MAIN_COMMAND_H
#define MAIN_COMMAND_H

#include <argp.h>

#include "config.h"
#include "store/conn.h"

enum { COMMAND_WORDS_MAX = 64 };

/* What was given. A command embeds it as the first member of its own struct. */
struct arguments {
    struct config_flags flags;           /* --config, --database, --endpoint and so on */
    const char *word[COMMAND_WORDS_MAX]; /* in order; unused ones are NULL */
    int words;
    bool json, wide;                /* --json, --wide, where the command lists them */
    const char *metadata, *account; /* --metadata, --account, the same */
    const char *columns; /* those of its table, as in struct command; set by the parser */
    const char *nothing; /* what to say on stderr in place of a table without rows; NULL: nothing */
};

struct command {
    const char *name, *what;           /* one word; what it does, in one line */
    int (*run)(int argc, char **argv); /* parses its arguments and returns an exit code */
    /* In place of `run`: a statement of main/sql, whose parameters are the command's words or,
     * where it takes none, --account; and how its result is printed. `nothing` as in struct
     * arguments. */
    const char *sql;
    void (*print)(void *arg, const struct conn_result *r);
    const char *nothing;
    const struct argp_option *options; /* its own; NULL: none */
    /* Takes one of its own options; ARGP_ERR_UNKNOWN: this is none of them. NULL: there are none
     * but those of COMMAND_OPTION_*, which are taken here. */
    error_t (*option)(struct arguments *a, int key, char *arg, struct argp_state *state);
    /* Checks what must hold of all arguments together, after the last one. May be NULL. */
    void (*complete)(struct arguments *a, struct argp_state *state);
    int words_min, words_max;
    const char *missing; /* what to say where fewer words were given */
    const char *args_doc, *doc;
    bool local;       /* reads no configuration: it has its own options alone */
    const char *role; /* of the database, that its login needs; NULL: txrelay_follower */
    unsigned without; /* COMMAND_WITHOUT_*: common options that it has no use for */
    /* What its table shows without --wide: names of columns, each "name" or "title=name|name", the
     * first that is not NULL. NULL: all of them. */
    const char *columns;
};

/* All of them, in the order of the help; NULL ends the list (commands.c). The manual pages and the
 * shells' completions are made from it (describe.c). */
extern const struct command *const commands[];
extern const struct command command_run, command_migrate, command_enqueue, command_encode,
    command_decode, command_status, command_tail, command_wait, command_cancel, command_bump,
    command_history, command_accounts, command_blocked, command_policy, command_keys, command_drain,
    command_check, command_register, command_pause, command_resume, command_reconcile,
    command_retry, command_top, command_audit, command_health, command_metrics, command_feed,
    command_token, command_webhook, command_sites;

enum {
    COMMAND_WITHOUT_DATABASE = 1,
    COMMAND_WITHOUT_CHAIN = 2,
    COMMAND_WITHOUT_NAME = 4,
    COMMAND_WITHOUT_CONTROL = 8,
    /* The database alone: no node and no relay is asked. */
    COMMAND_DATABASE_ONLY = COMMAND_WITHOUT_CHAIN | COMMAND_WITHOUT_NAME | COMMAND_WITHOUT_CONTROL
};

/* Every option that it takes, but --help and its like: its own, then those of all commands. */
void command_each_option(const struct command *c,
                         void (*each)(void *arg, const struct argp_option *option), void *arg);

/* Options of several commands; their values are in struct arguments. */
#define COMMAND_OPTION_JSON                                                                        \
    {                                                                                              \
        "json", 'j', NULL, 0, "JSON lines", 0                                                      \
    }
#define COMMAND_OPTION_WIDE                                                                        \
    {                                                                                              \
        "wide", 'w', NULL, 0, "every column, in whatever width", 0                                 \
    }
#define COMMAND_OPTION_ACCOUNT                                                                     \
    {                                                                                              \
        "account", 'a', "ACCOUNT", 0, "only this account: alias, 0x id or address", 0              \
    }
enum { COMMAND_KEY_NODE = 900 }; /* argp keys from here on have no letter */
#define COMMAND_OPTIONS_METADATA                                                                   \
    {"node", COMMAND_KEY_NODE, "URL[,URL]", 0, "the chain's node: the same as --endpoint", 0},     \
    {                                                                                              \
        "metadata", 'm', "FILE", 0,                                                                \
            "the chain's metadata instead of a node: SCALE, 0x, or a node's answer in JSON", 0     \
    }

/* Runs the command; argv[0] is its name. Returns an exit code. */
int command_execute(const struct command *c, int argc, char **argv);

/* Reads argv into *a. Does not return on wrong usage. */
void command_parse(const struct command *c, int argc, char **argv, struct arguments *a);

/* The same, then loads the configuration. 0, or an exit code after the reason was printed. */
int command_start(const struct command *c, int argc, char **argv, struct arguments *a,
                  bool need_database, struct config *ret_config);

/* For struct command: the one word is a transaction's id. */
#define COMMAND_ONE_ID                                                                             \
    .words_min = 1, .words_max = 1,                                                                \
    .missing = "the id is missing: give the number that enqueue printed", .args_doc = "ID"
/* Every word as a transaction id: exits on anything else. For `complete`. */
void command_check_id(struct arguments *a, struct argp_state *state);
/* The value of an option that is a whole number in this range: exits on anything else. */
long long command_number(struct argp_state *state, const char *option, const char *text,
                         long long least, long long most);

/* The value of an option that is one of these words (NULL ends them), or a time: the same. */
void command_word(struct argp_state *state, const char *option, const char *word,
                  const char *const *names);
/* The same of each word of a list with commas. */
void command_words(struct argp_state *state, const char *option, const char *list,
                   const char *const *names);
extern const char *const command_outcomes[]; /* of transactions, for these two */
void command_time(struct argp_state *state, const char *option, const char *text);
void command_amount(struct argp_state *state, const char *option, const char *text);  /* 128 bits */
void command_address(struct argp_state *state, const char *option, const char *text); /* control */

bool command_is_number(const char *text, bool negative); /* digits; a sign where that is allowed */

#endif

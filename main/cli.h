/* What the commands share: the configuration, one-shot SQL over the loop, the exit codes. */
#ifndef MAIN_CLI_H
#define MAIN_CLI_H

#include <stdio.h>

#include "base/buf.h"
#include "chain/codec/metadata.h"
#include "config.h"
#include "relay/service.h"
#include "store/conn.h"

struct arguments; /* command.h */

/* LATE, ELSE and UNKNOWN are those of wait: timeout, another outcome than the expected one, an
 * outcome that is not known. audit exits with ELSE if it found something wrong. */
enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_LATE = 3,
    EXIT_ELSE = 4,
    EXIT_UNKNOWN = 5
};

struct command;
/* What runs, for messages that name it and the role that it needs. */
void cli_begin(const struct command *c);
/* "txrelay: text" on stderr, with the way out where the database's own words have none;
 * EXIT_FAILED */
int cli_fail(const struct err *err);
/* The same for values that only the database can judge, such as times: where it refuses one of
 * them, the option is named and it is wrong usage. text NULL: not given. */
struct cli_value {
    const char *flag, *text, *must; /* "it must be a " must */
};
int cli_fail_value(const struct err *err, const struct cli_value *values, size_t count);
/* What cli_fail prints: the text, and the way out where the text has none. */
void cli_put_err(struct buf *out, const struct err *err);
/* Call before a key is read: keeps secrets out of core files and our memory from other processes of
 * this user. */
void cli_harden(void);
int cli_load(const struct config_flags *flags, bool need_database,
             struct config *ret);      /* 0, or an exit code (already reported) */
const char *cli_sql(const char *file); /* text of main/sql/<file> */

/* Run one statement and print or inspect the result in `row`; 0 or an error. Blocks on a loop of
 * its own. */
int cli_query(const char *dsn, const char *sql, int nparams, const struct conn_param *params,
              void (*rows)(void *arg, const struct conn_result *r), void *arg, struct err *err);
/* The same with a statement of main/sql against the configuration's database; frees the
 * configuration and returns an exit code. */
int cli_run_sql(struct config *config, const char *file, int nparams,
                const struct conn_param *params,
                void (*rows)(void *arg, const struct conn_result *r), void *arg);
/* The same for the transaction named by the first argument. Without a row it prints "there is no
 * <what> <id>: <hint>" and returns EXIT_FAILED. `rows` gets the arguments; `hint` may be NULL. */
int cli_run_found(struct arguments *a, struct config *config, const char *file,
                  void (*rows)(void *arg, const struct conn_result *r), const char *what,
                  const char *hint);
/* One JSON line to a relay's control endpoint, its answer line to the callback. */
int cli_control(const char *address, const char *line, void (*answer)(void *arg, const char *line),
                void *arg, struct err *err);

struct conn_param cli_text(const char *text); /* NULL: SQL NULL */

/* Passes the chain's metadata to `use`, which returns the exit code. It comes from the file, or
 * (NULL) from a node of the configuration. */
int cli_with_metadata(const char *file, const struct config *config,
                      int (*use)(void *arg, const struct metadata *md), void *arg);
int cli_read(FILE *f, const char *name, struct buf *out, struct err *err); /* to the end; bounded */
/* Enqueues without options and prints the id. */
int cli_enqueue(const char *dsn, const char *account, const struct buf *call);

/* A reader's report of its view on stderr; err is set if it is not live. */
enum { CLI_STALE_MS = 10000 };
void cli_follow_state(const char *command, bool live, uint64_t age_ms, const struct err *err);

/* Keys and settings of a configuration as the service wants them. */
int cli_service_config(const struct config *c, struct service_config *ret, struct err *err);
/* The same but for the accounts and their keys. */
int cli_service_values(const struct config *c, struct service_config *ret, struct err *err);
void cli_service_config_done(struct service_config *c);
/* For commands that run a service: keep secrets, load the configuration, and make the service's of
 * it. 0, or an exit code after the reason was printed. */
int cli_service_load(const struct config_flags *flags, bool need_database, struct config *ret,
                     struct service_config *ret_service);

/* A service from its start to its end, on a loop of its own. */
struct cli_service {
    struct loop *loop;
    struct service *service;
    bool stopping;
    void (*stopped)(void *arg); /* close what is left on the loop */
    void *arg;
};
/* false: err says why. The service takes the keys over. */
bool cli_service_new(struct cli_service *s, struct service_config *c, struct err *err);
void cli_service_stop(struct cli_service *s); /* once; further calls change nothing */
void cli_service_free(struct cli_service *s); /* after loop_run, or a failure of cli_service_new */

/* A result on stdout. `columns` as in struct command: the table is cut to 100 characters; NULL or
 * wide: all of it. JSON lines have numbers, booleans and ISO 8601 times by the type of the column;
 * amounts are text. */
void cli_print_table(const struct conn_result *r, const char *columns, bool wide);
void cli_print_json(const struct conn_result *r);
/* arg: struct arguments, which says in which form. A record has a line for each value. */
void cli_print_rows(void *arg, const struct conn_result *r);
void cli_print_record(void *arg, const struct conn_result *r);
void cli_print_value(void *arg, const struct conn_result *r); /* the first cell */

#endif

/* txrelay wait: wait until a transaction has reached a stage, or has ended in another way.
 *
 * LISTEN with catch-up delivers the statuses. Two questions need a connection of their own: whether
 * a transaction without a row waits in the outbox or is unknown, and whether the bytes in a block
 * are the transaction's own or a filler's. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/log.h"
#include "cli.h"
#include "command.h"
#include "listen/listen.h"

enum goal { GOAL_FINALIZED, GOAL_IN_BLOCK, GOAL_ENDED };
static const char *const goal_names[] = {"finalized", "in_block", "ended"};

enum { OPT_TIMEOUT = 1000 };
enum verdict { GO_ON, REACHED, ENDED_ELSE, ENDED_UNKNOWN, IN_SOME_BLOCK };

struct wait {
    struct arguments args;
    int64_t id;
    enum goal goal;
    double timeout_s; /* 0: none */
    const char *dsn;
    struct loop *loop;
    struct listen *listen;
    struct loop_timer *timer;
    struct loop_signal *term, *interrupt;
    struct conn *conn; /* of a question */
    struct conn_query query;
    const char *question; /* main/sql; NULL: none is open */
    const char *next;     /* to be sent after the present answer */
    char hash[67];        /* of the last delivered bytes */
    bool heard;           /* any status */
    bool live;
    struct buf last; /* the last status, as a line */
    const char *result;
    int exit_code;
};

/* ---- the report at the end ---- */

static void part_closed(void *arg)
{
    (void)arg;
}

static void end(struct wait *w, const char *result, int exit_code)
{
    if (w->result)
        return;
    w->result = result;
    w->exit_code = exit_code;
    w->timer = loop_timer_close(w->timer);
    w->term = loop_signal_close(w->term);
    w->interrupt = loop_signal_close(w->interrupt);
    if (w->conn)
        conn_close(w->conn, part_closed, w);
    listen_close(w->listen, part_closed, w);
}

/* Prints the reason why the transaction has not ended within the time-out. */
static void print_why(void *arg, const struct conn_result *r)
{
    struct wait *w = arg;
    struct buf why = {0};
    if (!conn_result_rows(r))
        return;
    buf_put_plain(&why, conn_result_get(r, 0, 0, NULL), strlen(conn_result_get(r, 0, 0, NULL)));
    fprintf(stderr,
            "txrelay: why transaction %lld is not done: %s (docs/obstacles.md explains it)\n",
            (long long)w->id, buf_str(&why));
    buf_done(&why);
}

static void print_reason(struct wait *w)
{
    struct err err;
    char id[24];
    snprintf(id, sizeof(id), "%lld", (long long)w->id);
    struct conn_param param = cli_text(id);
    cli_query(w->dsn, cli_sql("wait_why.sql"), 1, &param, print_why, w, &err); /* or nothing */
}

static void print_end(struct wait *w)
{
    const char *last = w->heard       ? buf_str(&w->last)
                       : w->args.json ? "null"
                                      : "no status is known yet";
    if (w->exit_code == EXIT_FAILED)
        return; /* told */
    if (w->args.json)
        printf("{\"result\":\"%s\",\"for\":\"%s\",\"id\":%lld,\"status\":%s}\n", w->result,
               goal_names[w->goal], (long long)w->id, last);
    else
        puts(last);
    fflush(stdout); /* the texts below refer to it */
    if (w->exit_code == EXIT_LATE)
        fprintf(stderr, "txrelay: transaction %lld is not %s after %g s%s\n", (long long)w->id,
                goal_names[w->goal], w->timeout_s,
                w->live ? "" : " in the last known view, which is stale");
    if (w->exit_code == EXIT_LATE && w->live)
        print_reason(w);
    else if (w->exit_code == EXIT_ELSE)
        fprintf(stderr,
                "txrelay: transaction %lld ended, and will not be %s: its outcome is above\n",
                (long long)w->id, goal_names[w->goal]);
    else if (w->exit_code == EXIT_UNKNOWN)
        fprintf(stderr, "txrelay: transaction %lld ended as unknown: it may have taken effect\n",
                (long long)w->id);
}

/* ---- questions ---- */

static void ask(struct wait *w, const char *question);

static void on_question_closed(void *arg)
{
    struct wait *w = arg;
    const char *next = w->next;
    w->question = w->next = NULL;
    if (!w->result && next)
        ask(w, next);
}

static void end_question(struct wait *w)
{
    struct conn *c = w->conn;
    w->conn = NULL;
    conn_close(c, on_question_closed, w);
}

static void judge_known(struct wait *w, const struct conn_result *r)
{
    if (w->heard || conn_result_rows(r) > 0)
        return;
    fprintf(stderr,
            "txrelay: there is no transaction %lld (records are kept for the retention time; a "
            "transaction that was not committed does not exist)\n",
            (long long)w->id);
    end(w, "unknown", EXIT_FAILED);
}

/* Only the table ends the wait: the notification may be old by now. */
static void judge_in_block(struct wait *w, const struct conn_result *r)
{
    bool there = conn_result_rows(r) == 1, own = there && *conn_result_get(r, 0, 0, NULL) == 'f';
    if (own && !w->next) /* other bytes may have been delivered since */
        end(w, "reached", EXIT_OK);
    else if (!there)
        log_info("wait.not_in_block",
                 "text=\"it was notified to be in a block, and the table does not have it there\"");
    else if (!own)
        log_info("wait.filler",
                 "text=\"the bytes in the block are a filler that replaced the transaction\"");
}

static void on_answer(struct conn_query *q, const struct conn_result *r)
{
    struct wait *w = CONTAINER_OF(q, struct wait, query);
    if (w->result || !w->conn)
        return;
    if (r && !strcmp(w->question, "wait_known.sql"))
        judge_known(w, r);
    else if (r)
        judge_in_block(w, r);
    else if (err_class(q->err.code) == ERR_CLASS_PERMANENT)
        end(w, "failed", cli_fail(&q->err));
    if (!w->result && r)
        end_question(w); /* else it is asked again when the connection is back */
}

static void on_question_up(void *arg)
{
    struct wait *w = arg;
    char id[24];
    bool known = !strcmp(w->question, "wait_known.sql");
    snprintf(id, sizeof(id), "%lld", (long long)w->id);
    struct conn_param params[] = {cli_text(id), cli_text(w->hash)};
    if (w->next == w->question)
        w->next = NULL;
    conn_query_start(w->conn, &w->query, NULL, cli_sql(w->question), known ? 1 : 2, params, 0,
                     on_answer);
}

/* It reconnects by itself; the listener reports that the database is unreachable. */
static void on_question_down(void *arg, const struct err *err)
{
    struct wait *w = arg;
    if (!w->result && w->conn && err_class(err->code) == ERR_CLASS_PERMANENT)
        end(w, "failed", cli_fail(err));
}

static void ask(struct wait *w, const char *question)
{
    if (w->question) {
        w->next = question;
        return;
    }
    struct conn_config config = {.dsn = w->dsn,
                                 .name = "txrelay wait",
                                 .on_up = on_question_up,
                                 .on_down = on_question_down,
                                 .arg = w};
    w->question = question;
    w->conn = conn_new(w->loop, &config);
    conn_open(w->conn);
}

/* ---- what is heard ---- */

static enum verdict judge(enum goal goal, const struct listen_event *ev)
{
    if (ev->kind == LISTEN_FINISHED && goal != GOAL_ENDED && !strcmp(ev->outcome, "unknown"))
        return ENDED_UNKNOWN;
    if (ev->kind == LISTEN_FINISHED)
        return goal == GOAL_ENDED || !strcmp(ev->outcome, "ok") ? REACHED : ENDED_ELSE;
    if (goal != GOAL_IN_BLOCK || ev->kind == LISTEN_REMOVED)
        return GO_ON;
    bool in = !strcmp(ev->state, "in_block") || !strcmp(ev->state, "finality_timeout") ||
              !strcmp(ev->state, "finalized");
    return in ? IN_SOME_BLOCK : GO_ON;
}

static void on_event(void *arg, const struct listen_event *ev)
{
    struct wait *w = arg;
    struct buf hash = {0};
    w->heard = true;
    buf_clear(&w->last);
    if (w->args.json)
        listen_format_json(ev, &w->last);
    else
        listen_format_human(ev, &w->last);
    hex_put_0x(&hash, ev->hash, 32);
    snprintf(w->hash, sizeof(w->hash), "%s", buf_str(&hash));
    buf_done(&hash);
    enum verdict v = judge(w->goal, ev);
    if (v == REACHED)
        end(w, "reached", EXIT_OK);
    else if (v == ENDED_ELSE)
        end(w, "ended", EXIT_ELSE);
    else if (v == ENDED_UNKNOWN)
        end(w, "unknown", EXIT_UNKNOWN);
    else if (v == IN_SOME_BLOCK)
        ask(w, "wait_in_block.sql");
}

static void on_state(void *arg, bool live, uint64_t since_ms, const struct err *err)
{
    struct wait *w = arg;
    w->live = live;
    if (!live && err_class(err->code) == ERR_CLASS_PERMANENT) {
        end(w, "failed", cli_fail(err));
        return;
    }
    cli_follow_state("wait", live, live ? 0 : loop_now_ms(w->loop) - since_ms, err);
    if (live && !w->heard)
        ask(w, "wait_known.sql");
}

static void on_late(void *arg)
{
    end(arg, "timeout", EXIT_LATE);
}

static void on_signal(void *arg, int signum)
{
    (void)signum;
    fputs("txrelay: interrupted\n", stderr);
    end(arg, "interrupted", EXIT_FAILED);
}

/* ---- the command ---- */

static error_t parse_goal(struct wait *w, const char *arg, struct argp_state *state)
{
    for (size_t i = 0; i < ARRAY_LEN(goal_names); i++)
        if (!strcmp(arg, goal_names[i])) {
            w->goal = (enum goal)i;
            return 0;
        }
    argp_error(state, "--for is '%s'; it must be one of: finalized, in_block, ended", arg);
    return 0;
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct wait *w = (struct wait *)a;
    char *stop = NULL;
    switch (key) {
    case 'f':
        return parse_goal(w, arg, state);
    case OPT_TIMEOUT:
        w->timeout_s = strtod(arg, &stop);
        if (!*arg || *stop || !isfinite(w->timeout_s) || w->timeout_s <= 0 || w->timeout_s > 1e9)
            argp_error(state,
                       "--timeout is '%s'; it must be a number of seconds from 0.001 to 1000000000",
                       arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void complete(struct arguments *a, struct argp_state *state)
{
    struct wait *w = (struct wait *)a;
    command_check_id(a, state);
    w->id = strtoll(a->word[0], NULL, 10);
}

static void run(struct wait *w)
{
    struct listen_config listen = {.dsn = w->dsn,
                                   .name = "txrelay wait",
                                   .id = w->id,
                                   .since_us = 1, /* it may have ended at any time */
                                   .stale_ms = CLI_STALE_MS,
                                   .on_event = on_event,
                                   .on_state = on_state,
                                   .arg = w};
    w->loop = loop_new();
    w->timer = loop_timer_new(w->loop, on_late, w);
    if (w->timeout_s > 0)
        loop_timer_at(w->timer, loop_now_ms(w->loop) + (uint64_t)(w->timeout_s * 1000));
    w->listen = listen_new(w->loop, &listen);
    w->term = loop_signal_new(w->loop, SIGTERM, on_signal, w);
    w->interrupt = loop_signal_new(w->loop, SIGINT, on_signal, w);
    listen_open(w->listen);
    loop_run(w->loop);
    loop_free(w->loop);
}

static const struct argp_option options[] = {
    {"for", 'f', "WHAT", 0, "finalized (default), in_block or ended", 0},
    {"timeout", OPT_TIMEOUT, "SECONDS", 0, "give up after this many seconds; default: never", 0},
    {"json", 'j', NULL, 0, "print the outcome as one JSON line", 0},
    {0}};

static int run_wait(int argc, char **argv)
{
    struct wait w = {0};
    struct config config;
    int rc = command_start(&command_wait, argc, argv, &w.args, true, &config);
    if (rc)
        return rc;
    const struct config_database *db = &config.file->database;
    w.dsn = db->listen_url ? db->listen_url : db->url;
    run(&w);
    print_end(&w);
    buf_done(&w.last);
    config_done(&config);
    return w.exit_code;
}

const struct command command_wait = {
    .name = "wait",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_wait,
    .what = "wait until a transaction is finalized, in a block, or ended",
    .options = options,
    .option = option,
    .complete = complete,
    COMMAND_ONE_ID,
    .doc = "Wait until a transaction is finalized with effect, is in a block (which may be "
           "withdrawn), or has ended in whatever way. Exit status: 0 it did; 3 not within the "
           "timeout; 4 it ended otherwise (dispatch_error, cancelled, expired, failed, "
           "usurped; never for --for ended); 5 its nonce is used and no endpoint can show whether "
           "it took effect (unknown; never for --for ended); 1 the "
           "database refuses, or there is no such transaction; 2 wrong usage."};

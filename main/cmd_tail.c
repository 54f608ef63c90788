/* txrelay tail: statuses as they arrive, until it is stopped. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/host.h"
#include "base/log.h"
#include "cli.h"
#include "command.h"
#include "listen/listen.h"
#include "tail_http.h"

struct tail {
    struct arguments args;
    const char *account, *http, *token_file, *ca, *cert, *cert_key, *since;
    int64_t id, since_us;
    struct loop *loop;
    struct listen *listen;
    struct loop_signal *term, *interrupt;
    struct buf line;
    int exit_code;
    bool stopping;
};

enum { OPT_HTTP = 1000, OPT_TOKEN_FILE, OPT_CA, OPT_CERT, OPT_CERT_KEY };

/* In cleartext the token does not leave the machine. */
static void take_http(struct tail *t, char *arg, struct argp_state *state)
{
    size_t len;
    const char *host = host_of_url(arg, &len);
    bool clear = !strncmp(arg, "http://", 7);
    if (!clear && strncmp(arg, "unix:/", 6) != 0 && strncmp(arg, "https://", 8) != 0)
        argp_error(state,
                   "--http '%s' is none of unix:/path, http://HOST:PORT and https://HOST:PORT",
                   arg);
    if (clear && !host_is_loopback(host, len))
        argp_error(state, "--http '%s' would send the token in cleartext: use https://", arg);
    t->http = arg;
}

static error_t option(struct arguments *a, int key, char *arg, struct argp_state *state)
{
    struct tail *t = (struct tail *)a;
    switch (key) {
    case 'a':
        t->account = arg;
        return 0;
    case 'i':
        t->id = command_number(state, "--id", arg, 1, INT64_MAX);
        return 0;
    case OPT_HTTP:
        take_http(t, arg, state);
        return 0;
    case OPT_CA:
        t->ca = arg;
        return 0;
    case OPT_CERT:
        t->cert = arg;
        return 0;
    case OPT_CERT_KEY:
        t->cert_key = arg;
        return 0;
    case OPT_TOKEN_FILE:
        t->token_file = arg;
        return 0;
    case 's':
        t->since = arg;
        if (!listen_since_parse(arg, &t->since_us))
            argp_error(state,
                       "--since '%s' is neither a position of a line before, nor a time like "
                       "2026-11-27T22:00:00.123456Z or seconds since 1970",
                       arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void closed(void *arg)
{
    struct tail *t = arg;
    t->term = loop_signal_close(t->term);
    t->interrupt = loop_signal_close(t->interrupt);
}

static void stop(struct tail *t)
{
    if (t->stopping)
        return;
    t->stopping = true;
    listen_close(t->listen, closed, t);
}

static void print_line(struct tail *t)
{
    buf_put_u8(&t->line, '\n');
    fwrite(t->line.data, 1, t->line.len, stdout);
    buf_clear(&t->line);
    if (fflush(stdout) != 0) /* the reader is gone */
        stop(t);
}

static void on_event(void *arg, const struct listen_event *event)
{
    struct tail *t = arg;
    if (t->args.json)
        listen_format_json(event, &t->line);
    else
        listen_format_human(event, &t->line);
    print_line(t);
}

static void on_state(void *arg, bool live, uint64_t since_ms, const struct err *err)
{
    struct tail *t = arg;
    uint64_t age_ms = live ? 0 : loop_now_ms(t->loop) - since_ms;
    if (t->args.json) {
        listen_format_state_json(listen_position(t->listen), age_ms, live ? NULL : err, &t->line);
        print_line(t);
    }
    if (!live && err_class(err->code) == ERR_CLASS_PERMANENT) {
        t->exit_code = cli_fail(err);
        stop(t);
    } else {
        cli_follow_state("tail", live, age_ms, err);
    }
}

static void on_gap(void *arg, int64_t from_us, int64_t to_us)
{
    struct tail *t = arg;
    log_error("tail.gap", "text=\"the position is older than the retention horizon: finished "
                          "transactions may be missing\"");
    if (!t->args.json)
        return;
    listen_format_gap_json(from_us, to_us, &t->line);
    print_line(t);
}

static void on_signal(void *arg, int signum)
{
    (void)signum;
    stop(arg);
}

static const struct argp_option options[] = {
    {"account", 'a', "ACCOUNT", 0, "only this one: alias, 0x id or address", 0},
    {"id", 'i', "ID", 0, "only this transaction", 0},
    {"since", 's', "POSITION", 0,
     "resume after the line with this position; or a time of the database's clock: also what "
     "finished since then",
     0},
    {"http", OPT_HTTP, "ADDRESS", 0,
     "read from a relay's HTTP interface and not from the database: unix:/path, https://HOST:PORT, "
     "or http://HOST:PORT of this machine",
     0},
    {"token-file", OPT_TOKEN_FILE, "FILE", 0, "with --http: the file that has the token", 0},
    {"ca", OPT_CA, "FILE", 0,
     "https: who signed the relay's certificate (PEM; default: one that the system trusts)", 0},
    {"cert", OPT_CERT, "FILE", 0, "https: the own certificate (PEM), for relays that demand one",
     0},
    {"cert-key", OPT_CERT_KEY, "FILE", 0, "https: the key of --cert (PEM)", 0},
    COMMAND_OPTION_JSON,
    {0}};

static void complete(struct arguments *a, struct argp_state *state)
{
    const struct tail *t = (const struct tail *)a;
    if (!t->http != !t->token_file)
        argp_error(state, "--http and --token-file belong together");
    if (!t->cert != !t->cert_key)
        argp_error(state, "--cert and --cert-key belong together");
    if ((t->ca || t->cert) && (!t->http || strncmp(t->http, "https://", 8) != 0))
        argp_error(state, "--ca and --cert are for --http https://HOST:PORT");
}

static int run_tail(int argc, char **argv)
{
    struct tail t = {0};
    struct config config;
    command_parse(&command_tail, argc, argv, &t.args);
    int rc = cli_load(&t.args.flags, !t.http, &config);
    if (rc)
        return rc;
    if (t.http) {
        rc = tail_http(&(struct tail_http_config){.address = t.http,
                                                  .token_file = t.token_file,
                                                  .ca_file = t.ca,
                                                  .cert_file = t.cert,
                                                  .key_file = t.cert_key,
                                                  .account = t.account,
                                                  .id = t.id,
                                                  .since = t.since,
                                                  .json = t.args.json});
        config_done(&config);
        return rc;
    }
    const struct config_database *db = &config.file->database;
    struct listen_config listen = {.dsn = db->listen_url ? db->listen_url : db->url,
                                   .name = "txrelay tail",
                                   .account = t.account,
                                   .id = t.id,
                                   .since_us = t.since_us,
                                   .stale_ms = CLI_STALE_MS,
                                   .on_event = on_event,
                                   .on_gap = on_gap,
                                   .on_state = on_state,
                                   .arg = &t};
    t.loop = loop_new();
    t.listen = listen_new(t.loop, &listen);
    t.term = loop_signal_new(t.loop, SIGTERM, on_signal, &t);
    t.interrupt = loop_signal_new(t.loop, SIGINT, on_signal, &t);
    listen_open(t.listen);
    loop_run(t.loop);
    loop_free(t.loop);
    buf_done(&t.line);
    config_done(&config);
    return t.exit_code;
}

const struct command command_tail = {
    .name = "tail",
    .without = COMMAND_DATABASE_ONLY,
    .run = run_tail,
    .what = "print statuses as they arrive",
    .options = options,
    .option = option,
    .complete = complete,
    .doc = "Print statuses as they arrive: first the pending transactions, then every change, "
           "each at least once and in order per transaction. It reconnects after a lost "
           "connection and reads what it missed. With --json every line has a position for "
           "--since; the line \"live\" means that all "
           "was printed, \"stale\" that the database is unreachable, with the age of the view. "
           "With --http "
           "the same lines come from a relay, by a token with the scope read; they begin now, or "
           "after "
           "--since."};

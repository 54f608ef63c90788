/* txrelay run: one relay until SIGTERM or SIGINT. SIGHUP reads the configuration again. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli.h"
#include "command.h"
#include "feed/serve.h"
#include "hook/serve.h"
#include "http/serve.h"
#include "relay/progress.h"
#include "site/serve.h"
#include "supervisor.h"
#include "warnings.h"

enum {
    STATUS_MS = 1000
}; /* how often the start is looked at, and the supervisor's line made anew */

struct running {
    struct cli_service run;
    struct supervisor *supervisor;
    struct loop_timer *timer;
    struct loop_signal *term, *interrupt, *hangup;
    const struct config_flags *flags;
    const struct config *config;
    struct config latest; /* of the last reload; its file is NULL: there was none */
    struct feed_serve feeds;
    struct http_serve http;
    struct hook_serve webhooks;
    struct site_serve sites;
    int exit_code;
    bool terminal; /* the log goes to one */
};

static void stopped(void *arg)
{
    struct running *r = arg;
    r->term = loop_signal_close(r->term);
    r->interrupt = loop_signal_close(r->interrupt);
    r->hangup = loop_signal_close(r->hangup);
    r->timer = loop_timer_close(r->timer);
    r->supervisor = supervisor_free(r->supervisor);
}

static void stop(struct running *r)
{
    if (!r->run.stopping)
        supervisor_stopping(r->supervisor);
    cli_service_stop(&r->run);
}

static void on_signal(void *arg, int signum)
{
    log_info("relay.stopping", "signal=%s", strsignal(signum));
    stop(arg);
}

static void on_drain(void *arg)
{
    stop(arg);
}

static void on_exit_(void *arg, const struct err *err)
{
    struct running *r = arg;
    struct buf text = {0};
    cli_put_err(&text, err);
    log_error("relay.failed", "code=%s text=\"%s\"", err_name(err->code), buf_str(&text));
    buf_done(&text);
    r->exit_code = EXIT_FAILED;
    stop(r);
}

static void warn(void *arg, const char *what, const char *text)
{
    (void)arg;
    log_warn("config.warning", "about=%s text=\"%s\"", what, text);
}

static void warn_feeds(void *arg, const char *text)
{
    warn(arg, "feeds", text);
}

static void warn_http(void *arg, const char *text)
{
    warn(arg, "http", text);
}

/* ---- the supervisor's line ---- */

static void on_timer(void *arg)
{
    struct running *r = arg;
    char text[PROGRESS_TEXT + 200];
    service_look_at_start(r->run.service);
    service_line(r->run.service, text, sizeof(text));
    supervisor_status(r->supervisor, text);
    loop_timer_at(r->timer, loop_now_ms(r->run.loop) + STATUS_MS);
}

/* ---- reload ---- */

static void on_change(void *arg, const char *key)
{
    (void)arg;
    if (strncmp(key, "log_", strlen("log_")) != 0)
        log_warn("config.restart_needed",
                 "key=%s text=\"the value differs from the one in use, which stays until the "
                 "relay is restarted\"",
                 key);
}

static int fill_entries(struct running *r, struct service_config *service, struct err *err)
{
    const struct config_file *f = r->config->file;
    if (feed_serve_fill(&r->feeds, f, service, err) || http_serve_fill(&r->http, f, service, err) ||
        hook_serve_fill(&r->webhooks, f, service, err) ||
        site_serve_fill(&r->sites, f, service, err))
        return err->code;
    return 0;
}

/* All that a start would refuse, but what is wrong with the accounts' keys: to read them takes
 * long. */
static int would_start(const struct config *next, struct err *err)
{
    struct service_config service;
    struct running r = {.config = next};
    int rc = cli_service_values(next, &service, err);
    if (rc)
        return rc;
    rc = fill_entries(&r, &service, err);
    site_serve_done(&r.sites);
    cli_service_config_done(&service);
    return rc;
}

/* *next is loaded and could be started with; else nothing of it is left. */
static int load_next(struct running *r, struct config *next, struct err *err)
{
    if (config_load(r->flags, next, err))
        return err->code;
    if (would_start(next, err)) {
        config_use_log(r->latest.file ? r->latest.file : r->config->file);
        config_done(next);
        return err->code;
    }
    return 0;
}

static void take(struct running *r, const struct config *next)
{
    log_info("config.reloaded", "file=%s log_level=%s", next->path ? next->path : "",
             next->file->log_level ? next->file->log_level : "info");
    config_changes(r->config, next, on_change, NULL);
    feed_serve_reload(&r->feeds);
    http_serve_reload(&r->http);
    hook_serve_reload(&r->webhooks);
    site_serve_reload(&r->sites, r->run.service);
}

/* What the log looks like changes at once, and the files of doors are read again. Every other value
 * belongs to something that lives as long as the relay, so a reload names it and keeps every lead.
 * Of a configuration that is refused, nothing is taken. */
static void reload(struct running *r)
{
    struct config next;
    struct err err = {0};
    supervisor_reloading(r->supervisor);
    if (load_next(r, &next, &err)) {
        log_error("config.reload_failed", "code=%s text=\"%s\"", err_name(err.code), err.text);
    } else {
        take(r, &next);
        config_done(&r->latest);
        r->latest = next;
    }
    supervisor_ready(r->supervisor);
}

/* A terminal sends it when it is closed; nothing would stop the relay later. */
static void on_hangup(void *arg, int signum)
{
    struct running *r = arg;
    if (r->terminal && !isatty(STDERR_FILENO))
        on_signal(r, signum);
    else if (!r->run.stopping)
        reload(r);
}

/* ---- the command ---- */

static void begin(struct running *r)
{
    r->term = loop_signal_new(r->run.loop, SIGTERM, on_signal, r);
    r->interrupt = loop_signal_new(r->run.loop, SIGINT, on_signal, r);
    r->hangup = loop_signal_new(r->run.loop, SIGHUP, on_hangup, r);
    r->supervisor = supervisor_new(r->run.loop);
    r->timer = loop_timer_new(r->run.loop, on_timer, r);
    loop_timer_at(r->timer, loop_now_ms(r->run.loop));
    service_open(r->run.service);
    supervisor_ready(r->supervisor); /* it waits for the database and the chain by itself */
}

/* Feeds, the HTTP interface, webhooks, links to other sites. What their files say is wrong keeps
 * them closed and the relay leading: it logs that, and tries again. */
static int prepare_entries(struct running *r, struct service_config *service, struct err *err)
{
    const struct config_file *f = r->config->file;
    struct buf shown = {0};
    struct err later = {0};
    if (fill_entries(r, service, err))
        return err->code;
    feed_serve_check(f, &shown, warn_feeds, NULL, &later);
    err_clear(&later);
    http_serve_check(f, &shown, warn_http, NULL, &later);
    buf_done(&shown);
    return 0;
}

static int run_run(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct service_config service;
    struct err err = {0};
    command_parse(&command_run, argc, argv, &a);
    int rc = cli_service_load(&a.flags, false, &config, &service);
    if (rc)
        return rc;
    warnings_each(config.file, &service, warn, NULL);
    struct running r = {.run = {.stopped = stopped, .arg = &r},
                        .flags = &a.flags,
                        .config = &config,
                        .terminal = isatty(STDERR_FILENO) == 1};
    if (prepare_entries(&r, &service, &err)) {
        cli_fail(&err);
        site_serve_done(&r.sites);
        cli_service_config_done(&service);
        config_done(&config);
        return EXIT_USAGE;
    }
    service.on_exit = on_exit_;
    service.on_drain = on_drain;
    service.arg = &r;
    if (cli_service_new(&r.run, &service, &err)) {
        begin(&r);
        loop_run(r.run.loop);
    } else {
        r.exit_code = cli_fail(&err); /* 2 where nothing but another configuration helps */
    }
    cli_service_free(&r.run);
    config_done(&r.latest);
    site_serve_done(&r.sites);
    cli_service_config_done(&service);
    config_done(&config);
    return r.exit_code;
}

const struct command command_run = {
    .name = "run",
    .role = "txrelay_relay",
    .run = run_run,
    .what = "run a relay",
    .doc = "Run a relay. With a database it leads or follows "
           "each account; without one it is standalone and takes JSON lines on standard input. "
           "SIGTERM hands its accounts over and ends it; SIGHUP reads the configuration again."};

/* txrelay run: one relay until SIGTERM or SIGINT. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli.h"
#include "command.h"
#include "warnings.h"

struct running {
    struct loop *loop;
    struct service *service;
    struct loop_signal *term, *interrupt;
    int exit_code;
    bool stopping;
};

static void stopped(void *arg)
{
    struct running *r = arg;
    r->service = NULL;
    r->term = loop_signal_close(r->term);
    r->interrupt = loop_signal_close(r->interrupt);
    loop_stop(r->loop);
}

static void stop(struct running *r)
{
    if (r->stopping)
        return;
    r->stopping = true;
    service_stop(r->service, stopped, r);
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
    r->exit_code = cli_fail(err);
    stop(r);
}

static void warn(void *arg, const char *what, const char *text)
{
    (void)arg;
    log_warn("config.warning", "about=%s text=\"%s\"", what, text);
}

static int run_run(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct service_config service;
    struct err err = {0};
    command_parse(&command_run, argc, argv, &a);
    cli_harden();
    int rc = cli_load(&a.flags, false, &config);
    if (rc)
        return rc;
    if (cli_service_config(&config, &service, &err)) {
        config_done(&config);
        cli_fail(&err);
        return EXIT_USAGE;
    }
    warnings_each(config.file, &service, warn, NULL);
    struct running r = {.loop = loop_new()};
    service.on_exit = on_exit_;
    service.on_drain = on_drain;
    service.arg = &r;
    r.service = service_new(r.loop, &service, &err);
    for (size_t i = 0; i < service.account_count; i++)
        service.accounts[i].key = NULL; /* the service owns them now */
    if (r.service) {
        r.term = loop_signal_new(r.loop, SIGTERM, on_signal, &r);
        r.interrupt = loop_signal_new(r.loop, SIGINT, on_signal, &r);
        service_open(r.service);
        loop_run(r.loop);
    } else {
        r.exit_code = cli_fail(&err);
    }
    loop_free(r.loop);
    cli_service_config_done(&service);
    config_done(&config);
    return r.exit_code;
}

const struct command command_run = {
    .name = "run",
    .run = run_run,
    .what = "run a relay",
    .doc = "Run a relay. With a database it leads or follows "
           "each account; without one it is standalone and takes JSON lines on standard input."};

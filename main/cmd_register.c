/* txrelay register: make the accounts of a configuration known to the database, so that
 * applications can enqueue before the first relay runs. */
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "relay/progress.h"

enum { REGISTER_TIMEOUT_MS = 30000, LOOK_MS = 1000 };

/* What a relay does up to its first bid, by a service that then stops. */
struct registering {
    struct cli_service run;
    struct loop_timer *timer;
    size_t registered;
    uint64_t since; /* when one more account was registered, or the beginning */
    uint64_t said;  /* when it was said what lasts; 0: never */
    struct err err;
};

static void stopped(void *arg)
{
    struct registering *r = arg;
    r->timer = loop_timer_close(r->timer);
}

static void on_registered(void *arg)
{
    struct registering *r = arg;
    cli_service_stop(&r->run);
}

static void on_failed(void *arg, const struct err *err)
{
    struct registering *r = arg;
    if (!r->run.stopping)
        r->err = *err;
    cli_service_stop(&r->run);
}

static void say(struct registering *r, uint64_t now)
{
    char text[PROGRESS_TEXT + 40];
    service_look_at_start(r->run.service);
    service_start_line(r->run.service, text, sizeof(text));
    if (!text[0] || (r->said && now < r->said + PROGRESS_AGAIN_MS))
        return;
    fprintf(stderr, "txrelay: %s\n", text);
    r->said = now;
}

/* The service's warnings on stderr have named what it could not reach. */
static void on_timer(void *arg)
{
    struct registering *r = arg;
    if (r->run.stopping)
        return;
    uint64_t now = loop_now_ms(r->run.loop);
    size_t registered = service_registered(r->run.service);
    r->since = registered > r->registered || !r->since ? now : r->since;
    r->registered = registered;
    say(r, now);
    if (now < r->since + REGISTER_TIMEOUT_MS) {
        loop_timer_at(r->timer, now + LOOK_MS);
        return;
    }
    err_set(&r->err, ERR_TIMEOUT,
            "%zu accounts are registered, and none since %d s: run txrelay check, which tries the "
            "database and every endpoint",
            registered, REGISTER_TIMEOUT_MS / 1000);
    cli_service_stop(&r->run);
}

static int register_accounts(struct service_config *config)
{
    struct registering r = {.run = {.stopped = stopped, .arg = &r}};
    config->control_address = NULL; /* a relay of this configuration may run beside us */
    config->metrics_address = NULL;
    config->on_exit = on_failed;
    config->on_registered = on_registered;
    config->arg = &r;
    if (cli_service_new(&r.run, config, &r.err)) {
        r.timer = loop_timer_new(r.run.loop, on_timer, &r);
        loop_timer_at(r.timer, loop_now_ms(r.run.loop));
        service_open(r.run.service);
        loop_run(r.run.loop);
    }
    cli_service_free(&r.run);
    if (r.err.code)
        return cli_fail(&r.err);
    for (size_t i = 0; i < config->account_count; i++)
        printf("%s\n", config->accounts[i].alias);
    return EXIT_OK;
}

static int run_register(int argc, char **argv)
{
    struct arguments a = {0};
    struct config config;
    struct service_config service;
    command_parse(&command_register, argc, argv, &a);
    if (!a.flags.log_level)
        a.flags.log_level = "warn";
    int rc = cli_service_load(&a.flags, true, &config, &service);
    if (rc)
        return rc;
    rc = register_accounts(&service);
    cli_service_config_done(&service);
    config_done(&config);
    return rc;
}

const struct command command_register = {
    .name = "register",
    .role = "txrelay_relay",
    .without = COMMAND_WITHOUT_CONTROL,
    .run = run_register,
    .what = "make the accounts of the configuration known before the first relay runs",
    .doc = "Register the accounts of the configuration in the database, as a relay does when it "
           "starts, and print their aliases. Applications can enqueue from then on. To register an "
           "account again changes nothing."};

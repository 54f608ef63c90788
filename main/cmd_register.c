/* txrelay register: make the accounts of a configuration known to the database, so that
 * applications can enqueue before the first relay runs. */
#include <stdio.h>

#include "cli.h"
#include "command.h"

enum { REGISTER_TIMEOUT_MS = 30000 };

/* What a relay does up to its first bid, by a service that then stops. */
struct registering {
    struct loop *loop;
    struct service *service;
    struct loop_timer *limit;
    struct err err;
    bool stopping;
};

static void stopped(void *arg)
{
    struct registering *r = arg;
    r->limit = loop_timer_close(r->limit);
    loop_stop(r->loop);
}

static void stop(struct registering *r)
{
    if (r->stopping)
        return;
    r->stopping = true;
    service_stop(r->service, stopped, r);
}

static void on_registered(void *arg)
{
    stop(arg);
}

static void on_failed(void *arg, const struct err *err)
{
    struct registering *r = arg;
    if (!r->stopping)
        r->err = *err;
    stop(r);
}

/* The service's warnings on stderr have named what it could not reach. */
static void on_limit(void *arg)
{
    struct registering *r = arg;
    if (!r->stopping)
        err_set(&r->err, ERR_TIMEOUT,
                "the accounts are not registered after %d s: run txrelay check, which tries the "
                "database and every endpoint",
                REGISTER_TIMEOUT_MS / 1000);
    stop(r);
}

static int register_accounts(struct service_config *config)
{
    struct registering r = {.loop = loop_new()};
    config->control_address = NULL; /* a relay of this configuration may run beside us */
    config->on_exit = on_failed;
    config->on_registered = on_registered;
    config->arg = &r;
    r.service = cli_service_new(r.loop, config, &r.err);
    if (r.service) {
        r.limit = loop_timer_new(r.loop, on_limit, &r);
        loop_timer_at(r.limit, loop_now_ms(r.loop) + REGISTER_TIMEOUT_MS);
        service_open(r.service);
        loop_run(r.loop);
    }
    loop_free(r.loop);
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
    struct err err = {0};
    command_parse(&command_register, argc, argv, &a);
    cli_harden();
    if (!a.flags.log_level)
        a.flags.log_level = "warn";
    int rc = cli_load(&a.flags, true, &config);
    if (rc)
        return rc;
    if (cli_service_config(&config, &service, &err)) {
        config_done(&config);
        cli_fail(&err);
        return EXIT_USAGE;
    }
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

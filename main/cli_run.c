/* A service from its start to its end, for the commands that run one. */
#include "base/check.h"
#include "cli.h"

int cli_service_load(const struct config_flags *flags, bool need_database, struct config *ret,
                     struct service_config *ret_service)
{
    struct err err = {0};
    int rc = cli_load(flags, need_database, ret);
    if (rc)
        return rc;
    if (cli_service_config(ret, ret_service, &err)) {
        config_done(ret);
        cli_fail(&err);
        return EXIT_USAGE;
    }
    return 0;
}

bool cli_service_new(struct cli_service *s, struct service_config *c, struct err *err)
{
    PRE(!s->loop && s->stopped);
    s->loop = loop_new();
    s->service = service_new(s->loop, c, err);
    for (size_t i = 0; i < c->account_count; i++)
        c->accounts[i].key = NULL;
    if (!s->service)
        loop_run(s->loop); /* what had been made closes */
    return s->service != NULL;
}

static void on_stopped(void *arg)
{
    struct cli_service *s = arg;
    s->service = NULL;
    s->stopped(s->arg);
    loop_stop(s->loop);
}

void cli_service_stop(struct cli_service *s)
{
    PRE(s->service || s->stopping);
    if (s->stopping)
        return;
    s->stopping = true;
    service_stop(s->service, on_stopped, s);
}

void cli_service_free(struct cli_service *s)
{
    PRE(!s->service);
    loop_free(s->loop);
}

/* What the commands share: how they end, and the configuration. */
#include "cli.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/log.h"

int cli_fail(const struct err *err)
{
    struct buf plain = {0}; /* it may quote a node, a server or a file */
    const char *text = err->text[0] ? err->text : err_text(err->code);
    buf_put_plain(&plain, text, strlen(text));
    fprintf(stderr, "txrelay: %s\n", buf_str(&plain));
    buf_done(&plain);
    return EXIT_FAILED;
}

int cli_load(const struct config_flags *flags, bool need_database, struct config *ret)
{
    struct err err = {0};
    if (config_load(flags, ret, &err)) {
        cli_fail(&err);
        return EXIT_USAGE;
    }
    if (need_database && !ret->file->database.url) {
        config_done(ret);
        fputs("txrelay: no database is given: use --database, TXRELAY_DATABASE or database.url in "
              "the config file\n",
              stderr);
        return EXIT_USAGE;
    }
    return 0;
}

void cli_follow_state(const char *command, bool live, uint64_t age_ms, const struct err *err)
{
    char event[32];
    snprintf(event, sizeof(event), "%s.%s", command, live ? "live" : "stale");
    if (live)
        log_info(event, "text=\"caught up with the database\"");
    else
        log_error(event, "role=follower age_s=%llu code=%s text=\"%s\"",
                  (unsigned long long)(age_ms / 1000), err_name(err->code), err->text);
}

void cli_harden(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

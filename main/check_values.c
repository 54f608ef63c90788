/* What `txrelay check` prints of the configuration: every key, its value, and where that came
 * from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/host.h"
#include "check.h"
#include "store/conn_info.h"

/* The defaults. In parentheses: the key has no value of its own. */
static const char *const defaults[][2] = {
    {"name", "(host name)"},
    {"log_level", "info"},
    {"log_format", "logfmt"},
    {"log_transactions", "debug"},
    {"control", "(none)"},
    {"metrics", "(none)"},
    {"database.url", "(none: standalone)"},
    {"database.work_url", "(database.url)"},
    {"database.listen_url", "(database.url)"},
    {"database.use_lock", "true"},
    {"chain.endpoints", "(none)"},
    {"chain.genesis", "(any)"},
    {"chain.ca_file", "(system store)"},
    {"chain.insecure", "false"},
    {"chain.verify_blocks", "true"},
    {"chain.quorum", "1"},
    {"chain.call_timeout_ms", "10000"},
    {"chain.extensions", "(none)"},
    {"chain.metadata_hash", "false"},
    {"chain.token_symbol", "(each node is asked)"},
    {"chain.token_decimals", "(each node is asked)"},
    {"leadership.heartbeat_ms", "1000"},
    {"leadership.expiry_1_ms", "5000"},
    {"leadership.expiry_2_ms", "20000"},
    {"leadership.margin_ms", "1000"},
    {"leadership.bid_min_ms", "150"},
    {"leadership.bid_max_ms", "450"},
    {"leadership.placement", "sticky"},
    {"leadership.rotate_blocks", "0"},
    {"leadership.handover_ms", "2000"},
    {"leadership.lost_commits", "wait"},
    {"manager.window", "256"},
    {"manager.batch", "128"},
    {"manager.unanswered", "64"},
    {"manager.era_period", "64"},
    {"manager.reprobe_blocks", "5"},
    {"manager.gap_blocks", "10"},
    {"retention.keep_days", "30"},
    {"retention.interval_ms", "3600000"},
    {"feeds.listen", "(none)"},
    {"feeds.address", "(feeds.listen)"},
    {"feeds.cert_file", "(none)"},
    {"feeds.key_file", "(none)"},
    {"feeds.ca_file", "(none)"},
    {"feeds.token_file", "(none)"},
    {"http.listen", "(none)"},
    {"http.host", "(none)"},
    {"http.cert_file", "(none)"},
    {"http.key_file", "(none)"},
    {"http.ca_file", "(none)"},
    {"http.rate", "200"},
    {"webhooks.key_file", "(none)"},
    {"webhooks.ca_file", "(system store)"},
    {"webhooks.allow_private", "false"},
    {"webhooks.timeout_ms", "10000"},
    {"sites.name", "(none)"},
    {"sites.listen", "(none)"},
    {"sites.address", "(sites.listen)"},
    {"sites.cert_file", "(none)"},
    {"sites.key_file", "(none)"},
    {"sites.ca_file", "(none)"},
    {"sites.range_blocks", "1000"},
    {"sites.approvals", "0"},
    {"sites.era_blocks", "64"},
    {"sites.silence_is_down", "false"},
    {"sites.peers", "(none)"},
    {"accounts", "(none)"},
};

static const char *default_of(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        if (!strcmp(defaults[i][0], key))
            return defaults[i][1];
    return "(not set)";
}

/* Environment and flags name a few keys; the file has the others. */
static const char *from_of(const struct config *c, const char *key)
{
    const struct {
        const char *key, *from;
    } named[] = {
        {"name", c->from_name},
        {"log_level", c->from_log_level},
        {"log_format", c->from_log_format},
        {"log_transactions", c->from_log_transactions},
        {"control", c->from_control},
        {"metrics", c->from_metrics},
        {"database.url", c->from_database},
        {"chain.endpoints", c->from_endpoints},
    };
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (!strcmp(named[i].key, key))
            return named[i].from;
    return "file";
}

/* A connection string may contain a password, so only other parts of it are printed. */
static void put_connection(struct buf *out, const char *dsn)
{
    struct conn_info info;
    conn_info_read(dsn, &info);
    buf_printf(out, "%s%s", buf_str(&info.text), info.has_password ? " password=****" : "");
    conn_info_done(&info);
}

static void put_shown(struct buf *out, const char *key, const char *text)
{
    if (!strncmp(key, "database.", 9) && strstr(key, "url")) {
        put_connection(out, text);
    } else if (!strcmp(key, "chain.endpoints")) {
        char *shown = host_url_shown(text);
        buf_puts(out, shown);
        free(shown);
    } else {
        buf_put_plain(out, text, strlen(text));
    }
}

static void print_value(void *arg, const char *key, const char *text)
{
    struct buf shown = {0};
    if (text)
        put_shown(&shown, key, text);
    else
        buf_puts(&shown, default_of(key));
    const char *from = text ? from_of(arg, key) : "default";
    if (check_is_json())
        check_json(
            json_pack("{s:s, s:s, s:s}", "key", key, "value", buf_str(&shown), "from", from));
    else
        printf("  %-24s %-40s %s\n", key, buf_str(&shown), from);
    buf_done(&shown);
}

void check_values(const struct config *c)
{
    struct config copy = *c;
    if (!check_is_json())
        printf("configuration (%s)\n", c->path ? c->path : "no file");
    config_values(c, print_value, &copy);
}

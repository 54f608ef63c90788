/* The configuration: the file (config_file.c), environment and flags over it, and the checks. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "config_address.h"
#include "config_file.h"
#include "store/conn_info.h"

static void set(char **field, const char *value)
{
    free(*field);
    *field = xstrdup(value);
}

/* The effective value and its source. */
static const char * override(char **field, const char *env, const char *flag)
{
    const char *value = getenv(env);
    if (flag) {
        set(field, flag);
        return "flag";
    }
    if (value && *value) {
        set(field, value);
        return env;
    }
    return *field ? "file" : "default";
}

static void set_endpoints(struct config_chain *c, const char *list)
{
    for (uint32_t i = 0; i < c->endpoints_count; i++)
        free(c->endpoints[i]);
    free(c->endpoints);
    c->endpoints = NULL;
    c->endpoints_count = 0;
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n) {
            c->endpoints = xrealloc(c->endpoints, (c->endpoints_count + 1) * sizeof(char *));
            c->endpoints[c->endpoints_count++] = xstrndup(list, n);
        }
        list += n + (list[n] == ',');
    }
}

static int merge(struct config *c, const struct config_flags *flags, struct err *err)
{
    struct config_file *f = c->file;
    const char *endpoints = flags->endpoint ? flags->endpoint : getenv("TXRELAY_ENDPOINTS");
    c->from_endpoints = flags->endpoint ? "flag" : endpoints ? "TXRELAY_ENDPOINTS" : "file";
    if (endpoints && *endpoints)
        set_endpoints(&f->chain, endpoints);
    struct conn_info given = {0};
    if (flags->database)
        conn_info_read(flags->database, &given);
    bool shown = given.has_password;
    conn_info_done(&given);
    if (shown)
        return err_set(
            err, ERR_CONFIG,
            "--database holds a password, and other users of this machine can read it in the list "
            "of processes: put it into the config file, a passfile (~/.pgpass) or a service file");
    c->from_database = override(&f->database.url, "TXRELAY_DATABASE", flags->database);
    c->from_name = override(&f->name, "TXRELAY_NAME", flags->name);
    c->from_log_level = override(&f->log_level, "TXRELAY_LOG_LEVEL", flags->log_level);
    c->from_control = override(&f->control, "TXRELAY_CONTROL", flags->control);
    c->from_metrics = override(&f->metrics, "TXRELAY_METRICS", NULL);
    c->from_log_format = override(&f->log_format, "TXRELAY_LOG_FORMAT", NULL);
    c->from_log_transactions = override(&f->log_transactions, "TXRELAY_LOG_TRANSACTIONS", NULL);
    enum log_level level;
    enum log_format format;
    if (f->log_format && !log_parse_format(f->log_format, &format))
        return err_set(err, ERR_CONFIG, "log_format '%s' is not one of: logfmt, json",
                       f->log_format);
    if (f->log_level && !log_parse_level(f->log_level, &level))
        return err_set(err, ERR_CONFIG,
                       "log_level '%s' is not one of: error, warn, info, debug (from %s)",
                       f->log_level, c->from_log_level);
    return 0;
}

bool config_lock_key(const struct config_account *a, int64_t *ret)
{
    const char *digits = a->lock_key ? a->lock_key + (a->lock_key[0] == '-') : "";
    size_t n = strspn(digits, "0123456789");
    if (!n || digits[n] || (digits[0] == '0' && (n > 1 || digits != a->lock_key)))
        return false;
    errno = 0;
    *ret = strtoll(a->lock_key, NULL, 10);
    return errno == 0;
}

/* A key with two words: the first is the default. */
static int check_word(const char *key, const char *value, const char *first, const char *second,
                      struct err *err)
{
    if (!value || !strcmp(value, first) || !strcmp(value, second))
        return 0;
    return err_set(err, ERR_CONFIG, "%s '%s' is not one of: %s, %s", key, value, first, second);
}

static int check_account(const struct config_account *a, struct err *err)
{
    int64_t key;
    if (a->lock_key && !config_lock_key(a, &key))
        return err_set(
            err, ERR_CONFIG,
            "accounts: lock_key '%s' of '%s' is not a whole number of 64 bits: give digits alone, "
            "from %" PRId64 " to %" PRId64,
            a->lock_key, a->alias, INT64_MIN, INT64_MAX);
    return check_word("accounts: sites_policy", a->sites_policy, "rotate", "sticky", err);
}

static int check_url(const char *key, const char *url, struct err *err)
{
    struct err why = {0};
    if (!url || conn_info_check(url, &why) == 0)
        return 0;
    return err_set(err, ERR_CONFIG, "%s: %s", key, why.text);
}

void config_use_log(const struct config_file *f)
{
    enum log_level level = LOG_LEVEL_INFO;
    enum log_format format = LOG_FORMAT_LOGFMT;
    if (f->log_format)
        log_parse_format(f->log_format, &format);
    log_set_format(format);
    if (f->log_level)
        log_parse_level(f->log_level, &level);
    log_set_level(level);
    bool info = f->log_transactions && !strcmp(f->log_transactions, "info");
    log_set_steps_level(info ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG);
}

static int check(const struct config_file *f, struct err *err)
{
    if (check_url("database.url", f->database.url, err) ||
        check_url("database.work_url", f->database.work_url, err) ||
        check_url("database.listen_url", f->database.listen_url, err))
        return err->code;
    for (uint32_t i = 0; i < f->accounts_count; i++) {
        if (check_account(&f->accounts[i], err))
            return err->code;
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(f->accounts[i].alias, f->accounts[j].alias))
                return err_set(err, ERR_CONFIG, "accounts: alias '%s' is used twice",
                               f->accounts[i].alias);
    }
    if (check_word("log_transactions", f->log_transactions, "debug", "info", err))
        return err->code;
    const struct config_leadership *lead = &f->leadership;
    if (check_word("leadership.placement", lead->placement, "sticky", "ring", err) ||
        check_word("leadership.lost_commits", lead->lost_commits, "wait", "search", err))
        return err->code;
    uint32_t period = config_era_period(f);
    if (period & (period - 1) || period > 4096 || (period && period < 4))
        return err_set(err, ERR_CONFIG,
                       "manager.era_period %u is not 0 (immortal) or a power of two in 4..4096",
                       period);
    return 0;
}

int config_load(const struct config_flags *flags, struct config *ret, struct err *err)
{
    const char *path = flags->path ? flags->path : getenv("TXRELAY_CONFIG");
    *ret = (struct config){0};
    if (path && *path) {
        ret->path = xstrdup(path);
        int rc = config__file_read(path, &ret->file, err);
        if (rc) {
            config_done(ret);
            return rc;
        }
    } else {
        ret->file = xcalloc(1, sizeof(*ret->file));
    }
    int rc = merge(ret, flags, err);
    if (rc == 0)
        rc = config__addresses(ret->file, err);
    if (rc == 0)
        rc = check(ret->file, err);
    if (rc)
        config_done(ret);
    else
        config_use_log(ret->file);
    return rc;
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

static void free_sites(struct config_sites *s)
{
    for (uint32_t i = 0; i < s->peers_count; i++) {
        free(s->peers[i].name);
        free_texts(s->peers[i].targets, s->peers[i].targets_count);
    }
    free(s->peers);
    free(s->name);
    free(s->listen);
    free(s->address);
    free(s->cert_file);
    free(s->key_file);
    free(s->ca_file);
}

static void free_accounts(struct config_file *f)
{
    for (uint32_t i = 0; i < f->accounts_count; i++) {
        struct config_account *a = &f->accounts[i];
        free(a->alias);
        free(a->scheme);
        free(a->key_file);
        free(a->account);
        free(a->lock_key);
        free_texts(a->sites, a->sites_count);
        free(a->sites_policy);
    }
    free(f->accounts);
}

void config_done(struct config *c)
{
    struct config_file *f = c->file;
    if (f) {
        set_endpoints(&f->chain, "");
        free_accounts(f);
        free_sites(&f->sites);
        free(f->name);
        free(f->log_level);
        free(f->log_format);
        free(f->log_transactions);
        free(f->control);
        free(f->metrics);
        free(f->database.url);
        free(f->database.work_url);
        free(f->database.listen_url);
        free(f->database.use_lock);
        free(f->leadership.placement);
        free(f->leadership.lost_commits);
        free(f->manager.era_period);
        free(f->feeds.listen);
        free(f->feeds.address);
        free(f->feeds.cert_file);
        free(f->feeds.key_file);
        free(f->feeds.ca_file);
        free(f->feeds.token_file);
        free(f->http.listen);
        free(f->http.host);
        free(f->http.cert_file);
        free(f->http.key_file);
        free(f->http.ca_file);
        free(f->webhooks.key_file);
        free(f->webhooks.ca_file);
        for (uint32_t i = 0; i < f->chain.extensions_count; i++) {
            free(f->chain.extensions[i].name);
            free(f->chain.extensions[i].explicit_part);
            free(f->chain.extensions[i].implicit_part);
        }
        free(f->chain.extensions);
        free(f->chain.genesis);
        free(f->chain.ca_file);
        free(f->chain.verify_blocks);
        free(f->chain.token_symbol);
        free(f->chain.token_decimals);
        free(f);
    }
    free(c->path);
    *c = (struct config){0};
}

bool config_placement_ring(const struct config_file *f)
{
    return f->leadership.placement && !strcmp(f->leadership.placement, "ring");
}

bool config_lost_search(const struct config_file *f)
{
    return f->leadership.lost_commits && !strcmp(f->leadership.lost_commits, "search");
}

bool config_use_lock(const struct config_file *f)
{
    return !f->database.use_lock || *f->database.use_lock;
}

bool config_verify_blocks(const struct config_file *f)
{
    return !f->chain.verify_blocks || *f->chain.verify_blocks;
}

uint32_t config_era_period(const struct config_file *f)
{
    return f->manager.era_period ? *f->manager.era_period : 64;
}

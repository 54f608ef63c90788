/* The configuration file by a libcyaml schema; environment and flags over it. */
#include "config.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/log.h"
#include "config_changes.h"
#include "config_scalars.h"
#include "config_trouble.h"
#include "store/conn_info.h"

#define STR_OPT(key, strct, field)                                                                 \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, strct, field, 1, 4096)
#define STR_REQ(key, strct, field)                                                                 \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, strct, field, 1, 4096)
#define UINT_OPT(key, strct, field) CYAML_FIELD_UINT(key, CYAML_FLAG_OPTIONAL, strct, field)
#define BOOL_OPT(key, strct, field) CYAML_FIELD_BOOL(key, CYAML_FLAG_OPTIONAL, strct, field)

static const cyaml_schema_field_t account_fields[] = {
    STR_REQ("alias", struct config_account, alias),
    STR_REQ("scheme", struct config_account, scheme),
    STR_OPT("key_file", struct config_account, key_file),
    STR_OPT("account", struct config_account, account),
    STR_OPT("lock_key", struct config_account, lock_key), /* libcyaml would take "5s" as 5 */
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t account_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_account, account_fields)};

static const cyaml_schema_value_t endpoint_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, 4096)};

static const cyaml_schema_field_t database_fields[] = {
    STR_REQ("url", struct config_database, url),
    STR_OPT("work_url", struct config_database, work_url),
    STR_OPT("listen_url", struct config_database, listen_url),
    CYAML_FIELD_BOOL_PTR("use_lock", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct config_database, use_lock),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t extension_fields[] = {
    STR_REQ("name", struct config_extension, name),
    STR_REQ("explicit", struct config_extension, explicit_part),
    STR_OPT("implicit", struct config_extension, implicit_part),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t extension_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_extension, extension_fields)};
static const cyaml_schema_field_t chain_fields[] = {
    CYAML_FIELD_SEQUENCE("endpoints", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_chain,
                         endpoints, &endpoint_value, 1, 16),
    STR_OPT("genesis", struct config_chain, genesis),
    STR_OPT("ca_file", struct config_chain, ca_file),
    BOOL_OPT("insecure", struct config_chain, insecure),
    CYAML_FIELD_BOOL_PTR("verify_blocks", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct config_chain, verify_blocks),
    UINT_OPT("quorum", struct config_chain, quorum),
    UINT_OPT("call_timeout_ms", struct config_chain, call_timeout_ms),
    CYAML_FIELD_SEQUENCE("extensions", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct config_chain, extensions, &extension_value, 0, 64),
    BOOL_OPT("metadata_hash", struct config_chain, metadata_hash),
    STR_OPT("token_symbol", struct config_chain, token_symbol),
    CYAML_FIELD_UINT_PTR("token_decimals", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct config_chain, token_decimals),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t leadership_fields[] = {
    UINT_OPT("heartbeat_ms", struct config_leadership, heartbeat_ms),
    UINT_OPT("expiry_1_ms", struct config_leadership, expiry_1_ms),
    UINT_OPT("expiry_2_ms", struct config_leadership, expiry_2_ms),
    UINT_OPT("margin_ms", struct config_leadership, margin_ms),
    UINT_OPT("bid_min_ms", struct config_leadership, bid_min_ms),
    UINT_OPT("bid_max_ms", struct config_leadership, bid_max_ms),
    STR_OPT("placement", struct config_leadership, placement),
    UINT_OPT("rotate_blocks", struct config_leadership, rotate_blocks),
    UINT_OPT("handover_ms", struct config_leadership, handover_ms),
    STR_OPT("lost_commits", struct config_leadership, lost_commits),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t manager_fields[] = {
    UINT_OPT("window", struct config_manager, window),
    UINT_OPT("batch", struct config_manager, batch),
    UINT_OPT("unanswered", struct config_manager, unanswered),
    CYAML_FIELD_UINT_PTR("era_period", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct config_manager, era_period),
    UINT_OPT("reprobe_blocks", struct config_manager, reprobe_blocks),
    UINT_OPT("gap_blocks", struct config_manager, gap_blocks),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t retention_fields[] = {
    UINT_OPT("keep_days", struct config_retention, keep_days),
    UINT_OPT("interval_ms", struct config_retention, interval_ms),
    CYAML_FIELD_END,
};
#define SECTION(key, field, fields)                                                                \
    CYAML_FIELD_MAPPING(key, CYAML_FLAG_OPTIONAL, struct config_file, field, fields)
static const cyaml_schema_field_t file_fields[] = {
    STR_OPT("name", struct config_file, name),
    STR_OPT("log_level", struct config_file, log_level),
    STR_OPT("log_format", struct config_file, log_format),
    STR_OPT("control", struct config_file, control),
    STR_OPT("metrics", struct config_file, metrics),
    SECTION("database", database, database_fields),
    SECTION("chain", chain, chain_fields),
    SECTION("leadership", leadership, leadership_fields),
    SECTION("manager", manager, manager_fields),
    SECTION("retention", retention, retention_fields),
    CYAML_FIELD_SEQUENCE("accounts", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_file,
                         accounts, &account_value, 0, 100000),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t file_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config_file, file_fields)};

static void keys_of(const char *section, const cyaml_schema_field_t *fields,
                    void (*each)(void *arg, const struct config_key *key), void *arg)
{
    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        const cyaml_schema_value_t *v = &f->value;
        bool list = v->type == CYAML_SEQUENCE;
        if (v->type == CYAML_MAPPING)
            keys_of(f->key, v->mapping.fields, each, arg);
        else if (list && v->sequence.entry->type == CYAML_MAPPING)
            keys_of(f->key, v->sequence.entry->mapping.fields, each, arg);
        else
            each(arg, &(struct config_key){.section = section,
                                           .key = f->key,
                                           .number = v->type == CYAML_UINT,
                                           .boolean = v->type == CYAML_BOOL,
                                           .list = list});
    }
}

void config_keys(void (*each)(void *arg, const struct config_key *key), void *arg)
{
    keys_of("", file_fields, each, arg);
}

void config_changes(const struct config *from, const struct config *to,
                    void (*each)(void *arg, const char *key), void *arg)
{
    config__changes("", file_fields, from->file, to->file, each, arg);
}

static const cyaml_config_t cyaml = {
    .log_fn = config__trouble_log,
    .mem_fn = cyaml_mem,
    .log_level = CYAML_LOG_INFO,
    .flags = CYAML_CFG_DEFAULT,
};

/* Once, for two readers: it may be a pipe. */
static int slurp(const char *path, struct buf *ret, mode_t *ret_mode, struct err *err)
{
    struct stat st;
    char chunk[4096];
    FILE *f = fopen(path, "r");
    if (!f)
        return err_set(err, ERR_CONFIG, "config file '%s' cannot be read: %m", path);
    *ret_mode = fstat(fileno(f), &st) == 0 ? st.st_mode : 0;
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        buf_put(ret, chunk, n);
    int rc = ferror(f) ? err_set(err, ERR_CONFIG, "config file '%s' cannot be read: %m", path) : 0;
    fclose(f);
    return rc;
}

static int parse(const char *path, const struct buf *text, struct config_file **ret,
                 struct err *err)
{
    struct config_trouble trouble = {0};
    cyaml_config_t config = cyaml;
    config.log_ctx = &trouble;
    cyaml_err_t rc =
        cyaml_load_data(text->data, text->len, &config, &file_value, (cyaml_data_t **)ret, NULL);
    if (rc == CYAML_OK && *ret)
        return config__scalars(path, text, &config, file_fields, err);
    if (rc == CYAML_OK)
        return err_set(err, ERR_CONFIG, "config file '%s' is empty", path);
    return config__trouble_err(&trouble, path, text, rc, err);
}

/* A password is a secret like a key: refuse a file that other users can read. */
static int check_mode(const char *path, mode_t mode, const struct config_file *f, struct err *err)
{
    const char *const urls[] = {f->database.url, f->database.work_url, f->database.listen_url};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct conn_info info = {0};
        if (urls[i])
            conn_info_read(urls[i], &info);
        bool open = info.has_password && (mode & S_IRWXO);
        conn_info_done(&info);
        if (open)
            return err_set(err, ERR_CONFIG,
                           "config file '%s' holds a database password, and its mode %03o lets "
                           "other users read it: chmod o= %s",
                           path, (unsigned)mode & 0777, path);
    }
    return 0;
}

static int read_file(const char *path, struct config_file **ret, struct err *err)
{
    struct buf text = {0};
    mode_t mode = 0;
    int rc = slurp(path, &text, &mode, err);
    if (rc == 0 && !text.len)
        rc = err_set(err, ERR_CONFIG, "config file '%s' is empty", path);
    if (rc == 0)
        rc = parse(path, &text, ret, err);
    if (rc == 0)
        rc = check_mode(path, mode, *ret, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    buf_done(&text);
    return rc;
}

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
    override(&f->control, "TXRELAY_CONTROL", flags->control);
    override(&f->metrics, "TXRELAY_METRICS", NULL);
    override(&f->log_format, "TXRELAY_LOG_FORMAT", NULL);
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

static int check_account(const struct config_account *a, struct err *err)
{
    int64_t key;
    if (a->lock_key && !config_lock_key(a, &key))
        return err_set(
            err, ERR_CONFIG,
            "accounts: lock_key '%s' of '%s' is not a whole number of 64 bits: give digits alone, "
            "from %" PRId64 " to %" PRId64,
            a->lock_key, a->alias, INT64_MIN, INT64_MAX);
    return 0;
}

/* A key with two words: the first is the default. */
static int check_word(const char *key, const char *value, const char *first, const char *second,
                      struct err *err)
{
    if (!value || !strcmp(value, first) || !strcmp(value, second))
        return 0;
    return err_set(err, ERR_CONFIG, "%s '%s' is not one of: %s, %s", key, value, first, second);
}

static int check_url(const char *key, const char *url, struct err *err)
{
    struct err why = {0};
    if (!url || conn_info_check(url, &why) == 0)
        return 0;
    return err_set(err, ERR_CONFIG, "%s: %s", key, why.text);
}

static void use_log(const struct config_file *f)
{
    enum log_level level = LOG_LEVEL_INFO;
    enum log_format format = LOG_FORMAT_LOGFMT;
    if (f->log_format)
        log_parse_format(f->log_format, &format);
    log_set_format(format);
    if (f->log_level)
        log_parse_level(f->log_level, &level);
    log_set_level(level);
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
        int rc = read_file(path, &ret->file, err);
        if (rc) {
            config_done(ret);
            return rc;
        }
    } else {
        ret->file = xcalloc(1, sizeof(*ret->file));
    }
    int rc = merge(ret, flags, err);
    if (rc == 0)
        rc = check(ret->file, err);
    if (rc)
        config_done(ret);
    else
        use_log(ret->file);
    return rc;
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
    }
    free(f->accounts);
}

void config_done(struct config *c)
{
    struct config_file *f = c->file;
    if (f) {
        set_endpoints(&f->chain, "");
        free_accounts(f);
        free(f->name);
        free(f->log_level);
        free(f->log_format);
        free(f->control);
        free(f->metrics);
        free(f->database.url);
        free(f->database.work_url);
        free(f->database.listen_url);
        free(f->database.use_lock);
        free(f->leadership.placement);
        free(f->leadership.lost_commits);
        free(f->manager.era_period);
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

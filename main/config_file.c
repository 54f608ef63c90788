/* The configuration file: its schema for libcyaml, and how it is read. */
#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"
#include "config_changes.h"
#include "config_file.h"
#include "config_scalars.h"
#include "config_text.h"
#include "config_trouble.h"
#include "store/conn_info.h"

enum { SITES_MAX = 32 };

#define STR_OPT(key, strct, field)                                                                 \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, strct, field, 1, 4096)
#define STR_REQ(key, strct, field)                                                                 \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, strct, field, 1, 4096)
#define UINT_OPT(key, strct, field) CYAML_FIELD_UINT(key, CYAML_FLAG_OPTIONAL, strct, field)
#define BOOL_OPT(key, strct, field) CYAML_FIELD_BOOL(key, CYAML_FLAG_OPTIONAL, strct, field)

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, 4096)};

static const cyaml_schema_field_t account_fields[] = {
    STR_REQ("alias", struct config_account, alias),
    STR_REQ("scheme", struct config_account, scheme),
    STR_OPT("key_file", struct config_account, key_file),
    STR_OPT("account", struct config_account, account),
    STR_OPT("lock_key", struct config_account, lock_key), /* libcyaml would take "5s" as 5 */
    CYAML_FIELD_SEQUENCE("sites", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_account,
                         sites, &text_value, 1, SITES_MAX),
    STR_OPT("sites_policy", struct config_account, sites_policy),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t account_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_account, account_fields)};

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
                         endpoints, &text_value, 1, 16),
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
static const cyaml_schema_field_t feeds_fields[] = {
    STR_OPT("listen", struct config_feeds, listen),
    STR_OPT("address", struct config_feeds, address),
    STR_OPT("cert_file", struct config_feeds, cert_file),
    STR_OPT("key_file", struct config_feeds, key_file),
    STR_OPT("ca_file", struct config_feeds, ca_file),
    STR_OPT("token_file", struct config_feeds, token_file),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t http_fields[] = {
    STR_OPT("listen", struct config_http, listen),
    STR_OPT("host", struct config_http, host),
    STR_OPT("cert_file", struct config_http, cert_file),
    STR_OPT("key_file", struct config_http, key_file),
    STR_OPT("ca_file", struct config_http, ca_file),
    UINT_OPT("rate", struct config_http, rate),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t webhooks_fields[] = {
    STR_OPT("key_file", struct config_webhooks, key_file),
    STR_OPT("ca_file", struct config_webhooks, ca_file),
    BOOL_OPT("allow_private", struct config_webhooks, allow_private),
    UINT_OPT("timeout_ms", struct config_webhooks, timeout_ms),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t site_peer_fields[] = {
    STR_REQ("name", struct config_site_peer, name),
    CYAML_FIELD_SEQUENCE("targets", CYAML_FLAG_POINTER, struct config_site_peer, targets,
                         &text_value, 1, 16),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t site_peer_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_site_peer, site_peer_fields)};
static const cyaml_schema_field_t sites_fields[] = {
    STR_OPT("name", struct config_sites, name),
    STR_OPT("listen", struct config_sites, listen),
    STR_OPT("address", struct config_sites, address),
    STR_OPT("cert_file", struct config_sites, cert_file),
    STR_OPT("key_file", struct config_sites, key_file),
    STR_OPT("ca_file", struct config_sites, ca_file),
    UINT_OPT("range_blocks", struct config_sites, range_blocks),
    UINT_OPT("approvals", struct config_sites, approvals),
    UINT_OPT("era_blocks", struct config_sites, era_blocks),
    BOOL_OPT("silence_is_down", struct config_sites, silence_is_down),
    CYAML_FIELD_SEQUENCE("peers", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_sites,
                         peers, &site_peer_value, 0, SITES_MAX),
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
    STR_OPT("log_transactions", struct config_file, log_transactions),
    STR_OPT("control", struct config_file, control),
    STR_OPT("metrics", struct config_file, metrics),
    SECTION("database", database, database_fields),
    SECTION("chain", chain, chain_fields),
    SECTION("leadership", leadership, leadership_fields),
    SECTION("manager", manager, manager_fields),
    SECTION("retention", retention, retention_fields),
    SECTION("feeds", feeds, feeds_fields),
    SECTION("http", http, http_fields),
    SECTION("webhooks", webhooks, webhooks_fields),
    SECTION("sites", sites, sites_fields),
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

void config_values(const struct config *c,
                   void (*each)(void *arg, const char *key, const char *text), void *arg)
{
    config__values("", file_fields, c->file, each, arg);
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

int config__file_read(const char *path, struct config_file **ret, struct err *err)
{
    struct buf text = {0};
    mode_t mode = 0;
    int rc = slurp(path, &text, &mode, err);
    if (rc == 0 && !text.len)
        rc = err_set(err, ERR_CONFIG, "config file '%s' is empty", path);
    if (rc == 0)
        rc = config__text_check(path, &text, err);
    if (rc == 0)
        rc = parse(path, &text, ret, err);
    if (rc == 0)
        rc = check_mode(path, mode, *ret, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    buf_done(&text);
    return rc;
}

/* Turns the configuration into the service's. Reads the keys, which must belong to their
 * accounts. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "base/log.h"
#include "chain/codec/extrinsic.h"
#include "chain/codec/ss58.h"
#include "cli.h"
#include "net/ws_client.h"
#include "relay/progress.h"

enum { CALL_TIMEOUT_MS = 10000 };

static int parse_account(const struct config_account *a, uint8_t id[ACCOUNT_ID_MAX],
                         size_t *ret_len, struct err *err)
{
    if (account_id_parse(a->account, id, ret_len))
        return 0;
    return err_set(
        err, ERR_CONFIG,
        "account %s: '%s' is neither an SS58 address whose checksum is right nor 0x with 64 "
        "or 40 digits: copy it again",
        a->alias, a->account);
}

static void note_prefix(const struct config_account *a, struct service_account *ret)
{
    uint8_t id[32];
    ret->has_prefix = ss58_decode(a->account, id, &ret->prefix);
}

static int load_key(const struct config_account *a, struct service_account *ret, struct err *err)
{
    uint8_t want[ACCOUNT_ID_MAX];
    size_t want_len, have_len;
    int rc = keypair_from_file(a->key_file, ret->scheme, &ret->key, err);
    if (rc)
        return err_set(err, rc, "account %s: %s", a->alias, err->text);
    if (!a->account || !*a->account)
        return 0;
    const uint8_t *have = keypair_account_id(ret->key, &have_len);
    note_prefix(a, ret);
    rc = parse_account(a, want, &want_len, err);
    if (rc == 0 && (want_len != have_len || memcmp(want, have, have_len) != 0))
        rc = err_set(err, ERR_KEY_MISMATCH,
                     "account %s: the %s key in %s belongs to %s, not to %s: give the right key "
                     "file or address",
                     a->alias, a->scheme, a->key_file, hex_log(have, have_len), a->account);
    if (rc)
        ret->key = keypair_free(ret->key);
    return rc;
}

/* With a key, or an address alone. */
static int load_account(const struct config_file *f, const struct config_account *a,
                        struct service_account *ret, struct err *err)
{
    if (!key_scheme_parse(a->scheme, &ret->scheme))
        return err_set(err, ERR_CONFIG, "account %s: scheme '%s' is not one of: %s", a->alias,
                       a->scheme, key_scheme_names());
    if (a->key_file && *a->key_file)
        return load_key(a, ret, err);
    if (!a->account || !*a->account)
        return err_set(err, ERR_CONFIG,
                       "account %s: give its key_file, or its address as account if it sends only "
                       "presigned elsewhere",
                       a->alias);
    if (!f->database.url)
        return err_set(err, ERR_CONFIG,
                       "account %s: presigned transactions need a database, and none is "
                       "configured: give database.url, or a key_file",
                       a->alias);
    note_prefix(a, ret);
    return parse_account(a, ret->id, &ret->id_len, err);
}

static int extension_bytes(const char *name, const char *text, struct buf *ret, struct err *err)
{
    if (!text || hex_decode(text, strlen(text), ret))
        return 0;
    return err_set(err, ERR_CONFIG, "chain.extensions: the bytes of %.80s are not hexadecimal",
                   name);
}

static int load_extensions(const struct config_file *f, struct service_config *ret, struct err *err)
{
    size_t count = f->chain.extensions_count;
    struct extrinsic_extension *list = xcalloc(count, sizeof(*list));
    int rc = 0;
    ret->extensions = list;
    ret->extension_count = count;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const struct config_extension *e = &f->chain.extensions[i];
        list[i].name = e->name;
        if (extrinsic_knows(e->name))
            rc = err_set(err, ERR_CONFIG,
                         "chain.extensions: txrelay knows %.80s and fills it in itself: remove it",
                         e->name);
        if (rc == 0)
            rc = extension_bytes(e->name, e->explicit_part, &list[i].explicit_part, err);
        if (rc == 0)
            rc = extension_bytes(e->name, e->implicit_part, &list[i].implicit_part, err);
    }
    return rc;
}

static void free_extensions(struct service_config *c)
{
    struct extrinsic_extension *list = (struct extrinsic_extension *)c->extensions;
    for (size_t i = 0; i < c->extension_count; i++) {
        buf_done(&list[i].explicit_part);
        buf_done(&list[i].implicit_part);
    }
    free(list);
    c->extensions = NULL;
    c->extension_count = 0;
}

static void settings(const struct config_file *f, struct service_config *ret)
{
    *ret = (struct service_config){
        .name = f->name,
        .control_dsn = f->database.url,
        .work_dsn = f->database.work_url,
        .listen_dsn = f->database.listen_url,
        .endpoints = (const char *const *)f->chain.endpoints,
        .endpoint_count = f->chain.endpoints_count,
        .ca_file = f->chain.ca_file,
        .chain_insecure = f->chain.insecure,
        .verify_blocks = config_verify_blocks(f),
        .quorum = f->chain.quorum,
        .metadata_hash = f->chain.metadata_hash,
        .allow_chopsticks = !f->chain.verify_blocks,
        .call_timeout_ms = f->chain.call_timeout_ms ? f->chain.call_timeout_ms : CALL_TIMEOUT_MS,
        .control_address = f->control,
        .metrics_address = f->metrics,
        .read_stdin = !f->database.url,
        .elector = {.use_lock = config_use_lock(f),
                    .heartbeat_ms = f->leadership.heartbeat_ms,
                    .expiry_1_ms = f->leadership.expiry_1_ms,
                    .expiry_2_ms = f->leadership.expiry_2_ms,
                    .margin_ms = f->leadership.margin_ms,
                    .bid_min_ms = f->leadership.bid_min_ms,
                    .bid_max_ms = f->leadership.bid_max_ms,
                    .ring = config_placement_ring(f),
                    .rotate = f->leadership.rotate_blocks > 0},
        .rotate_blocks = f->leadership.rotate_blocks,
        .handover_ms = f->leadership.handover_ms,
        .retention_days = f->retention.keep_days,
        .retention_interval_ms = f->retention.interval_ms,
        .manager = {.window_max = f->manager.window,
                    .batch_max = f->manager.batch,
                    .unanswered_max = f->manager.unanswered,
                    .era_period = config_era_period(f),
                    .reprobe_blocks = f->manager.reprobe_blocks,
                    .gap_blocks = f->manager.gap_blocks,
                    .lost_search = config_lost_search(f)},
    };
}

/* A submission under way must be over when the second expiry lets another relay in. With one expiry
 * (equal values) it need not be. */
static int check_submission(const struct service_config *c, struct err *err)
{
    struct elector_config e = elector_config_defaults(&c->elector);
    uint64_t need = (uint64_t)c->call_timeout_ms + e.margin_ms;
    if (e.expiry_2_ms == e.expiry_1_ms || e.expiry_2_ms >= need)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "expiry_2 = %u ms is shorter than a submission may take (chain.call_timeout_ms "
                   "= %u ms and margin = %u ms): make it at least %llu ms, or the call's time "
                   "shorter, or both expiries equal",
                   e.expiry_2_ms, c->call_timeout_ms, e.margin_ms, (unsigned long long)need);
}

static int load_token(const struct config_chain *c, struct metadata_token *ret, struct err *err)
{
    if (!c->token_symbol != !c->token_decimals)
        return err_set(err, ERR_CONFIG,
                       "chain.token_symbol and chain.token_decimals belong together: give both, or "
                       "neither and each node is asked");
    if (c->token_symbol)
        *ret = (struct metadata_token){c->token_symbol, (uint8_t)*c->token_decimals};
    return 0;
}

/* A secret phrase takes milliseconds each, and there may be thousands. */
static void tell_keys(struct progress *p, const char *relay, size_t at, size_t of)
{
    char text[PROGRESS_TEXT];
    uint64_t ms = loop_steady_ms();
    struct progress_seen seen = {.step = START_KEYS, .at = at, .to = of};
    if (progress_look(p, ms, &seen))
        log_info("relay.starting", "relay=%s step=%s done=%zu of=%zu text=\"%s\"",
                 relay ? relay : "", start_step_name(p->step), at, of, progress_text(p, ms, text));
}

static int load_accounts(const struct config_file *f, struct service_config *ret, struct err *err)
{
    struct progress keys = {0};
    int rc = 0;
    ret->accounts = xcalloc(f->accounts_count, sizeof(*ret->accounts));
    for (uint32_t i = 0; rc == 0 && i < f->accounts_count; i++) {
        struct service_account *a = &ret->accounts[i];
        a->alias = f->accounts[i].alias;
        a->has_lock_key = config_lock_key(&f->accounts[i], &a->lock_key);
        tell_keys(&keys, f->name, i, f->accounts_count);
        rc = load_account(f, &f->accounts[i], a, err);
        if (rc == 0)
            ret->account_count++;
    }
    return rc;
}

static int load_values(const struct config_file *f, struct service_config *ret, struct err *err)
{
    settings(f, ret);
    if (!f->chain.endpoints_count)
        return err_set(err, ERR_CONFIG,
                       "no chain node is given: use --endpoint, TXRELAY_ENDPOINTS or "
                       "chain.endpoints in the config file");
    for (uint32_t i = 0; i < f->chain.endpoints_count; i++)
        if (ws_url_check(f->chain.endpoints[i], "node", err))
            return err->code;
    if (f->chain.quorum > f->chain.endpoints_count)
        return err_set(err, ERR_CONFIG,
                       "chain.quorum is %u and there are %u endpoints, so no block could be "
                       "confirmed: name more endpoints, or lower it",
                       f->chain.quorum, f->chain.endpoints_count);
    if (!f->accounts_count)
        return err_set(err, ERR_CONFIG,
                       "no account is given: list at least one under accounts in the config file");
    if (f->chain.genesis && *f->chain.genesis) {
        ret->has_genesis =
            hex_decode_fixed(f->chain.genesis, strlen(f->chain.genesis), ret->genesis, 32);
        if (!ret->has_genesis)
            return err_set(err, ERR_CONFIG, "chain.genesis '%s' is not 0x with 64 digits",
                           f->chain.genesis);
    }
    int rc = load_extensions(f, ret, err);
    if (rc == 0)
        rc = load_token(&f->chain, &ret->token, err);
    if (rc == 0)
        rc = elector_config_check(&ret->elector, err);
    if (rc == 0)
        rc = check_submission(ret, err);
    if (rc == 0)
        rc = service_check(ret, err);
    return rc;
}

int cli_service_values(const struct config *c, struct service_config *ret, struct err *err)
{
    int rc = load_values(c->file, ret, err);
    if (rc)
        cli_service_config_done(ret);
    return rc;
}

int cli_service_config(const struct config *c, struct service_config *ret, struct err *err)
{
    int rc = cli_service_values(c, ret, err);
    if (rc)
        return rc;
    rc = load_accounts(c->file, ret, err);
    if (rc)
        cli_service_config_done(ret);
    return rc;
}

void cli_service_config_done(struct service_config *c)
{
    for (size_t i = 0; c->accounts && i < c->account_count; i++)
        c->accounts[i].key = keypair_free(c->accounts[i].key);
    free(c->accounts);
    free_extensions(c);
    c->accounts = NULL;
    c->account_count = 0;
}

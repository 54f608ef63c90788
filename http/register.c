/* POST /v1/accounts: makes an account known to the database, so that applications can enqueue for
 * it. A relay leads it once its configuration has it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_internal.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/key_scheme.h"

static const struct body_field fields[] = {
    {"alias", BODY_TEXT}, {"account", BODY_TEXT}, {"scheme", BODY_TEXT}, {"watch_only", BODY_BOOL}};

enum { ALIAS_MAX = 64 };

static void bad(struct ask *k, const char *text)
{
    api__problem(k, 422, "bad_argument", NULL, text);
}

/* The arguments of the action, or NULL: k was answered. */
static json_t *arguments(struct ask *k, const char *account, const char *scheme_name)
{
    enum key_scheme scheme = KEY_SR25519;
    uint8_t id[ACCOUNT_ID_MAX];
    size_t len = 0;
    struct api_enrolment e;
    char text[160];
    if (!account || !account_id_parse(account, id, &len)) {
        bad(k,
            "account: it is neither an SS58 address nor 0x with 64 or 40 digits, or its checksum "
            "is wrong");
    } else if (scheme_name && !key_scheme_parse(scheme_name, &scheme)) {
        snprintf(text, sizeof(text), "scheme: it is none of %s", key_scheme_names());
        bad(k, text);
    } else if (key_account_id_len(scheme) != len) {
        snprintf(text, sizeof(text), "account: it has %zu bytes; accounts of %s have %zu", len,
                 key_scheme_name(scheme), key_account_id_len(scheme));
        bad(k, text);
    } else if (!k->api->enrolment(k->api->arg, id, len, &e)) {
        api__no_chain(k, "no node of the chain answers now, so the chain of the account is not "
                         "known");
    } else {
        struct buf id_hex = {0}, genesis = {0};
        hex_put(&id_hex, id, len);
        hex_put(&genesis, e.genesis, sizeof(e.genesis));
        json_t *found =
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:i, s:b}", "id", buf_str(&id_hex), "scheme",
                      key_scheme_name(scheme), "genesis", buf_str(&genesis), "address", e.address,
                      "lock_key", (json_int_t)e.lock_key, "watch_only",
                      json_is_true(json_object_get(k->body, "watch_only")), "era",
                      (int)e.era_longest, "immortal", e.era_immortal);
        buf_done(&id_hex);
        buf_done(&genesis);
        return found;
    }
    return NULL;
}

static void absent(struct ask *k, bool row)
{
    (void)k;
    (void)row;
    UNREACHABLE(); /* the statement has one row */
}

void api__register(struct ask *k)
{
    if (!api__take_params(k, NULL, 0, NULL) || !api__take_body(k, fields, ARRAY_LEN(fields)))
        return;
    const char *alias = json_string_value(json_object_get(k->body, "alias"));
    if (!alias || strlen(alias) > ALIAS_MAX) {
        bad(k, "alias: it must have 1 to 64 letters, digits, \".\", \"_\" and \"-\"");
        return;
    }
    json_t *args = arguments(k, json_string_value(json_object_get(k->body, "account")),
                             json_string_value(json_object_get(k->body, "scheme")));
    if (!args)
        return;
    k->text = json_dumps(args, JSON_COMPACT);
    json_decref(args);
    struct conn_param params[5] = {
        {.data = k->who}, {.data = "register"}, {0}, {.data = alias}, {.data = k->text}};
    api__query(k, k->api->acts, "operate.sql", false, 5, params, absent);
}

/* See script.h. Matching is pure: counters and a seeded generator only. */
#include "script.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "base/rng.h"
#include "chain/codec/ss58.h"

void script_init(struct script *s, uint64_t seed)
{
    *s = (struct script){.next_id = 1, .rng_state = seed};
    list_init(&s->rules);
}

static void rule_free(struct script_rule *r)
{
    list_remove(&r->node);
    free(r->method);
    json_decref(r->json);
    free(r);
}

size_t script_clear(struct script *s, uint64_t id)
{
    size_t n = 0;
    struct list *next;
    for (struct list *at = s->rules.next; at != &s->rules; at = next) {
        struct script_rule *r = CONTAINER_OF(at, struct script_rule, node);
        next = at->next;
        if (id && r->id != id)
            continue;
        rule_free(r);
        n++;
    }
    return n;
}

void script_done(struct script *s)
{
    script_clear(s, 0);
}

static const struct {
    const char *name;
    enum script_action action;
} ACTIONS[] = {
    {"cut_before", ACTION_CUT_BEFORE},
    {"cut_after", ACTION_CUT_AFTER},
    {"no_reply", ACTION_NO_REPLY},
    {"ignore", ACTION_IGNORE},
    {"freeze", ACTION_FREEZE},
    {"accept_and_drop", ACTION_ACCEPT_AND_DROP},
    {"omit", ACTION_OMIT},
    {"end", ACTION_END},
    {"skip", ACTION_SKIP},
    {"pass", ACTION_NONE},
};

static const struct {
    const char *name;
    enum validity_kind kind;
    uint8_t code;
} VERDICTS[] = {
    {"Call", VALIDITY_INVALID, INVALID_CALL},
    {"Payment", VALIDITY_INVALID, INVALID_PAYMENT},
    {"Future", VALIDITY_INVALID, INVALID_FUTURE},
    {"Stale", VALIDITY_INVALID, INVALID_STALE},
    {"BadProof", VALIDITY_INVALID, INVALID_BAD_PROOF},
    {"AncientBirthBlock", VALIDITY_INVALID, INVALID_ANCIENT_BIRTH_BLOCK},
    {"ExhaustsResources", VALIDITY_INVALID, INVALID_EXHAUSTS_RESOURCES},
    {"Custom", VALIDITY_INVALID, INVALID_CUSTOM},
    {"BadMandatory", VALIDITY_INVALID, INVALID_BAD_MANDATORY},
    {"MandatoryValidation", VALIDITY_INVALID, INVALID_MANDATORY_VALIDATION},
    {"BadSigner", VALIDITY_INVALID, INVALID_BAD_SIGNER},
    {"CannotLookup", VALIDITY_UNKNOWN, UNKNOWN_CANNOT_LOOKUP},
    {"NoUnsignedValidator", VALIDITY_UNKNOWN, UNKNOWN_NO_UNSIGNED_VALIDATOR},
    {"UnknownCustom", VALIDITY_UNKNOWN, UNKNOWN_CUSTOM},
    {"Trap", VALIDITY_TRAP, 0},
};

static int parse_verdict(struct script_rule *r, const json_t *v, struct err *err)
{
    const char *name = json_string_value(v);
    if (!name)
        return err_set(err, ERR_ARGUMENT, "action.verdict is not a string");
    r->action = ACTION_VERDICT;
    if (strcmp(name, "NoTags") == 0) {
        r->verdict = (struct validity){.kind = VALIDITY_OK, .no_provides = true};
        return 0;
    }
    if (strcmp(name, "Unactionable") == 0) {
        r->verdict = (struct validity){.kind = VALIDITY_OK, .no_propagate = true};
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(VERDICTS); i++)
        if (strcmp(name, VERDICTS[i].name) == 0) {
            r->verdict = (struct validity){.kind = VERDICTS[i].kind, .code = VERDICTS[i].code};
            return 0;
        }
    return err_set(err, ERR_ARGUMENT, "action.verdict '%s' is not known", name);
}

/* [pallet, error] by their indices */
static int parse_failure(struct script_rule *r, const json_t *v, struct err *err)
{
    const json_t *pallet = json_array_get(v, 0), *error = json_array_get(v, 1);
    if (!json_is_integer(pallet) || !json_is_integer(error))
        return err_set(err, ERR_ARGUMENT, "action.fail is not [pallet index, error index]");
    r->action = ACTION_FAIL;
    r->failure = (struct dispatch_error){DISPATCH_KIND_MODULE, (uint8_t)json_integer_value(pallet),
                                         (uint8_t)json_integer_value(error)};
    return 0;
}

static int parse_action_object(struct script_rule *r, json_t *a, struct err *err)
{
    json_t *v;
    if ((v = json_object_get(a, "error")) && json_is_object(v)) {
        r->action = ACTION_ERROR;
        r->json = json_incref(v);
    } else if ((v = json_object_get(a, "result"))) {
        r->action = ACTION_RESULT;
        r->json = json_incref(v);
    } else if ((v = json_object_get(a, "delay_ms")) && json_is_integer(v)) {
        r->action = ACTION_DELAY;
        r->delay_ms = (uint32_t)json_integer_value(v);
    } else if ((v = json_object_get(a, "verdict"))) {
        int rc = parse_verdict(r, v, err);
        r->verdict.custom = (uint8_t)json_integer_value(json_object_get(a, "custom"));
        return rc;
    } else if ((v = json_object_get(a, "fail"))) {
        return parse_failure(r, v, err);
    } else if ((v = json_object_get(a, "omit_status"))) {
        r->action = ACTION_OMIT;
    } else {
        return err_set(err, ERR_ARGUMENT,
                       "action holds none of error, result, delay_ms, verdict, fail");
    }
    return 0;
}

static int parse_action(struct script_rule *r, json_t *a, struct err *err)
{
    if (json_is_object(a))
        return parse_action_object(r, a, err);
    const char *name = json_string_value(a);
    for (size_t i = 0; name && i < ARRAY_LEN(ACTIONS); i++)
        if (strcmp(name, ACTIONS[i].name) == 0) {
            r->action = ACTIONS[i].action;
            return 0;
        }
    return err_set(err, ERR_ARGUMENT, "action '%s' is not known", name ? name : "(none)");
}

static int parse_status(struct script_rule *r, const char *name, struct err *err)
{
    r->point = SCRIPT_STATUS;
    if (strcmp(name, "*") == 0)
        return 0;
    for (int s = STATUS_FUTURE; s <= STATUS_INVALID; s++)
        if (strcmp(name, pool_status_name((enum pool_status)s)) == 0) {
            r->status = s;
            return 0;
        }
    return err_set(err, ERR_ARGUMENT, "match.status '%s' is not a status", name);
}

static uint64_t number(const json_t *m, const char *key, uint64_t otherwise)
{
    const json_t *v = json_object_get(m, key);
    return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
                                                            : otherwise;
}

static int parse_tx_match(struct script_rule *r, const json_t *m, struct err *err)
{
    const char *signer = json_string_value(json_object_get(m, "signer"));
    const char *hash = json_string_value(json_object_get(m, "hash"));
    size_t len;
    if (signer && (!account_id_parse(signer, r->signer, &len) || len != 32))
        return err_set(err, ERR_ARGUMENT, "match.signer '%s' is not an account", signer);
    if (hash && !hex_decode_fixed(hash, strlen(hash), r->hash, 32))
        return err_set(err, ERR_ARGUMENT, "match.hash '%s' is not a hash", hash);
    r->has_signer = signer != NULL;
    r->has_hash = hash != NULL;
    r->has_nonce = json_is_integer(json_object_get(m, "nonce"));
    r->nonce = (uint32_t)number(m, "nonce", 0);
    return 0;
}

static int parse_match(struct script_rule *r, const json_t *m, const json_t *action,
                       struct err *err)
{
    const char *method = json_string_value(json_object_get(m, "method"));
    const char *status = json_string_value(json_object_get(m, "status"));
    const char *notify = json_string_value(json_object_get(m, "notify"));
    if (!status && json_is_object(action))
        status = json_string_value(json_object_get(action, "omit_status"));
    r->status = -1;
    r->nth = number(m, "nth", 1);
    r->times = number(m, "times", 1);
    r->every = number(m, "every", 1);
    r->percent = number(m, "percent", 0);
    if (status) {
        int rc = parse_status(r, status, err);
        if (rc)
            return rc;
    } else if (json_is_true(json_object_get(m, "validate"))) {
        r->point = SCRIPT_VALIDATE;
    } else if (json_is_true(json_object_get(m, "include"))) {
        r->point = SCRIPT_INCLUDE;
    } else if (json_is_true(json_object_get(m, "dispatch"))) {
        r->point = SCRIPT_DISPATCH;
    } else if (notify) {
        r->point = SCRIPT_NOTIFY;
        r->method = xstrdup(notify);
    } else if (method) {
        r->point = SCRIPT_REQUEST;
        r->method = strcmp(method, "*") == 0 ? NULL : xstrdup(method);
    } else {
        return err_set(err, ERR_ARGUMENT,
                       "match holds none of method, status, notify, validate, include, dispatch");
    }
    return parse_tx_match(r, m, err);
}

int script_add(struct script *s, const json_t *rule, uint64_t *ret_id, struct err *err)
{
    json_t *action = json_object_get(rule, "action");
    struct script_rule *r = xcalloc(1, sizeof *r);
    int rc = parse_match(r, json_object_get(rule, "match"), action, err);
    if (!rc)
        rc = parse_action(r, action, err);
    if (rc) {
        rule_free(r);
        return rc;
    }
    r->id = s->next_id++;
    list_append(&s->rules, &r->node);
    *ret_id = r->id;
    return 0;
}

json_t *script_json(const struct script *s)
{
    json_t *out = json_array();
    LIST_EACH (n, &s->rules) {
        const struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        json_array_append_new(out, json_pack("{s:I, s:I, s:I}", "id", (json_int_t)r->id, "seen",
                                             (json_int_t)r->seen, "fired", (json_int_t)r->fired));
    }
    return out;
}

static bool tx_matches(const struct script_rule *r, const struct tx *tx)
{
    if (!r->has_signer && !r->has_nonce && !r->has_hash)
        return true;
    if (!tx)
        return false;
    return (!r->has_signer || memcmp(r->signer, tx->signer, 32) == 0) &&
           (!r->has_nonce || r->nonce == tx->nonce) &&
           (!r->has_hash || memcmp(r->hash, tx->hash, 32) == 0);
}

/* A rule that is used up goes on counting nothing; it stays listed until it is cleared. */
static bool fires(struct script *s, struct script_rule *r)
{
    if (r->times && r->fired >= r->times)
        return false;
    r->seen++;
    if (r->seen < r->nth || (r->every > 1 && (r->seen - r->nth) % r->every != 0))
        return false;
    struct rng rng = {s->rng_state};
    bool lucky = !r->percent || rng_below(&rng, 100) < r->percent;
    s->rng_state = rng.state;
    r->fired += lucky;
    return lucky;
}

bool script_wants_tx(const struct script *s, const char *method)
{
    LIST_EACH (n, &s->rules) {
        const struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        if (r->point == SCRIPT_REQUEST && (r->has_signer || r->has_nonce || r->has_hash) &&
            r->method && strcmp(r->method, method) == 0)
            return true;
    }
    return false;
}

struct script_rule *script_request(struct script *s, const char *method, const struct tx *tx)
{
    LIST_EACH (n, &s->rules) {
        struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        if (r->point == SCRIPT_REQUEST &&
            (r->method ? strcmp(r->method, method) == 0 : strncmp(method, "dev_", 4) != 0) &&
            tx_matches(r, tx) && fires(s, r))
            return r;
    }
    return NULL;
}

struct script_rule *script_notify(struct script *s, const char *method)
{
    LIST_EACH (n, &s->rules) {
        struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        if (r->point == SCRIPT_NOTIFY && strcmp(r->method, method) == 0 && fires(s, r))
            return r;
    }
    return NULL;
}

struct script_rule *script_status(struct script *s, enum pool_status status, const struct tx *tx)
{
    LIST_EACH (n, &s->rules) {
        struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        if (r->point == SCRIPT_STATUS && (r->status < 0 || r->status == (int)status) &&
            tx_matches(r, tx) && fires(s, r))
            return r;
    }
    return NULL;
}

struct script_rule *script_tx(struct script *s, enum script_point point, const struct tx *tx)
{
    LIST_EACH (n, &s->rules) {
        struct script_rule *r = CONTAINER_OF(n, struct script_rule, node);
        if (r->point == point && tx_matches(r, tx) && fires(s, r))
            return r;
    }
    return NULL;
}

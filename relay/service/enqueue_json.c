/* Requests in JSON. A field that is not known is refused: a misspelt deadline must not be a
 * transaction without one. What the values mean (a deadline that has passed, a tip above its limit)
 * is for the store to judge. */
#include "service/enqueue_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hex.h"
#include "chain/codec/scale.h"

enum { AMOUNT_SIZE = sizeof(((struct enqueue_json *)NULL)->tip) };

/* ---- values ---- */

static int bad(struct err *err, const char *name, const json_t *value, const char *must)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    int rc = err_set(err, ERR_ARGUMENT, "%s is %.80s; it must be %s", name,
                     text ? text : "unreadable", must);
    free(text);
    return rc;
}

static int get_text(const char *name, json_t *value, const char **ret, struct err *err)
{
    *ret = json_string_value(value);
    return *ret ? 0 : bad(err, name, value, "a string");
}

static int get_int(const char *name, json_t *value, int64_t min, int64_t max, int64_t *ret,
                   struct err *err)
{
    char must[80];
    *ret = json_integer_value(value);
    if (json_is_integer(value) && *ret >= min && *ret <= max)
        return 0;
    snprintf(must, sizeof(must), "a whole number from %lld to %lld", (long long)min,
             (long long)max);
    return bad(err, name, value, must);
}

static int get_amount(const char *name, json_t *value, char room[AMOUNT_SIZE], const char **ret,
                      struct err *err)
{
    u128 amount;
    *ret = json_string_value(value);
    if (json_is_integer(value)) {
        snprintf(room, AMOUNT_SIZE, "%lld", (long long)json_integer_value(value));
        *ret = room;
    }
    if (*ret && u128_parse(*ret, &amount))
        return 0;
    return bad(err, name, value,
               "planck: a whole number from 0 to 2^128 - 1, or its digits as a string");
}

static bool two_digits(const char **at, int max, int *ret)
{
    const char *p = *at;
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *ret = (p[0] - '0') * 10 + (p[1] - '0');
    *at += 2;
    return *ret <= max;
}

static bool take(const char **at, const char *one_of)
{
    if (!**at || !strchr(one_of, **at))
        return false;
    ++*at;
    return true;
}

/* Days since 1970-01-01 in the Gregorian calendar: years begin in March, so that the leap day is
 * the last. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

static bool date_ms(const char **at, int64_t *ret)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int century, year, month, day;
    if (!two_digits(at, 99, &century) || !two_digits(at, 99, &year) || !take(at, "-") ||
        !two_digits(at, 12, &month) || !take(at, "-") || !two_digits(at, 31, &day))
        return false;
    year += century * 100;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year < 1970 || month < 1 || day < 1 || day > days[month - 1] ||
        (month == 2 && day == 29 && !leap))
        return false;
    *ret = days_of(year, month, day) * 86400000;
    return true;
}

static bool zone_ms(const char **at, int64_t *ret)
{
    int hours, minutes, sign = **at == '-' ? -1 : 1;
    *ret = 0;
    if (take(at, "Zz"))
        return true;
    if (!take(at, "+-") || !two_digits(at, 23, &hours) || !take(at, ":") ||
        !two_digits(at, 59, &minutes))
        return false;
    *ret = sign * (hours * 60 + minutes) * INT64_C(60000);
    return true;
}

/* RFC 3339, which Postgres reads as well; to the millisecond. */
static bool text_ms(const char *text, int64_t *ret)
{
    int64_t date, zone, fraction = 0, unit = 100;
    int hour, minute, second;
    if (!date_ms(&text, &date) || !take(&text, "Tt ") || !two_digits(&text, 23, &hour) ||
        !take(&text, ":") || !two_digits(&text, 59, &minute) || !take(&text, ":") ||
        !two_digits(&text, 59, &second))
        return false;
    if (take(&text, ".")) {
        if (*text < '0' || *text > '9')
            return false;
        for (; *text >= '0' && *text <= '9'; text++, unit /= 10)
            fraction += (*text - '0') * unit;
    }
    if (!zone_ms(&text, &zone) || *text)
        return false;
    *ret = date + ((hour * 60 + minute) * 60 + second) * INT64_C(1000) + fraction - zone;
    return *ret > 0;
}

static int get_time(const char *name, json_t *value, int64_t *ret, struct err *err)
{
    const int64_t max = INT64_C(253402300800000); /* the year 10000 */
    const char *text = json_string_value(value);
    *ret = json_integer_value(value);
    if (json_is_integer(value) ? *ret > 0 && *ret < max : text && text_ms(text, ret))
        return 0;
    return bad(err, name, value,
               "milliseconds since 1970, or a time like \"2026-01-31T12:00:00Z\"");
}

/* Milliseconds from now, or a number and a unit, as Postgres reads them too. */
static int get_span(const char *name, json_t *value, int64_t *ret, struct err *err)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    const int64_t max = INT64_C(31536000000000); /* a thousand years */
    const char *text = json_string_value(value);
    int64_t n = json_integer_value(value);
    if (text) {
        size_t digits = strspn(text, "0123456789");
        n = 0;
        for (size_t i = 0; digits && digits < 10 && i < ARRAY_LEN(units); i++)
            if (!strcmp(text + digits, units[i].unit))
                n = strtoll(text, NULL, 10) * units[i].ms;
    }
    *ret = n;
    if ((text || json_is_integer(value)) && n > 0 && n <= max)
        return 0;
    return bad(err, name, value,
               "milliseconds from now, or a span like \"90s\", \"15m\", \"2h\" or \"7d\"");
}

/* ---- enqueue ---- */

static int get_call(struct enqueue_json *x, const char *name, json_t *value, struct err *err)
{
    const char *hex = json_string_value(value);
    if (!hex || !hex_decode(hex, strlen(hex), &x->call))
        return bad(err, name, value, "the call's bytes in hexadecimal");
    x->req.call = (struct store_bytes){x->call.data, x->call.len};
    return 0;
}

/* 1: there is no such field. */
static int enqueue_text(struct enqueue_json *x, const char *name, json_t *value, struct err *err)
{
    struct store_enqueue *r = &x->req;
    if (!strcmp(name, "account"))
        return get_text(name, value, &r->account, err);
    if (!strcmp(name, "call"))
        return get_call(x, name, value, err);
    if (!strcmp(name, "key"))
        return get_text(name, value, &r->key, err);
    if (!strcmp(name, "creator"))
        return get_text(name, value, &r->creator, err);
    if (!strcmp(name, "traceparent"))
        return get_text(name, value, &r->traceparent, err);
    if (!strcmp(name, "tip"))
        return get_amount(name, value, x->tip, &r->tip, err);
    if (!strcmp(name, "max_tip"))
        return get_amount(name, value, x->max_tip, &r->max_tip, err);
    if (!strcmp(name, "not_before"))
        return get_time(name, value, &r->not_before_ms, err);
    if (!strcmp(name, "deadline"))
        return get_time(name, value, &r->deadline_ms, err);
    if (!strcmp(name, "delay"))
        return get_span(name, value, &r->delay_ms, err);
    if (!strcmp(name, "expires_in"))
        return get_span(name, value, &r->expires_in_ms, err);
    return 1;
}

static int enqueue_number(struct enqueue_json *x, const char *name, json_t *value, struct err *err)
{
    struct store_enqueue *r = &x->req;
    int64_t v = 0;
    int rc = 1;
    if (!strcmp(name, "priority")) {
        rc = get_int(name, value, -1000, 1000, &v, err);
        r->priority = (int32_t)v;
    } else if (!strcmp(name, "spec_version")) {
        rc = get_int(name, value, 0, INT32_MAX, &v, err);
        r->guard = (uint32_t)v;
    } else if (!strcmp(name, "retries")) {
        rc = get_int(name, value, 0, 100, &v, err);
        r->retries = (uint32_t)v;
    } else if (!strcmp(name, "deadline_block")) {
        rc = get_int(name, value, 1, INT64_MAX, &r->deadline_block, err);
    }
    return rc;
}

int enqueue_json_read(struct enqueue_json *x, json_t *request, struct err *err)
{
    const char *name;
    json_t *value;
    err_clear(err);
    if (!json_is_object(request))
        return err_set(err, ERR_ARGUMENT,
                       "a request is a JSON object, like {\"account\":..,\"call\":..}");
    x->request = json_incref(request);
    json_object_foreach(request, name, value)
    {
        if (json_is_null(value) || !strcmp(name, "cmd"))
            continue;
        int rc = enqueue_text(x, name, value, err);
        if (rc == 1)
            rc = enqueue_number(x, name, value, err);
        if (rc == 1)
            rc = err_set(
                err, ERR_ARGUMENT,
                "there is no field \"%.40s\"; there are account, call, key, creator, priority, "
                "not_before, deadline, spec_version, tip, max_tip, deadline_block, retries, "
                "delay, expires_in, traceparent",
                name);
        if (rc)
            return rc;
    }
    if (!x->req.account)
        return err_set(err, ERR_ARGUMENT,
                       "account is missing: it names who signs, by alias, id or address");
    if (!x->req.call.data)
        return err_set(err, ERR_ARGUMENT, "call is missing: the call's bytes in hexadecimal");
    return 0;
}

void enqueue_json_done(struct enqueue_json *x)
{
    json_decref(x->request);
    buf_done(&x->call);
}

/* ---- what is asked for later ---- */

static const struct ask_kind {
    const char *cmd;
    void (*start)(struct store *s, struct store_ask *r, store_cb cb);
    const char *fields[4]; /* the first one is required */
} asks[] = {{"cancel", store_cancel_start, {"id"}},
            {"bump", store_bump_start, {"id", "tip"}},
            {"resume", store_resume_start, {"account"}},
            {"retry", store_retry_start, {"id", "deadline", "deadline_block"}}};

static const struct ask_kind *ask_kind_of(const char *cmd)
{
    for (size_t i = 0; cmd && i < ARRAY_LEN(asks); i++)
        if (!strcmp(cmd, asks[i].cmd))
            return &asks[i];
    return NULL;
}

bool ask_json_is(const char *cmd)
{
    return ask_kind_of(cmd) != NULL;
}

/* A deadline in place of the one that the ended transaction had. */
static int get_deadline(json_t *value, int64_t *ret, struct err *err)
{
    const char *text = json_string_value(value);
    if (text && !strcmp(text, "infinity"))
        *ret = STORE_ASK_NONE;
    else
        return get_time("deadline", value, ret, err);
    return 0;
}

static int ask_field(struct ask_json *x, const char *name, json_t *value, struct err *err)
{
    if (!strcmp(name, "account"))
        return get_text(name, value, &x->req.account, err);
    if (!strcmp(name, "id"))
        return get_int(name, value, 1, INT64_MAX, &x->req.id, err);
    if (!strcmp(name, "tip"))
        return get_amount(name, value, x->tip, &x->req.tip, err);
    if (!strcmp(name, "deadline"))
        return get_deadline(value, &x->req.deadline_ms, err);
    PRE(!strcmp(name, "deadline_block"));
    int rc = get_int(name, value, 0, INT64_MAX - 1, &x->req.deadline_block, err);
    if (rc == 0 && x->req.deadline_block == 0)
        x->req.deadline_block = STORE_ASK_NONE;
    return rc;
}

static bool has_field(const struct ask_kind *kind, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kind->fields) && kind->fields[i]; i++)
        if (!strcmp(name, kind->fields[i]))
            return true;
    return false;
}

int ask_json_read(struct ask_json *x, const char *cmd, json_t *request, struct err *err)
{
    const struct ask_kind *kind = ask_kind_of(cmd);
    const char *name;
    json_t *value;
    PRE(kind);
    err_clear(err);
    x->request = json_incref(request);
    x->cmd = kind->cmd;
    x->start = kind->start;
    json_object_foreach(request, name, value)
    {
        if (json_is_null(value) || !strcmp(name, "cmd"))
            continue;
        if (!has_field(kind, name))
            return err_set(err, ERR_ARGUMENT, "%s has no field \"%.40s\"", cmd, name);
        if (ask_field(x, name, value, err))
            return err->code;
    }
    if (!x->req.account && !x->req.id)
        return err_set(err, ERR_ARGUMENT, "%s is missing: %s", kind->fields[0],
                       x->start == store_resume_start
                           ? "it names the account that goes on"
                           : "the number that the transaction got when it came");
    return 0;
}

void ask_json_done(struct ask_json *x)
{
    json_decref(x->request);
}

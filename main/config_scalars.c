/* libcyaml reads leading digits and ignores the rest: "5s" would be five milliseconds, "1.5" one,
 * and "010" eight. It reads almost every text as true: "flase" would accept any certificate. So
 * numbers and booleans are read again as text, with the same schema and strings in their places. A
 * value out of its range is refused and not replaced by the default. */
#include "config_scalars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS, YEAR_BLOCKS = 10000000 };

static const struct config_range ranges[] = {
    {"chain", "quorum", 1, 16}, /* cli_service.c wants as many endpoints */
    {"chain", "call_timeout_ms", 10, HOUR_MS},
    {"chain", "token_decimals", 0, UINT8_MAX},
    {"leadership", "heartbeat_ms", 10, HOUR_MS},
    {"leadership", "expiry_1_ms", 100, DAY_MS},
    {"leadership", "expiry_2_ms", 100, DAY_MS},
    {"leadership", "margin_ms", 1, DAY_MS},
    {"leadership", "bid_min_ms", 1, HOUR_MS},
    {"leadership", "bid_max_ms", 1, HOUR_MS},
    {"leadership", "rotate_blocks", 0, YEAR_BLOCKS}, /* 0: never */
    {"leadership", "handover_ms", 1, HOUR_MS},
    {"manager", "window", 1, 1000000},
    {"manager", "batch", 1, 10000},
    {"manager", "unanswered", 1, 100000},
    {"manager", "era_period", 0, 4096}, /* 0: immortal; config.c requires a power of two */
    {"manager", "reprobe_blocks", 1, YEAR_BLOCKS},
    {"manager", "gap_blocks", 1, YEAR_BLOCKS},
    {"http", "rate", 1, 1000000},
    {"webhooks", "timeout_ms", 100, 120000},
    {"sites", "range_blocks", 1, 1000000},
    {"sites", "approvals", 0, 31}, /* of an account's other sites: relay/sites_config.h */
    {"sites", "era_blocks", 16, 4096},
    {"retention", "keep_days", 1, 36500}, /* the largest value: for ever */
    {"retention", "interval_ms", 1, 30u * DAY_MS},
};

const struct config_range *config__range(size_t i)
{
    return i < ARRAY_LEN(ranges) ? &ranges[i] : NULL;
}

static const struct config_range *range_of(const char *section, const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        if (!strcmp(ranges[i].section, section) && !strcmp(ranges[i].key, key))
            return &ranges[i];
    return NULL;
}

enum { SECTIONS_MAX = 12, SCALARS_MAX = 16, TEXT_MAX = 1 << 30 };

struct texts {
    char *of[SECTIONS_MAX][SCALARS_MAX];
};

struct text_schema {
    cyaml_schema_field_t fields[SECTIONS_MAX][SCALARS_MAX + 1], sections[SECTIONS_MAX + 1];
};

/* Only these are read here: strings and lists are libcyaml's. */
static bool is_scalar(const cyaml_schema_field_t *f)
{
    return f->value.type == CYAML_UINT || f->value.type == CYAML_INT || f->value.type == CYAML_BOOL;
}

/* The numbers and booleans of a section as strings; false: it has none. */
static bool scalars_of(const char *section, const cyaml_schema_field_t *fields,
                       cyaml_schema_field_t *ret)
{
    size_t n = 0;
    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        if (!is_scalar(f))
            continue;
        INVARIANT(n < SCALARS_MAX);
        INVARIANT((f->value.type == CYAML_BOOL) == !range_of(section, f->key));
        ret[n] = (cyaml_schema_field_t){
            .key = f->key,
            .data_offset = (uint32_t)(n * sizeof(char *)),
            .value = {
                CYAML_VALUE_STRING(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char *, 0, TEXT_MAX)}};
        n++;
    }
    return n > 0;
}

static void text_schema(const cyaml_schema_field_t *sections, struct text_schema *ret)
{
    size_t n = 0;
    *ret = (struct text_schema){0};
    for (const cyaml_schema_field_t *f = sections; f->key; f++) {
        if (f->value.type != CYAML_MAPPING ||
            !scalars_of(f->key, f->value.mapping.fields, ret->fields[n]))
            continue;
        ret->sections[n] = (cyaml_schema_field_t){
            .key = f->key,
            .data_offset = (uint32_t)(n * sizeof(((struct texts *)0)->of[0])),
            .value = {.type = CYAML_MAPPING,
                      .flags = CYAML_FLAG_OPTIONAL,
                      .data_size = sizeof(((struct texts *)0)->of[0]),
                      .mapping.fields = ret->fields[n]}};
        n++;
        INVARIANT(n < SECTIONS_MAX);
    }
}

static bool whole(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    return digits && !text[digits] && (digits == 1 || text[0] != '0');
}

static bool in_range(const char *text, const struct config_range *range)
{
    errno = 0;
    unsigned long long n = strtoull(text, NULL, 10);
    return errno == 0 && n >= range->least && n <= range->most;
}

/* One value. `range` NULL: a boolean. */
static int check_value(const char *path, const char *section, const char *key, const char *text,
                       const struct config_range *range, struct err *err)
{
    bool number = range != NULL;
    if (!number && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return err_set(err, ERR_CONFIG,
                       "config file '%s': %s.%s is '%.60s'; it must be true or false", path,
                       section, key, text);
    if (number && !whole(text))
        return err_set(err, ERR_CONFIG,
                       "config file '%s': %s.%s '%.60s' is not a whole number: give digits alone "
                       "(docs/config.md has the unit of every key)",
                       path, section, key, text);
    if (number && !in_range(text, range))
        return err_set(err, ERR_CONFIG,
                       "config file '%s': %s.%s is %.60s; it must be from %u to %u", path, section,
                       key, text, range->least, range->most);
    return 0;
}

static int check(const char *path, const struct text_schema *schema, const struct texts *texts,
                 struct err *err)
{
    for (size_t s = 0; schema->sections[s].key; s++)
        for (size_t n = 0; schema->fields[s][n].key; n++) {
            const char *section = schema->sections[s].key, *key = schema->fields[s][n].key;
            const char *text = texts->of[s][n];
            if (text && check_value(path, section, key, text, range_of(section, key), err))
                return err->code;
        }
    return 0;
}

int config__scalars(const char *path, const struct buf *text, const cyaml_config_t *config,
                    const cyaml_schema_field_t *sections, struct err *err)
{
    struct text_schema schema;
    struct texts *texts = NULL;
    cyaml_config_t lenient = *config;
    lenient.flags |= CYAML_CFG_IGNORE_UNKNOWN_KEYS;
    text_schema(sections, &schema);
    const cyaml_schema_value_t file = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, schema.sections)};
    cyaml_err_t rc =
        cyaml_load_data(text->data, text->len, &lenient, &file, (cyaml_data_t **)&texts, NULL);
    if (rc != CYAML_OK || !texts)
        return err_set(err, ERR_CONFIG, "config file '%s': %s", path, cyaml_strerror(rc));
    int bad = check(path, &schema, texts, err);
    for (size_t i = 0; i < SECTIONS_MAX * SCALARS_MAX; i++)
        free(texts->of[i / SCALARS_MAX][i % SCALARS_MAX]);
    free(texts);
    return bad;
}

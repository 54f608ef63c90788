/* libcyaml takes as many digits as there are and leaves the rest: "5s" would be five milliseconds, "1.5" one,
 * and "010" eight. So the numbers are read once more, as text: the same schema, with strings in their places.
 */
#include "config_numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { SECTIONS_MAX = 8, NUMBERS_MAX = 16, TEXT_MAX = 4096 };

struct texts {
    char *of[SECTIONS_MAX][NUMBERS_MAX];
};

struct text_schema {
    cyaml_schema_field_t fields[SECTIONS_MAX][NUMBERS_MAX + 1], sections[SECTIONS_MAX + 1];
};

/* The numbers of a section as strings; false: it has none. */
static bool numbers_of(const cyaml_schema_field_t *fields, cyaml_schema_field_t *ret)
{
    size_t n = 0;
    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        if (f->value.type != CYAML_UINT && f->value.type != CYAML_INT)
            continue;
        INVARIANT(n < NUMBERS_MAX);
        ret[n] = (cyaml_schema_field_t){
            .key = f->key,
            .data_offset = (uint32_t)(n * sizeof(char *)),
            .value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, char *, 0, TEXT_MAX)}};
        n++;
    }
    return n > 0;
}

static void text_schema(const cyaml_schema_field_t *sections, struct text_schema *ret)
{
    size_t n = 0;
    *ret = (struct text_schema){0};
    for (const cyaml_schema_field_t *f = sections; f->key; f++) {
        if (f->value.type != CYAML_MAPPING || !numbers_of(f->value.mapping.fields, ret->fields[n]))
            continue;
        ret->sections[n] =
            (cyaml_schema_field_t){.key = f->key,
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

static int check(const char *path, const struct text_schema *schema, const struct texts *texts,
                 struct err *err)
{
    for (size_t s = 0; schema->sections[s].key; s++)
        for (size_t n = 0; schema->fields[s][n].key; n++)
            if (texts->of[s][n] && !whole(texts->of[s][n]))
                return err_set(err, ERR_CONFIG,
                               "config file '%s': %s.%s '%s' is not a whole number: give digits alone "
                               "(docs/config.md has the unit of every key)",
                               path, schema->sections[s].key, schema->fields[s][n].key, texts->of[s][n]);
    return 0;
}

int config__numbers(const char *path, const struct buf *text, const cyaml_config_t *config,
                    const cyaml_schema_field_t *sections, struct err *err)
{
    struct text_schema schema;
    struct texts *texts = NULL;
    cyaml_config_t lenient = *config;
    lenient.flags |= CYAML_CFG_IGNORE_UNKNOWN_KEYS;
    text_schema(sections, &schema);
    const cyaml_schema_value_t file = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct texts, schema.sections)};
    cyaml_err_t rc = cyaml_load_data(text->data, text->len, &lenient, &file, (cyaml_data_t **)&texts, NULL);
    if (rc != CYAML_OK || !texts)
        return err_set(err, ERR_CONFIG, "config file '%s': %s", path, cyaml_strerror(rc));
    int bad = check(path, &schema, texts, err);
    for (size_t i = 0; i < SECTIONS_MAX * NUMBERS_MAX; i++)
        free(texts->of[i / NUMBERS_MAX][i % NUMBERS_MAX]);
    free(texts);
    return bad;
}

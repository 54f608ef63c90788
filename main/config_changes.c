/* What differs between two configurations, found by the schema that reads them. */
#include "config_changes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static bool same(const cyaml_schema_value_t *v, const uint8_t *a, uint64_t a_count,
                 const uint8_t *b, uint64_t b_count);

static uint64_t count_at(const cyaml_schema_field_t *f, const uint8_t *record)
{
    uint64_t n = 0;
    if (f->value.type == CYAML_SEQUENCE)
        memcpy(&n, record + f->count_offset,
               f->count_size); /* little-endian, as all we build for */
    return n;
}

static bool same_fields(const cyaml_schema_field_t *fields, const uint8_t *a, const uint8_t *b)
{
    for (const cyaml_schema_field_t *f = fields; f->key; f++)
        if (!same(&f->value, a + f->data_offset, count_at(f, a), b + f->data_offset,
                  count_at(f, b)))
            return false;
    return true;
}

static bool same_items(const cyaml_schema_value_t *entry, const uint8_t *a, const uint8_t *b,
                       uint64_t count)
{
    size_t step = entry->flags & CYAML_FLAG_POINTER ? sizeof(void *) : entry->data_size;
    for (uint64_t i = 0; i < count; i++)
        if (!same(entry, a + i * step, 0, b + i * step, 0))
            return false;
    return true;
}

static bool same(const cyaml_schema_value_t *v, const uint8_t *a, uint64_t a_count,
                 const uint8_t *b, uint64_t b_count)
{
    if (v->flags & CYAML_FLAG_POINTER) {
        const uint8_t *const fields[] = {a, b};
        memcpy(&a, fields[0], sizeof(void *));
        memcpy(&b, fields[1], sizeof(void *));
        if (!a || !b)
            return !a && !b;
    }
    if (v->type == CYAML_STRING)
        return !strcmp((const char *)a, (const char *)b);
    if (v->type == CYAML_MAPPING)
        return same_fields(v->mapping.fields, a, b);
    if (v->type == CYAML_SEQUENCE)
        return a_count == b_count && same_items(v->sequence.entry, a, b, a_count);
    return !memcmp(a, b, v->data_size);
}

void config__changes(const char *section, const cyaml_schema_field_t *fields, const void *from,
                     const void *to, void (*each)(void *arg, const char *key), void *arg)
{
    PRE(from && to);
    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        const uint8_t *a = from, *b = to;
        char key[80];
        snprintf(key, sizeof(key), "%s%s%s", section, *section ? "." : "", f->key);
        if (f->value.type == CYAML_MAPPING)
            config__changes(key, f->value.mapping.fields, a + f->data_offset, b + f->data_offset,
                            each, arg);
        else if (!same(&f->value, a + f->data_offset, count_at(f, a), b + f->data_offset,
                       count_at(f, b)))
            each(arg, key);
    }
}

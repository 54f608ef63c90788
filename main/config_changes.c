/* What differs between two configurations, and what one holds, found by the schema that reads
 * them. */
#include "config_changes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
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

static size_t step_of(const cyaml_schema_value_t *entry)
{
    return entry->flags & CYAML_FLAG_POINTER ? sizeof(void *) : entry->data_size;
}

static bool same_items(const cyaml_schema_value_t *entry, const uint8_t *a, const uint8_t *b,
                       uint64_t count)
{
    size_t step = step_of(entry);
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

/* ---- what one holds ---- */

/* False: the key is not set. A number that is not set is 0, and so is a truth. */
static bool put_value(struct buf *out, const cyaml_schema_value_t *v, const uint8_t *at)
{
    uint32_t number = 0;
    if (v->flags & CYAML_FLAG_POINTER) {
        const uint8_t *const field = at;
        memcpy(&at, field, sizeof(void *));
        if (!at)
            return false;
    }
    if (v->type == CYAML_STRING) {
        buf_puts(out, (const char *)at);
        return true;
    }
    PRE((v->type == CYAML_UINT || v->type == CYAML_BOOL) && v->data_size <= sizeof(number));
    memcpy(&number, at, v->data_size); /* little-endian */
    if (v->type == CYAML_BOOL)
        buf_puts(out, number ? "true" : "false");
    else
        buf_printf(out, "%u", number);
    return number || (v->flags & CYAML_FLAG_POINTER);
}

/* The elements of a list; NULL: it is not set. */
static const uint8_t *items_at(const cyaml_schema_field_t *f, const uint8_t *record)
{
    const uint8_t *items;
    memcpy(&items, record + f->data_offset, sizeof(void *));
    return items;
}

/* A list in an element of another list: its values with commas between them. */
static bool put_list(struct buf *out, const cyaml_schema_field_t *f, const uint8_t *record)
{
    const cyaml_schema_value_t *entry = f->value.sequence.entry;
    uint64_t count = count_at(f, record);
    for (uint64_t i = 0; i < count; i++) {
        buf_puts(out, i ? "," : "");
        put_value(out, entry, items_at(f, record) + i * step_of(entry));
    }
    return count > 0;
}

/* An element of a list: "key=value key=value", without the keys that are not set. */
static void put_item(struct buf *out, const cyaml_schema_value_t *entry, const uint8_t *at)
{
    if (entry->type != CYAML_MAPPING) {
        put_value(out, entry, at);
        return;
    }
    for (const cyaml_schema_field_t *f = entry->mapping.fields; f->key; f++) {
        struct buf text = {0};
        if (f->value.type == CYAML_SEQUENCE ? put_list(&text, f, at)
                                            : put_value(&text, &f->value, at + f->data_offset))
            buf_printf(out, "%s%s=%s", out->len ? " " : "", f->key, buf_str(&text));
        buf_done(&text);
    }
}

static void each_item(const char *key, const cyaml_schema_field_t *f, const uint8_t *record,
                      void (*each)(void *arg, const char *key, const char *text), void *arg)
{
    const cyaml_schema_value_t *entry = f->value.sequence.entry;
    uint64_t count = count_at(f, record);
    for (uint64_t i = 0; i < count; i++) {
        struct buf text = {0};
        put_item(&text, entry, items_at(f, record) + i * step_of(entry));
        each(arg, key, buf_str(&text));
        buf_done(&text);
    }
    if (!count)
        each(arg, key, NULL);
}

void config__values(const char *section, const cyaml_schema_field_t *fields, const void *record,
                    void (*each)(void *arg, const char *key, const char *text), void *arg)
{
    for (const cyaml_schema_field_t *f = fields; f->key; f++) {
        const uint8_t *at = record;
        char key[80];
        snprintf(key, sizeof(key), "%s%s%s", section, *section ? "." : "", f->key);
        if (f->value.type == CYAML_MAPPING) {
            config__values(key, f->value.mapping.fields, at + f->data_offset, each, arg);
        } else if (f->value.type == CYAML_SEQUENCE) {
            each_item(key, f, at, each, arg);
        } else {
            struct buf text = {0};
            bool given = put_value(&text, &f->value, at + f->data_offset);
            each(arg, key, given ? buf_str(&text) : NULL);
            buf_done(&text);
        }
    }
}

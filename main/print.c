/* Results of statements on standard output: tables, one record, JSON lines. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/utf8.h"
#include "cli.h"
#include "command.h"

/* Types of columns (pg_type.oid). Amounts are numeric and stay text in JSON: they may be too large
 * for a reader's numbers. */
enum {
    TYPE_BOOL = 16,
    TYPE_INT8 = 20,
    TYPE_INT2 = 21,
    TYPE_INT4 = 23,
    TYPE_TIMESTAMPTZ = 1184,
    TYPE_JSONB = 3802
};
enum { LINE_MAX_CHARS = 100, CELL_MIN = 8, FRACTION = 6 };

static bool is_integer(uint32_t type)
{
    return type == TYPE_INT8 || type == TYPE_INT2 || type == TYPE_INT4;
}

/* ---- values ---- */

/* 2026-11-29 15:43:16.5+00, which every session of ours prints, as 2026-11-29T15:43:16.500000Z. */
static void put_time(struct buf *out, const char *text)
{
    const char *end = strchr(text, '+'), *dot = strchr(text, '.');
    if (!end || strlen(text) < strlen("2026-11-29 15:43:16+00")) { /* infinity */
        buf_puts(out, text);
        return;
    }
    buf_printf(out, "%.10sT%.8s.", text, text + 11);
    int digits = dot ? (int)(end - dot - 1) : 0;
    buf_printf(out, "%.*s%.*sZ", digits, dot ? dot + 1 : "", FRACTION - digits, "000000");
}

/* Two digits at least, so that the figure is exact within a few percent. */
static void put_age(struct buf *out, const char *seconds)
{
    static const struct {
        long long seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}};
    long long s = strtoll(seconds, NULL, 10);
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (s >= 10 * units[i].seconds) {
            buf_printf(out, "%lld%c", s / units[i].seconds, units[i].unit);
            return;
        }
    buf_printf(out, "%llds", s);
}

static bool is_age(const char *name)
{
    size_t len = strlen(name);
    return len >= 5 && !strcmp(name + len - 5, "age_s");
}

static json_t *json_value(const struct conn_result *r, int row, int col)
{
    int len;
    uint32_t type = conn_result_type(r, col);
    if (conn_result_is_null(r, row, col))
        return json_null();
    const char *text = conn_result_get(r, row, col, &len);
    if (type == TYPE_BOOL)
        return json_boolean(*text == 't');
    if (is_integer(type))
        return json_integer(strtoll(text, NULL, 10));
    if (type == TYPE_JSONB)
        return json_loadb(text, (size_t)len, JSON_DECODE_ANY, NULL);
    if (type != TYPE_TIMESTAMPTZ)
        return json_stringn(text, (size_t)len);
    struct buf time = {0};
    put_time(&time, text);
    json_t *value = json_string(buf_str(&time));
    buf_done(&time);
    return value;
}

void cli_print_json(const struct conn_result *r)
{
    for (int i = 0; i < conn_result_rows(r); i++) {
        json_t *line = json_object();
        for (int c = 0; c < conn_result_columns(r); c++)
            json_object_set_new(line, conn_result_name(r, c), json_value(r, i, c));
        /* ASCII: terminals take some characters beyond it for the begin of a sequence. */
        char *text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts(text);
        free(text);
        json_decref(line);
    }
}

/* A list of names as a,b; anything else as it is. */
static void put_jsonb(struct buf *out, const char *text, size_t len)
{
    size_t i;
    json_t *item, *list = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (!json_is_array(list))
        buf_put_plain(out, text, len);
    json_array_foreach(list, i, item)
    {
        buf_puts(out, i ? "," : "");
        const char *name = json_string_value(item);
        buf_put_plain(out, name ? name : "?", name ? json_string_length(item) : 1);
    }
    json_decref(list);
}

/* What people read. An application's text must not reach the terminal as escape sequences. */
static void put_cell(struct buf *out, const struct conn_result *r, int row, int col)
{
    int len;
    uint32_t type = conn_result_type(r, col);
    buf_clear(out);
    if (conn_result_is_null(r, row, col)) {
        buf_puts(out, "-");
        return;
    }
    const char *text = conn_result_get(r, row, col, &len);
    if (is_age(conn_result_name(r, col)))
        put_age(out, text);
    else if (type == TYPE_BOOL)
        buf_puts(out, *text == 't' ? "yes" : "no");
    else if (type == TYPE_TIMESTAMPTZ)
        put_time(out, text);
    else if (type == TYPE_JSONB)
        put_jsonb(out, text, (size_t)len);
    else
        buf_put_plain(out, text, (size_t)len);
}

/* ---- tables ---- */

enum { SHOWN_MAX = 32, EITHER_MAX = 2 };

/* A column of the table: the first of its columns of the result that is not NULL. */
struct shown {
    char name[24];
    int from[EITHER_MAX], sources;
    int width;
};

struct table {
    const struct conn_result *r;
    struct shown column[SHOWN_MAX];
    int columns;
    struct buf cell;
};

static int find(const struct conn_result *r, const char *name, size_t len)
{
    for (int c = 0; c < conn_result_columns(r); c++)
        if (strlen(conn_result_name(r, c)) == len && !strncmp(conn_result_name(r, c), name, len))
            return c;
    UNREACHABLE();
}

static void add_column(struct table *t, const char *name, size_t len)
{
    PRE(t->columns < SHOWN_MAX);
    struct shown *s = &t->column[t->columns++];
    size_t shown = is_age(name) ? len - 2 : len;
    snprintf(s->name, sizeof(s->name), "%.*s", (int)shown, name);
}

static void add_source(struct shown *s, int col)
{
    PRE(s->sources < EITHER_MAX);
    s->from[s->sources++] = col;
}

/* "id state=outcome|state age_s": id, then what outcome has, else state, and so on. */
static void choose_columns(struct table *t, const char *list)
{
    while (*list) {
        size_t word = strcspn(list, " "), name = strcspn(list, " =");
        const char *from = name < word ? list + name + 1 : list, *end = list + word;
        char text[24];
        snprintf(text, sizeof(text), "%.*s", (int)name, list);
        add_column(t, text, strlen(text));
        for (size_t len; from < end; from += len + 1) {
            len = strcspn(from, "| ");
            add_source(&t->column[t->columns - 1], find(t->r, from, len));
        }
        list = end + strspn(end, " ");
    }
}

static void all_columns(struct table *t)
{
    for (int c = 0; c < conn_result_columns(t->r); c++) {
        const char *name = conn_result_name(t->r, c);
        add_column(t, name, strlen(name));
        add_source(&t->column[c], c);
    }
}

static const char *cell_of(struct table *t, int row, const struct shown *s)
{
    int at = 0;
    while (at + 1 < s->sources && conn_result_is_null(t->r, row, s->from[at]))
        at++;
    put_cell(&t->cell, t->r, row, s->from[at]);
    return buf_str(&t->cell);
}

static void measure(struct table *t)
{
    for (int c = 0; c < t->columns; c++) {
        struct shown *s = &t->column[c];
        s->width = (int)strlen(s->name);
        for (int i = 0; i < conn_result_rows(t->r); i++) {
            int width = utf8_count(cell_of(t, i, s));
            if (width > s->width)
                s->width = width;
        }
    }
}

/* Takes from the widest column until a line fits. */
static void fit(struct table *t)
{
    for (;;) {
        struct shown *widest = &t->column[0];
        int line = 2 * (t->columns - 1);
        for (int c = 0; c < t->columns; c++) {
            line += t->column[c].width;
            if (t->column[c].width > widest->width)
                widest = &t->column[c];
        }
        if (line <= LINE_MAX_CHARS || widest->width <= CELL_MIN)
            return;
        widest->width--;
    }
}

/* A text that was cut ends with "..". The last cell of a line is not padded. */
static void print_cell(const char *text, int width, bool last)
{
    bool cut = utf8_count(text) > width;
    int left = cut ? width - 2 : width;
    const char *end = text;
    for (; *end && (left > 0 || ((unsigned char)*end & 0xc0) == 0x80); end++)
        left -= ((unsigned char)end[1] & 0xc0) != 0x80;
    printf("%.*s%s", (int)(end - text), text, cut ? ".." : "");
    if (last)
        putchar('\n');
    else
        printf("%*s", left + 2, "");
}

void cli_print_table(const struct conn_result *r, const char *columns, bool wide)
{
    struct table t = {.r = r};
    if (columns && !wide)
        choose_columns(&t, columns);
    else
        all_columns(&t);
    measure(&t);
    if (columns && !wide)
        fit(&t);
    for (int c = 0; c < t.columns; c++)
        print_cell(t.column[c].name, t.column[c].width, c + 1 == t.columns);
    for (int i = 0; i < conn_result_rows(r); i++)
        for (int c = 0; c < t.columns; c++)
            print_cell(cell_of(&t, i, &t.column[c]), t.column[c].width, c + 1 == t.columns);
    buf_done(&t.cell);
}

void cli_print_rows(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    if (a->json)
        cli_print_json(r);
    else if (conn_result_rows(r))
        cli_print_table(r, a->columns, a->wide);
    else if (a->nothing)
        fprintf(stderr, "txrelay: %s\n", a->nothing);
}

void cli_print_record(void *arg, const struct conn_result *r)
{
    const struct arguments *a = arg;
    struct buf cell = {0};
    if (a->json) {
        cli_print_json(r);
        return;
    }
    for (int i = 0; i < conn_result_rows(r); i++)
        for (int c = 0; c < conn_result_columns(r); c++) {
            const char *name = conn_result_name(r, c);
            if (conn_result_is_null(r, i, c))
                continue;
            put_cell(&cell, r, i, c);
            printf("%-14.*s%s\n", (int)strlen(name) - 2 * is_age(name), name, buf_str(&cell));
        }
    buf_done(&cell);
}

void cli_print_value(void *arg, const struct conn_result *r)
{
    struct buf cell = {0};
    int len;
    (void)arg;
    if (conn_result_rows(r) && !conn_result_is_null(r, 0, 0)) {
        const char *text = conn_result_get(r, 0, 0, &len);
        buf_put_plain(&cell, text, (size_t)len);
        puts(buf_str(&cell));
    }
    buf_done(&cell);
}

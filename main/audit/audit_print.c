#include "audit/audit_print.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/utf8.h"

enum { DAY_S = 86400 };

static const char *day_text(int64_t day, char out[40])
{
    time_t t = (time_t)(day * DAY_S);
    struct tm tm;
    if (day < 0)
        return "";
    gmtime_r(&t, &tm);
    strftime(out, 40, "%Y-%m-%d", &tm);
    return out;
}

static const char *time_text(int64_t ms, char out[40])
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;
    if (ms < 0)
        return "";
    gmtime_r(&t, &tm);
    strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

static int by_name(const void *a, const void *b)
{
    const struct audit_sum *x = a, *y = b;
    if (x->account != y->account)
        return x->account < y->account ? -1 : 1;
    if (x->day != y->day)
        return x->day < y->day ? -1 : 1;
    return strcmp(x->creator, y->creator);
}

static void sort(const struct audit *a)
{
    if (a->sum_count)
        qsort(a->sums, a->sum_count, sizeof(*a->sums), by_name);
}

/* ---- text ---- */

enum { SUM_COLUMNS = 5 + AUDIT_CLASSES, SUM_TEXTS = 3, CELL_SIZE = 200 };

static const char *const sum_names[SUM_COLUMNS] = {"account", "day",         "creator", "ok",
                                                   "failed",  "filler",      "foreign", "open",
                                                   "fees",    "foreign_fees"};

/* A creator is an application's text, which must not reach the terminal as escape sequences. */
static void sum_cell(const struct audit *a, const struct audit_sum *s, int col, char out[CELL_SIZE])
{
    char text[40];
    struct buf plain = {0};
    if (col == 1)
        buf_puts(&plain, day_text(s->day, text));
    else if (col == 0 || col == 2) {
        const char *from = col ? s->creator : a->accounts[s->account].alias;
        buf_put_plain(&plain, from, strlen(from));
    } else if (col < SUM_TEXTS + AUDIT_CLASSES)
        buf_printf(&plain, "%llu", (unsigned long long)s->count[col - SUM_TEXTS]);
    else
        buf_puts(&plain, u128_text(col == SUM_COLUMNS - 1 ? s->foreign : s->fees, text));
    snprintf(out, CELL_SIZE, "%s", buf_str(&plain)[0] ? buf_str(&plain) : "-");
    buf_done(&plain);
}

/* Each column is as wide as its longest cell: no figure is cut. */
static void print_sums(const struct audit *a)
{
    char cell[CELL_SIZE];
    int width[SUM_COLUMNS];
    for (int c = 0; c < SUM_COLUMNS; c++) {
        width[c] = (int)strlen(sum_names[c]);
        for (size_t i = 0; i < a->sum_count; i++) {
            sum_cell(a, &a->sums[i], c, cell);
            if (utf8_count(cell) > width[c])
                width[c] = utf8_count(cell);
        }
    }
    for (size_t i = 0; i <= a->sum_count; i++)
        for (int c = 0; c < SUM_COLUMNS; c++) {
            if (i == 0)
                snprintf(cell, sizeof(cell), "%s", sum_names[c]);
            else
                sum_cell(a, &a->sums[i - 1], c, cell);
            int pad = width[c] - utf8_count(cell);
            if (c < SUM_TEXTS)
                printf("%s%*s  ", cell, pad, "");
            else
                printf("%*s%s%s", pad, "", cell, c < SUM_COLUMNS - 1 ? "  " : "\n");
        }
}

static void print_finding(const struct audit *a, const struct audit_finding *f)
{
    struct buf text = {0};
    buf_put_plain(&text, f->text, strlen(f->text));
    printf("  %s", a->accounts[f->account].alias);
    if (f->nonce >= 0)
        printf(" nonce %lld", (long long)f->nonce);
    if (f->id)
        printf(", transaction %lld", (long long)f->id);
    if (f->block)
        printf(", block %llu", (unsigned long long)f->block);
    printf(": %s\n", buf_str(&text));
    buf_done(&text);
}

void audit_print_text(const struct audit *a, const struct audit_range *range)
{
    char from[40], to[40];
    sort(a);
    printf("blocks %llu to %llu (%s to %s), read from %s\n", (unsigned long long)range->from,
           (unsigned long long)range->to, time_text(range->from_ms, from),
           time_text(range->to_ms, to), range->endpoint);
    printf("%llu extrinsics of %zu accounts, %llu records that name these blocks\n",
           (unsigned long long)a->extrinsics, a->account_count, (unsigned long long)a->records);
    if (a->unread)
        printf("%llu extrinsics do not decode with the metadata of their block: whose they are is "
               "not known\n",
               (unsigned long long)a->unread);
    if (a->sum_count)
        print_sums(a);
    if (!a->finding_count)
        printf("nothing is wrong\n");
    else
        printf("%zu findings\n", a->finding_count);
    for (size_t i = 0; i < a->finding_count; i++)
        print_finding(a, &a->findings[i]);
}

/* ---- for programs ---- */

static json_t *text_or_null(const char *text)
{
    return *text ? json_string(text) : json_null();
}

static json_t *sum_json(const struct audit *a, const struct audit_sum *s)
{
    char day[40], fee[40], foreign[40];
    json_t *x =
        json_pack("{s:s, s:o, s:o, s:s, s:s}", "account", a->accounts[s->account].alias, "day",
                  text_or_null(day_text(s->day, day)), "creator", text_or_null(s->creator), "fees",
                  u128_text(s->fees, fee), "foreign_fees", u128_text(s->foreign, foreign));
    for (int k = 0; k < AUDIT_CLASSES; k++)
        json_object_set_new(x, audit_class_name((enum audit_class)k),
                            json_integer((json_int_t)s->count[k]));
    return x;
}

static json_t *finding_json(const struct audit *a, const struct audit_finding *f)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:s}", "account", a->accounts[f->account].alias, "nonce",
                     f->nonce < 0 ? json_null() : json_integer(f->nonce), "id",
                     f->id ? json_integer(f->id) : json_null(), "block",
                     f->block ? json_integer((json_int_t)f->block) : json_null(), "text", f->text);
}

void audit_print_json(const struct audit *a, const struct audit_range *range)
{
    char from[40], to[40];
    json_t *sums = json_array(), *findings = json_array();
    sort(a);
    for (size_t i = 0; i < a->sum_count; i++)
        json_array_append_new(sums, sum_json(a, &a->sums[i]));
    for (size_t i = 0; i < a->finding_count; i++)
        json_array_append_new(findings, finding_json(a, &a->findings[i]));
    json_t *all = json_pack(
        "{s:I, s:I, s:o, s:o, s:s, s:I, s:I, s:I, s:o, s:o}", "from", (json_int_t)range->from, "to",
        (json_int_t)range->to, "from_time", text_or_null(time_text(range->from_ms, from)),
        "to_time", text_or_null(time_text(range->to_ms, to)), "endpoint", range->endpoint,
        "extrinsics", (json_int_t)a->extrinsics, "records", (json_int_t)a->records, "unread",
        (json_int_t)a->unread, "sums", sums, "findings", findings);
    json_dumpf(all, stdout, JSON_COMPACT | JSON_ENSURE_ASCII); /* as cli_print_json */
    putchar('\n');
    json_decref(all);
}

/* RFC 4180: quotes where they are needed. */
static void csv_text(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (char[]){*text, 0}, stdout);
    putchar('"');
}

void audit_print_csv(const struct audit *a)
{
    char day[40], fee[40], foreign[40];
    sort(a);
    printf("account,day,creator,ok,dispatch_error,filler,foreign,open,fees,foreign_fees\n");
    for (size_t i = 0; i < a->sum_count; i++) {
        const struct audit_sum *s = &a->sums[i];
        csv_text(a->accounts[s->account].alias);
        printf(",%s,", day_text(s->day, day));
        csv_text(s->creator);
        for (int k = 0; k < AUDIT_CLASSES; k++)
            printf(",%llu", (unsigned long long)s->count[k]);
        printf(",%s,%s\n", u128_text(s->fees, fee), u128_text(s->foreign, foreign));
    }
    for (size_t i = 0; i < a->finding_count; i++) {
        const struct audit_finding *f = &a->findings[i];
        fprintf(stderr, "txrelay: %s nonce %lld, block %llu: %s\n", a->accounts[f->account].alias,
                (long long)f->nonce, (unsigned long long)f->block, f->text);
    }
}

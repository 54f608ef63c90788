/* Manual pages in man(7), which groff and mandoc read. */
#include <ctype.h>
#include <string.h>

#include "describe.h"

/* A text in roff: a line that begins with a dot or an apostrophe would be a request. */
static void put(FILE *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else if (i == 0 && (text[i] == '.' || text[i] == '\''))
            fprintf(out, "\\&%c", text[i]);
        else
            fputc(text[i], out);
    }
}

static void text(FILE *out, const char *s)
{
    put(out, s, strlen(s));
}

/* The year is that of the project's version and not of the build, whose bytes must not depend on
 * the day. */
static void title(FILE *out, const char *name, const char *section)
{
    fprintf(out, ".TH \"%s\" %s \"\" \"txrelay %s\" \"txrelay\"\n", name, section, TXRELAY_VERSION);
}

static void put_option(void *arg, const struct argp_option *o)
{
    FILE *out = arg;
    fputs(".TP\n", out);
    if (isascii(o->key) && isprint(o->key))
        fprintf(out, "\\fB\\-%c\\fR, ", o->key);
    fputs("\\fB\\-\\-", out);
    text(out, o->name);
    fputs("\\fR", out);
    if (o->arg) {
        fputs("=\\fI", out);
        text(out, o->arg);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    text(out, o->doc);
    fputc('\n', out);
}

void describe_manual_of(FILE *out, const struct command *c)
{
    char name[64];
    snprintf(name, sizeof(name), "txrelay-%s", c->name);
    title(out, name, "1");
    fprintf(out, ".SH NAME\ntxrelay\\-%s \\- ", c->name);
    text(out, c->what);
    fputs("\n.SH SYNOPSIS\n", out);
    const char *args = c->args_doc ? c->args_doc : "";
    do { /* one form of the command in each line */
        size_t len = strcspn(args, "\n");
        fprintf(out, ".B txrelay %s\n[\\fIOPTION\\fR...] \\fI", c->name);
        put(out, args, len);
        fputs("\\fR\n.br\n", out);
        args += len + (args[len] == '\n');
    } while (*args);
    fputs(".SH DESCRIPTION\n", out);
    text(out, c->doc);
    fputs("\n.SH OPTIONS\n", out);
    command_each_option(c, put_option, out);
    fputs(".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nprint the options\n"
          ".SH SEE ALSO\n.BR txrelay (1),\n.BR txrelay.yaml (5)\n",
          out);
}

void describe_manual(FILE *out)
{
    title(out, "txrelay", "1");
    fputs(".SH NAME\ntxrelay \\- a transactional outbox and pending\\-transaction relay for "
          "Substrate chains\n"
          ".SH SYNOPSIS\n.B txrelay\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.br\n"
          ".B txrelay \\-\\-version\n"
          ".SH DESCRIPTION\nApplications put transactions into Postgres inside their own database "
          "transaction. Relays sign and submit them, and follow each one to its final outcome.\n"
          ".SH COMMANDS\n",
          out);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(out, ".TP\n.BR txrelay\\-%s (1)\n", (*c)->name);
        text(out, (*c)->what);
        fputc('\n', out);
    }
    fputs(".SH EXIT STATUS\n"
          ".TP\n0\nThe command has done what it was asked for.\n"
          ".TP\n1\nIt failed; standard error has the reason.\n"
          ".TP\n2\nThe command line or the configuration is wrong.\n"
          ".TP\n3\ntxrelay wait: the timeout has passed.\n"
          ".TP\n4\ntxrelay wait: the transaction has another outcome.\n"
          ".TP\n5\ntxrelay wait: no endpoint can show whether the transaction took effect.\n"
          ".SH ENVIRONMENT\n"
          ".TP\nTXRELAY_CONFIG\nThe configuration file, as \\-\\-config.\n"
          ".TP\nTXRELAY_DATABASE\nThe libpq connection string, as \\-\\-database.\n"
          ".TP\nTXRELAY_ENDPOINTS\nThe chain's nodes, as \\-\\-endpoint.\n"
          ".TP\nTXRELAY_NAME\nThe name of this relay, as \\-\\-name.\n"
          ".TP\nTXRELAY_CONTROL\nThe control endpoint, as \\-\\-control.\n"
          ".TP\nTXRELAY_METRICS\nThe metrics endpoint, 127.0.0.1:PORT.\n"
          ".TP\nTXRELAY_LOG_FORMAT\nThe form of the log: logfmt or json.\n"
          ".TP\nTXRELAY_LOG_LEVEL\nThe log level, as \\-\\-log\\-level.\n"
          ".SH SIGNALS\n"
          ".TP\nSIGTERM, SIGINT\ntxrelay run hands its accounts over and ends.\n"
          ".TP\nSIGHUP\ntxrelay run reads its configuration again and keeps every lead. The log "
          "level changes at once; the log names every other value that differs, which needs a "
          "restart. A relay whose terminal was closed ends as with SIGTERM.\n"
          ".SH SEE ALSO\n.BR txrelay.yaml (5)\n",
          out);
}

/* ---- txrelay.yaml ---- */

/* Markdown of one cell: `code` becomes bold, [text](link) its text. */
static void put_cell(FILE *out, const char *at, size_t len)
{
    const char *end = at + len;
    for (bool code = false; at < end; at++) {
        const char *close = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
        const char *paren =
            close && close[1] == '(' ? memchr(close, ')', (size_t)(end - close)) : NULL;
        if (*at == '`') {
            code = !code;
            fputs(code ? "\\fB" : "\\fR", out);
        } else if (paren) {
            put(out, at + 1, (size_t)(close - at - 1));
            at = paren;
        } else {
            put(out, at, 1);
        }
    }
}

static const char *next_cell(const char **at, size_t *ret_len)
{
    const char *start = *at + 1, *bar = strchr(start, '|');
    if (!bar)
        return NULL;
    *at = bar;
    while (*start == ' ')
        start++;
    *ret_len = (size_t)(bar - start);
    while (*ret_len && start[*ret_len - 1] == ' ')
        --*ret_len;
    return start;
}

static void put_row(FILE *out, const char *line)
{
    size_t key_len, default_len, meaning_len;
    const char *key = next_cell(&line, &key_len);
    const char *byte = key ? next_cell(&line, &default_len) : NULL;
    const char *meaning = byte ? next_cell(&line, &meaning_len) : NULL;
    if (!meaning || *key != '`')
        return;
    fputs(".TP\n", out);
    put_cell(out, key, key_len);
    fputc('\n', out);
    put_cell(out, meaning, meaning_len);
    fputs("\n.br\nDefault: ", out);
    put_cell(out, byte, default_len);
    fputc('\n', out);
}

void describe_manual_config(FILE *out, FILE *page)
{
    char line[4096];
    bool inside = false;
    title(out, "txrelay.yaml", "5");
    fputs(".SH NAME\ntxrelay.yaml \\- configuration of txrelay\n.SH DESCRIPTION\n"
          "One YAML file. A key with a dot is in the section of its first word. Times are "
          "milliseconds.\n.SH KEYS\n",
          out);
    while (fgets(line, sizeof(line), page)) {
        if (*line == '|')
            put_row(out, line);
        else if (inside)
            break;
        inside = *line == '|';
    }
    fputs(".SH SEE ALSO\n.BR txrelay (1)\n", out);
}

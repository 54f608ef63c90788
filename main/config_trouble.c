/* libcyaml reports errors through its log: the cause, then a backtrace from the innermost part
 * outwards. Its words are those of its own source, and the place of an unknown key is that of the
 * value before it. */
#include "config_trouble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "config.h"

/* Of a text that is too long libcyaml shows the value, which may hold a password. */
static size_t shown(const char *cause)
{
    static const char longer[] = "STRING length > ";
    const char *at = strstr(cause, longer);
    return at ? (size_t)(at - cause) + sizeof(longer) - 1 +
                    strspn(at + sizeof(longer) - 1, "0123456789")
              : strlen(cause);
}

/* ---- the backtrace ---- */

static void take_place(struct config_trouble *t, const char *text)
{
    const char *at = strstr(text, "(line: ");
    if (!at || t->line)
        return;
    t->line = (unsigned)strtoul(at + 7, NULL, 10);
    at = strstr(at, "column: ");
    t->column = at ? (unsigned)strtoul(at + 8, NULL, 10) : 0;
}

/* The quoted name in `text` behind `before`; false: this line is no such part. */
static bool name_of(const char *text, const char *before, char *ret, size_t size)
{
    size_t len = strlen(before);
    if (strncmp(text, before, len) != 0)
        return false;
    snprintf(ret, size, "%.*s", (int)strcspn(text + len, "'"), text + len);
    return true;
}

static void take_part(struct config_trouble *t, const char *text)
{
    char name[60], inner[sizeof(t->key)];
    take_place(t, text);
    if (name_of(text, "  in sequence entry '", name, 12)) {
        snprintf(t->entry, sizeof(t->entry), "[%.12s]", name);
    } else if (name_of(text, "  in mapping field '", name, sizeof(name))) {
        memcpy(inner, t->key, sizeof(inner));
        snprintf(t->key, sizeof(t->key), "%s%s%s%.80s", name, t->entry, *inner ? "." : "", inner);
        t->entry[0] = 0;
    }
}

void config__trouble_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    struct config_trouble *t = ctx;
    char line[300];
    if (level < CYAML_LOG_ERROR)
        return;
    vsnprintf(line, sizeof(line), fmt, args);
    line[strcspn(line, "\n")] = 0;
    const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
    if (strncmp(text, "  in ", 5) == 0 || strstr(text, "(line: "))
        take_part(t, text);
    else if (!t->cause[0] && !strstr(text, "Backtrace"))
        snprintf(t->cause, sizeof(t->cause), "%.*s", (int)shown(text), text);
}

/* ---- the words ---- */

/* The rest of the cause behind a prefix; NULL: it is another one. */
static const char *rest(const struct config_trouble *t, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(t->cause, prefix, len) ? NULL : t->cause + len;
}

static void offer(void *arg, const struct config_key *key)
{
    if (*key->section)
        nearest_names_offer(arg, key->section);
    nearest_names_offer(arg, key->key);
}

/* Where the key begins, from the reported line on. */
static void find_key(const struct buf *text, const char *key, unsigned *line, unsigned *column)
{
    size_t len = strlen(key);
    unsigned number = 1;
    const char *at = (const char *)text->data, *end = at + text->len;
    for (; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t width = (size_t)((stop ? stop : end) - at), blank = 0;
        while (blank < width && strchr(" -", at[blank]))
            blank++;
        if (number >= *line && width - blank > len && !strncmp(at + blank, key, len) &&
            at[blank + len] == ':') {
            *line = number;
            *column = (unsigned)blank + 1;
            return;
        }
        at += width + 1;
    }
}

static int unknown_key(const struct config_trouble *t, const char *path, const struct buf *text,
                       const char *key, struct err *err)
{
    char near[NEAREST_TEXT];
    unsigned line = t->line, column = t->column;
    struct nearest_names names = nearest_names_of(key);
    find_key(text, key, &line, &column);
    config_keys(offer, &names);
    return err_set(err, ERR_CONFIG,
                   "config file '%s': '%.60s' is not a key here (line: %u, column: %u)%s "
                   "(docs/config.md lists every key)",
                   path, key, line, column, nearest_names_text(&names, near));
}

/* What is wrong with the value of t->key. */
static void put_fault(const struct config_trouble *t, struct buf *out, const char **ret_way_out)
{
    const char *key = t->key[0] ? t->key : "the file", *at;
    if ((at = rest(t, "Invalid uint64_t value: ")) || (at = rest(t, "Invalid UINT value: ")))
        buf_printf(out, "%s is %s; it must be a whole number", key, at);
    else if (rest(t, "STRING length < "))
        buf_printf(out, "%s is empty", key);
    else if (rest(t, "Expecting SEQUENCE"))
        buf_printf(out, "%s must be a list", key);
    else if (rest(t, "Expecting MAPPING"))
        buf_printf(out, "%s must be a section with keys", key);
    else if (rest(t, "Expecting "))
        buf_printf(out, "%s must be one value", key);
    else if ((at = rest(t, "Missing required mapping field: "))) /* the key before it is named */
        buf_printf(out, "%.*s has no key %s",
                   (int)(strrchr(key, '.') ? strrchr(key, '.') - key : (long)strlen(key)), key, at);
    else if ((at = rest(t, "Mapping field already seen: ")))
        buf_printf(out, "the key %s is there twice", at);
    else if ((at = rest(t, "libyaml: ")))
        buf_printf(out, "it is not YAML behind this place: %s", at);
    else
        buf_printf(out, "%s: %s", key, t->cause);
    *ret_way_out =
        rest(t, "STRING length < ")        ? "give it a value, or leave it out"
        : rest(t, "Expecting SEQUENCE")    ? "begin each entry on a line of its own with \"- \""
        : rest(t, "Expecting MAPPING")     ? "write its keys below it, indented"
        : rest(t, "Missing required")      ? "add it"
        : rest(t, "Mapping field already") ? "remove one"
        : rest(t, "libyaml: ")
            ? "indent with blanks and not with tabs, the keys of a section by the same number"
            : "docs/config.md lists every key";
}

int config__trouble_err(const struct config_trouble *t, const char *path, const struct buf *text,
                        cyaml_err_t code, struct err *err)
{
    const char *key = rest(t, "Unexpected key: "), *way_out;
    struct buf fault = {0};
    if (key)
        return unknown_key(t, path, text, key, err);
    if (!t->cause[0])
        return err_set(err, ERR_CONFIG, "config file '%s': %s (docs/config.md lists every key)",
                       path, cyaml_strerror(code));
    put_fault(t, &fault, &way_out);
    err_set(err, ERR_CONFIG, "config file '%s': %s (line: %u, column: %u): %s", path,
            buf_str(&fault), t->line, t->column, way_out);
    buf_done(&fault);
    return ERR_CONFIG;
}

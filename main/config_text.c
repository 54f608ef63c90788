#include "config_text.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

struct place {
    unsigned line, column;
};

static struct place place_of(const uint8_t *text, size_t at)
{
    struct place p = {.line = 1, .column = 1};
    for (size_t i = 0; i < at; i++) {
        p.column = text[i] == '\n' ? 1 : p.column + 1;
        p.line += text[i] == '\n';
    }
    return p;
}

/* The length of a character that YAML allows; 0: it is none. */
static size_t char_len(const uint8_t *at, size_t left)
{
    bool control =
        (at[0] < ' ' && at[0] != '\t' && at[0] != '\r' && at[0] != '\n') || at[0] == 0x7f;
    return control ? 0 : utf8_len(at, left);
}

static int check_chars(const char *path, const struct buf *text, struct err *err)
{
    for (size_t i = 0, n; i < text->len; i += n) {
        n = char_len(text->data + i, text->len - i);
        if (n)
            continue;
        struct place p = place_of(text->data, i);
        return err_set(
            err, ERR_CONFIG,
            "config file '%s': the byte 0x%02x is no text in UTF-8 (line: %u, column: %u): "
            "save the file as UTF-8, or remove the byte",
            path, text->data[i], p.line, p.column);
    }
    return 0;
}

static bool is_marker(const uint8_t *at, size_t len, const char *marker)
{
    return len >= 3 && !memcmp(at, marker, 3) && (len == 3 || strchr(" \t\r", at[3]));
}

static bool is_blank(const uint8_t *at, size_t len)
{
    size_t i = 0;
    while (i < len && strchr(" \t\r", at[i]))
        i++;
    return i == len || at[i] == '#';
}

/* A marker at the left edge ends a document whatever it stands in. */
static int check_documents(const char *path, const struct buf *text, struct err *err)
{
    bool begun = false, ended = false;
    const uint8_t *at = text->data, *end = at + text->len;
    for (unsigned line = 1; at < end; line++) {
        const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop ? stop : end) - at);
        bool begins = is_marker(at, len, "---"), ends = is_marker(at, len, "..."),
             content = !begins && !ends && !is_blank(at, len) && at[0] != '%';
        if ((begins && begun) || ((begins || content) && ended))
            return err_set(
                err, ERR_CONFIG,
                "config file '%s': a second document begins here (line: %u, column: 1), "
                "and a configuration is one: remove this line, and what belongs to it or "
                "stands before it",
                path, line);
        begun |= begins || content;
        ended |= ends && begun;
        at += len + 1;
    }
    return 0;
}

int config__text_check(const char *path, const struct buf *text, struct err *err)
{
    int rc = check_chars(path, text, err);
    return rc ? rc : check_documents(path, text, err);
}

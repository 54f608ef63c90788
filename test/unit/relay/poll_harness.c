#include "poll_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"

uint64_t poll_script_moved;

struct run {
    struct poll *p;
    uint64_t now;
    size_t line;
    uint64_t question[POLL_SCRIPT_ACCOUNTS][POLL_QUERIES],
        before[POLL_SCRIPT_ACCOUNTS][POLL_QUERIES];
};

static const struct word {
    const char *text;
    enum poll_event_type type;
    enum poll_query answers; /* POLL_QUERIES: no answer */
} words[] = {
    {"led", POLL_EV_LED, POLL_QUERIES},
    {"not_led", POLL_EV_NOT_LED, POLL_QUERIES},
    {"leaving", POLL_EV_LEAVING, POLL_QUERIES},
    {"want", POLL_EV_WANT_ROWS, POLL_QUERIES},
    {"wish", POLL_EV_WANT_REQUESTS, POLL_QUERIES},
    {"rang", POLL_EV_RANG, POLL_QUERIES},
    {"rows", POLL_EV_ROWS, POLL_QUERY_OUTBOX},
    {"none", POLL_EV_NO_ROWS, POLL_QUERY_OUTBOX},
    {"failed", POLL_EV_OUTBOX_FAILED, POLL_QUERY_OUTBOX},
    {"armed", POLL_EV_ARMED, POLL_QUERY_ARM},
    {"not_armed", POLL_EV_NOT_ARMED, POLL_QUERY_ARM},
    {"arm_failed", POLL_EV_ARM_FAILED, POLL_QUERY_ARM},
    {"asked", POLL_EV_REQUESTS, POLL_QUERY_REQUESTS},
    {"ask_failed", POLL_EV_REQUESTS_FAILED, POLL_QUERY_REQUESTS},
    {"swept", POLL_EV_SWEPT, POLL_QUERY_SWEEP},
    {"merged", POLL_EV_MERGED, POLL_QUERY_MERGED},
    {"control_lost", POLL_EV_CONTROL_LOST, POLL_QUERIES},
    {"up", POLL_EV_STORE_UP, POLL_QUERIES},
    {"down", POLL_EV_STORE_DOWN, POLL_QUERIES},
    {"node_up", POLL_EV_NODE_UP, POLL_QUERIES},
    {"tick", POLL_EV_TICK, POLL_QUERIES},
};

static const struct word *word_of(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcmp(words[i].text, text))
            return &words[i];
    fail_msg("no such event: %s", text);
    return NULL;
}

static int64_t number(const char *args, const char *key, int64_t otherwise)
{
    char text[32];
    snprintf(text, sizeof(text), " %s=", key);
    const char *at = strstr(args, text);
    return at ? strtoll(at + strlen(text), NULL, 10) : otherwise;
}

/* "look=1" and the like are of one account: the one that is named. */
static void arguments(struct poll_event *ev, const char *args, struct poll_found *found)
{
    *found = (struct poll_found){.index = (size_t)number(args, "index", 0),
                                 .lost = number(args, "lost", 0),
                                 .has_requests = number(args, "look", 0),
                                 .has_rows = number(args, "rows", 0),
                                 .next_ms = number(args, "next", -1)};
    if (ev->type == POLL_EV_WANT_ROWS) {
        ev->limit = (uint32_t)number(args, "limit", 1);
    } else if (ev->type == POLL_EV_OUTBOX_FAILED || ev->type == POLL_EV_REQUESTS_FAILED) {
        ev->refused = number(args, "refused", 0);
    } else if (ev->type == POLL_EV_WANT_REQUESTS) {
        ev->serial = (uint64_t)number(args, "serial", 1);
    } else if (ev->type == POLL_EV_REQUESTS) {
        ev->requests.fingerprint = number(args, "fingerprint", 7);
        ev->requests.next_ms = number(args, "next", -1);
        ev->requests.has_rows = number(args, "rows", 0);
    } else if (ev->type == POLL_EV_SWEPT || ev->type == POLL_EV_MERGED) {
        ev->swept.failed = number(args, "failed", 0);
        ev->swept.found = found;
        ev->swept.count =
            found->lost || found->has_requests || found->has_rows || found->next_ms >= 0;
    }
}

static void take(struct run *r, struct buf *out)
{
    struct poll_effect fx;
    while (poll_take(r->p, &fx)) {
        assert_true(fx.account < POLL_SCRIPT_ACCOUNTS);
        r->before[fx.account][fx.query] = r->question[fx.account][fx.query];
        r->question[fx.account][fx.query] = fx.question;
        buf_puts(out, out->len ? " " : "");
        if (fx.account)
            buf_printf(out, "%zu.", fx.account);
        buf_printf(out, "%s:%s", fx.lost ? "lost" : poll_query_name(fx.query),
                   poll_reason_name(fx.why));
        if (fx.accounts && fx.count > 1)
            buf_printf(out, "*%zu", fx.count);
    }
}

static bool step(struct run *r, const char *text)
{
    char word[24] = "";
    bool late = !strncmp(text, "late ", 5);
    text += late ? 5 : 0;
    size_t account = 0;
    if (*text >= '0' && *text <= '9')
        account = (size_t)strtoul(text, (char **)(uintptr_t)&text, 10);
    sscanf(text, " %23s", word);
    const struct word *w = word_of(word);
    struct poll_event ev = {.type = w->type, .account = account};
    struct poll_found found;
    arguments(&ev, text, &found);
    if (w->answers != POLL_QUERIES)
        ev.question = late ? r->before[account][w->answers] : r->question[account][w->answers];
    bool waited = poll_step(r->p, r->now, &ev);
    if (late)
        assert_false(waited);
    return waited;
}

void poll_script(const struct poll_config *config, const struct poll_line *lines, size_t count)
{
    struct poll_config c = config ? *config : (struct poll_config){.doorbells = true};
    c.accounts = c.accounts ? c.accounts : 1;
    struct run r = {.p = poll_new(&c, POLL_START)};
    for (r.line = 0; r.line < count; r.line++) {
        const struct poll_line *l = &lines[r.line];
        struct buf out = {0};
        r.now = POLL_START + l->ms;
        step(&r, l->event);
        take(&r, &out);
        poll_check(r.p);
        if (strcmp(buf_str(&out), l->effects) != 0)
            fail_msg("line %zu: at %llu %s: \"%s\" and not \"%s\"", r.line + 1,
                     (unsigned long long)l->ms, l->event, buf_str(&out), l->effects);
        buf_done(&out);
    }
    poll_script_moved |= poll_moved(r.p);
    poll_free(r.p);
}

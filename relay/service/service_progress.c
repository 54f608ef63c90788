/* How far the start of the relay and of each account that it leads is (relay/progress.h): a look
 * once a second. What has failed is reported elsewhere (database.down, chain.down, obstacles); this
 * is for what takes long. The process calls it, so a simulation has no timer for it. */
#include <stdio.h>

#include "base/check.h"
#include "base/log.h"
#include "service/service_internal.h"

enum { LINES_MAX = 20 }; /* of the log, in one look: a node that is slow keeps all accounts */

/* ---- the relay's ---- */

static enum start_step of_node(const struct service *s)
{
    static const enum start_step steps[] = {[NODE_IS_READY] = START_NONE,
                                            [NODE_CONNECTS] = START_ENDPOINT,
                                            [NODE_ASKS_CHAIN] = START_CHAIN,
                                            [NODE_READS_METADATA] = START_METADATA};
    return steps[node_doing(s->node)];
}

size_t service_registered(const struct service *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->account_count; i++)
        n += s->accounts[i].store_account != 0;
    return n;
}

static struct progress_seen registration(const struct service *s)
{
    struct progress_seen seen = {.step = START_NONE};
    if (!s->store_up || !node_info(s->node))
        return seen;
    seen.step = START_REGISTER;
    seen.to = s->account_count;
    seen.at = service_registered(s);
    return seen;
}

static void look_at_part(struct service *s, enum start_part part, const struct progress_seen *seen)
{
    struct progress *p = &s->starting[part];
    uint64_t now = loop_now_ms(s->loop);
    char text[PROGRESS_TEXT];
    bool tell = progress_look(p, now, seen);
    bool repeated = part == START_PART_DATABASE && now - p->since >= PROGRESS_AGAIN_MS;
    if (tell && !repeated) /* database.unreachable is */
        log_info("relay.starting", "relay=%s step=%s endpoint=%s text=\"%s\"", s->name,
                 start_step_name(p->step), part == START_PART_CHAIN ? node_endpoint(s->node) : "",
                 progress_text(p, now, text));
}

static void look_at_relay(struct service *s)
{
    bool starts = s->phase == SERVICE_STARTING;
    struct progress_seen database = {.step = starts && !s->store_up ? START_DATABASE : START_NONE};
    struct progress_seen chain = {.step = starts ? of_node(s) : START_NONE};
    struct progress_seen none = {.step = START_NONE};
    struct progress_seen accounts = starts ? registration(s) : none;
    look_at_part(s, START_PART_DATABASE, &database);
    look_at_part(s, START_PART_CHAIN, &chain);
    look_at_part(s, START_PART_REGISTER, &accounts);
}

/* ---- an account's ---- */

static struct progress_seen blocks(const struct service *s, const struct manager_view *v)
{
    const struct node_info *info = node_info(s->node);
    if (!info)
        return (struct progress_seen){.step = of_node(s)};
    return (struct progress_seen){.step = v->reconciles ? START_LOST_COMMITS : START_BLOCKS,
                                  .at = v->processed,
                                  .to = info->finalized_number,
                                  .relative = true};
}

static struct progress_seen see(const struct service *s, const struct account *a)
{
    struct manager_view v;
    struct progress_seen none = {.step = START_NONE};
    if (!account_is_managed(a))
        return none;
    switch (manager_phase(a->manager)) {
    case MANAGER_IDLE:
    case MANAGER_LEADING:
        return none;
    case MANAGER_LOAD_WAIT:
        v = manager_view_of(a->manager);
        return (struct progress_seen){.step = START_ROWS, .at = v.open, .to = v.to_load};
    case MANAGER_CHAIN_WAIT:
    case MANAGER_ERA_WAIT:
        v = manager_view_of(a->manager);
        return blocks(s, &v);
    case MANAGER_PROBE_POOL_WAIT:
        return (struct progress_seen){.step = START_POOL};
    case MANAGER_PROBE_NONCE_WAIT:
        return (struct progress_seen){.step = START_NONCE};
    }
    UNREACHABLE();
}

static void look_at_account(struct service *s, struct account *a, size_t *lines)
{
    struct progress_seen seen = see(s, a);
    uint64_t now = loop_now_ms(s->loop);
    char text[PROGRESS_TEXT];
    if (progress_look(&a->progress, now, &seen) && (*lines)++ < LINES_MAX)
        log_info("account.starting", "account=%s epoch=%lld step=%s done=%llu of=%llu text=\"%s\"",
                 a->alias, (long long)a->epoch, start_step_name(a->progress.step),
                 (unsigned long long)a->progress.done, (unsigned long long)a->progress.of,
                 progress_text(&a->progress, now, text));
}

void service_look_at_start(struct service *s)
{
    size_t lines = 0;
    look_at_relay(s);
    for (size_t i = 0; i < s->account_count; i++)
        look_at_account(s, &s->accounts[i], &lines);
    if (lines > LINES_MAX)
        log_info("account.starting", "more=%zu text=\"so are other accounts\"", lines - LINES_MAX);
}

/* ---- in one line ---- */

void service_start_line(const struct service *s, char *ret, size_t size)
{
    struct progress_list list = {.text = ret, .size = size};
    uint64_t now = loop_now_ms(s->loop);
    ret[0] = 0;
    for (size_t i = 0; i < START_PARTS; i++)
        progress_list_add(&list, "", &s->starting[i], now);
    for (size_t i = 0; i < s->account_count; i++)
        progress_list_add(&list, s->accounts[i].alias, &s->accounts[i].progress, now);
    progress_list_end(&list);
}

void service_line(const struct service *s, char *ret, size_t size)
{
    char start[PROGRESS_TEXT + 40];
    size_t leads = 0;
    for (size_t i = 0; i < s->account_count; i++)
        leads += s->accounts[i].role == ACCOUNT_LEADER;
    service_start_line(s, start, sizeof(start));
    snprintf(ret, size, "%s: leads %zu of %zu accounts; database %s, chain %s%s%s",
             service_phase_name(s->phase), leads, s->account_count,
             s->standalone ? "none"
             : s->store_up ? "up"
                           : "down",
             s->node_ready ? "up" : "down", start[0] ? "; " : "", start);
}

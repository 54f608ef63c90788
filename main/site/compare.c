#include "site/compare.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

static void put_names(struct buf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s%s", i ? ", " : "", names[i]);
}

static bool same_names(const struct sites_account *ours, const struct site_wire_settings *theirs)
{
    bool same = ours->count == theirs->count;
    for (size_t i = 0; same && i < ours->count; i++)
        same = !strcmp(ours->names[i], theirs->sites[i]);
    return same;
}

static void differ(struct buf *out, const char *key, const char *there, const char *here)
{
    buf_printf(out, "; %s is %s there, and %s here", key, there, here);
}

static void compare_number(struct buf *out, const char *key, uint32_t there, uint32_t here)
{
    char theirs[12], ours[12];
    snprintf(theirs, sizeof(theirs), "%u", there);
    snprintf(ours, sizeof(ours), "%u", here);
    if (there != here)
        differ(out, key, theirs, ours);
}

static void compare_flag(struct buf *out, const char *key, bool there, bool here, const char *yes,
                         const char *no)
{
    if (there != here)
        differ(out, key, there ? yes : no, here ? yes : no);
}

static void compare_sites(struct buf *out, const struct sites_account *ours,
                          const struct site_wire_settings *theirs)
{
    if (same_names(ours, theirs))
        return;
    if (!theirs->count) {
        buf_puts(out, "; it has no sites there");
        return;
    }
    buf_puts(out, "; its sites are ");
    put_names(out, theirs->sites, theirs->count);
    buf_puts(out, " there, and ");
    put_names(out, ours->names, ours->count);
    buf_puts(out, " here");
}

void site_compare(const struct sites_account *ours, const struct site_wire_settings *theirs,
                  const char *who, void (*caution)(void *arg, const char *text), void *arg)
{
    const struct site_config c = site_config_filled(
        &(struct site_config){.range_blocks = ours->range_blocks, .era_blocks = ours->era_blocks});
    struct buf out = {0}, text = {0};
    compare_sites(&out, ours, theirs);
    if (theirs->count) {
        compare_flag(&out, "sites_policy", theirs->sticky, ours->sticky, "sticky", "rotate");
        compare_flag(&out, "silence_is_down", theirs->silence_is_down, ours->silence_is_down,
                     "true", "false");
        compare_number(&out, "range_blocks", theirs->range_blocks, c.range_blocks);
        compare_number(&out, "approvals", theirs->approvals, ours->approvals);
        compare_number(&out, "era_blocks", theirs->era_blocks, c.era_blocks);
    }
    if (out.len) {
        buf_printf(&text, "account %s: %s is configured differently%s", ours->account, who,
                   buf_str(&out));
        caution(arg, buf_str(&text));
    }
    buf_done(&text);
    buf_done(&out);
}

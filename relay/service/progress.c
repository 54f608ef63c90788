/* Which steps of a start last (relay/progress.h). Pure. */
#include "relay/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

static const char *const names[] = {[START_NONE] = "",
#define X(step, name, text) [step] = (name),
                                    START_STEPS(X)
#undef X
};

static const char *const texts[] = {[START_NONE] = "",
#define X(step, name, text) [step] = (text),
                                    START_STEPS(X)
#undef X
};

const char *start_step_name(enum start_step step)
{
    PRE(step < START_STEP_COUNT);
    return names[step];
}

bool progress_look(struct progress *p, uint64_t now, const struct progress_seen *seen)
{
    PRE(now && seen->step < START_STEP_COUNT);
    if (seen->step != p->step)
        *p = (struct progress){.step = seen->step, .since = now, .first = seen->at};
    if (seen->step == START_NONE)
        return false;
    uint64_t from = seen->relative ? p->first : seen->from;
    if (seen->at < from) /* it began anew */
        from = p->first = seen->at;
    p->of = seen->to > from ? seen->to - from : 0;
    p->done = seen->at - from;
    if (now - p->since < PROGRESS_AFTER_MS || (p->told_at && now - p->told_at < PROGRESS_AGAIN_MS))
        return false;
    p->told_at = now;
    return true;
}

bool progress_lasts(const struct progress *p)
{
    return p->told_at != 0;
}

const char *progress_text(const struct progress *p, uint64_t now, char ret[PROGRESS_TEXT])
{
    enum { MS = 1000 };
    char far[60] = "";
    if (p->of)
        snprintf(far, sizeof(far), ", %" PRIu64 " of %" PRIu64, p->done, p->of);
    else if (p->done)
        snprintf(far, sizeof(far), ", %" PRIu64 " so far", p->done);
    snprintf(ret, PROGRESS_TEXT, "%s%s, for %" PRIu64 " s", texts[p->step], far,
             (now - p->since) / MS);
    return ret;
}

void progress_list_add(struct progress_list *l, const char *whose, const struct progress *p,
                       uint64_t now)
{
    char text[PROGRESS_TEXT];
    if (!progress_lasts(p))
        return;
    if (l->text[0])
        l->more++;
    else
        snprintf(l->text, l->size, "%s%s%s", whose, *whose ? " " : "", progress_text(p, now, text));
}

void progress_list_end(struct progress_list *l)
{
    size_t len = strlen(l->text);
    if (l->more)
        snprintf(l->text + len, l->size - len, ", and %zu more", l->more);
}

/* The runtime and the last block of a transaction of this site. This site, its sender, enforces
 * both, whichever site coordinates. */
#include <stdio.h>

#include "tables_internal.h"

enum { ERA_MIN = 4 };

bool site_tables_allows(const struct site_tables *t, uint64_t id, uint32_t spec_version,
                        const struct site_terms *has)
{
    const struct known *k = knowledge_of(&t->knowledge, id);
    if (!k)
        return true;
    return (!k->guard || k->guard == spec_version) &&
           (!k->terms.last || has->last <= k->terms.last) && has->tip == k->terms.tip;
}

/* The core ends it when none of its bytes can be included any more. */
static void stop(struct site_tables *t, struct known *k, const char *outcome)
{
    snprintf(k->outcome, sizeof(k->outcome), "%s", outcome);
    site_account_cancel(t->config.account, k->id);
}

void site_tables_review(struct site_tables *t, uint32_t spec_version, uint64_t final)
{
    for (struct known *k = t->knowledge.known; k; k = k->hh.next) {
        bool other = k->guard && k->guard != spec_version;
        bool late = k->terms.last && final + ERA_MIN > k->terms.last;
        if (k->outcome[0] || (!other && !late))
            continue;
        if (other)
            snprintf(k->error, sizeof(k->error),
                     "it may be signed under runtime spec version %u only; the chain's is %u",
                     k->guard, spec_version);
        else
            snprintf(k->error, sizeof(k->error),
                     "its deadline is block %llu: too near to be signed with block %llu final",
                     (unsigned long long)k->terms.last, (unsigned long long) final);
        stop(t, k, other ? "failed" : "expired");
    }
}

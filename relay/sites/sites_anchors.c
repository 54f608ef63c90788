/* Hashes of final blocks, of which an era of signed bytes names one: who signs needs that of one of
 * the last blocks, and who verifies those of a whole era. A relay that does not lead follows the
 * chain too, so that it has them when it does. */
#include <string.h>

#include "sites/sites.h"

static struct site_anchor *anchor_at(const struct site_host *h, uint64_t number)
{
    return &h->anchors[number % h->anchor_count];
}

bool sites_anchor(const struct site_host *h, uint64_t number, uint8_t ret_hash[32])
{
    const struct site_anchor *a = anchor_at(h, number);
    if (!a->known || a->number != number)
        return false;
    memcpy(ret_hash, a->hash, sizeof(a->hash));
    return true;
}

uint64_t sites_first_wanted(const struct site_host *h, uint64_t number)
{
    uint64_t back = h->era_blocks + ANCHOR_BEHIND;
    uint8_t hash[32];
    for (uint64_t k = number > back ? number - back : 1; k < number; k++)
        if (!sites_anchor(h, k, hash))
            return k;
    return number;
}

void service_sites_seen(struct account *account, const struct node_block *b)
{
    struct site_anchor *a = anchor_at(account->site, b->head.number);
    if (b->unread)
        return;
    *a = (struct site_anchor){.known = true, .number = b->head.number};
    memcpy(a->hash, b->head.hash, sizeof(a->hash));
}

/* What a question was that need not be asked again in full. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pg/pg.h"

void fingerprint_forget(struct fingerprint *m)
{
    free(m->accounts);
    free(m->epochs);
    *m = (struct fingerprint){0};
}

const char *fingerprint_of(const struct fingerprint *m, size_t count, const int32_t *accounts,
                           const int64_t *epochs)
{
    bool same = m->count == count &&
                (!count || (!memcmp(m->accounts, accounts, count * sizeof(*accounts)) &&
                            !memcmp(m->epochs, epochs, count * sizeof(*epochs))));
    return same ? m->fingerprint : "";
}

void fingerprint_save(struct fingerprint *m, size_t count, const int32_t *accounts,
                      const int64_t *epochs, const char *fingerprint)
{
    fingerprint_forget(m);
    m->count = count;
    m->accounts = xcalloc(count + 1, sizeof(*accounts));
    m->epochs = xcalloc(count + 1, sizeof(*epochs));
    if (count) {
        memcpy(m->accounts, accounts, count * sizeof(*accounts));
        memcpy(m->epochs, epochs, count * sizeof(*epochs));
    }
    snprintf(m->fingerprint, sizeof(m->fingerprint), "%s", fingerprint);
}

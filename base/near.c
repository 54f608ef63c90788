/* The edit distance of two names. Case and underscores do not count, so that transferAll finds
 * transfer_all. */
#include "base/near.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX = 48 }; /* characters compared; longer names differ before that */

static size_t plain(const char *name, char out[NAME_MAX + 1])
{
    size_t n = 0;
    for (; *name && n < NAME_MAX; name++)
        if (*name != '_')
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = 0;
    return n;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static unsigned edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned row[NAME_MAX + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned up = row[j];
            row[j] = least(up + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
            corner = up;
        }
    }
    return row[b_len];
}

/* One name inside the other ("transfer", "force_transfer") counts as one edit, whatever the
 * lengths. */
static unsigned distance(const char *wanted, const char *name)
{
    char a[NAME_MAX + 1];
    char b[NAME_MAX + 1];
    size_t a_len = plain(wanted, a);
    size_t b_len = plain(name, b);
    if (a_len >= 3 && b_len >= 3 && (strstr(a, b) || strstr(b, a)))
        return a_len == b_len ? 0 : 1;
    unsigned d = edits(a, a_len, b, b_len);
    size_t longer = a_len > b_len ? a_len : b_len;
    return d * 5 <= longer * 2 ? d + 1 : ~0u;
}

struct nearest_names nearest_names_of(const char *wanted)
{
    return (struct nearest_names){.wanted = wanted};
}

void nearest_names_offer(struct nearest_names *n, const char *name)
{
    unsigned d = distance(n->wanted, name);
    size_t at = n->count;
    if (d == ~0u)
        return;
    for (size_t i = 0; i < n->count; i++)
        if (!strcmp(n->best[i], name))
            return;
    while (at > 0 && n->distance[at - 1] > d)
        at--;
    if (at == NEAREST_MAX)
        return;
    if (n->count < NEAREST_MAX)
        n->count++;
    for (size_t i = n->count - 1; i > at; i--) {
        n->best[i] = n->best[i - 1];
        n->distance[i] = n->distance[i - 1];
    }
    n->best[at] = name;
    n->distance[at] = d;
}

const char *nearest_names_text(const struct nearest_names *n, char out[NEAREST_TEXT])
{
    size_t len = 0;
    out[0] = 0;
    for (size_t i = 0; i < n->count && len < NEAREST_TEXT; i++)
        len += (size_t)snprintf(out + len, NEAREST_TEXT - len, "%s%.34s",
                                i ? ", " : "; near: ", n->best[i]);
    return out;
}

/* Questions about one row. */
#ifndef RELAY_CORE_TX_ROW_FACTS_H
#define RELAY_CORE_TX_ROW_FACTS_H

#include "relay/core/line/line.h"

/* Its current bytes are presigned. */
bool manager__presigned(const struct row *row);

/* A nonce without a row, that nothing is signed for yet. */
static inline bool manager__hole(const struct row *row)
{
    return row->state == ROW_FILL && !row->bytes;
}

/* A nonce that had no row yet, or whose filler is not written: nothing is on record that could
 * end. */
static inline bool manager__bare(const struct row *row)
{
    return !row->bytes && row->state != ROW_SIGNING;
}

/* What its current attempt pays. */
static inline u128 manager__tip_of(const struct row *row)
{
    return row->terms ? row->terms->tip : 0;
}

#endif

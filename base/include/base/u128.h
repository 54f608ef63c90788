/* Amounts of a chain: unsigned, 128 bits, decimal where people or databases read them. */
#ifndef BASE_U128_H
#define BASE_U128_H

#include <stdbool.h>

__extension__ typedef unsigned __int128 u128;
#define U128_MAX (~(u128)0)

/* Decimal text of a u128 (40 bytes are enough), and back: digits alone, no more than fit. */
const char *u128_text(u128 v, char out[40]);
bool u128_parse(const char *text, u128 *ret_v);

#endif

/* uthash with base/hash.h in place of its own hash functions, which fall through switch labels: our
 * warnings refuse that. A header alone; nothing is linked. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/hash.h"

#define HASH_FUNCTION(key, len, hashv) ((hashv) = hash_bytes((key), (len)))

#include <uthash.h>

#endif

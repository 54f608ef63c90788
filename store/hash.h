/* uthash with base/hash.h. Private to store/. */
#ifndef STORE_HASH_H
#define STORE_HASH_H

#include "base/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes((key), (len)))

#include <uthash.h>

#endif

/* uthash with base/hash.h. Private to listen/. */
#ifndef LISTEN_HASH_H
#define LISTEN_HASH_H

#include "base/hash.h"

#define HASH_FUNCTION(key, len, hash) ((hash) = hash_bytes((key), (len)))

#include <uthash.h>

#endif

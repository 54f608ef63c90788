/* The metadata of devchain's runtime, written by our own SCALE writer. */
#ifndef DEVCHAIN_METADATA_BUILD_H
#define DEVCHAIN_METADATA_BUILD_H

#include "base/buf.h"
#include "runtime.h"

void metadata_build(const struct runtime *rt, unsigned version,
                    struct buf *out); /* 14 or 15, from "meta" on */
void runtime_version_scale(const struct runtime *rt, struct buf *out); /* as Core_version answers */

struct runtime_api {
    const char *id; /* 16 digits */
    uint32_t version;
};
extern const struct runtime_api RUNTIME_APIS[];
extern const size_t RUNTIME_API_COUNT;

#endif

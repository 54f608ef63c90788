/* One runtime for the targets that need one: v14-polkadot, from the folder that the macro
 * METADATA_DIR or, before it, the environment variable of that name says (the CMake target
 * metadata_vectors fills it). */
#ifndef FUZZ_RUNTIME_H
#define FUZZ_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "chain/codec/metadata.h"

#ifndef METADATA_DIR
#define METADATA_DIR "."
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline const struct metadata *fuzz_runtime(void)
{
    static struct metadata *md;
    if (md)
        return md;
    const char *dir = getenv("METADATA_DIR");
    struct buf path = {0}, bytes = {0};
    struct err err = {0};
    buf_printf(&path, "%s/v14-polkadot.scale", dir ? dir : METADATA_DIR);
    FILE *f = fopen(buf_str(&path), "rb");
    for (size_t n = 1; f && n > 0; bytes.len += n)
        n = fread(buf_grow(&bytes, 65536), 1, 65536, f);
    if (!f || metadata_parse(bytes.data, bytes.len, &md, &err) != 0) {
        fprintf(stderr, "%s: %s\n", buf_str(&path), f ? err.text : "cannot be opened");
        abort();
    }
    fclose(f);
    buf_done(&path);
    buf_done(&bytes);
    return md;
}

#endif

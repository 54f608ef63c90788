/* Small texts from outside: hexadecimal digits, times, positions of readers. What is accepted is
 * written back as the same value. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/hex.h"
#include "listen/listen.h"
#include "time_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hex(const char *text)
{
    struct buf bytes = {0}, again = {0};
    uint8_t fixed[32];
    if (hex_decode(text, strlen(text), &bytes)) {
        hex_put(&again, bytes.data, bytes.len);
        size_t digits = strlen(text) - (strncasecmp(text, "0x", 2) ? 0 : 2);
        INVARIANT(again.len == digits && bytes.len * 2 == digits);
        INVARIANT(!strncasecmp(buf_str(&again), text + strlen(text) - digits, digits));
    } else {
        INVARIANT(bytes.len == 0);
    }
    bool right = hex_decode_fixed(text, strlen(text), fixed, sizeof(fixed));
    INVARIANT(!right || bytes.len == sizeof(fixed));
    buf_done(&bytes);
    buf_done(&again);
}

static void since(const char *text)
{
    int64_t time = -1, position = -1;
    if (listen__time_parse(text, &time) && time > 0)
        INVARIANT(listen_since_parse(text, &position) && position == time);
    if (listen_since_parse(text, &position))
        INVARIANT(position > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    hex(text);
    since(text);
    free(text);
    return 0;
}

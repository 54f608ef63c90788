/* A text that is accepted is the one text of its account id and prefix. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "chain/codec/scale.h"
#include "chain/codec/ss58.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void accept_text(const char *text)
{
    uint8_t id[ACCOUNT_ID_MAX];
    uint16_t prefix;
    size_t len;
    u128 number;
    if (ss58_decode(text, id, &prefix)) {
        char again[SS58_TEXT_MAX];
        ss58_encode(id, prefix, again);
        INVARIANT(strcmp(again, text) == 0);
    }
    if (account_id_parse(text, id, &len))
        INVARIANT(len == 20 || len == 32);
    if (u128_parse(text, &number)) {
        char again[40];
        u128_text(number, again);
        INVARIANT(strlen(again) <= strlen(text));
    }
}

/* The checksum keeps the fuzzer out of the decoder, so the input is also taken as an account. */
static void encode(const uint8_t *data)
{
    uint16_t prefix = (uint16_t)((data[0] | data[1] << 8) & 16383), got;
    char text[SS58_TEXT_MAX];
    uint8_t back[32];
    ss58_encode(data + 2, prefix, text);
    INVARIANT(ss58_decode(text, back, &got) && got == prefix && memcmp(back, data + 2, 32) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    accept_text(text);
    free(text);
    if (size == 34)
        encode(data);
    return 0;
}

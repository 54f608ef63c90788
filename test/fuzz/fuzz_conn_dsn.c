/* Any text as a connection string: what is shown of it holds no password, and what is taken apart
 * names a host for each address. Texts that would make libpq read a service file are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "conn/conn_internal.h"
#include "store/conn_info.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Made of the input, so that no input holds it, escaped or not. */
static const char *secret_of(const char *text)
{
    static char secret[40];
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 1099511628211u;
    snprintf(secret, sizeof(secret), "hunter%016llx", (unsigned long long)hash);
    return secret;
}

static void shown(const char *text, const char *secret)
{
    struct conn_info info;
    conn_info_read(text, &info);
    INVARIANT(info.text.len < 65536);
    INVARIANT(!strstr(buf_str(&info.text), secret));
    conn_info_done(&info);
}

static void apart(const char *text, const char *secret)
{
    struct conn_dsn d = {0};
    struct err err = {0};
    if (conn__dsn_parse(&d, text, &err) == 0) {
        INVARIANT(d.host_count > 0);
        for (size_t i = 0; i < d.count; i++)
            INVARIANT(d.keys[i] && d.values[i]);
    } else {
        INVARIANT(err.code == ERR_CONFIG && err.text[0] && !strstr(err.text, secret));
    }
    conn__dsn_done(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    const char *secret = secret_of(text);
    if (!strstr(text, "service")) {
        char *with[] = {xasprintf("password=%s %s", secret, text),
                        xasprintf("postgresql://relay:%s@%s", secret, text),
                        xasprintf("postgresql://db/app?password=%s&%s", secret, text)};
        shown(text, secret);
        apart(text, secret);
        for (size_t i = 0; i < ARRAY_LEN(with); i++) {
            shown(with[i], secret);
            apart(with[i], secret);
            free(with[i]);
        }
    }
    free(text);
    return 0;
}

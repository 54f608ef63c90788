/* Headers and calls: the time-out, the text of a status, codes of HTTP/2 and HTTP. Pure. */
#include <string.h>

#include "grpc_internal.h"

const char *grpc_status_name(enum grpc_status status)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    PRE((unsigned)status < ARRAY_LEN(names));
    return names[status];
}

bool grpc__timeout_parse(const char *text, size_t len, uint64_t *ret_ms)
{
    uint64_t n = 0;
    if (len < 2 || len > 9)
        return false;
    for (size_t i = 0; i + 1 < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    switch (text[len - 1]) {
    case 'H':
        n *= 3600000;
        break;
    case 'M':
        n *= 60000;
        break;
    case 'S':
        n *= 1000;
        break;
    case 'm':
        break;
    case 'u':
        n = (n + 999) / 1000;
        break;
    case 'n':
        n = (n + 999999) / 1000000;
        break;
    default:
        return false;
    }
    *ret_ms = n;
    return true;
}

void grpc__timeout_text(uint64_t ms, char ret[16])
{
    if (ms <= 99999999)
        snprintf(ret, 16, "%um", (unsigned)ms);
    else
        snprintf(ret, 16, "%uS", (unsigned)(ms / 1000 < 99999999 ? ms / 1000 : 99999999));
}

void grpc__percent_encode(const char *text, char *ret, size_t size)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text && n + 4 < size; text++) {
        uint8_t c = (uint8_t)*text;
        if (c >= 0x20 && c <= 0x7e && c != '%') {
            ret[n++] = (char)c;
            continue;
        }
        ret[n++] = '%';
        ret[n++] = hex[c >> 4];
        ret[n++] = hex[c & 15];
    }
    ret[n] = 0;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* A broken escape stays as it is. */
void grpc__percent_decode(const char *text, size_t len, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && n + 1 < size; i++) {
        int hi = text[i] == '%' && i + 2 < len ? nibble(text[i + 1]) : -1;
        int lo = hi >= 0 ? nibble(text[i + 2]) : -1;
        if (lo >= 0) {
            ret[n++] = (char)(hi << 4 | lo);
            i += 2;
        } else {
            ret[n++] = text[i];
        }
    }
    ret[n] = 0;
}

bool grpc__status_parse(const char *text, size_t len, enum grpc_status *ret)
{
    unsigned n = 0;
    if (len < 1 || len > 2)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n * 10 + (unsigned)(text[i] - '0');
    }
    *ret = n <= GRPC_UNAUTHENTICATED ? (enum grpc_status)n : GRPC_UNKNOWN;
    return true;
}

enum grpc_status grpc__status_of_reset(uint32_t code)
{
    switch (code) {
    case 0x7:
        return GRPC_UNAVAILABLE; /* REFUSED_STREAM */
    case 0x8:
        return GRPC_CANCELLED; /* CANCEL */
    case 0xb:
        return GRPC_RESOURCE_EXHAUSTED; /* ENHANCE_YOUR_CALM */
    case 0xc:
        return GRPC_PERMISSION_DENIED; /* INADEQUATE_SECURITY */
    default:
        return GRPC_INTERNAL;
    }
}

enum grpc_status grpc__status_of_http(unsigned status)
{
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

bool grpc__type_is_grpc(const char *text, size_t len)
{
    static const char type[] = "application/grpc";
    size_t n = sizeof(type) - 1;
    return len >= n && !memcmp(text, type, n) && (len == n || text[n] == '+' || text[n] == ';');
}

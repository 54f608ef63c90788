/* Names and lengths of the signature schemes. */
#include "base/key_scheme.h"

#include <string.h>

#include "base/check.h"

static const struct {
    const char *name;
    size_t public_len, account_id_len, signature_len;
} schemes[] = {
#define X(scheme, name, public_len, account_id_len, signature_len)                                 \
    [scheme] = {name, public_len, account_id_len, signature_len},
    KEY_SCHEMES(X)
#undef X
};

const char *key_scheme_name(enum key_scheme scheme)
{
    PRE((unsigned)scheme < ARRAY_LEN(schemes));
    return schemes[scheme].name;
}

const char *key_scheme_names(void)
{
#define X(scheme, name, public_len, account_id_len, signature_len) ", " name
    static const char names[] = KEY_SCHEMES(X);
#undef X
    return names + 2;
}

bool key_scheme_parse(const char *name, enum key_scheme *ret_scheme)
{
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        if (strcmp(schemes[i].name, name) == 0) {
            *ret_scheme = (enum key_scheme)i;
            return true;
        }
    }
    return false;
}

size_t key_signature_len(enum key_scheme scheme)
{
    PRE((unsigned)scheme < ARRAY_LEN(schemes));
    return schemes[scheme].signature_len;
}

size_t key_public_len(enum key_scheme scheme)
{
    PRE((unsigned)scheme < ARRAY_LEN(schemes));
    return schemes[scheme].public_len;
}

size_t key_account_id_len(enum key_scheme scheme)
{
    PRE((unsigned)scheme < ARRAY_LEN(schemes));
    return schemes[scheme].account_id_len;
}

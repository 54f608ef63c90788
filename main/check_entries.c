/* txrelay check: each address at which a relay listens. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "check.h"
#include "loop/peer.h"

static void check_entry(const char *key, const char *address)
{
    struct err err = {0};
    bool taken;
    char *text = NULL;
    if (loop_address_try(address, &taken, &err) == 0)
        check_good(key, (text = xasprintf("%s is free", address)));
    else if (taken)
        check_caution(
            NULL, key,
            (text = xasprintf("%s is in use: by this relay if it runs, and otherwise stop "
                              "the program that has it, or give another one",
                              address)));
    else
        check_wrong(key, err.text);
    free(text);
}

void check_entries(const struct config_file *f)
{
    const struct {
        const char *key, *address;
    } entries[] = {{"control", f->control},
                   {"metrics", f->metrics},
                   {"feeds", f->feeds.listen},
                   {"http", f->http.listen},
                   {"sites", f->sites.listen}};
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        if (entries[i].address)
            check_entry(entries[i].key, entries[i].address);
    }
}

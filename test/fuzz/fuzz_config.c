/* Any bytes as the configuration file: refused with a reason, or one whose values are in their
 * ranges. It may name other files; loading reads none of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sound(const struct config *c)
{
    const struct config_file *f = c->file;
    int64_t key;
    INVARIANT(f && (!f->name || f->name[0]));
    INVARIANT(config_era_period(f) == 0 ||
              (config_era_period(f) >= 4 && config_era_period(f) <= 4096));
    for (uint32_t i = 0; i < f->accounts_count; i++) {
        INVARIANT(f->accounts[i].alias && f->accounts[i].scheme);
        (void)config_lock_key(&f->accounts[i], &key);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct config config = {0};
    struct err err = {0};
    int fd = memfd_create("config", MFD_CLOEXEC);
    INVARIANT(fd >= 0 && fchmod(fd, 0600) == 0);
    INVARIANT(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct config_flags flags = {.path = path};
    if (config_load(&flags, &config, &err) == 0) {
        sound(&config);
        config_done(&config);
    } else {
        INVARIANT(err.code && err.text[0]);
    }
    close(fd);
    return 0;
}

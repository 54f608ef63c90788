/* Names whose addresses a test decides. It stands in front of the C library's getaddrinfo: linked
 * into a unit test, or loaded before a relay (LD_PRELOAD, libtest_names.so). The file that
 * $TEST_NAMES names is read at each question, so a name may change its addresses; others are the C
 * library's to answer.
 *
 *   name address address ...     in this order
 *   name !again                  a temporary failure (EAI_AGAIN)
 *   name !none                   there is no such name
 *   name !hang PATH              the answer waits until a test opens this pipe for writing */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *name, const char *service, const struct addrinfo *hints,
                   struct addrinfo **ret);

static const char blanks[] = " \n";

static int number(const char *address, const char *service, const struct addrinfo *hints,
                  struct addrinfo **ret)
{
    struct addrinfo numeric = *hints;
    numeric.ai_flags |= AI_NUMERICHOST;
    void *next = dlsym(RTLD_NEXT, "getaddrinfo");
    return ((lookup *)next)(address, service, &numeric, ret);
}

static int hang(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return EAI_AGAIN;
}

/* What stands behind the name. The C library frees each element of a list by itself. */
static int addresses(char *rest, const char *service, const struct addrinfo *hints,
                     struct addrinfo **ret)
{
    char *word, *save = NULL;
    *ret = NULL;
    while ((word = strtok_r(rest, blanks, &save))) {
        rest = NULL;
        if (!strcmp(word, "!again"))
            return EAI_AGAIN;
        if (!strcmp(word, "!none"))
            return EAI_NONAME;
        if (!strcmp(word, "!hang"))
            return hang(strtok_r(NULL, blanks, &save));
        int rc = number(word, service, hints, ret);
        if (rc)
            return rc;
        while (*ret)
            ret = &(*ret)->ai_next;
    }
    return 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    char line[1024], *save = NULL;
    const char *path = getenv("TEST_NAMES");
    FILE *file = path && name ? fopen(path, "re") : NULL;
    while (file && fgets(line, sizeof(line), file)) {
        char *first = strtok_r(line, blanks, &save);
        if (!first || strcmp(first, name) != 0)
            continue;
        fclose(file);
        return addresses(save, service, hints, ret);
    }
    if (file)
        fclose(file);
    void *next = dlsym(RTLD_NEXT, "getaddrinfo");
    return ((lookup *)next)(name, service, hints, ret);
}

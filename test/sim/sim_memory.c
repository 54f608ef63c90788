/* The memory of the simulated processes. The linker sends every malloc, calloc, realloc, free
 * and strdup of the product here (--wrap). While a process runs, what is allocated comes out of
 * a region of its own; a kill gives the whole region back at once, as the kernel does, and runs
 * none of the product's closing code. What the world allocates (current == NULL) comes from the
 * C library. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"
#include "sim_memory.h"

#ifdef __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { REGIONS = 8, STEP = 16, SMALL = 1024, CLASSES = SMALL / STEP + 32 };
static const size_t REGION_BYTES = (size_t)64 << 20;

/* In front of each block. */
struct block {
    size_t class;
    struct block *next; /* in a list of free ones */
};

struct memory {
    char *begin;
    size_t used, live;
    struct block *free[CLASSES];
};

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

static struct memory regions[REGIONS], *current;
static char *all;

struct memory *memory_of(int index)
{
    PRE(index >= 0 && index < REGIONS);
    if (!all) {
        all = mmap(NULL, REGIONS * REGION_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        INVARIANT(all != MAP_FAILED);
        for (int i = 0; i < REGIONS; i++)
            regions[i].begin = all + (size_t)i * REGION_BYTES;
    }
    return &regions[index];
}

struct memory *memory_use(struct memory *m)
{
    struct memory *before = current;
    current = m;
    return before;
}

void memory_wipe(struct memory *m)
{
    PRE(m != current);
    ASAN_POISON_MEMORY_REGION(m->begin, m->used);
    m->used = m->live = 0;
    memset(m->free, 0, sizeof(m->free));
}

size_t memory_live(const struct memory *m)
{
    return m->live;
}

static size_t class_of(size_t n, size_t *ret_bytes)
{
    size_t class = (n + STEP - 1) / STEP, bytes = class * STEP;
    if (bytes > SMALL) {
        class = SMALL / STEP;
        for (bytes = SMALL; bytes < n; bytes *= 2)
            class ++;
    }
    *ret_bytes = bytes;
    return class;
}

static size_t bytes_of(size_t class)
{
    return class <= SMALL / STEP ? class * STEP : (size_t)SMALL << (class - SMALL / STEP);
}

static void *take(struct memory *m, size_t n)
{
    size_t bytes, class = class_of(n ? n : 1, &bytes);
    struct block *b = m->free[class];
    if (b) {
        m->free[class] = b->next;
    } else {
        INVARIANT(m->used + sizeof(*b) + bytes <= REGION_BYTES);
        b = (struct block *)(void *)(m->begin + m->used);
        m->used += sizeof(*b) + bytes;
        ASAN_UNPOISON_MEMORY_REGION(b, sizeof(*b));
        b->class = class;
    }
    m->live++;
    ASAN_UNPOISON_MEMORY_REGION(b + 1, n);
    return b + 1;
}

static struct memory *owner_of(const void *p)
{
    const char *at = p;
    if (!all || at < all || at >= all + REGIONS * REGION_BYTES)
        return NULL;
    return &regions[(size_t)(at - all) / REGION_BYTES];
}

void *world_alloc(size_t n)
{
    void *p = __real_calloc(1, n ? n : 1);
    INVARIANT(p);
    return p;
}

void *__wrap_malloc(size_t n)
{
    return current ? take(current, n) : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (!current)
        return __real_calloc(n, size);
    void *p = take(current, n * size);
    memset(p, 0, n * size);
    return p;
}

void __wrap_free(void *p)
{
    struct memory *m = owner_of(p);
    if (!m) {
        __real_free(p);
        return;
    }
    struct block *b = (struct block *)p - 1;
    b->next = m->free[b->class];
    m->free[b->class] = b;
    m->live--;
    ASAN_POISON_MEMORY_REGION(p, bytes_of(b->class));
}

void *__wrap_realloc(void *p, size_t n)
{
    struct memory *m = p ? owner_of(p) : current;
    if (!m)
        return __real_realloc(p, n);
    size_t had = p ? bytes_of(((struct block *)p - 1)->class) : 0;
    if (p && n <= had) {
        ASAN_UNPOISON_MEMORY_REGION(p, n);
        return p;
    }
    void *q = take(m, n);
    ASAN_UNPOISON_MEMORY_REGION(p, had);
    if (p)
        memcpy(q, p, had);
    __wrap_free(p);
    return q;
}

char *__wrap_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *p = __wrap_malloc(len + 1);
    memcpy(p, s, len);
    p[len] = 0;
    return p;
}

char *__wrap_strdup(const char *s)
{
    return __wrap_strndup(s, strlen(s));
}

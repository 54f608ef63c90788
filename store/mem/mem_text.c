/* Texts and bytes that rows share: counted, so that a row moves from table to table and into a copy
 * of the tables without being copied. And the memory of answers, which outlive the rows that they
 * tell of. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"

struct shared {
    size_t users;
    char data[];
};

static struct shared *shared_of(const void *data)
{
    return CONTAINER_OF((char *)(uintptr_t)data, struct shared, data);
}

static char *shared_new(const void *data, size_t n)
{
    struct shared *s = xmalloc(sizeof(*s) + n + 1);
    s->users = 1;
    if (n)
        memcpy(s->data, data, n);
    s->data[n] = 0;
    return s->data;
}

const char *mem__text(const char *s)
{
    return s ? shared_new(s, strlen(s)) : NULL;
}

const char *mem__share(const char *text)
{
    if (text)
        shared_of(text)->users++;
    return text;
}

void mem__drop(const char *text)
{
    if (text && !--shared_of(text)->users)
        free(shared_of(text));
}

void mem__replace(const char **slot, const char *s)
{
    const char *text = mem__text(s);
    mem__drop(*slot);
    *slot = text;
}

struct store_bytes mem__bytes(struct store_bytes b)
{
    if (!b.data)
        return b;
    return (struct store_bytes){.data = (const uint8_t *)shared_new(b.data, b.len), .len = b.len};
}

struct store_bytes mem__share_bytes(struct store_bytes b)
{
    mem__share((const char *)b.data);
    return b;
}

void mem__drop_bytes(struct store_bytes b)
{
    mem__drop((const char *)b.data);
}

bool mem__same_bytes(struct store_bytes a, struct store_bytes b)
{
    return a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len));
}

/* ---- answers ---- */

enum { CHUNK = 1000 };

struct chunk {
    struct chunk *next;
    size_t used, size;
    max_align_t data[];
};

struct mem_answer {
    struct chunk *first;
};

static void answer_free(void *arg)
{
    struct mem_answer *a = arg;
    for (struct chunk *c = a->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

struct mem_answer *mem__answer(struct store_req *req)
{
    struct mem_answer *a = xcalloc(1, sizeof(*a));
    store__arena(req, 0, a, answer_free);
    return a;
}

void *mem__put(struct mem_answer *a, const void *data, size_t n)
{
    size_t room = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct chunk *c = a->first;
    if (!c || c->size - c->used < room) {
        size_t size = room > CHUNK ? room : CHUNK;
        c = xmalloc(sizeof(*c) + size);
        *c = (struct chunk){.next = a->first, .size = size};
        a->first = c;
    }
    char *at = (char *)c->data + c->used;
    c->used += room;
    if (data && n)
        memcpy(at, data, n);
    else
        memset(at, 0, n);
    return at;
}

const char *mem__put_text(struct mem_answer *a, const char *s)
{
    return s ? mem__put(a, s, strlen(s) + 1) : NULL;
}

struct store_bytes mem__put_bytes(struct mem_answer *a, struct store_bytes b)
{
    if (b.data)
        b.data = mem__put(a, b.data, b.len);
    return b;
}

const char *mem__put_amount(struct mem_answer *a, u128 v)
{
    char text[40];
    return mem__put_text(a, u128_text(v, text));
}

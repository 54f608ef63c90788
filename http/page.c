/* The page: files that the build embeds. */
#include <string.h>

#include "api_internal.h"
#include "base/check.h"
#include "embedded.h"

extern const struct embedded_file http_page_files[];
extern const size_t http_page_count;

static const struct {
    const char *suffix, *type;
} types[] = {{".html", "text/html; charset=utf-8"},
             {".css", "text/css; charset=utf-8"},
             {".js", "text/javascript; charset=utf-8"},
             {".svg", "image/svg+xml"}};

static const char *type_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        size_t len = strlen(types[i].suffix);
        if (strlen(name) > len && !strcmp(name + strlen(name) - len, types[i].suffix))
            return types[i].type;
    }
    UNREACHABLE();
}

void api__page(struct ask *k)
{
    static const struct api_param file[] = {{"file", API_TEXT}};
    struct conn_param given = {.data = "index.html"};
    if (!api__take_params(k, file, k->match.route == HTTP_ROUTE_PAGE_FILE, &given))
        return;
    const char *name = given.data;
    for (size_t i = 0; i < http_page_count; i++) {
        const struct embedded_file *f = &http_page_files[i];
        if (strcmp(f->name, name) != 0)
            continue;
        struct http_answer a = {
            .status = 200, .type = type_of(name), .body = f->text, .len = f->len};
        http_answer(k->r, &a);
        api__ask_free(k);
        return;
    }
    api__problem(k, 404, "not_found", NULL, "the page has no such file");
}

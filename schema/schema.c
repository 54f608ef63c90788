/* Gives the embedded files of schema/migrations and schema/functions to C. */
#include "schema/schema.h"
#include "embedded.h"

enum { FILES_MAX = 256 };

extern const struct embedded_file schema_migrations_files[];
extern const size_t schema_migrations_count;
extern const struct embedded_file schema_functions_files[];
extern const size_t schema_functions_count;
extern const char schema_functions_sha256[];

static size_t fill(struct schema_file *ret, const struct embedded_file *files, size_t count)
{
    for (size_t i = 0; i < count && i < FILES_MAX; i++)
        ret[i] = (struct schema_file){.name = files[i].name,
                                      .sql = files[i].text,
                                      .len = files[i].len,
                                      .checksum = files[i].sha256};
    return count;
}

const struct schema_set *schema_set(void)
{
    static struct schema_file migrations[FILES_MAX], functions[FILES_MAX];
    static struct schema_set set = {.migrations = migrations, .functions = functions};
    if (!set.count) {
        set.functions_count = fill(functions, schema_functions_files, schema_functions_count);
        set.functions_checksum = schema_functions_sha256;
        set.count = fill(migrations, schema_migrations_files, schema_migrations_count);
    }
    return &set;
}

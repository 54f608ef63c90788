/* Gives the embedded files of schema/migrations to C: the number in a file's name is its version. */
#include "schema/schema.h"
#include "embedded.h"

#include <stdlib.h>

extern const struct embedded_file schema_migrations_files[];
extern const size_t schema_migrations_count;

size_t schema_count(void)
{
    return schema_migrations_count;
}

struct schema_migration schema_migration(size_t index)
{
    const struct embedded_file *file = &schema_migrations_files[index];
    return (struct schema_migration){
        .version = (int)strtol(file->name, NULL, 10),
        .name = file->name,
        .sql = file->text,
        .len = file->len,
    };
}

int schema_latest(void)
{
    return schema_migration(schema_migrations_count - 1).version;
}

/* The one place where a SQLSTATE becomes a code. */
#include <string.h>

#include "base/check.h"
#include "store/conn.h"

int conn_map_sqlstate(const char *s)
{
    static const struct {
        const char *prefix; /* the first that fits counts */
        int code;
    } map[] = {
        {"TR001", ERR_LOST_LEADERSHIP},
        {"TR002", ERR_DB_CONFLICT},
        {"TR003", ERR_BUG},
        {"TR010", ERR_ARGUMENT},
        {"TR011", ERR_ARGUMENT},
        {"TR012", ERR_ARGUMENT},
        {"TR013", ERR_ARGUMENT},
        {"TR014", ERR_DB_SCHEMA},
        {"TR015", ERR_GENESIS},
        {"40001", ERR_DB_SERIALIZATION},
        {"40P01", ERR_DB_SERIALIZATION},
        {"40003", ERR_DB_UNKNOWN_OUTCOME},
        {"08", ERR_DB_UNAVAILABLE},
        {"57P0", ERR_DB_UNAVAILABLE},
        {"53300", ERR_DB_UNAVAILABLE},
        {"25006", ERR_DB_READONLY},
        {"28", ERR_DB_DENIED},
        {"3D000", ERR_DB_DENIED},
        {"42501", ERR_DB_DENIED},
        {"57014", ERR_TIMEOUT},
        {"55P03", ERR_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(map); i++)
        if (!strncmp(s, map[i].prefix, strlen(map[i].prefix)))
            return map[i].code;
    return ERR_DB;
}

/* What an audit found, as text, as JSON (one object), or as CSV (the sums). */
#ifndef MAIN_AUDIT_AUDIT_PRINT_H
#define MAIN_AUDIT_AUDIT_PRINT_H

#include "audit/audit.h"

struct audit_range {
    uint64_t from, to;
    int64_t from_ms, to_ms; /* times of these blocks; -1: not known */
    const char *endpoint;
};

void audit_print_text(const struct audit *a, const struct audit_range *range);
void audit_print_json(const struct audit *a, const struct audit_range *range);
void audit_print_csv(const struct audit *a);

#endif

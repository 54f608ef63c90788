/* Does the installed schema fit this program? Private to store/. */
#ifndef STORE_SCHEMA_FIT_H
#define STORE_SCHEMA_FIT_H

#include <stdint.h>

#include "base/error.h"

void schema__fit(int64_t installed, struct err *err);
/* The version could not be read: says "not installed" where that is why. */
void schema__not_installed(struct err *err);

#endif

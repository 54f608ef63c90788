/* Reads the configuration file, without environment and flags. */
#ifndef MAIN_CONFIG_FILE_H
#define MAIN_CONFIG_FILE_H

#include "config.h"

/* ERR_CONFIG: the file is not readable, or does not fit the schema, or holds a password that other
 * users can read. *ret may be set all the same and is the caller's. */
int config__file_read(const char *path, struct config_file **ret, struct err *err);

#endif

/* What must hold of the configuration file's text before libcyaml reads it. */
#ifndef MAIN_CONFIG_TEXT_H
#define MAIN_CONFIG_TEXT_H

#include "base/buf.h"
#include "base/error.h"

/* 0, or ERR_CONFIG with the place: it is not UTF-8, or it has a second document, which libcyaml
 * would ignore without a word. */
int config__text_check(const char *path, const struct buf *text, struct err *err);

#endif

/* What a build makes from the table of commands: manual pages, and completions for shells. */
#ifndef MAIN_DESCRIBE_H
#define MAIN_DESCRIBE_H

#include <argp.h>
#include <stdio.h>

#include "command.h"

/* What the value of an option, or a word of a command, is completed with. */
enum describe_value { DESCRIBE_ANY, DESCRIBE_FILE, DESCRIBE_WORDS };
enum describe_value describe_value_of(const char *arg, const char **ret_words);

void describe_manual(FILE *out);                             /* txrelay.1 */
void describe_manual_of(FILE *out, const struct command *c); /* txrelay-COMMAND.1 */
/* txrelay.yaml.5, from the first table of docs/config.md. */
void describe_manual_config(FILE *out, FILE *page);
void describe_bash(FILE *out);
void describe_zsh(FILE *out);
void describe_fish(FILE *out);

#endif

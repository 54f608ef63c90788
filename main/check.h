/* What `txrelay check` prints (cmd_check.c), and its parts. */
#ifndef MAIN_CHECK_H
#define MAIN_CHECK_H

#include <jansson.h>

#include "config.h"
#include "measure.h"
#include "relay/service.h"

/* Every line is a JSON object from here on. */
void check_as_json(void);
bool check_is_json(void);
void check_json(json_t *line); /* takes it */

/* One line. The text may quote a node, a server or the file. */
void check_line(const char *mark, const char *what, const char *text);
void check_good(const char *what, const char *text);
void check_caution(void *arg, const char *what, const char *text);
void check_wrong(const char *what, const char *text); /* a relay cannot run with it */

/* check_values.c: every key with its value and where it came from. */
void check_values(const struct config *c);

/* check_entries.c: could a relay listen where the file says? */
void check_entries(const struct config_file *f);

/* check_chain.c: connects to each endpoint in turn. */
void check_chain(const struct service_config *c);

/* check_measure.c: what the endpoint can do; shown: its URL without secrets. False: it takes no
 * submissions. */
bool check_measure(const char *shown, const struct measure_endpoint *at);

#endif

/* txrelay feed push: batches from lines or files to whichever relay takes the feed. */
#ifndef MAIN_FEED_PUSH_H
#define MAIN_FEED_PUSH_H

#include <stdbool.h>
#include <stdint.h>

struct feed_push_options {
    const char *feed;
    const char *source; /* a file of JSON lines, a directory of N.json, "-" */
    const char *to;     /* HOST:PORT, or several with commas between them */
    const char *key_file;
    const char *ca_file, *cert_file, *cert_key_file, *server_name;
    const char *token_file;
    int64_t from; /* the number of the first batch that has none */
    bool json;
};

int feed_push(const struct feed_push_options *options); /* an exit code */

#endif

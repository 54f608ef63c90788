/* A room of feeds that plays a part, for tests of the door and of clients. The name of the feed
 * says what it does with a batch:
 *
 *   take     acknowledges it
 *   hold     holds the stream at the trailer until fake_room_release, then acknowledges
 *   skip     skips it at the header, and acknowledges it at the trailer
 *   skipped  skips it at the header, and sends nothing after that
 *   lost     says that the cursor is at `last` if the number is beyond the next one, else takes it
 *   resend   skips the first copy and asks for it again, then takes it
 *   behind   says at the first header that the cursor is at 4, then takes
 *   end-N    ends the stream with status N, the cursor at 4
 *   leader:A says once that A leads, and takes after that
 *
 * It checks that nothing comes while a stream is held, or after its end. */
#ifndef TEST_FAKE_ROOM_H
#define TEST_FAKE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed/feed.h"

struct feed_room {
    size_t open, opened, headers, calls, trailers, ends, bad, cut, gone;
    int end_code; /* of the last EndStream, and its numbers */
    int64_t earliest, latest_acked;
    char why[300]; /* of the last bad or cut */
    int64_t last;  /* acknowledged */
    size_t bytes;
    bool led; /* "leader" was said */
    struct feed_session *held;
    void (*on_trailer)(struct feed_room *room, const char *feed, int64_t number);
};

void fake_room_release(struct feed_room *room);
/* To every session at once. */
void fake_room_push(struct feed_room *room, enum feed_message message, int64_t number);

#endif

/* door_server ADDRESS [CERT KEY CA [TOKEN_FILE]]: the door of feeds with a room that plays a part
 * (fake_room.h), for clients of other makers. "-" leaves an argument out. Prints the address, runs
 * until its standard input ends, and prints what the room saw. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_room.h"
#include "feed/door/door.h"

static struct loop *loop;
static struct feed_room room = {.last = -1};

static void on_line(void *arg, const char *line, size_t len)
{
    (void)arg;
    (void)len;
    if (!line)
        loop_stop(loop);
    else if (!strcmp(line, "release") && room.held)
        fake_room_release(&room);
}

static const char *given(int argc, char **argv, int i)
{
    return i < argc && strcmp(argv[i], "-") != 0 ? argv[i] : NULL;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    loop = loop_new();
    struct feed_door_config config = {.listen = argv[1],
                                      .cert_file = given(argc, argv, 2),
                                      .key_file = given(argc, argv, 3),
                                      .ca_file = given(argc, argv, 4),
                                      .token_file = given(argc, argv, 5)};
    struct feed_door *door = argc > 1 ? feed_door_open(loop, &room, &config, &err) : NULL;
    if (!door) {
        fprintf(stderr, "door_server: %s\n", err.text);
        return 1;
    }
    printf("%s\n", feed_door_address(door));
    fflush(stdout);
    struct loop_stream *in = loop_stream_new(loop, STDIN_FILENO, 1000, on_line, NULL);
    loop_run(loop);
    loop_stream_close(in);
    feed_door_close(door);
    loop_free(loop);
    printf("opened=%zu gone=%zu headers=%zu calls=%zu bytes=%zu trailers=%zu ends=%zu bad=%zu\n",
           room.opened, room.gone, room.headers, room.calls, room.bytes, room.trailers, room.ends,
           room.bad);
    return 0;
}

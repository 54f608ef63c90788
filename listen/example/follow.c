/* follow DATABASE ACCOUNT POSITION_FILE: print what becomes of an account's transactions, and go on
 * after a restart where it stopped. Shows libtxrelay-listen beside a descriptor of the program's
 * own (standard input: the program ends with it). */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <txrelay/listen.h>
#include <unistd.h>

static int64_t load(const char *path)
{
    int64_t position = 0;
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%" SCNd64, &position) != 1)
            position = 0;
        fclose(f);
    }
    return position;
}

/* A file that is replaced is whole, whenever the program is killed. */
static void save(const char *path, int64_t position)
{
    char next[4096];
    snprintf(next, sizeof(next), "%s.next", path);
    FILE *f = fopen(next, "w");
    if (!f || fprintf(f, "%" PRId64 "\n", position) < 0 || fclose(f) != 0 ||
        rename(next, path) != 0) {
        perror(next);
        exit(1);
    }
}

static void on_event(void *arg, const struct txrelay_event *ev)
{
    static const char *const names[] = {
        [TXRELAY_NEW] = "new",           [TXRELAY_UPDATE] = "update", [TXRELAY_REMOVED] = "removed",
        [TXRELAY_FINISHED] = "finished", [TXRELAY_LIVE] = "live",     [TXRELAY_STALE] = "stale",
        [TXRELAY_GAP] = "gap",
    };
    if (ev->kind == TXRELAY_STALE)
        printf("stale age_ms=%" PRIu64 " code=%s text=%s\n", ev->age_ms, ev->code, ev->error);
    else if (ev->kind == TXRELAY_LIVE || ev->kind == TXRELAY_GAP)
        printf("%s\n", names[ev->kind]);
    else
        printf("%s account=%s id=%" PRId64 " nonce=%" PRId64 " state=%s outcome=%s\n",
               names[ev->kind], ev->account, ev->id, ev->nonce, ev->state, ev->outcome);
    fflush(stdout);
    save(arg, ev->position); /* after the event was handled: at least once */
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s DATABASE ACCOUNT POSITION_FILE\n", argv[0]);
        return 2;
    }
    struct txrelay *t = txrelay_open(argv[1], "follow example");
    struct txrelay_options options = {
        .account = argv[2],
        .since = load(argv[3]),
        .callback = on_event,
        .arg = argv[3],
    };
    txrelay_subscribe(t, &options);
    for (;;) {
        struct pollfd fds[] = {{.fd = txrelay_fd(t), .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN}};
        char byte;
        if (poll(fds, 2, txrelay_timeout_ms(t)) < 0)
            continue; /* a signal */
        txrelay_process(t);
        if (fds[1].revents && read(STDIN_FILENO, &byte, 1) <= 0)
            break;
    }
    txrelay_close(t);
    return 0;
}

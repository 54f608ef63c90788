/* The program as a child and a blocking WebSocket client for tests: every wait has a deadline. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "testlib.h"

enum { CALL_TIMEOUT_MS = 20000, ARGS_MAX = 32 };

struct ws {
    int fd;
    struct buf in;
    json_t *notes; /* array of whole notifications not yet asked for */
    json_t *answers;
    int next_id;
    unsigned pings;
    bool answer_pings;
    bool closed;
    char note_method[64];
};

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void child_start(struct child *c, const char *const *args)
{
    const char *argv[ARGS_MAX] = {DEVCHAIN_PATH};
    int out[2];
    size_t n = 1;
    for (; args && *args && n + 1 < ARGS_MAX; args++)
        argv[n++] = *args;
    assert_int_equal(pipe(out), 0);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nothing behind */
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execv(DEVCHAIN_PATH, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    char line[100] = "";
    assert_non_null(fgets(line, sizeof line, f));
    assert_int_equal(sscanf(line, "listening %39s", c->url), 1);
    c->port = (unsigned)strtoul(strrchr(c->url, ':') + 1, NULL, 10);
    fclose(f);
}

void child_stop(struct child *c)
{
    int status;
    kill(c->pid, SIGTERM);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void child_kill(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
}

static int dial(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void write_all(int fd, const void *data, size_t len)
{
    const char *p = data;
    while (len) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* the reader will see the end */
        p += n;
        len -= (size_t)n;
    }
}

/* More bytes, or false at the deadline or the end. */
static bool fill(int fd, struct buf *in, int64_t deadline, bool *ret_closed)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = deadline - clock_ms();
    if (poll(&p, 1, left > 0 ? (int)left : 0) <= 0)
        return false;
    ssize_t n = recv(fd, buf_grow(in, 65536), 65536, 0);
    if (n <= 0) {
        *ret_closed = true;
        return false;
    }
    in->len += (size_t)n;
    return true;
}

static void cut_front(struct buf *b, size_t n)
{
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

static int upgrade(int fd, struct buf *in)
{
    static const char ASK[] =
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    int status = 0;
    bool closed = false;
    int64_t deadline = clock_ms() + CALL_TIMEOUT_MS;
    write_all(fd, ASK, sizeof ASK - 1);
    char *end;
    while (!(end = strstr(buf_str(in), "\r\n\r\n")))
        assert_true(fill(fd, in, deadline, &closed));
    sscanf((const char *)in->data, "HTTP/1.1 %d", &status);
    cut_front(in, (size_t)(end + 4 - (char *)in->data));
    return status;
}

struct ws *ws_open(unsigned port)
{
    struct ws *w = xcalloc(1, sizeof *w);
    w->fd = dial(port);
    w->notes = json_array();
    w->answers = json_array();
    w->answer_pings = true;
    w->next_id = 1000;
    assert_int_equal(upgrade(w->fd, &w->in), 101);
    return w;
}

int ws_open_status(unsigned port)
{
    struct buf in = {0};
    int fd = dial(port);
    int status = upgrade(fd, &in);
    close(fd);
    buf_done(&in);
    return status;
}

void ws_close(struct ws *w)
{
    close(w->fd);
    buf_done(&w->in);
    json_decref(w->notes);
    json_decref(w->answers);
    free(w);
}

/* One masked frame; the mask is zero, which is a mask too. */
static void send_frame(struct ws *w, unsigned opcode, const void *data, size_t len)
{
    struct buf b = {0};
    buf_put_u8(&b, (uint8_t)(0x80 | opcode));
    if (len < 126) {
        buf_put_u8(&b, (uint8_t)(0x80 | len));
    } else if (len < 65536) {
        buf_put_u8(&b, 0xfe);
        buf_put(&b, (uint8_t[2]){(uint8_t)(len >> 8), (uint8_t)len}, 2);
    } else {
        buf_put_u8(&b, 0xff);
        for (int i = 7; i >= 0; i--)
            buf_put_u8(&b, (uint8_t)((uint64_t)len >> (8 * i)));
    }
    buf_put(&b, "\0\0\0\0", 4);
    buf_put(&b, data, len);
    write_all(w->fd, b.data, b.len);
    buf_done(&b);
}

void ws_send(struct ws *w, const char *text)
{
    send_frame(w, 1, text, strlen(text));
}

void ws_send_bytes(struct ws *w, const char *text, size_t len)
{
    send_frame(w, 1, text, len);
}

unsigned ws_pings(const struct ws *w)
{
    return w->pings;
}

void ws_answer_pings(struct ws *w, bool answer)
{
    w->answer_pings = answer;
}

/* A whole frame at the front of the buffer: its opcode, else -1. */
static int front_frame(const struct buf *in, size_t *ret_head, size_t *ret_len)
{
    if (in->len < 2)
        return -1;
    size_t len = in->data[1] & 127, head = 2;
    if (len == 126)
        head = 4;
    else if (len == 127)
        head = 10;
    if (in->len < head)
        return -1;
    if (head > 2) {
        len = 0;
        for (size_t i = 2; i < head; i++)
            len = len << 8 | in->data[i];
    }
    if (in->len < head + len)
        return -1;
    *ret_head = head;
    *ret_len = len;
    return in->data[0] & 15;
}

json_t *ws_next(struct ws *w, int timeout_ms, bool *ret_closed)
{
    int64_t deadline = clock_ms() + timeout_ms;
    *ret_closed = false;
    for (;;) {
        size_t head, len;
        int opcode = front_frame(&w->in, &head, &len);
        if (opcode < 0) {
            if (!fill(w->fd, &w->in, deadline, &w->closed)) {
                *ret_closed = w->closed;
                return NULL;
            }
            continue;
        }
        json_t *message = NULL;
        if (opcode == 1) {
            message = json_loadb((const char *)w->in.data + head, len, JSON_DECODE_ANY, NULL);
            assert_non_null(message);
        } else if (opcode == 9) {
            w->pings++;
            if (w->answer_pings)
                send_frame(w, 10, w->in.data + head, len);
        }
        cut_front(&w->in, head + len);
        if (message)
            return message;
    }
}

static json_t *take(json_t *list, size_t i)
{
    json_t *v = json_incref(json_array_get(list, i));
    json_array_remove(list, i);
    return v;
}

static json_t *find_answer(struct ws *w, int id)
{
    for (size_t i = 0; i < json_array_size(w->answers); i++)
        if (json_integer_value(json_object_get(json_array_get(w->answers, i), "id")) == id)
            return take(w->answers, i);
    return NULL;
}

static json_t *find_note(struct ws *w, const char *subscription)
{
    for (size_t i = 0; i < json_array_size(w->notes); i++) {
        json_t *params = json_object_get(json_array_get(w->notes, i), "params");
        if (strcmp(json_string_value(json_object_get(params, "subscription")), subscription) == 0)
            return take(w->notes, i);
    }
    return NULL;
}

/* Reads one message into the right list. */
static bool pump(struct ws *w, int64_t deadline)
{
    bool closed;
    int64_t left = deadline - clock_ms();
    json_t *m = ws_next(w, left > 0 ? (int)left : 0, &closed);
    if (!m)
        return false;
    json_array_append_new(json_object_get(m, "method") ? w->notes : w->answers, m);
    return true;
}

json_t *ws_answer(struct ws *w, int id, int timeout_ms)
{
    int64_t deadline = clock_ms() + timeout_ms;
    for (;;) {
        json_t *a = find_answer(w, id);
        if (a || !pump(w, deadline))
            return a;
    }
}

json_t *ws_call(struct ws *w, const char *method, const char *params)
{
    struct buf b = {0};
    int id = w->next_id++;
    buf_printf(&b, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":", id, method);
    buf_puts(&b, params);
    buf_puts(&b, "}");
    send_frame(w, 1, b.data, b.len);
    buf_done(&b);
    json_t *a = ws_answer(w, id, CALL_TIMEOUT_MS);
    assert_non_null(a);
    return a;
}

json_t *ws_note(struct ws *w, const char *subscription, int timeout_ms)
{
    int64_t deadline = clock_ms() + timeout_ms;
    for (;;) {
        json_t *n = find_note(w, subscription);
        if (n) {
            json_t *result = json_incref(json_object_get(json_object_get(n, "params"), "result"));
            snprintf(w->note_method, sizeof w->note_method, "%s",
                     json_string_value(json_object_get(n, "method")));
            json_decref(n);
            return result;
        }
        if (!pump(w, deadline))
            return NULL;
    }
}

const char *ws_note_method(const struct ws *w)
{
    return w->note_method;
}

char *http_post(unsigned port, const char *body, int *ret_status)
{
    struct buf ask = {0}, in = {0};
    bool closed = false;
    int fd = dial(port);
    buf_printf(&ask,
               "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: "
               "application/json\r\n"
               "Content-Length: %zu\r\n\r\n",
               strlen(body));
    buf_puts(&ask, body);
    write_all(fd, ask.data, ask.len);
    int64_t deadline = clock_ms() + CALL_TIMEOUT_MS;
    while (!closed)
        if (!fill(fd, &in, deadline, &closed) && !closed)
            break;
    close(fd);
    *ret_status = 0;
    sscanf(buf_str(&in), "HTTP/1.1 %d", ret_status);
    const char *end = strstr(buf_str(&in), "\r\n\r\n");
    char *text = xstrdup(end ? end + 4 : "");
    buf_done(&ask);
    buf_done(&in);
    return text;
}

char *tx_params(const struct buf *bytes)
{
    struct buf b = {0};
    buf_puts(&b, "[\"");
    hex_put_0x(&b, bytes->data, bytes->len);
    buf_puts(&b, "\"]");
    char *text = xstrdup(buf_str(&b));
    buf_done(&b);
    return text;
}

struct tx_facts ws_facts(struct ws *w)
{
    struct tx_facts f = {0};
    json_t *hash = ws_call(w, "chain_getBlockHash", "[0]");
    json_t *version = ws_call(w, "state_getRuntimeVersion", "[]");
    json_t *v = json_object_get(version, "result");
    const char *text = json_string_value(json_object_get(hash, "result"));
    assert_true(hex_decode_fixed(text, strlen(text), f.genesis, 32));
    f.spec = (uint32_t)json_integer_value(json_object_get(v, "specVersion"));
    f.tx_version = (uint32_t)json_integer_value(json_object_get(v, "transactionVersion"));
    json_decref(hash);
    json_decref(version);
    return f;
}

/*
 * canned_frames PORT ANSWERS IN_FLIGHT ERROR_AT FILE...
 *
 * Sends requests that cost it nothing to make, as fast as answers come: one connection to
 * 127.0.0.1:PORT for each FILE, which holds one whole frame, with up to IN_FLIGHT requests under
 * way on it, until ANSWERS have come over all connections. So what is measured is the broker.
 *
 * An answer is counted and dropped. At ERROR_AT, counted from the beginning of its frame, it must
 * have an error code of zero. Prints, on one line: answers, bytes of the requests, bytes of the
 * answers, seconds. Exits with 1 and a message when an answer has an error, or a connection ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SIZE_BYTES 4
#define HEAD_BYTES 512 /* what is kept of an answer, to look for its error code in */
#define READ_BYTES (256 * 1024)
#define WAIT_MS 30000

struct connection {
    int socket;
    const uint8_t *frame;
    size_t frame_bytes;
    size_t sent;      /* bytes of the frame that is being sent */
    int in_flight;    /* requests begun and not answered */
    uint8_t head[HEAD_BYTES];
    size_t received;  /* bytes of the answer that is being received */
};

static uint64_t answers_wanted, answers, bytes_out, bytes_in, begun;
static size_t error_at;
static int most_in_flight;
static uint8_t buffer[READ_BYTES];

static void fail(const char *what) {
    fprintf(stderr, "canned_frames: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint8_t *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, file) != *size) fail(path);
    fclose(file);
    return bytes;
}

static int connect_to(int port) {
    int descriptor = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return descriptor;
}

static int wants_to_send(const struct connection *c) {
    return c->sent || (c->in_flight < most_in_flight && begun < answers_wanted);
}

static void send_frames(struct connection *c) {
    while (wants_to_send(c)) {
        if (!c->sent) c->in_flight++, begun++;
        ssize_t count = send(c->socket, c->frame + c->sent, c->frame_bytes - c->sent, MSG_NOSIGNAL);
        if (count < 0) {
            if (errno != EAGAIN) fail("send");
            if (!c->sent) c->in_flight--, begun--;
            return;
        }
        c->sent += (size_t)count;
        if (c->sent < c->frame_bytes) return;
        c->sent = 0;
        bytes_out += c->frame_bytes;
    }
}

static size_t answer_bytes(const struct connection *c) {
    uint32_t size;
    memcpy(&size, c->head, sizeof size);
    return SIZE_BYTES + ntohl(size);
}

static void end_answer(struct connection *c, size_t size) {
    errno = 0;
    if (size < error_at + 2) fail("an answer is too short for an error code");
    if (c->head[error_at] || c->head[error_at + 1]) {
        char text[64];
        int code = (int16_t)(c->head[error_at] << 8 | c->head[error_at + 1]);
        snprintf(text, sizeof text, "an answer has the error code %d", code);
        fail(text);
    }
    c->received = 0;
    c->in_flight--;
    answers++;
}

static void take(struct connection *c, const uint8_t *data, size_t size) {
    bytes_in += size;
    while (size) {
        size_t whole = c->received < SIZE_BYTES ? SIZE_BYTES : answer_bytes(c);
        size_t part = whole - c->received < size ? whole - c->received : size;
        if (c->received < HEAD_BYTES) {
            size_t room = HEAD_BYTES - c->received;
            memcpy(c->head + c->received, data, part < room ? part : room);
        }
        c->received += part;
        data += part;
        size -= part;
        if (c->received >= SIZE_BYTES && c->received == answer_bytes(c)) end_answer(c, c->received);
    }
}

static void receive_answers(struct connection *c) {
    ssize_t count;
    while ((count = recv(c->socket, buffer, sizeof buffer, 0)) > 0) take(c, buffer, (size_t)count);
    if (count < 0 && errno == EAGAIN) return;
    if (!count) errno = 0;
    fail("the broker closed a connection");
}

int main(int count, char **arguments) {
    if (count < 6) {
        fprintf(stderr, "usage: canned_frames PORT ANSWERS IN_FLIGHT ERROR_AT FILE...\n");
        return 2;
    }
    answers_wanted = strtoull(arguments[2], NULL, 10);
    most_in_flight = atoi(arguments[3]);
    error_at = (size_t)atoi(arguments[4]);
    if (error_at + 2 > HEAD_BYTES) fail("ERROR_AT is too large");
    int number = count - 5;
    struct connection *all = calloc((size_t)number, sizeof *all);
    struct pollfd *polled = calloc((size_t)number, sizeof *polled);
    if (!all || !polled) fail("memory");
    for (int i = 0; i < number; i++) {
        all[i].frame = read_file(arguments[5 + i], &all[i].frame_bytes);
        all[i].socket = polled[i].fd = connect_to(atoi(arguments[1]));
    }
    double begin = now();
    while (answers < answers_wanted) {
        for (int i = 0; i < number; i++)
            polled[i].events = (short)(POLLIN | (wants_to_send(&all[i]) ? POLLOUT : 0));
        errno = 0;
        if (poll(polled, (nfds_t)number, WAIT_MS) <= 0) fail("no answer for 30 seconds");
        for (int i = 0; i < number; i++) {
            if (polled[i].revents & ~POLLOUT) receive_answers(&all[i]);
            if (polled[i].revents & POLLOUT) send_frames(&all[i]);
        }
    }
    printf("%llu %llu %llu %.6f\n", (unsigned long long)answers, (unsigned long long)bytes_out,
           (unsigned long long)bytes_in, now() - begin);
    return 0;
}

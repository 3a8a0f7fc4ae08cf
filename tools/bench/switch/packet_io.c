/* What the benchmark of the switch sends, forwards and counts with: AF_PACKET in batches, as the engine does.
 *
 * Functions return 0 or a negative errno.
 */
#define _GNU_SOURCE                 /* recvmmsg, sendmmsg */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH = 64,
    FRAME_ROOM = 2048,
    SOCKET_BUFFER_BYTES = 4 << 20,
    WAIT_NS = 20000,                /* for room in the window */
    PATIENCE_NS = 100000000,        /* what has not arrived by then is lost */
};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int set_option(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value);
}

/* A socket on an interface, or a negative errno. With protocol 0 it receives nothing. */
static int open_socket(const char *interface, uint16_t protocol) {
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = htons(protocol),
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    if (fd < 0)
        return -errno;
    if (address.sll_ifindex == 0 || set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int refusal = -errno;
        close(fd);
        return refusal;
    }
    return fd;
}

/* ---- The limit: a forwarder without P4 ---- */

struct frames {
    struct iovec vectors[BATCH];
    struct mmsghdr messages[BATCH];
    uint8_t bytes[BATCH][FRAME_ROOM];
};

static void forward_batch(struct frames *frames, int from, int to) {
    for (int i = 0; i < BATCH; i++) {
        frames->vectors[i] = (struct iovec){frames->bytes[i], FRAME_ROOM};
        frames->messages[i].msg_hdr = (struct msghdr){.msg_iov = &frames->vectors[i], .msg_iovlen = 1};
    }
    int received = recvmmsg(from, frames->messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < received; i++)
        frames->vectors[i].iov_len = frames->messages[i].msg_len;
    for (int done = 0; done < received;) {
        int sent = sendmmsg(to, frames->messages + done, (unsigned)(received - done), MSG_DONTWAIT);
        done += sent > 0 ? sent : 1;        /* what the kernel refuses is dropped */
    }
}

/* Carry every frame from one interface to the other, both ways, until the process is killed. A byte is written to
 * ready_fd once frames are received. */
int bench_forward(const char *left, const char *right, int ready_fd) {
    static struct frames frames;
    int fds[2] = {open_socket(left, ETH_P_ALL), open_socket(right, ETH_P_ALL)};
    struct pollfd ready[2];
    for (int i = 0; i < 2; i++) {
        if (fds[i] < 0)
            return fds[i];
        set_option(fds[i], SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER_BYTES);
        set_option(fds[i], SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES);
        ready[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    if (write(ready_fd, "", 1) != 1)
        return -errno;
    for (;;) {
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < 2; i++)
            if (ready[i].revents)
                forward_batch(&frames, fds[i], fds[1 - i]);
    }
}

/* ---- The load: a window of frames under way, counted by the kernel where they come out ---- */

/* A cycle of frames, sent over and over. */
struct load {
    const char *interface;
    uint8_t *frames;                /* count of them, each in FRAME_ROOM bytes */
    const uint32_t *lengths;
    uint32_t count;
    uint32_t outputs;               /* frames that come out for each cycle */
    uint32_t sequence_offset;       /* of 32 bits in each frame to which a step is added once it was sent */
    uint32_t sequence_step;
    uint32_t next;                  /* the frame to go on with */
    uint32_t window;                /* frames under way at most */
    uint64_t warm_up_ns, measure_ns;
};

struct outcome {
    uint64_t sent, received;        /* frames during the measurement */
    uint64_t elapsed_ns;
};

/* Add to `received` what came in since the last call: the kernel counts frames that it has no room for, too. */
static void count_received(int fd, uint64_t *received) {
    struct tpacket_stats since;
    socklen_t size = sizeof since;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &since, &size) == 0)
        *received += since.tp_packets;
}

static void advance_sequence(const struct load *load, uint32_t frame) {
    uint8_t *at = load->frames + (size_t)frame * FRAME_ROOM + load->sequence_offset;
    uint32_t number;
    memcpy(&number, at, sizeof number);
    number = htonl(ntohl(number) + load->sequence_step);
    memcpy(at, &number, sizeof number);
}

/* Send up to `room` frames; how many went, or a negative errno. */
static int send_some(struct load *load, int fd, uint64_t room) {
    struct iovec vectors[BATCH];
    struct mmsghdr messages[BATCH];
    uint32_t wanted = load->count - load->next < BATCH ? load->count - load->next : BATCH;
    if (room < wanted)
        wanted = (uint32_t)room;
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t frame = load->next + i;
        vectors[i] = (struct iovec){load->frames + (size_t)frame * FRAME_ROOM, load->lengths[frame]};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &vectors[i], .msg_iovlen = 1};
    }
    int sent = sendmmsg(fd, messages, wanted, 0);
    if (sent < 0)
        return errno == ENOBUFS || errno == EINTR ? 0 : -errno;
    for (uint32_t i = 0; load->sequence_step && i < (uint32_t)sent; i++)
        advance_sequence(load, load->next + i);
    load->next = (load->next + (uint32_t)sent) % load->count;
    return sent;
}

/* Frames sent, and those that came out again as far as outputs can tell. */
struct progress {
    uint64_t sent, received, written_off, last_ns;
};

static uint64_t under_way(const struct load *load, int in, struct progress *progress, uint64_t now_ns) {
    uint64_t before = progress->received;
    count_received(in, &progress->received);
    if (progress->received != before)
        progress->last_ns = now_ns;
    uint64_t settled = progress->received * load->count / load->outputs + progress->written_off;
    return progress->sent > settled ? progress->sent - settled : 0;
}

static int drive(struct load *load, int out, int in, struct outcome *outcome) {
    const struct timespec wait = {.tv_nsec = WAIT_NS};
    uint64_t start_ns = clock_ns(), begin_ns = 0, now_ns;
    struct progress progress = {.last_ns = start_ns}, begin = {0};
    while ((now_ns = clock_ns()) < start_ns + load->warm_up_ns + load->measure_ns) {
        uint64_t missing = under_way(load, in, &progress, now_ns);
        if (!begin_ns && now_ns >= start_ns + load->warm_up_ns) {
            begin_ns = now_ns;
            begin = progress;
        }
        uint64_t room = missing < load->window ? load->window - missing : 0;
        if (room >= BATCH || room > load->window / 2) {
            int sent = send_some(load, out, room);
            if (sent < 0)
                return sent;
            progress.sent += (uint64_t)sent;
        } else if (now_ns > progress.last_ns + PATIENCE_NS) {
            progress.written_off += missing;
            progress.last_ns = now_ns;
        } else {
            nanosleep(&wait, NULL);
        }
    }
    *outcome = (struct outcome){progress.sent - begin.sent, progress.received - begin.received, now_ns - begin_ns};
    /* What is still under way must not be counted next time. */
    while (under_way(load, in, &progress, now_ns) > 0 && now_ns < progress.last_ns + PATIENCE_NS) {
        nanosleep(&wait, NULL);
        now_ns = clock_ns();
    }
    return 0;
}

/* Keep load->window frames under way to `exit`, and count there. */
int bench_drive(struct load *load, const char *exit, struct outcome *outcome) {
    prctl(PR_SET_TIMERSLACK, 1);
    int out = open_socket(load->interface, 0);
    int in = out < 0 ? out : open_socket(exit, ETH_P_ALL);
    if (in < 0) {
        if (out >= 0)
            close(out);
        return in;
    }
    /* Nobody reads: beyond the first few, frames are counted and dropped. */
    set_option(in, SOL_SOCKET, SO_RCVBUF, 0);
    set_option(out, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER_BYTES);
    set_option(out, SOL_PACKET, PACKET_QDISC_BYPASS, 1);
    uint64_t before = 0;
    count_received(in, &before);
    int refusal = drive(load, out, in, outcome);
    close(in);
    close(out);
    return refusal;
}

/* Ports that are network interfaces: AF_PACKET sockets, read and written in batches.
 *
 * recvmmsg and sendmmsg, straight from and to the packets' own buffers. Packet rings (TPACKET_V2) were measured to
 * cost the same per packet (about 2 us either way, nearly all of it the kernel's), and would pin memory for every
 * interface and copy each frame once more; TPACKET_V3 holds frames back for a millisecond.
 */
#define _GNU_SOURCE                 /* recvmmsg, sendmmsg */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/ports/socket.h"

enum {
    RECEIVE_BUFFER_BYTES = 4 << 20,
    VLAN_TAG_BYTES = 4,
    MAC_ADDRESSES_BYTES = 12,
    FRAME_OVERHEAD_BYTES = 18,      /* Ethernet header and a VLAN tag */
    SMALL_ROOM_BYTES = 1536 + FRAME_OVERHEAD_BYTES,
    LARGE_ROOM_BYTES = GB_MAX_SOCKET_FRAME_BYTES,
    BACKLOG_PACKETS = 256,          /* with that many to work on, no more are received */
};

static int set_option(int fd, int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof value);
}

static int interface_mtu(int fd, const char *name) {
    struct ifreq request = {0};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    return ioctl(fd, SIOCGIFMTU, &request) < 0 ? -errno : request.ifr_mtu;
}

/* A place without a packet was used up. */
struct receive_batch {
    uint32_t room;
    struct packet *packets[SOCKET_BATCH];
    struct iovec vectors[SOCKET_BATCH];
    struct mmsghdr messages[SOCKET_BATCH];
    union { struct cmsghdr aligned; char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))]; } control[SOCKET_BATCH];
};

struct receive_batch *receive_batch_create(bool jumbo) {
    struct receive_batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return NULL;
    batch->room = jumbo ? LARGE_ROOM_BYTES : SMALL_ROOM_BYTES;
    for (int i = 0; i < SOCKET_BATCH; i++)
        batch->messages[i].msg_hdr = (struct msghdr){.msg_iov = &batch->vectors[i],
                                                     .msg_iovlen = 1,
                                                     .msg_control = &batch->control[i],
                                                     .msg_controllen = sizeof batch->control[i]};
    return batch;
}

void receive_batch_free(struct packet_pool *pool, struct receive_batch *batch) {
    for (int i = 0; batch && i < SOCKET_BATCH; i++)
        if (batch->packets[i])
            packet_free(pool, batch->packets[i]);
    free(batch);
}

/* Give the used-up places new packets; how many can be received into. */
static unsigned refill(struct gb_engine *engine, struct packet_pool *pool, struct receive_batch *batch) {
    unsigned i = 0;
    for (; i < SOCKET_BATCH; i++) {
        if (batch->packets[i])
            continue;
        struct packet *packet = packet_take(pool, VLAN_TAG_BYTES + pool->headroom_bytes, batch->room);
        if (!packet)
            break;
        engine->idle_packets++;
        batch->packets[i] = packet;
        batch->vectors[i] = (struct iovec){packet->view.data, batch->room};
    }
    return i;
}

int interface_open(struct interface *interface, const char *name) {
    /* Protocol 0: nothing is received before bind. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    unsigned index = if_nametoindex(name);
    int mtu = index ? interface_mtu(fd, name) : -ENODEV;
    struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    if (mtu < 0 || set_option(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) < 0 ||
        set_option(fd, SOL_PACKET, PACKET_AUXDATA, 1) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int refusal = mtu < 0 ? mtu : -errno;
        close(fd);
        return refusal;
    }
    /* A larger one helps with bursts. What the default lets wait to be sent is enough for any rate, and short enough
     * that the queue of a slow interface builds up in the traffic manager. */
    set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES);
    interface->io.kind = &interface_io;
    interface->fd = fd;
    interface->index = (int)index;
    interface->jumbo = mtu + FRAME_OVERHEAD_BYTES > SMALL_ROOM_BYTES;
    return 0;
}

static void interface_close(struct gb_engine *engine, struct port_io *io) {
    struct interface *interface = (struct interface *)io;
    list_free(&engine->lps[0].pool, &interface->pending);
    close(interface->fd);
    free(interface);
}

/* The kernel moves the outermost VLAN tag from the frame to the socket's auxiliary data: put it back. */
static void restore_vlan_tag(struct packet *packet, struct msghdr *message) {
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
        if (control->cmsg_level != SOL_PACKET || control->cmsg_type != PACKET_AUXDATA)
            continue;
        struct tpacket_auxdata aux;
        memcpy(&aux, CMSG_DATA(control), sizeof aux);
        struct gb_packet *view = &packet->view;
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || view->length < MAC_ADDRESSES_BYTES)
            return;
        uint16_t type = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q);
        uint16_t tag = htons(aux.tp_vlan_tci);
        view->data -= VLAN_TAG_BYTES;
        view->headroom -= VLAN_TAG_BYTES;
        view->length += VLAN_TAG_BYTES;
        memmove(view->data, view->data + VLAN_TAG_BYTES, MAC_ADDRESSES_BYTES);
        memcpy(view->data + MAC_ADDRESSES_BYTES, &type, sizeof type);
        memcpy(view->data + MAC_ADDRESSES_BYTES + sizeof type, &tag, sizeof tag);
        return;
    }
}

static void receive_frames(struct gb_engine *engine, struct interface *interface) {
    struct receive_batch *batch = interface->jumbo ? engine->receive_large : engine->receive_small;
    /* -1 when the interface went down meanwhile; the socket reports it once and goes on when it is up again. */
    struct logical_process *lp = interface->io.in->lp;
    unsigned room = refill(engine, &lp->pool, batch);
    int received = recvmmsg(interface->fd, batch->messages, room, MSG_DONTWAIT, NULL);
    for (int i = 0; i < received; i++) {
        struct msghdr *message = &batch->messages[i].msg_hdr;
        if (message->msg_flags & MSG_TRUNC) {
            /* Longer than the MTU was; the next ones get larger buffers. */
            interface->statistics.oversize_drops++;
            interface->jumbo = true;
        } else {
            struct packet *packet = batch->packets[i];
            batch->packets[i] = NULL;
            engine->idle_packets--;
            packet->view.length = batch->messages[i].msg_len;
            restore_vlan_tag(packet, message);
            interface->statistics.received++;
            direction_offer(lp, interface->io.in, packet);
        }
        message->msg_controllen = sizeof batch->control[i];
    }
}

static void watch_for(struct gb_engine *engine, struct interface *interface, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = &interface->io};
    epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, interface->fd, &event);
}

/* The first frames of those that are pending: sent, refused (1), or none because the kernel's queue is full (0). */
static uint32_t send_batch(struct interface *interface, bool *accepted) {
    struct iovec vectors[SOCKET_BATCH];
    struct mmsghdr messages[SOCKET_BATCH];
    unsigned count = 0;
    for (struct packet *packet = interface->pending.first; packet && count < SOCKET_BATCH; packet = packet->next) {
        vectors[count] = (struct iovec){packet->view.data, packet->view.length};
        messages[count].msg_hdr = (struct msghdr){.msg_iov = &vectors[count], .msg_iovlen = 1};
        count++;
    }
    int sent = sendmmsg(interface->fd, messages, count, MSG_DONTWAIT);
    *accepted = sent > 0;
    if (sent > 0)
        return (uint32_t)sent;
    /* Any other error concerns the first message alone: interface down, frame longer than its MTU. */
    return errno == EAGAIN ? 0 : 1;
}

static void interface_flush(struct gb_engine *engine, struct port_io *io) {
    struct interface *interface = (struct interface *)io;
    while (interface->pending.first && !io->blocked) {
        bool accepted;
        uint32_t settled = send_batch(interface, &accepted);
        for (uint32_t i = 0; i < settled; i++) {
            struct packet *packet = list_pop(&interface->pending);
            direction_count(packet->direction, packet, accepted);
            packet_free(&packet->direction->lp->pool, packet);
        }
        *(accepted ? &interface->statistics.sent : &interface->statistics.send_errors) += settled;
        if (settled == 0) {
            io->blocked = true;
            watch_for(engine, interface, EPOLLIN | EPOLLOUT);
        }
    }
}

static void interface_send(struct logical_process *lp, struct port_io *io, struct packet *packet) {
    struct interface *interface = (struct interface *)io;
    port_io_hold(lp->engine, io);
    list_append(&interface->pending, packet);
    if (interface->pending.count >= SOCKET_BATCH)
        interface_flush(lp->engine, io);
}

/* The kernel takes frames again. */
static void unblock(struct gb_engine *engine, struct interface *interface) {
    interface->io.blocked = false;
    interface_flush(engine, &interface->io);
    if (interface->io.blocked)
        return;
    watch_for(engine, interface, EPOLLIN);
    direction_resume(interface->io.out->lp, interface->io.out);
}

/* An interface that goes down leaves an error on its socket, which epoll reports until it is read. */
static void clear_error(const struct interface *interface) {
    int error;
    socklen_t size = sizeof error;
    getsockopt(interface->fd, SOL_SOCKET, SO_ERROR, &error, &size);
}

static void interface_receive(struct gb_engine *engine, struct port_io *io, uint32_t events) {
    struct interface *interface = (struct interface *)io;
    if (events & EPOLLERR)
        clear_error(interface);
    if (io->blocked && events & (EPOLLOUT | EPOLLERR)) {
        engine_catch_up(engine);
        unblock(engine, interface);
    }
    /* Otherwise frames wait in the socket, where too many are dropped and counted. */
    if (events & ~(uint32_t)EPOLLOUT && engine->ready.count < BACKLOG_PACKETS) {
        engine_catch_up(engine);
        receive_frames(engine, interface);
    }
}

static bool interface_carrier(const struct port_io *io) {
    const struct interface *interface = (const struct interface *)io;
    /* By number, since it may have another name by now. */
    struct ifreq request = {.ifr_ifindex = interface->index};
    return ioctl(interface->fd, SIOCGIFNAME, &request) == 0 && ioctl(interface->fd, SIOCGIFFLAGS, &request) == 0 &&
           (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

const struct port_io_kind interface_io = {
    .send = interface_send,
    .flush = interface_flush,
    .receive = interface_receive,
    .carrier = interface_carrier,
    .close = interface_close,
};

struct interface *interface_of(struct port_io *io) {
    return io->kind == &interface_io ? (struct interface *)io : NULL;
}

void interface_count_socket_drops(struct interface *interface) {
    /* Reading resets the kernel's count. */
    struct tpacket_stats kernel;
    socklen_t size = sizeof kernel;
    if (getsockopt(interface->fd, SOL_PACKET, PACKET_STATISTICS, &kernel, &size) == 0)
        interface->statistics.socket_drops += kernel.tp_drops;
}

/* Which ports are up. Those of links between switches are, unless the link was cut. Those on network interfaces follow
 * the interface, which the kernel reports by rtnetlink (rtnetlink(7), RTMGRP_LINK): a veth's carrier goes when the
 * other end is set down.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/ports/socket.h"
#include "state/state.h"

enum { MESSAGES_BYTES = 32768 };    /* as much as the kernel puts into one datagram */

_Static_assert(GB_WATCHABLE_PORTS == GB_MAX_PORTS, "members watch any port");

void port_look(struct device *device, uint32_t port) {
    const struct link_direction *out = device->ports[port].out;
    uint64_t *word = &device->ports_down[port / 64], bit = UINT64_C(1) << port % 64;
    bool down = out->cut || (out->io && !out->io->carrier);
    if (down == !!(*word & bit))
        return;
    *word ^= bit;
    if (device->state)
        gb_switch_watch_ports(device->state, device->ports_down);
}

int gb_engine_set_link_up(struct gb_engine *engine, uint64_t device_id, uint32_t port, uint32_t up) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    struct link_direction *out = device && port < GB_MAX_PORTS ? device->ports[port].out : NULL;
    int outcome = device ? -EINVAL : -ESRCH;
    if (out && out->reported) {
        struct device *peer = out->to;
        struct link_direction *back = peer ? peer->ports[out->to_port].out : device->ports[port].in;
        out->cut = back->cut = !up;
        port_look(device, port);
        if (peer)
            port_look(peer, out->to_port);
        outcome = 0;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

static bool runs(unsigned flags) {
    return flags & IFF_UP && flags & IFF_RUNNING;
}

void carrier_take(struct gb_engine *engine, struct port_io *io, bool carrier) {
    io->carrier = carrier;
    if (!io->out)
        return;                     /* half made, for want of memory */
    /* The port that sends to it: on a wire between two switches that is the far one's. */
    const struct gb_link_statistics *sender = &io->out->statistics;
    port_look(engine_device(engine, sender->device_id), (uint32_t)sender->port);
}

int carriers_watch(struct gb_engine *engine) {
    if (engine->netlink_fd >= 0)
        return 0;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &engine->netlink_fd};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        int refusal = -errno;
        close(fd);
        return refusal;
    }
    engine->netlink_fd = fd;
    return 0;
}

static void take_message(struct gb_engine *engine, const struct nlmsghdr *header) {
    if ((header->nlmsg_type != RTM_NEWLINK && header->nlmsg_type != RTM_DELLINK) ||
        header->nlmsg_len < NLMSG_LENGTH(sizeof(struct ifinfomsg)))
        return;
    const struct ifinfomsg *link = NLMSG_DATA(header);
    /* Bridges report on their ports in messages of their own family, without the interface's flags. */
    if (link->ifi_family != AF_UNSPEC)
        return;
    for (uint32_t i = 0; i < engine->io_count; i++) {
        const struct interface *interface = interface_of(engine->ios[i]);
        if (interface && interface->index == link->ifi_index)
            carrier_take(engine, engine->ios[i], header->nlmsg_type == RTM_NEWLINK && runs(link->ifi_flags));
    }
}

void carriers_read(struct gb_engine *engine) {
    _Alignas(struct nlmsghdr) char bytes[MESSAGES_BYTES];
    ssize_t received;
    while ((received = recv(engine->netlink_fd, bytes, sizeof bytes, 0)) > 0) {
        ssize_t left = received;
        for (const struct nlmsghdr *header = (void *)bytes; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left))
            take_message(engine, header);
    }
    /* Messages were lost because there were too many: look at all. */
    if (received < 0 && errno == ENOBUFS)
        for (uint32_t i = 0; i < engine->io_count; i++)
            carrier_take(engine, engine->ios[i], engine->ios[i]->kind->carrier(engine->ios[i]));
}

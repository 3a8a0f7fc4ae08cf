/* Ports that end in memory: the hosts' ends of links for programs that live in this process.
 *
 * Frames that such a program sends are offered to the link at once, or at times that it gives. Those for it wait on a ring, as on a 
 * NIC, until the NIC's time of coalescing is over; then the data plane stops, and they are its to take.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/internal.h"
#include "engine/transport/nic.h"

void memory_port_notify(struct logical_process *lp, struct memory_port *port) {
    if (port->notify_fd >= 0) {
        uint64_t one = 1;
        ssize_t written = write(port->notify_fd, &one, sizeof one);
        (void)written;              /* fails only when it is readable already */
        return;
    }
    if (port->due)
        return;
    port->due = true;
    port->due_order = timer_number(&lp->timers);
    port->next_due = NULL;
    if (lp->due_first)
        lp->due_last->next_due = port;
    else
        lp->due_first = port;
    lp->due_last = port;
}

static void interrupt(struct logical_process *lp, void *owner) {
    struct memory_port *port = owner;
    list_join(&port->notified, &port->ring);
    memory_port_notify(lp, port);
}

static void keep(struct logical_process *lp, struct memory_port *port, struct packet *packet) {
    packet->due_ns = lp->now_ns;
    lp->arrived_packets++;
    if (port->listener == DRAIN) {
        packet->device = packet->direction->egress;
        packet->port = packet->direction->egress_port;
        list_append(&lp->engine->drained, packet);
    } else if (timer_armed(&port->interrupt)) {
        list_append(&port->ring, packet);
    } else if (port->receive_coalescing_ns == GB_NEVER_NOTIFY) {
        list_append(&port->notified, packet);
    } else if (port->receive_coalescing_ns == 0) {
        list_append(&port->notified, packet);
        memory_port_notify(lp, port);
    } else {
        list_append(&port->ring, packet);
        timer_arm(&lp->timers, &port->interrupt, lp->now_ns + port->receive_coalescing_ns);
    }
}

static void memory_send(struct logical_process *lp, struct port_io *io, struct packet *packet) {
    struct memory_port *port = (struct memory_port *)io;
    direction_count(packet->direction, packet, true);
    if (port->nic && nic_take(lp, port->nic, packet))
        return;
    bool taken = port->sink && sink_take(port->sink, packet, lp->now_ns);
    if (taken || port->listener == NO_LISTENER)
        packet_free(&lp->pool, packet);
    else
        keep(lp, port, packet);
}

static bool memory_carrier(const struct port_io *io) {
    (void)io;
    return true;
}

static void send_due(struct logical_process *lp, void *owner) {
    struct memory_port *port = owner;
    struct packet *packet;
    while ((packet = timed_pop(&lp->timers, &port->outbox, &port->sending, lp->now_ns)))
        direction_offer(lp, port->io.in, packet);
}

static void throw_away(struct memory_port *port) {
    port->lp->arrived_packets -= port->ring.count + port->notified.count;
    list_free(&port->lp->pool, &port->ring);
    list_free(&port->lp->pool, &port->notified);
}

static void memory_close(struct gb_engine *engine, struct port_io *io) {
    struct memory_port *port = (struct memory_port *)io;
    (void)engine;
    throw_away(port);
    list_free(&port->lp->pool, &port->outbox);
    free(port->sink);
    nic_free(port->nic);
    if (port->notify_fd >= 0)
        close(port->notify_fd);
    free(port);
}

static const struct port_io_kind memory_io = {
    .send = memory_send,
    .carrier = memory_carrier,
    .close = memory_close,
};

int memory_port_create(struct device *device, uint32_t port, enum listener listener, struct memory_port **created) {
    struct gb_engine *engine = device->engine;
    struct memory_port *memory = calloc(1, sizeof *memory);
    if (!memory)
        return -ENOMEM;
    memory->io.kind = &memory_io;
    memory->io.carrier = true;
    memory->lp = device->lp;
    memory->device_id = device->device_id;
    memory->port = port;
    memory->number = engine->io_count;
    memory->listener = listener;
    memory->notify_fd = -1;
    static const struct timer_kind interrupts = {.fire = interrupt}, sendings = {.fire = send_due};
    memory->interrupt = (struct timer){.kind = &interrupts, .owner = memory};
    memory->sending = (struct timer){.kind = &sendings, .owner = memory};
    *created = memory;
    if (lps_reserve(engine, 2) && port_io_adopt(engine, &memory->io))
        return 0;
    free(memory);
    return -ENOMEM;
}

static struct memory_port *memory_port_of(struct port_io *io) {
    return io && io->kind == &memory_io ? (struct memory_port *)io : NULL;
}

bool memory_port_notifies(struct port_io *io) {
    const struct memory_port *port = memory_port_of(io);
    return !port || port->listener == DRAIN || timer_armed(&port->interrupt) ||
           (port->listener == INBOX && port->receive_coalescing_ns != GB_NEVER_NOTIFY);
}

struct memory_port *memory_port_at(struct gb_engine *engine, uint64_t device_id, uint32_t port) {
    struct device *device = engine_device(engine, device_id);
    struct link_direction *out = device && port < GB_MAX_PORTS ? device->ports[port].out : NULL;
    return out ? memory_port_of(out->io) : NULL;
}

/* ---- Control ---- */

int gb_engine_notify_descriptor(struct gb_engine *engine, uint64_t device_id, uint32_t port) {
    engine_lock_control(&engine->lock);
    struct memory_port *memory = engine->manual_clock ? NULL : memory_port_at(engine, device_id, port);
    if (memory && memory->notify_fd < 0)
        memory->notify_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int outcome = !memory ? -ENXIO : memory->notify_fd < 0 ? -errno : memory->notify_fd;
    engine_unlock(&engine->lock);
    return outcome;
}

static struct memory_port *inbox_of(struct gb_engine *engine, uint32_t number) {
    struct memory_port *port = number < engine->io_count ? memory_port_of(engine->ios[number]) : NULL;
    return port && port->listener == INBOX ? port : NULL;
}

int gb_engine_open_inbox(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                         uint64_t receive_coalescing_ns) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct memory_port *memory = memory_port_at(engine, device_id, port);
    if (memory && memory->listener != DRAIN) {
        memory->listener = INBOX;
        memory->receive_coalescing_ns = receive_coalescing_ns;
        if (memory->notified.count && receive_coalescing_ns != GB_NEVER_NOTIFY)
            memory_port_notify(memory->lp, memory);
        outcome = (int)memory->number;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_close_inbox(struct gb_engine *engine, uint32_t inbox) {
    engine_lock_control(&engine->lock);
    struct memory_port *port = inbox_of(engine, inbox);
    if (port) {
        port->listener = NO_LISTENER;
        timer_stop(&port->lp->timers, &port->interrupt);
        throw_away(port);
    }
    engine_unlock(&engine->lock);
    return port ? 0 : -EINVAL;
}

static int offer_all(struct gb_engine *engine, struct memory_port *port, const uint8_t *frames, uint64_t stride,
                     const uint32_t *lengths, const uint64_t *times_ns, uint32_t count) {
    struct logical_process *lp = port->lp;
    engine_catch_up(engine);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = lengths ? lengths[i] : (uint32_t)stride;
        struct packet *packet =
            packet_from_bytes(&lp->pool, frames + i * stride, length, lp->pool.headroom_bytes);
        if (!packet)
            return -ENOMEM;
        if (times_ns && times_ns[i] > lp->now_ns)
            timed_put(&lp->timers, &port->outbox, &port->sending, packet, times_ns[i]);
        else
            direction_offer(lp, port->io.in, packet);
    }
    engine_wake(engine);
    return 0;
}

int gb_engine_send(struct gb_engine *engine, uint32_t inbox, const uint8_t *frames, uint64_t stride,
                   const uint32_t *lengths, const uint64_t *times_ns, uint32_t count) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct memory_port *port = inbox_of(engine, inbox);
    bool too_long = !lengths && stride > GB_MAX_FRAME_BYTES;
    for (uint32_t i = 0; lengths && i < count; i++)
        too_long |= lengths[i] > GB_MAX_FRAME_BYTES || lengths[i] > stride;
    if (port)
        outcome = too_long ? -EMSGSIZE : offer_all(engine, port, frames, stride, lengths, times_ns, count);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_inbox_waiting(struct gb_engine *engine, uint32_t inbox, uint32_t *longest) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct memory_port *port = inbox_of(engine, inbox);
    if (port) {
        *longest = 0;
        for (const struct packet *packet = port->notified.first; packet; packet = packet->next)
            if (packet->view.length > *longest)
                *longest = packet->view.length;
        outcome = port->notified.count > INT32_MAX ? INT32_MAX : (int)port->notified.count;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_receive(struct gb_engine *engine, uint32_t inbox, uint8_t *frames, uint64_t stride, uint32_t *lengths,
                      uint64_t *times_ns, uint32_t capacity) {
    int outcome = -EINVAL;
    engine_lock_control(&engine->lock);
    struct memory_port *port = inbox_of(engine, inbox);
    if (port) {
        uint32_t count = 0;
        for (; count < capacity && port->notified.first; count++) {
            struct packet *packet = list_pop(&port->notified);
            uint32_t length = packet->view.length < stride ? packet->view.length : (uint32_t)stride;
            memcpy(frames + count * stride, packet->view.data, length);
            lengths[count] = length;
            times_ns[count] = packet->due_ns;
            packet_free(&port->lp->pool, packet);
        }
        port->lp->arrived_packets -= count;
        outcome = (int)count;
    }
    engine_unlock(&engine->lock);
    return outcome;
}

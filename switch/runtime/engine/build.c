/* Building: switches, their ports, links and interfaces. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "engine/internal.h"
#include "engine/ports/pfc.h"
#include "engine/ports/socket.h"

/* The two directions of one cable. PFC keeps either from sending to a switch more than that can hold. False when out of
 * memory. */
static bool join_directions(struct gb_engine *engine, struct link_direction *forth, struct link_direction *back) {
    forth->back = back;
    back->back = forth;
    engine->has_pfc |= forth->model->pfc_xoff_bytes || back->model->pfc_xoff_bytes;
    return (forth->far_end != TO_PIPELINE || pfc_prepare(forth)) &&
           (back->far_end != TO_PIPELINE || pfc_prepare(back));
}

/* Both directions of a port that faces a host. */
static int add_host_port(struct gb_engine *engine, struct device *device, uint32_t port,
                         const struct gb_link_model *in, const struct gb_link_model *out, enum far_end far_end,
                         struct port_io *io) {
    struct link_direction *outwards = direction_create(engine, out, device, port, true);
    struct link_direction *inwards = outwards ? direction_create(engine, in, device, port, false) : NULL;
    if (!inwards)
        return -ENOMEM;
    outwards->far_end = far_end;
    outwards->io = io;
    device->ports[port].out = outwards;
    device->ports[port].in = inwards;
    if (io) {
        io->out = outwards;
        io->in = inwards;
    }
    return join_directions(engine, outwards, inwards) ? 0 : -ENOMEM;
}

/* The port of packet-ins and packet-outs, with a link that takes no time. */
static int add_cpu_port(struct gb_engine *engine, struct device *device, uint32_t port) {
    struct gb_link_model direct = {.queue_packets = 1};
    int outcome = add_host_port(engine, device, port, &direct, &direct, TO_CONTROLLER, NULL);
    if (outcome == 0)
        device->ports[port].in->reported = device->ports[port].out->reported = false;
    return outcome;
}

static int add_switch(struct gb_engine *engine, uint64_t device_id, const struct gb_switch_options *options) {
    if (engine_device(engine, device_id))
        return -EEXIST;
    struct device **devices = realloc(engine->devices, (engine->device_count + 1) * sizeof *devices);
    if (devices)
        engine->devices = devices;
    struct device *device = arena_take(&engine->lps[options->lp].arena, sizeof *device);
    if (!devices || !device)
        return -ENOMEM;
    uint32_t at = engine->device_count++;
    for (; at > 0 && devices[at - 1]->device_id > device_id; at--)
        devices[at] = devices[at - 1];
    devices[at] = device;
    device->engine = engine;
    device->lp = &engine->lps[options->lp];
    device->device_id = device_id;
    device->cpu_port = options->cpu_port;
    device->drop_port = options->drop_port;
    device->priorities = options->priorities;
    device->seed = options->seed;
    device->start_ns = engine_clock(engine);
    struct gb_link_model direct = {.queue_packets = 1};
    device->nowhere = direction_create(engine, &direct, device, GB_MAX_PORTS, true);
    if (!device->nowhere)
        return -ENOMEM;
    device->nowhere->far_end = TO_NOWHERE;
    device->nowhere->reported = false;
    return options->cpu_port == GB_NO_PORT ? 0 : add_cpu_port(engine, device, options->cpu_port);
}

int gb_engine_add_switch(struct gb_engine *engine, uint64_t device_id, const struct gb_switch_options *options) {
    if ((options->cpu_port != GB_NO_PORT && options->cpu_port >= GB_MAX_PORTS) ||
        options->cpu_port == options->drop_port || options->drop_port >= GB_MAX_PORTS || options->priorities == 0 ||
        options->priorities > GB_PRIORITIES || options->lp >= engine->lp_count)
        return -EINVAL;
    engine_lock_control(&engine->lock);
    int outcome = add_switch(engine, device_id, options);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_has_port(struct gb_engine *engine, uint64_t device_id, uint32_t port) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    int found = device && port < GB_MAX_PORTS && device->ports[port].out;
    engine_unlock(&engine->lock);
    return found;
}

uint64_t gb_engine_switch_start(struct gb_engine *engine, uint64_t device_id) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    uint64_t start_ns = device ? device->start_ns : 0;
    engine_unlock(&engine->lock);
    return start_ns;
}

/* A switch whose port is free; NULL and the reason otherwise. */
static struct device *with_free_port(struct gb_engine *engine, uint64_t device_id, uint32_t port, int *reason) {
    struct device *device = engine_device(engine, device_id);
    if (!device)
        *reason = -ESRCH;
    else if (port >= GB_MAX_PORTS || port == device->drop_port)
        *reason = -EINVAL;
    else if (device->ports[port].out)
        *reason = -EEXIST;
    else
        return device;
    return NULL;
}

int gb_engine_add_link(struct gb_engine *engine, uint64_t device_a, uint32_t port_a, uint64_t device_b,
                       uint32_t port_b, const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *a = with_free_port(engine, device_a, port_a, &outcome);
    struct device *b = with_free_port(engine, device_b, port_b, &outcome);
    if (a && b && a == b && port_a == port_b)
        outcome = -EEXIST;
    if (a_to_b->channels > GB_PRIORITIES || b_to_a->channels > GB_PRIORITIES)
        outcome = -EINVAL;
    if (outcome == 0) {
        struct link_direction *forth = direction_create(engine, a_to_b, a, port_a, true);
        struct link_direction *back = forth ? direction_create(engine, b_to_a, b, port_b, true) : NULL;
        if (back && direction_split(engine, forth, a_to_b->channels) &&
            direction_split(engine, back, b_to_a->channels)) {
            forth->far_end = back->far_end = TO_PIPELINE;
            outcome = join_directions(engine, forth, back) ? 0 : -ENOMEM;
            direction_lead_to(forth, b, port_b);
            direction_lead_to(back, a, port_a);
            a->ports[port_a].out = forth;
            b->ports[port_b].out = back;
        } else {
            outcome = -ENOMEM;
        }
    }
    engine_unlock(&engine->lock);
    return outcome;
}

bool port_io_adopt(struct gb_engine *engine, struct port_io *io) {
    size_t count = engine->io_count + 1;
    struct port_io **ios = realloc(engine->ios, count * sizeof *ios);
    if (ios)
        engine->ios = ios;
    struct port_io **unflushed = realloc(engine->unflushed, count * sizeof *unflushed);
    if (unflushed)
        engine->unflushed = unflushed;
    if (!ios || !unflushed)
        return false;
    ios[engine->io_count++] = io;
    return true;
}

static int add_memory_port(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                           const struct gb_link_model *in, const struct gb_link_model *out,
                           enum listener listener) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = with_free_port(engine, device_id, port, &outcome);
    struct memory_port *memory;
    if (device)
        outcome = memory_port_create(device, port, listener, &memory);
    if (outcome == 0)
        outcome = add_host_port(engine, device, port, in, out, TO_OUTSIDE, &memory->io);
    engine_unlock(&engine->lock);
    return outcome;
}

int gb_engine_add_open_port(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                            const struct gb_link_model *in, const struct gb_link_model *out) {
    return add_memory_port(engine, device_id, port, in, out, DRAIN);
}

int gb_engine_add_memory_port(struct gb_engine *engine, uint64_t device_id, uint32_t port,
                              const struct gb_link_model *in, const struct gb_link_model *out) {
    return add_memory_port(engine, device_id, port, in, out, NO_LISTENER);
}

/* Open it and let the engine own it, whatever happens from there on. */
static int take_interface(struct gb_engine *engine, const char *name, struct interface **taken) {
    struct interface *interface = calloc(1, sizeof *interface);
    if (!interface)
        return -ENOMEM;
    int outcome = interface_open(interface, name);
    if (outcome < 0) {
        free(interface);
        return outcome;
    }
    *taken = interface;
    if (port_io_adopt(engine, &interface->io))
        return 0;
    interface->io.kind->close(engine, &interface->io);
    return -ENOMEM;
}

/* Receive from it, and follow its carrier. Its directions and their ports are in place. */
static int watch_interface(struct gb_engine *engine, struct interface *interface) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &interface->io};
    if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, interface->fd, &event) < 0)
        return -errno;
    /* Changes are reported from here on, so none is missed. */
    int outcome = carriers_watch(engine);
    carrier_take(engine, &interface->io, interface->io.kind->carrier(&interface->io));
    return outcome;
}

static int add_interface(struct gb_engine *engine, struct device *device, uint32_t port, const char *name,
                         const struct gb_link_model *in, const struct gb_link_model *out) {
    struct interface *interface;
    int outcome = take_interface(engine, name, &interface);
    if (outcome == 0)
        outcome = add_host_port(engine, device, port, in, out, TO_OUTSIDE, &interface->io);
    return outcome < 0 ? outcome : watch_interface(engine, interface);
}

int gb_engine_add_interface(struct gb_engine *engine, uint64_t device_id, uint32_t port, const char *name,
                            const struct gb_link_model *in, const struct gb_link_model *out) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = with_free_port(engine, device_id, port, &outcome);
    if (device)
        outcome = add_interface(engine, device, port, name, in, out);
    engine_unlock(&engine->lock);
    return outcome;
}

/* From one end to another, without a pipeline. */
static struct link_direction *wire_direction(struct gb_engine *engine, const struct gb_link_model *model,
                                        struct device *device, uint32_t port, bool outwards, struct port_io *from,
                                        struct port_io *to) {
    struct link_direction *direction = direction_create(engine, model, device, port, false);
    if (direction) {
        direction->statistics.outwards = outwards;
        direction->far_end = TO_OUTSIDE;
        direction->to = NULL;
        direction->io = to;
        from->in = to->out = direction;
    }
    return direction;
}

/* b is NULL for the end of a host. */
static int add_wire(struct gb_engine *engine, struct device *a, uint32_t port_a, const char *name_a,
                    struct device *b, uint32_t port_b, const char *name_b, const struct gb_link_model *a_to_b,
                    const struct gb_link_model *b_to_a) {
    struct device *back_device = b ? b : a;
    uint32_t back_port = b ? port_b : port_a;
    struct interface *at_a, *at_b;
    int outcome = take_interface(engine, name_a, &at_a);
    if (outcome < 0)
        return outcome;
    outcome = take_interface(engine, name_b, &at_b);
    if (outcome < 0) {
        engine->io_count--;
        at_a->io.kind->close(engine, &at_a->io);
        return outcome;
    }
    struct link_direction *forth = wire_direction(engine, a_to_b, a, port_a, true, &at_a->io, &at_b->io);
    struct link_direction *back =
        forth ? wire_direction(engine, b_to_a, back_device, back_port, b != NULL, &at_b->io, &at_a->io) : NULL;
    if (!back)
        return -ENOMEM;
    a->ports[port_a].out = forth;
    if (b) {
        b->ports[port_b].out = back;
        direction_lead_to(forth, b, port_b);
        direction_lead_to(back, a, port_a);
    } else {
        a->ports[port_a].in = back;
    }
    outcome = watch_interface(engine, at_a);
    return outcome < 0 ? outcome : watch_interface(engine, at_b);
}

int gb_engine_add_wire(struct gb_engine *engine, uint64_t device_a, uint32_t port_a, const char *interface_a,
                       uint64_t device_b, uint32_t port_b, const char *interface_b,
                       const struct gb_link_model *a_to_b, const struct gb_link_model *b_to_a) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    bool to_host = port_b == GB_NO_PORT;
    struct device *a = with_free_port(engine, device_a, port_a, &outcome);
    struct device *b = to_host ? NULL : with_free_port(engine, device_b, port_b, &outcome);
    if (a && a == b && port_a == port_b)
        outcome = -EEXIST;
    if (outcome == 0)
        outcome = add_wire(engine, a, port_a, interface_a, b, port_b, interface_b, a_to_b, b_to_a);
    engine_unlock(&engine->lock);
    return outcome;
}

static int add_nic(struct gb_engine *engine, struct device *device, uint32_t port, const char *name,
                    const struct gb_link_model *in, const struct gb_link_model *out) {
    struct memory_port *memory;
    struct interface *interface;
    int outcome = memory_port_create(device, port, NO_LISTENER, &memory);
    if (outcome == 0)
        outcome = take_interface(engine, name, &interface);
    if (outcome < 0)
        return outcome;
    struct link_direction *sends = wire_direction(engine, in, device, port, false, &memory->io, &interface->io);
    struct link_direction *receives =
        sends ? wire_direction(engine, out, device, port, true, &interface->io, &memory->io) : NULL;
    if (!receives)
        return -ENOMEM;
    device->ports[port].in = sends;
    device->ports[port].out = receives;
    return watch_interface(engine, interface);
}

int gb_engine_add_nic(struct gb_engine *engine, uint64_t device_id, uint32_t port, const char *interface,
                       const struct gb_link_model *in, const struct gb_link_model *out) {
    int outcome = 0;
    engine_lock_control(&engine->lock);
    struct device *device = with_free_port(engine, device_id, port, &outcome);
    if (device)
        outcome = add_nic(engine, device, port, interface, in, out);
    engine_unlock(&engine->lock);
    return outcome;
}

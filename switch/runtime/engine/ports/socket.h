/* Ports that end at a network interface, by AF_PACKET (socket.c). */
#ifndef GRADBED_ENGINE_SOCKET_H
#define GRADBED_ENGINE_SOCKET_H

#include "engine/internal.h"

#pragma GCC visibility push(hidden)

#define SOCKET_BATCH 64

struct interface {
    struct port_io io;              /* first; blocked: until epoll says that the kernel's queue has room */
    int fd, index;
    bool jumbo;                     /* receives into large buffers */
    struct packet_list pending;
    struct gb_interface_statistics statistics;
};

extern const struct port_io_kind interface_io;

struct receive_batch *receive_batch_create(bool jumbo);     /* NULL when out of memory */
void receive_batch_free(struct packet_pool *, struct receive_batch *);

int interface_open(struct interface *, const char *name);
void interface_count_socket_drops(struct interface *);
/* NULL for ports of other kinds. */
struct interface *interface_of(struct port_io *);

#pragma GCC visibility pop
#endif

/* Counting by class, where that was asked for: links and switches then have a struct each, else NULL. */
#ifndef GRADBED_ENGINE_CLASSES_H
#define GRADBED_ENGINE_CLASSES_H

#include "engine/internal.h"

#pragma GCC visibility push(hidden)

struct class_patterns { uint32_t count; struct gb_class_pattern patterns[]; };

void classes_free(struct gb_engine *);
bool class_fits(const struct gb_class_pattern *, const struct packet *);
/* Where classes are counted: look which one the packet is of. */
void classify(const struct gb_engine *, struct packet *);

/* Away from packets that are not counted by class: the caller looks whether there is a struct of counts. The class of
 * a frame is looked at where a host's link or the controller hands it in, and where it has passed a switch's egress. */
#define ASIDE __attribute__((cold, noinline))
ASIDE void classes_entered(struct link_direction *, struct packet *);
ASIDE void classes_queue_drop(struct link_direction *, const struct packet *);
ASIDE void classes_started(struct link_direction *, const struct packet *);
ASIDE void classes_lost(struct link_direction *, const struct packet *);
ASIDE void classes_reached(struct link_direction *, const struct packet *, bool accepted);
ASIDE void classes_left(struct device *, struct packet *);

#pragma GCC visibility pop
#endif

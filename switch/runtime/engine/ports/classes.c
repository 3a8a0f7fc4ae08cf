/* Which class a packet is of, and what was counted by class. */
#include "engine/ports/classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes behind the end count as 0. */
static uint32_t word_at(const struct packet *packet, uint32_t offset) {
    const uint8_t *data = packet->view.data;
    uint32_t length = packet->view.length;
    if (offset + 1 < length)
        return (uint32_t)data[offset] << 8 | data[offset + 1];
    return offset < length ? (uint32_t)data[offset] << 8 : 0;
}

bool class_fits(const struct gb_class_pattern *pattern, const struct packet *packet) {
    for (uint32_t i = 0; i < pattern->words; i++) {
        const struct gb_class_word *word = &pattern->word[i];
        if ((word_at(packet, word->offset) & word->mask) != word->value)
            return false;
    }
    return true;
}

void classify(const struct gb_engine *engine, struct packet *packet) {
    const struct class_patterns *classes = engine->patterns;
    uint32_t place = 0;
    while (place < classes->count && !class_fits(&classes->patterns[place], packet))
        place++;
    packet->class_number = (uint8_t)(place < classes->count ? place + 1 : 0);
}

void classes_entered(struct link_direction *direction, struct packet *packet) {
    classify(direction->lp->engine, packet);
    direction->classes->entered[packet->class_number]++;
}

void classes_queue_drop(struct link_direction *direction, const struct packet *packet) {
    if (direction->egress)
        direction->egress->classes->ended[packet->class_number]++;
    else
        direction->classes->queue_drops[packet->class_number]++;
}

void classes_started(struct link_direction *direction, const struct packet *packet) {
    direction->classes->started[packet->class_number]++;
}

void classes_lost(struct link_direction *direction, const struct packet *packet) {
    direction->classes->losses[packet->class_number]++;
}

void classes_reached(struct link_direction *direction, const struct packet *packet, bool accepted) {
    struct gb_link_classes *classes = direction->classes;
    if (accepted) {
        classes->delivered[packet->class_number]++;
        classes->duplicates[packet->class_number] += packet->duplicate;
    } else if (!packet->duplicate) {
        classes->refusals[packet->class_number]++;
    }
}

void classes_left(struct device *device, struct packet *packet) {
    uint8_t came_as = packet->class_number;
    classify(device->engine, packet);
    device->classes->left[came_as][packet->class_number]++;
}

void classes_free(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        free(engine->directions[i]->classes);
        engine->directions[i]->classes = NULL;
    }
    for (uint32_t i = 0; i < engine->device_count; i++) {
        free(engine->devices[i]->classes);
        engine->devices[i]->classes = NULL;
    }
    free(engine->patterns);
    engine->patterns = NULL;
}

static bool make_room(struct gb_engine *engine) {
    for (uint32_t i = 0; i < engine->direction_count; i++)
        if (!(engine->directions[i]->classes = calloc(1, sizeof(struct gb_link_classes))))
            return false;
    for (uint32_t i = 0; i < engine->device_count; i++)
        if (!(engine->devices[i]->classes = calloc(1, sizeof(struct gb_device_classes))))
            return false;
    return true;
}

int gb_engine_count_classes(struct gb_engine *engine, const struct gb_class_pattern *patterns, uint32_t count) {
    if (count == 0 || count >= GB_CLASSES)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++)
        if (patterns[i].words > GB_CLASS_WORDS)
            return -EINVAL;
    struct class_patterns *own = malloc(sizeof *own + count * sizeof *patterns);
    if (!own)
        return -ENOMEM;
    own->count = count;
    memcpy(own->patterns, patterns, count * sizeof *patterns);
    engine_lock_control(&engine->lock);
    classes_free(engine);
    engine->patterns = own;
    bool done = make_room(engine);
    if (!done)
        classes_free(engine);
    engine_unlock(&engine->lock);
    return done ? 0 : -ENOMEM;
}

uint32_t gb_engine_link_classes(struct gb_engine *engine, struct gb_link_classes *rows, uint32_t capacity) {
    uint32_t count = 0;
    engine_lock_control(&engine->lock);
    engine_catch_up(engine);
    engine_flush(engine);
    for (uint32_t i = 0; i < engine->direction_count; i++) {
        const struct link_direction *direction = engine->directions[i];
        if (!direction->reported || !direction->classes)
            continue;
        if (count < capacity) {
            rows[count] = *direction->classes;
            rows[count].device_id = direction->statistics.device_id;
            rows[count].port = direction->statistics.port;
            rows[count].outwards = direction->statistics.outwards;
        }
        count++;
    }
    engine_unlock(&engine->lock);
    return count;
}

int gb_engine_device_classes(struct gb_engine *engine, uint64_t device_id, struct gb_device_classes *classes) {
    engine_lock_control(&engine->lock);
    struct device *device = engine_device(engine, device_id);
    int code = !device ? -ESRCH : !device->classes ? -ENODATA : 0;
    if (code == 0)
        *classes = *device->classes;
    engine_unlock(&engine->lock);
    return code;
}

/* Link models, of which a network has few: links with equal ones share one, so that it stays in the processor's caches. */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

/* Looking at more would take long where each link has its own. */
enum { LOOK_AT_MODELS = 16 };

struct shared_model {
    struct gb_link_model model;     /* first */
    uint32_t links;
    struct shared_model *next;
};

static struct shared_model *find(struct gb_engine *engine, const struct gb_link_model *wanted) {
    struct shared_model *shared = engine->models;
    for (uint32_t i = 0; i < LOOK_AT_MODELS && shared; i++, shared = shared->next)
        if (memcmp(&shared->model, wanted, sizeof *wanted) == 0)
            return shared;
    return NULL;
}

static struct shared_model *add(struct gb_engine *engine, const struct gb_link_model *wanted) {
    struct shared_model *shared = gb_lines_alloc(sizeof *shared);
    if (shared) {
        *shared = (struct shared_model){.model = *wanted, .next = engine->models};
        engine->models = shared;
    }
    return shared;
}

static void leave(struct gb_engine *engine, const struct gb_link_model *model) {
    struct shared_model *shared = (struct shared_model *)model;
    if (--shared->links > 0)
        return;
    struct shared_model **place = &engine->models;
    while (*place != shared)
        place = &(*place)->next;
    *place = shared->next;
    free(shared);
}

bool direction_set_model(struct gb_engine *engine, struct link_direction *direction, const struct gb_link_model *model) {
    struct gb_link_model wanted = *model;
    wanted.seed = 0;
    struct shared_model *shared = find(engine, &wanted);
    if (!shared && !(shared = add(engine, &wanted)))
        return false;
    shared->links++;
    if (direction->model)
        leave(engine, direction->model);
    direction->model = &shared->model;
    return true;
}

void models_free(struct gb_engine *engine) {
    while (engine->models) {
        struct shared_model *shared = engine->models;
        engine->models = shared->next;
        free(shared);
    }
}

/* Feeds random and mutated frames to one program, with address and undefined-behaviour sanitizers on.
 * usage: driver SEED FRAMES < seed frames, each as a line of hexadecimal digits */
#include <stdio.h>
#include <stdlib.h>

#include "generated.h"

#define HEADROOM 512u
#define MAX_FRAME 512u

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

static void digest(struct gb_switch *sw, uint32_t list, const uint64_t *words, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        sw->random_state ^= words[i] + list;
}

static void log_line(struct gb_switch *sw, const char *line) { sw->random_state += strlen(line); }

static void fill_tables(struct gb_switch *sw) {
    const struct gb_layout *layout = sw->program->layout;
    for (uint32_t t = 0; t < layout->table_count; t++) {
        const struct gb_table_layout *table = &layout->tables[t];
        if (table->key_words == 0)
            continue;
        uint64_t value[64] = {0}, mask[64] = {0}, high[64], data[64];
        for (int i = 0; i < 64; i++) {
            high[i] = 0xffff;
            data[i] = draw(512);
        }
        for (uint32_t action = 0; action < 16; action++) {
            value[0] = action;
            mask[0] = table->match == GB_EXACT ? UINT64_MAX : gb_mask(draw(8));
            gb_table_insert(sw->tables[t], value, mask, high, draw(32), action, data, table->data_words);
        }
    }
}

int main(int argc, char **argv) {
    random_state = strtoull(argv[1], NULL, 0);
    static uint8_t seeds[32][MAX_FRAME];
    uint32_t lengths[32], seed_count = 0;
    char line[2 * MAX_FRAME + 2];
    while (seed_count < 32 && fgets(line, sizeof line, stdin)) {
        lengths[seed_count] = 0;
        for (char *at = line; sscanf(at, "%2hhx", &seeds[seed_count][lengths[seed_count]]) == 1; at += 2)
            lengths[seed_count]++;
        seed_count++;
    }
    struct gb_switch *sw = gb_switch_create(&gb_program);
    sw->digest = digest;
    sw->log = log_line;
    fill_tables(sw);
    struct gb_packet_context *pass = calloc(1, sizeof *pass + gb_program.phv_words * sizeof *pass->phv);
    unsigned long long sum = 0;
    for (long frame = strtol(argv[2], NULL, 0); frame > 0; frame--) {
        uint32_t seed = draw(seed_count), length = draw(4) ? lengths[seed] : draw(lengths[seed] + 1);
        /* An allocation of its own ends where the frame ends, so that one byte too many is found. */
        uint8_t *memory = malloc(HEADROOM + length);
        memset(memory, 0, HEADROOM);
        memcpy(memory + HEADROOM, seeds[seed], length);
        for (uint32_t changes = draw(6); changes > 0 && length > 0; changes--)
            memory[HEADROOM + draw(length)] = (uint8_t)draw(256);
        struct gb_packet packet = {.data = memory + HEADROOM, .length = length, .headroom = HEADROOM, .pass = pass};
        pass->std.ingress_port = draw(4) ? draw(8) : 255;
        pass->std.ingress_global_timestamp = (uint64_t)frame;
        gb_program.parse(sw, &packet);
        gb_program.ingress(sw, &packet);
        pass->std.instance_type = draw(3);
        gb_program.egress(sw, &packet);
        gb_program.deparse(sw, &packet);
        for (uint32_t i = 0; i < packet.length; i++)
            sum = sum * 31 + packet.data[i];
        free(memory);
    }
    free(pass);
    gb_switch_free(sw);
    printf("%llu\n", sum);
    return 0;
}

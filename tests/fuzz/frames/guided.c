/* libFuzzer's way into a switch (setup.h): each input is some frames, one after the other, to a switch as it was set up.
 *
 * An input is parts with SEPARATOR between them. A part's first byte says what is done with the rest of it:
 *
 *     bits 0, 1   the port, from 1 on
 *     bit 2       the frame is a packet-out
 *     bit 3       its IPv4 checksum is left as it is
 *     bits 4, 5   how long the switch has until the next part: 1, 64, 4,096, 262,144 us
 *     bits 6, 7   both set: the rest's first two bytes name an entry that is deleted, or one that comes (back)
 *
 * GRADBED_FUZZ_SETUP names the file of the lines that set up the tables.
 */
#define _GNU_SOURCE               /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "setup.h"

enum {
    MAX_LINES = 1 << 14,
    MAX_PARTS = 64,
    SEPARATOR_BYTES = 4,
};

static const uint8_t SEPARATOR[SEPARATOR_BYTES] = {0xf7, 'n', 'x', 't'};
static char *lines[MAX_LINES];
static uint32_t line_count;

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count;
    (void)arguments;
    const char *name = getenv("GRADBED_FUZZ_SETUP");
    FILE *file = name ? fopen(name, "r") : NULL;
    if (!file) {
        perror("GRADBED_FUZZ_SETUP");
        exit(2);
    }
    static char line[LINE_BYTES];
    while (line_count < MAX_LINES && fgets(line, sizeof line, file))
        lines[line_count++] = strdup(line);
    fclose(file);
    return 0;
}

static void set_up(void) {
    build_switch(1);
    for (uint32_t i = 0; i < line_count; i++)
        apply_line(lines[i]);
}

static void change_entry(const uint8_t *data, size_t size) {
    if (size < 2 || line_count == 0)
        return;
    char *line = lines[(data[0] | (uint32_t)data[1] << 8) % line_count];
    if (data[1] & 0x80)
        gb_table_delete(state->tables[data[0] % state->program->layout->table_count], data[1] & 0x7f);
    else if (strncmp(line, "entry ", 6) == 0)
        insert_entry(line + 6);
}

static void send_frame(uint8_t how, const uint8_t *data, size_t size) {
    static uint8_t frame[GB_MAX_FRAME_BYTES + 1];
    uint32_t length = (uint32_t)(size < sizeof frame ? size : sizeof frame);
    memcpy(frame, data, length);
    if (!(how & 8))
        mend_ipv4_checksum(frame, length);
    int sent = how & 4 ? gb_engine_packet_out(engine, 1, frame, length)
                       : gb_engine_inject(engine, 1, 1 + (how & 3) % PORTS, frame, length);
    if ((sent != 0) != (length > GB_MAX_FRAME_BYTES))
        abort();    /* only what is too long is refused */
}

static void act_on(const uint8_t *part, size_t size) {
    if (size == 0)
        return;
    uint8_t how = part[0];
    if ((how & 0xc0) == 0xc0 && state->program->layout->table_count > 0)
        change_entry(part + 1, size - 1);
    else
        send_frame(how, part + 1, size - 1);
    if (gb_engine_advance(engine, UINT64_C(1000) << 6 * (how >> 4 & 3), MAX_EVENTS) < 0)
        abort();    /* more events than a frame may cause */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    set_up();
    const uint8_t *end = data + size;
    for (uint32_t parts = 0; data < end && parts < MAX_PARTS; parts++) {
        const uint8_t *next = memmem(data, (size_t)(end - data), SEPARATOR, SEPARATOR_BYTES);
        act_on(data, (size_t)((next ? next : end) - data));
        data = next ? next + SEPARATOR_BYTES : end;
    }
    end_of_frames();
    free_switch();
    return 0;
}

/* One switch with one program in an engine with a manual clock, for sanitizers: what random frames (driver.c) and frames
 * that are looked for (guided.c) go through. Tables are set up by lines of decimal numbers in front of hexadecimal ones:
 *
 *     default TABLE ACTION DATA...
 *     member PROFILE ACTION DATA...
 *     entry TABLE PRIORITY ACTION KEY_WORDS VALUE... MASK... HIGH... DATA...
 */
#ifndef GRADBED_FUZZ_SETUP_H
#define GRADBED_FUZZ_SETUP_H

#include <stdbool.h>

#include "engine/engine.h"
#include "state/state.h"

enum {
    PORTS = 4,
    CPU_PORT = 510,
    MAX_EVENTS = 2000,              /* of one frame: it is in, replicated, cloned, and out */
    LINE_BYTES = 1 << 16,
};

extern struct gb_engine *engine;
extern struct gb_switch *state;
extern uint64_t random_state;

uint32_t draw(uint32_t below);                      /* the next random number */
void check(int64_t outcome, const char *what);      /* ends the process, with a word, if the outcome is negative */

void build_switch(uint64_t seed);                   /* with ports, groups and sessions, and empty tables */
void free_switch(void);
bool apply_line(char *line);                        /* false for a line of another kind */
void insert_entry(char *line);                      /* what follows "entry " */

/* Most programs check it, and look no further at a packet with a wrong one. */
void mend_ipv4_checksum(uint8_t *frame, uint32_t length);
uint64_t take_all(void);                            /* how many frames came out */
uint64_t end_of_frames(void);                       /* the same; and every packet has been given back */

#endif

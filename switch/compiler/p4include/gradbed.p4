// Externs of gradbed's own switch, beside v1model's. BMv2 and p4c do not have them: include this file only in
// programs that are to run on gradbed's switch.
#ifndef _GRADBED_P4_
#define _GRADBED_P4_

// How often keys were counted, in rows * columns counts of 32 bits. An estimate is never too low (unless a count is
// full, where it stays). It is too high by more than e * total / columns with a probability of at most e^-rows, where
// total is the sum of all amounts. rows: 1 to 16. columns: up to 2^24.
extern CountMinSketch {
    CountMinSketch(bit<32> rows, bit<32> columns);

    // Count `amount` more of the key, a field or a struct of fields; estimate: of the key, this one included.
    void update<T>(in T key, in bit<32> amount, out bit<32> estimate);

    void estimate<T>(in T key, out bit<32> estimate);
}

#endif

// The core library of P4_16: what every architecture can rely on.
#ifndef _CORE_P4_
#define _CORE_P4_

// What can go wrong in a parser. Programs may add errors of their own.
error {
    NoError,
    PacketTooShort,         // extract or lookahead reaches behind the end of the packet
    NoMatch,                // no case of a select matches
    StackOutOfBounds,       // .next of a full header stack, .last of an empty one
    HeaderTooShort,         // a varbit field is given more bits than it can hold
    ParserTimeout,
    ParserInvalidArgument   // for example a varbit length that is no multiple of 8
}

// How table keys are compared; architectures add more.
match_kind { exact, ternary, lpm }

// The packet as a parser sees it: bits behind a cursor.
extern packet_in {
    // Fill a header from the bits at the cursor, make it valid, move the cursor behind it.
    void extract<T>(out T hdr);
    // The same for a header with one varbit field, which takes this many bits.
    void extract<T>(out T variableSizeHeader, in bit<32> variableFieldSizeInBits);
    // The bits at the cursor, which stays where it is.
    T lookahead<T>();
    void advance(in bit<32> sizeInBits);
    // Bytes in the packet.
    bit<32> length();
}

// The packet as a deparser writes it.
extern packet_out {
    // Append a header if it is valid; of a stack, a union or a struct all valid headers.
    void emit<T>(in T hdr);
}

// Go to the state reject with this error unless the condition holds.
extern void verify(in bool check, in error toSignal);

// A condition that must hold when the program is compiled.
extern bool static_assert(bool check, string message);
extern bool static_assert(bool check);

@noWarn("unused")
action NoAction() {}

#endif

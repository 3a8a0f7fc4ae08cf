// What can happen to a gradient packet at its designated switch. The counter `events` has EVENTS cells for each of
// EVENT_JOBS jobs; a job's are those of its number modulo EVENT_JOBS.
#ifndef GRADBED_EVENTS_P4
#define GRADBED_EVENTS_P4

#define EVENTS 16
#define EVENT_JOBS 64

enum bit<32> Event {
    CLAIMED = 0,        // a free slot took a fragment
    ADDED = 1,          // a further worker, or a sum of further workers, was added
    COMPLETED = 2,      // the last worker was added, the sum left
    DUPLICATE = 3,      // the worker was in the sum already
    COLLISION = 4,      // the slot holds another fragment of the same job
    STALE = 5,          // the slot has finished this fragment or a newer one
    OVERLAP = 6,        // some of the packet's workers were in the sum, some not
    RESEND_SUMMED = 7,  // a resend took the slot's sum along
    RESEND_SINGLE = 8,  // a resend or retry found no slot of its own
    RELEASED = 9,       // an ACK freed the slot
    RECLAIMED = 10,     // a slot that its fragment had left behind was taken over
    CONTENTION = 11,    // the slot holds a fragment of another job
    EXHAUSTION = 12,    // a collision or contention while every slot of the range was held
    OVERFLOW = 13,      // not added, since a lane might have left int32
    REPEATED = 14,      // a retry made a complete sum leave again
    NOTHING = 15        // an ACK for a fragment that the slot does not hold: not counted
}

#endif

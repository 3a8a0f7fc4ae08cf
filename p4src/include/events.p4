// What can happen to a gradient packet at its designated switch. The counter `events` has EVENTS cells for each of
// EVENT_JOBS jobs; a job's are those of its number modulo EVENT_JOBS.
#ifndef GRADBED_EVENTS_P4
#define GRADBED_EVENTS_P4

#define EVENTS 16
#define EVENT_JOBS 64

const bit<32> EVENT_CLAIMED = 0;        // a free slot took a fragment
const bit<32> EVENT_ADDED = 1;          // a further worker, or a sum of further workers, was added
const bit<32> EVENT_COMPLETED = 2;      // the last worker was added, the sum left
const bit<32> EVENT_DUPLICATE = 3;      // the worker was in the sum already
const bit<32> EVENT_COLLISION = 4;      // the slot holds another fragment of the same job
const bit<32> EVENT_STALE = 5;          // the slot has finished this fragment or a newer one
const bit<32> EVENT_OVERLAP = 6;        // some of the packet's workers were in the sum, some not
const bit<32> EVENT_RESEND_SUMMED = 7;  // a resend took the slot's sum along
const bit<32> EVENT_RESEND_SINGLE = 8;  // a resend or retry found no slot of its own
const bit<32> EVENT_RELEASED = 9;       // an ACK freed the slot
const bit<32> EVENT_RECLAIMED = 10;     // a slot that its fragment had left behind was taken over
const bit<32> EVENT_CONTENTION = 11;    // the slot holds a fragment of another job
const bit<32> EVENT_EXHAUSTION = 12;    // a collision or contention while every slot of the range was held
const bit<32> EVENT_OVERFLOW = 13;      // not added, since a lane might have left int32
const bit<32> EVENT_REPEATED = 14;      // a retry made a complete sum leave again

#endif

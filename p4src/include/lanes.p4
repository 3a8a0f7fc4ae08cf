// The run of int32 lanes that a gradient packet carries, and a way to write "for each lane" in P4_16.
//
// LANES (a compile-time macro, -D LANES=128) is a multiple of 32 from 32 to 352: 352 lanes make a frame of
// 1,470 bytes. Lanes are numbered with three hexadecimal digits, so that lane_01F is at index 0x01F.
// FOR_EACH_LANE(X) expands to X(000) X(001) ... for all lanes.
#ifndef GRADBED_LANES_P4
#define GRADBED_LANES_P4

#ifndef LANES
#define LANES 352
#endif

#if LANES < 32 || LANES > 352 || LANES % 32 != 0
#error "LANES must be a multiple of 32 from 32 to 352"
#endif

#define LANE_ROW(X, r) X(r##0) X(r##1) X(r##2) X(r##3) X(r##4) X(r##5) X(r##6) X(r##7) \
    X(r##8) X(r##9) X(r##A) X(r##B) X(r##C) X(r##D) X(r##E) X(r##F)

#define LANES_000_TO_01F(X) LANE_ROW(X, 00) LANE_ROW(X, 01)
#define LANES_020_TO_03F(X)
#define LANES_040_TO_05F(X)
#define LANES_060_TO_07F(X)
#define LANES_080_TO_09F(X)
#define LANES_0A0_TO_0BF(X)
#define LANES_0C0_TO_0DF(X)
#define LANES_0E0_TO_0FF(X)
#define LANES_100_TO_11F(X)
#define LANES_120_TO_13F(X)
#define LANES_140_TO_15F(X)

#if LANES >= 64
#undef LANES_020_TO_03F
#define LANES_020_TO_03F(X) LANE_ROW(X, 02) LANE_ROW(X, 03)
#endif
#if LANES >= 96
#undef LANES_040_TO_05F
#define LANES_040_TO_05F(X) LANE_ROW(X, 04) LANE_ROW(X, 05)
#endif
#if LANES >= 128
#undef LANES_060_TO_07F
#define LANES_060_TO_07F(X) LANE_ROW(X, 06) LANE_ROW(X, 07)
#endif
#if LANES >= 160
#undef LANES_080_TO_09F
#define LANES_080_TO_09F(X) LANE_ROW(X, 08) LANE_ROW(X, 09)
#endif
#if LANES >= 192
#undef LANES_0A0_TO_0BF
#define LANES_0A0_TO_0BF(X) LANE_ROW(X, 0A) LANE_ROW(X, 0B)
#endif
#if LANES >= 224
#undef LANES_0C0_TO_0DF
#define LANES_0C0_TO_0DF(X) LANE_ROW(X, 0C) LANE_ROW(X, 0D)
#endif
#if LANES >= 256
#undef LANES_0E0_TO_0FF
#define LANES_0E0_TO_0FF(X) LANE_ROW(X, 0E) LANE_ROW(X, 0F)
#endif
#if LANES >= 288
#undef LANES_100_TO_11F
#define LANES_100_TO_11F(X) LANE_ROW(X, 10) LANE_ROW(X, 11)
#endif
#if LANES >= 320
#undef LANES_120_TO_13F
#define LANES_120_TO_13F(X) LANE_ROW(X, 12) LANE_ROW(X, 13)
#endif
#if LANES >= 352
#undef LANES_140_TO_15F
#define LANES_140_TO_15F(X) LANE_ROW(X, 14) LANE_ROW(X, 15)
#endif

#define FOR_EACH_LANE(X) LANES_000_TO_01F(X) LANES_020_TO_03F(X) LANES_040_TO_05F(X) LANES_060_TO_07F(X) \
    LANES_080_TO_09F(X) LANES_0A0_TO_0BF(X) LANES_0C0_TO_0DF(X) LANES_0E0_TO_0FF(X) LANES_100_TO_11F(X) \
    LANES_120_TO_13F(X) LANES_140_TO_15F(X)

#define LANE_FIELD(n) bit<32> lane_##n;
header lanes_t {
    FOR_EACH_LANE(LANE_FIELD)
}

#endif

/* Eras: the blocks in which an extrinsic is valid. A mortal era is a period (a power of two) and
 * the phase of its first block in the period, packed into two bytes. Phases of long periods lose
 * their low bits. */
#include <string.h>

#include "base/check.h"
#include "chain/codec/extrinsic.h"

enum { PERIOD_MIN = 4, PERIOD_MAX = 65536 };

static uint32_t quantum(uint32_t period)
{
    return period >> 12 ? period >> 12 : 1;
}

static unsigned log2_of(uint32_t period)
{
    return (unsigned)__builtin_ctz(period);
}

static bool is_era(struct era era)
{
    if (era.period == 0)
        return true;
    return era.period >= PERIOD_MIN && era.period <= PERIOD_MAX &&
           (era.period & (era.period - 1)) == 0 && era.phase < era.period;
}

struct era era_mortal(uint32_t period, uint64_t current)
{
    uint32_t p = PERIOD_MIN;
    while (p < period && p < PERIOD_MAX)
        p *= 2;
    uint32_t q = quantum(p);
    return (struct era){p, (uint32_t)(current % p) / q * q};
}

uint64_t era_birth(struct era era, uint64_t current)
{
    PRE(is_era(era));
    if (!era.period)
        return 0;
    uint64_t from = current > era.phase ? current : era.phase;
    return (from - era.phase) / era.period * era.period + era.phase;
}

uint64_t era_death(struct era era, uint64_t current)
{
    return era.period ? era_birth(era, current) + era.period : UINT64_MAX;
}

size_t era_encode(struct era era, uint8_t out[2])
{
    PRE(is_era(era));
    if (!era.period) {
        out[0] = 0;
        return 1;
    }
    unsigned low = log2_of(era.period) - 1; /* 1..15: the period is 4..65536 */
    unsigned both = low | (era.phase / quantum(era.period)) << 4;
    out[0] = (uint8_t)both;
    out[1] = (uint8_t)(both >> 8);
    return 2;
}

bool era_decode(struct scale_in *in, struct era *ret_era)
{
    unsigned first = scale_get_u8(in);
    if (first == 0) {
        *ret_era = (struct era){0, 0};
        return !in->bad;
    }
    unsigned both = first | (unsigned)scale_get_u8(in) << 8;
    uint32_t period = 2u << (both & 15);
    uint32_t phase = (both >> 4) * quantum(period);
    if (in->bad || period < PERIOD_MIN || phase >= period) {
        in->bad = true;
        return false;
    }
    *ret_era = (struct era){period, phase};
    return true;
}

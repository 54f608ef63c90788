/* What the simulator looks at inside of a relay: the product's own structures. It changes
 * nothing in them. */
#ifndef TEST_SIM_SIM_RELAY_H
#define TEST_SIM_SIM_RELAY_H

#include "service/service_internal.h"
#include "sim.h"

#endif

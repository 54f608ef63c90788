/* What a configuration says about the service itself, before there is one. */
#include "loop/peer.h"
#include "service/service_internal.h"

int service_check(const struct service_config *c, struct err *err)
{
    const char *control = c->control_address;
    if (control && !loop_address_is_local(control))
        return err_set(err, ERR_CONFIG,
                       "control '%s' can be reached from other machines, and the endpoint asks for "
                       "no identity: give unix:/path, or tcp:127.0.0.1:PORT for status, metrics "
                       "and health",
                       control);
    const char *metrics = c->metrics_address;
    if (metrics && (loop_address_is_unix(metrics) || !loop_address_is_local(metrics)))
        return err_set(err, ERR_CONFIG,
                       "metrics '%s' is not a loopback address with a port: give 127.0.0.1:PORT, "
                       "and a proxy of your own where others are to read it",
                       metrics);
    return 0;
}

/* Named points at which a test kills or stops the process: TXRELAY_FAILPOINT="name:nth:kill" (or
 * stop) makes the nth arrival at FAILPOINT("name") raise SIGKILL (or SIGSTOP). Compiled in only
 * with TXRELAY_FAILPOINTS. */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef TXRELAY_FAILPOINTS
void failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) ((void)0)
#endif

#endif

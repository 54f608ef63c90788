/* An assertion fails in this call. It ends the process, so a child makes the call. */
#ifndef TEST_ABORTS_H
#define TEST_ABORTS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* A macro, since each call wants another function. */
#define ABORTS(call)                                                                               \
    ({                                                                                             \
        fflush(stdout);                                                                            \
        pid_t child_ = fork();                                                                     \
        if (child_ == 0) {                                                                         \
            close(STDERR_FILENO);                                                                  \
            call;                                                                                  \
            _exit(0);                                                                              \
        }                                                                                          \
        int status_;                                                                               \
        assert_int_equal(waitpid(child_, &status_, 0), child_);                                    \
        WIFSIGNALED(status_) || WEXITSTATUS(status_) != 0;                                         \
    })

#endif

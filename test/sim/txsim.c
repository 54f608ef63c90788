/* txsim: runs seeds of the simulator, in two processes, and prints what breaks.
 *
 *   txsim --seeds N [--first S] [--minutes M] [--fault NAME] [--keep-going] [--jobs J]
 *   txsim --seed N [--until K] [--lines L]
 *                                   one seed; with its last events when it breaks or K is reached
 *   txsim --features all|early|none|NAME,NAME..
 *                                   what seeds may have beside the plain life of transactions
 *   txsim --must NAME,.. --era N --pool N
 *                                   what all seeds have, so that a rare situation is likely: these
 *                                   features, this era in blocks (0: none), pools of this size
 *   txsim --file PATH               the seeds of a file
 *   txsim --plants [--limit N]      every planted fault until it is caught (only in txsim_plant)
 *   txsim --plant NAME              one planted fault, for any of the above
 *   txsim --log error|warn|info|debug  what the product says, on standard error; default: errors
 *   txsim --moves PATH              for any of the above: which moves of the manager's tables did
 *                                   neither these seeds make nor those that recorded theirs in this
 *                                   file? None may be left
 * Exit status 0: every invariant held (or every planted fault was caught); 1: not; 2: wrong
 * usage. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "sim.h"

enum { JOBS_MAX = 64, FILE_SEEDS_MAX = 4096 };

#ifdef TXRELAY_PLANT
enum plant plant;

static const struct {
    const char *name, *text;
} plants[] = {[PLANT_NONE] = {"none", ""},
#define X(NAME, name, text) [PLANT_##NAME] = {name, text},
              PLANT_TABLE(X)
#undef X
};
#endif

struct args {
    uint64_t first, count, limit, until, lines;
    double minutes;
    uint32_t features, must;
    bool one, keep_going, plants, lossy;
    int jobs, fault, era, pool;
    const char *moves;
    enum log_level log;
    uint64_t *list;      /* seeds of a file */
    uint32_t *list_with; /* and what each may have */
    uint32_t *list_must; /* and has */
    bool *list_lossy;    /* and whether its failovers lose commits */
};

struct report {
    uint64_t seed, seeds, events;
    uint32_t features, must;
    bool broken, lossy;
    struct stats stats;
    struct manager_moves moved;
    char violation[400];
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add(struct stats *sum, const struct stats *x)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)x;
    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

/* ---- one seed, told in full ---- */

static void print_trace(const struct world *w, uint64_t n)
{
    if (n > w->trace_count)
        n = w->trace_count;
    if (n > TRACE_LINES)
        n = TRACE_LINES;
    printf("   event     second  what\n");
    for (uint64_t i = w->trace_count - n; i < w->trace_count; i++)
        printf("%s\n", w->trace[i % TRACE_LINES]);
}

static void print_plan(const struct world *w)
{
    const struct plan *p = &w->plan;
    printf("seed %llu: %d relays, %d accounts, %d nodes, %d followers; %s%s%s%s%sera %u, block "
           "%llu ms, latency %llu us\n",
           (unsigned long long)w->seed, p->relays, p->accounts, p->nodes, p->followers,
           p->use_lock ? "locks, " : "no locks, ", p->fat ? "fork-aware, " : "",
           p->deterministic ? "deterministic keys, " : "", p->foreign ? "foreign use, " : "",
           p->lossy ? "lossy failover, " : "", p->era, (unsigned long long)(p->block_us / MS),
           (unsigned long long)p->latency_us);
    printf("features:");
    for (int i = 0; feature_name(i); i++)
        if (p->features >> i & 1)
            printf(" %s", feature_name(i));
    printf("; %u a block, last price %llu%s\n", p->block_txs, (unsigned long long)p->last_min_tip,
           p->flat ? ", flat" : "");
    if (p->step_us)
        printf("the standby's clock is %llu s ahead\n", (unsigned long long)p->step_us / 1000000);
    for (int i = 0; i < p->accounts; i++)
        printf("account %d: tips from %llu by %llu or %u%% to %lld, after %u blocks; skipped after "
               "%u%s\n",
               i, (unsigned long long)p->policy[i].tip_start,
               (unsigned long long)p->policy[i].tip_step, p->policy[i].tip_step_percent,
               (long long)p->policy[i].tip_cap, p->policy[i].tip_after_blocks,
               p->policy[i].skip_after_blocks, p->policy[i].requeue_usurped ? "; requeues" : "");
}

static void print_stats(const struct stats *s)
{
    static const char *const names[] = {"transactions",
                                        "ended",
                                        "submissions",
                                        "new signatures",
                                        "fillers",
                                        "crashes",
                                        "pauses",
                                        "forks",
                                        "unknown outcomes",
                                        "claims",
                                        "faults",
                                        "higher tips",
                                        "fillers in a race",
                                        "requeued",
                                        "holds",
                                        "orders",
                                        "bumps",
                                        "refusals recorded",
                                        "reaped",
                                        "adopted",
                                        "doubled by a failover",
                                        "signed elsewhere",
                                        "waits of these",
                                        "sweeps",
                                        "merged polls",
                                        "ends by SIGTERM",
                                        "forged extrinsics",
                                        "refused blocks",
                                        "held rows",
                                        "locks in other hands",
                                        "deaths beside an adoption",
                                        "heads told again",
                                        "nodes that began anew",
                                        "times without a relay",
                                        "stuck endpoints"};
    const uint64_t *n = (const uint64_t *)s;
    _Static_assert(sizeof(*s) == sizeof(names) / sizeof(*names) * sizeof(*n), "a name for each");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        printf("%s%llu %s", i ? ", " : "", (unsigned long long)n[i], names[i]);
    printf("\n");
}

static bool tell(const struct args *a, uint64_t seed)
{
    struct world *w = world_new();
    bool good = world_run(w, seed,
                          &(struct options){.until = a->until,
                                            .fault = a->fault,
                                            .features = a->features,
                                            .must = a->must,
                                            .era = a->era,
                                            .pool = a->pool,
                                            .lossy = a->lossy,
                                            .tracing = true});
    if (!good || a->until)
        print_trace(w, a->lines);
    print_plan(w);
    print_stats(&w->stats);
    printf("seed %llu: %llu events, %.1f s\n", (unsigned long long)seed,
           (unsigned long long)w->events, (double)w->now / 1e6);
    if (!good)
        printf("seed %llu event %llu: VIOLATION %s\n", (unsigned long long)seed,
               (unsigned long long)w->events, w->violation);
    fflush(stdout);
    world_free(w);
    return good;
}

/* In a process of its own: a run that breaks leaves its memory behind. */
static void tell_apart(const struct args *a, const struct report *broken)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct args with = *a;
        with.features = broken->features;
        with.must = broken->must;
        with.lossy = broken->lossy;
        tell(&with, broken->seed);
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

/* ---- many seeds ---- */

static void send(int fd, struct report *r)
{
    if (write(fd, r, sizeof(*r)) != sizeof(*r))
        _exit(3);
    *r = (struct report){0};
}

static void work(const struct args *a, int job, int fd)
{
    struct world *w = world_new();
    struct report r = {0};
    int null = open("/dev/null", O_WRONLY);
    double end = a->minutes > 0 ? seconds() + a->minutes * 60 : 0;
    dup2(null, STDERR_FILENO); /* what a failed check prints; the replay prints it again */
    for (uint64_t i = (uint64_t)job; i < a->count; i += (uint64_t)a->jobs) {
        uint64_t seed = a->list ? a->list[i] : a->first + i;
        uint32_t features = a->list ? a->list_with[i] : a->features;
        uint32_t must = a->list ? a->list_must[i] : a->must;
        bool lossy = a->list ? a->list_lossy[i] : a->lossy;
        bool good = world_run(w, seed,
                              &(struct options){.fault = a->fault,
                                                .features = features,
                                                .must = must,
                                                .era = a->era,
                                                .pool = a->pool,
                                                .lossy = lossy});
        r.lossy = lossy;
        r.must = must;
        r.seed = seed;
        r.features = features;
        r.seeds++;
        r.events += w->events;
        add(&r.stats, &w->stats);
        r.moved = w->moved;
        if (!good) {
            r.broken = true;
            memcpy(r.violation, w->violation, sizeof(r.violation));
        }
        if (!good || r.seeds == 64)
            send(fd, &r);
        if ((!good && !a->keep_going) || (end > 0 && seconds() > end))
            break;
    }
    send(fd, &r);
    _exit(0);
}

static bool run(const struct args *a, struct report *sum, bool quiet)
{
    int pipes[2];
    pid_t pids[JOBS_MAX];
    uint64_t broken_count = 0;
    *sum = (struct report){0};
    if (pipe(pipes))
        return false;
    fflush(stdout);
    for (int j = 0; j < a->jobs; j++) {
        pids[j] = fork();
        if (pids[j] == 0) {
            close(pipes[0]);
            work(a, j, pipes[1]);
        }
    }
    close(pipes[1]);
    struct report r;
    while (read(pipes[0], &r, sizeof(r)) == sizeof(r)) {
        sum->seeds += r.seeds;
        sum->events += r.events;
        add(&sum->stats, &r.stats);
        sum->moved.phases |= r.moved.phases;
        sum->moved.rows |= r.moved.rows;
        if (!r.broken)
            continue;
        broken_count++;
        if (!sum->broken || r.seed < sum->seed) {
            sum->seed = r.seed;
            sum->features = r.features;
            sum->must = r.must;
            sum->lossy = r.lossy;
            memcpy(sum->violation, r.violation, sizeof(r.violation));
        }
        sum->broken = true;
        if (!quiet)
            printf("seed %llu: %s\n", (unsigned long long)r.seed, r.violation);
        fflush(stdout);
        for (int j = 0; j < a->jobs && !a->keep_going; j++)
            kill(pids[j], SIGTERM);
    }
    close(pipes[0]);
    bool died = false;
    for (int j = 0; j < a->jobs; j++) {
        int status;
        waitpid(pids[j], &status, 0);
        died = died || (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM) ||
               (WIFEXITED(status) && WEXITSTATUS(status));
    }
    if (died)
        printf("a worker died\n");
    return !sum->broken && !died;
}

/* A line a program, as test/unit/relay/manager_harness.c writes it. */
static bool read_moves(const char *path, struct manager_moves *moved)
{
    unsigned long long phases, rows;
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "txsim: cannot read %s\n", path);
        return false;
    }
    while (fscanf(f, "%llx %llx", &phases, &rows) == 2) {
        moved->phases |= phases;
        moved->rows |= rows;
    }
    fclose(f);
    return true;
}

static bool every_move_was_made(const char *path, struct manager_moves moved)
{
    struct buf missing = {0};
    bool read = read_moves(path, &moved);
    manager_phases_missing(moved.phases, &missing);
    manager_rows_missing(moved.rows, &missing);
    bool all = read && !missing.len;
    if (missing.len)
        printf("moves that were never made:\n%s", buf_str(&missing));
    buf_done(&missing);
    return all;
}

static int run_seeds(const struct args *a)
{
    struct report sum;
    double begun = seconds();
    bool good = run(a, &sum, false);
    double took = seconds() - begun;
    if (sum.broken)
        tell_apart(a, &sum);
    printf("%llu seeds, %.1f s, %.0f seeds a second, %.1f million events\n",
           (unsigned long long)sum.seeds, took, (double)sum.seeds / took, (double)sum.events / 1e6);
    print_stats(&sum.stats);
    printf("%s\n", good ? "every invariant held" : "VIOLATION (see above)");
    if (a->moves && !every_move_was_made(a->moves, sum.moved))
        return 1;
    return good ? 0 : 1;
}

/* ---- features ---- */

/* "all", "none", "early" (those that there were before `demand`, so that seeds that were kept until
 * then are what they were), or names with commas between them. */
static bool choose_features(uint32_t *ret_features, const char *value)
{
    char name[32];
    bool all = !strcmp(value, "all"), early = !strcmp(value, "early");
    *ret_features = all ? UINT32_MAX : early ? (1u << FEATURE_DEMAND) - 1 : 0;
    if (all || early || !strcmp(value, "none"))
        return true;
    for (size_t len; *value; value += len + (value[len] == ',')) {
        len = strcspn(value, ",");
        snprintf(name, sizeof(name), "%.*s", (int)len, value);
        if (feature_number(name) < 0)
            return false;
        *ret_features |= 1u << feature_number(name);
    }
    return true;
}

/* ---- planted faults ---- */

#ifdef TXRELAY_PLANT
/* Fewer than one seed in a thousand shows these, so their seeds have what the situation needs. */
static bool take_rare(struct args *a)
{
    static const struct {
        enum plant plant;
        uint64_t seed;
        bool lossy;
        int era, pool;
        const char *features, *must;
    } rare[] = {
        {PLANT_LATER_IMMORTAL, 20021, false, 0, 4, "size,duties,foreign-pool", "none"},
        {PLANT_STUCK_KEPT, 1, false, -1, -1, "size,duties,bumps,stuck", "stuck"},
        {PLANT_END_NOT_OVERTAKEN, 82000001790, true, -1, -1, "all", "none"},
        {PLANT_FORMER_LIFE, 257, true, 16, -1,
         "requeue,retries,duties,away,reap,adopter,bumps,tips", "reap,away,requeue,duties"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rare); i++) {
        if (rare[i].plant != plant)
            continue;
        a->first = rare[i].seed;
        a->lossy = rare[i].lossy;
        a->era = rare[i].era;
        a->pool = rare[i].pool;
        return choose_features(&a->features, rare[i].features) &&
               choose_features(&a->must, rare[i].must);
    }
    return false;
}

/* Where a fault shows in one of many seeds, one that showed it goes first; then the others, as
 * ever. */
static void run_plant(struct args *a, struct report *ret_sum)
{
    static const struct {
        enum plant plant;
        uint64_t seed;
        bool lossy;
    } known[] = {{PLANT_PROBE_ORDER, 634, false},     {PLANT_WAIT_FORGOTTEN, 865, true},
                 {PLANT_WAIT_SHORT, 175, true},       {PLANT_WAIT_BEHIND, 175, true},
                 {PLANT_WAIT_EXPIRED, 89, true},      {PLANT_WAIT_CANCELLED, 53, true},
                 {PLANT_LOCK_ANYBODYS, 3, false},     {PLANT_HEAD_KEPT_OUT, 1009, false},
                 {PLANT_BAN_KEPT, 3884, false},       {PLANT_ADOPTED_ONCE, 859, true},
                 {PLANT_FILL_LIVE, 111, false},       {PLANT_RENEW_ANY, 163, false},
                 {PLANT_GHOST_WRITE, 3123, false},    {PLANT_CANCEL_ADMIT, 40, false},
                 {PLANT_REAP_UNSEEN, 47, false},      {PLANT_REORG_MISSED, 37, false},
                 {PLANT_REQUEUE_STOPPED, 385, false}, {PLANT_REQUEUE_EARLY, 32, false},
                 {PLANT_SIGNED_UNSEEN, 130, false},   {PLANT_DECODED_ONLY, 110, false},
                 {PLANT_UNSIGNABLE_TRIED, 39, false}, {PLANT_POOLED_BELIEVED, 204, false},
                 {PLANT_HOLD_FORGOTTEN, 16, false},   {PLANT_BUMP_FORGOTTEN, 25, false},
                 {PLANT_REUSE_SENT, 122, false},      {PLANT_ADOPTED_MEMORY, 537, true}};
    struct args rest = *a;
    if (take_rare(&rest)) {
        run(&rest, ret_sum, true);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].plant != plant)
            continue;
        struct args one = *a;
        one.first = known[i].seed;
        one.count = 1;
        one.lossy = known[i].lossy;
        if (plant != PLANT_ADOPTED_MEMORY) /* whose adopters die */
            one.features &= (1u << FEATURE_DEMAND) - 1;
        run(&one, ret_sum, true);
        if (ret_sum->broken)
            return;
        rest.lossy = known[i].lossy; /* only lost commits lead to some */
    }
    run(&rest, ret_sum, true);
}
#endif

static int run_plants(struct args *a)
{
#ifdef TXRELAY_PLANT
    int missed = 0;
    a->count = a->limit;
    for (int p = 1; p < PLANT_COUNT; p++) {
        struct report sum;
        plant = (enum plant)p;
        double begun = seconds();
        run_plant(a, &sum);
        printf("%-18s %s %6llu seeds %6.1f s  ", plants[p].name, sum.broken ? "caught" : "MISSED",
               (unsigned long long)sum.seeds, seconds() - begun);
        if (sum.broken)
            printf("%llu: ", (unsigned long long)sum.seed);
        printf("%s\n", sum.broken ? sum.violation : plants[p].text);
        fflush(stdout);
        missed += !sum.broken;
    }
    printf(missed ? "%d planted faults were not caught\n" : "all planted faults were caught\n",
           missed);
    return missed ? 1 : 0;
#else
    (void)a;
    fprintf(stderr, "txsim: this program has no planted faults; txsim_plant has\n");
    return 2;
#endif
}

static bool choose_plant(const char *name)
{
#ifdef TXRELAY_PLANT
    for (int p = 1; p < PLANT_COUNT; p++)
        if (!strcmp(plants[p].name, name)) {
            plant = (enum plant)p;
            return true;
        }
    fprintf(stderr, "txsim: there is no planted fault \"%s\"; there are:\n", name);
    for (int p = 1; p < PLANT_COUNT; p++)
        fprintf(stderr, "  %-18s %s\n", plants[p].name, plants[p].text);
#else
    fprintf(stderr, "txsim: cannot plant \"%s\": txsim_plant can\n", name);
#endif
    return false;
}

/* ---- arguments ---- */

/* A seed a line, what it may have, "must" if it has all of that, "lossy" if it loses commits; #
 * begins a comment. */
static bool read_file(struct args *a, const char *path)
{
    char line[512];
    FILE *f = fopen(path, "r");
    if (!f) {
        fprintf(stderr, "txsim: cannot read %s\n", path);
        return false;
    }
    a->list = xcalloc(FILE_SEEDS_MAX, sizeof(*a->list));
    a->list_with = xcalloc(FILE_SEEDS_MAX, sizeof(*a->list_with));
    a->list_must = xcalloc(FILE_SEEDS_MAX, sizeof(*a->list_must));
    a->list_lossy = xcalloc(FILE_SEEDS_MAX, sizeof(*a->list_lossy));
    a->count = 0;
    a->keep_going = true;
    while (fgets(line, sizeof(line), f) && a->count < FILE_SEEDS_MAX) {
        char *end, features[256] = "all", word[8] = "";
        a->list[a->count] = strtoull(line, &end, 10);
        a->list_with[a->count] = UINT32_MAX;
        if (end == line)
            continue;
        sscanf(end, " %255[^ #\n] %7[a-z]", features, word);
        a->list_lossy[a->count] = !strcmp(word, "lossy");
        if (!choose_features(&a->list_with[a->count], features)) {
            fprintf(stderr, "txsim: %s: \"%s\" is no list of features\n", path, features);
            fclose(f);
            return false;
        }
        a->list_must[a->count] = strcmp(word, "must") ? a->must : a->list_with[a->count];
        a->count++;
    }
    fclose(f);
    return true;
}

static int usage(void)
{
    fprintf(
        stderr,
        "usage: txsim [--seeds N] [--first S] [--seed N [--until K]] [--minutes M] [--fault NAME]\n"
        "             [--features all|early|none|NAME,NAME..] [--must NAME,NAME..] [--era N] "
        "[--pool N]\n"
        "             [--lossy] [--file PATH] [--jobs J] [--keep-going] [--plants [--limit N]] "
        "[--plant NAME] [--moves PATH]\n"
        "             [--log error|warn|info|debug]\n"
        "faults:");
    for (int i = 0; fault_name(i); i++)
        fprintf(stderr, " %s", fault_name(i));
    fprintf(stderr, "\nfeatures:");
    for (int i = 0; feature_name(i); i++)
        fprintf(stderr, " %s", feature_name(i));
    fprintf(stderr, "\n");
    return 2;
}

static bool take(struct args *a, const char *name, const char *value)
{
    if (!strcmp(name, "--seeds"))
        a->count = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--first"))
        a->first = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--seed")) {
        a->first = strtoull(value, NULL, 10);
        a->one = true;
    } else if (!strcmp(name, "--until"))
        a->until = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--lines"))
        a->lines = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--limit"))
        a->limit = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--minutes")) {
        a->minutes = strtod(value, NULL);
        a->count = UINT64_MAX / 2;
    } else if (!strcmp(name, "--jobs"))
        a->jobs = (int)strtol(value, NULL, 10);
    else if (!strcmp(name, "--moves"))
        a->moves = value;
    else if (!strcmp(name, "--log"))
        return log_parse_level(value, &a->log);
    else if (!strcmp(name, "--fault"))
        return (a->fault = fault_number(value)) >= 0;
    else if (!strcmp(name, "--features"))
        return choose_features(&a->features, value);
    else if (!strcmp(name, "--must"))
        return choose_features(&a->must, value);
    else if (!strcmp(name, "--era"))
        a->era = (int)strtol(value, NULL, 10);
    else if (!strcmp(name, "--pool"))
        a->pool = (int)strtol(value, NULL, 10);
    else if (!strcmp(name, "--file"))
        return read_file(a, value);
    else if (!strcmp(name, "--plant"))
        return choose_plant(value);
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct args a = {.log = LOG_LEVEL_NONE,
                     .first = 1,
                     .count = 200,
                     .limit = 3000,
                     .lines = 60,
                     .jobs = 2,
                     .fault = -1,
                     .era = -1,
                     .pool = -1,
                     .features = UINT32_MAX};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--keep-going"))
            a.keep_going = true;
        else if (!strcmp(argv[i], "--lossy"))
            a.lossy = true;
        else if (!strcmp(argv[i], "--plants"))
            a.plants = true;
        else if (i + 1 >= argc || !take(&a, argv[i], argv[i + 1]))
            return usage();
        else
            i++;
    }
    log_set_level(a.log); /* what the product says of itself */
    if (a.jobs < 1 || a.jobs > JOBS_MAX)
        return usage();
    int rc = a.plants ? run_plants(&a) : a.one ? !tell(&a, a.first) : run_seeds(&a);
    free(a.list);
    free(a.list_with);
    free(a.list_must);
    free(a.list_lossy);
    return rc;
}

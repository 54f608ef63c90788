/* Sites without a shared database: one transaction, its sender, coordinators, a chain. A Spin model of the rules that the
 * database of a sender enforces (schema/functions/24_sites_write.sql; docs/design.md, section 10).
 *
 * Coordinators sign and propose as they like: any nonce, any era, as often as they like, and a proposal may arrive at any time. The
 * sender grants bytes: it commits them, and from then on anybody may send them, so the chain may take them at any time until
 * their era is over. So the model has no messages but proposals, and covers every order, loss and repetition of the others, and
 * every restart of a coordinator. The sender reads final blocks late. Others use nonces. The best block may be replaced once.
 * Faults: the sender's relay restarts, and its database goes back to an older state.
 *
 * Proven, for BYTES signatures at NONCES nonces of one key (-DOWN: of two keys), HEIGHTS blocks and MAX_FAULTS faults:
 *   S-I5  bytes are granted only where all others that can still be included are at the same key and nonce
 *   once  a transaction has one effect at most, and none if its record says cancelled
 *
 * -DEARLY (a grant leaves before its commit), -DBY_ID (a grant names the transaction and not the bytes), -DUNGRANTED (bytes are
 * sent that were not granted), -DSILENCE (others are granted because nobody answered), -DUNFINAL (dead by the best block),
 * -DFORGETFUL (a successor does not read the grants), -DNO_WAIT and -DWAIT_MEMORY (after lost commits), -DNO_ADOPT (final blocks are
 * searched by known hashes alone), -DNO_BOUND (an era may be longer than the wait), -DNONCE_ONLY (with -DOWN: the same nonce of
 * another key counts as the same place) weaken one rule each; ./dev model shows that each is refuted. */
#ifndef BYTES
#define BYTES 3
#endif
#ifndef HEIGHTS
#define HEIGHTS 3
#endif
#ifndef MAX_FAULTS
#define MAX_FAULTS 1
#endif
#define NONCES 2
#ifndef ERA
#define ERA 1
#endif
#ifdef OWN
#define PLACES 4
#else
#define PLACES 2
#endif
#ifdef NO_BOUND
#define LONGEST (ERA + 2)
#else
#define LONGEST ERA
#endif

#define BIT(b) (1 << (b))
#define HAS(set, b) (((set) >> (b)) & 1)

/* signed bytes: proposed ones first, then what became of them */
byte count;
byte place[BYTES];  /* key * NONCES + nonce */
byte death[BYTES];  /* the last height that can include them */
byte sent;          /* anybody may have them: the chain may take them */
byte at[BYTES];     /* height of the block that has them; 0: none */

/* the chain: `final`, and one best block above it */
byte final;
byte used[PLACES];  /* height of the block that used the nonce; 0: none */
byte next[2];       /* of each key */
bool replaced;

/* the sender's database, an older state of it, and its relay */
byte granted, saved;
byte end, saved_end;   /* 1 ok, 2 cancelled */
byte seen, saved_seen; /* final blocks that are read */
byte wait_until;
byte known;            /* what this life of the relay believes to be granted (variants) */
byte leaving = BYTES;  /* EARLY: sent, and not committed yet */
byte faults;
byte effects;          /* in final blocks */

#if defined(FORGETFUL) || defined(EARLY)
#define BELIEVED known
#else
#define BELIEVED granted
#endif
#ifdef UNFINAL
#define PROOF (final + 1)
#else
#define PROOF seen
#endif
#ifdef NO_ADOPT
#define ADOPTS false
#else
#define ADOPTS (wait_until > 0)
#endif
#define WAITS (wait_until > seen)
/* Used by others, or over, as of the block h; what has them is not dead. */
#define DEAD(b, h) (!(at[b] && at[b] <= (h)) && (death[b] <= (h) || (!at[b] && used[place[b]] && used[place[b]] <= (h))))
#ifdef NONCE_ONLY
#define SAME(a, b) (place[a] % NONCES == place[b] % NONCES)
#else
#define SAME(a, b) (place[a] == place[b])
#endif
#define IN_THE_WAY(b, j) (HAS(BELIEVED, j) && !SAME(b, j) && !DEAD(j, PROOF))
#define ALIVE(j) (HAS(BELIEVED, j) && !DEAD(j, seen))
#define BROKEN(b, j) (HAS(sent, j) && place[j] != place[b] && !DEAD(j, final))
#if BYTES == 3
#define ANY(P, b) (P(b, 0) || P(b, 1) || P(b, 2))
#define SOME(P) (P(0) || P(1) || P(2))
#else
#error "write ANY and SOME for this number of BYTES"
#endif

inline grant(b) {
#ifndef ONLY_ONCE
    assert(!ANY(BROKEN, b)); /* S-I5 */
#endif
    sent = sent | BIT(b);
#ifdef BY_ID
    /* The coordinator takes it for all that it proposed. */
    sent = BIT(count) - 1;
#endif
#ifdef EARLY
    leaving = b
#else
    granted = granted | BIT(b);
    known = known | BIT(b)
#endif
}

#define CONSIDER(b) \
    :: atomic { b < count && !HAS(BELIEVED, b) && leaving == BYTES && end == 0 && !WAITS && death[b] > seen && \
        death[b] <= seen + LONGEST && !DEAD(b, seen) && CLEAR(b) -> grant(b) }
#ifdef SILENCE
#define CLEAR(b) true
#else
#define CLEAR(b) !ANY(IN_THE_WAY, b)
#endif
#define ENDED(b) \
    if :: at[b] && at[b] == seen && (HAS(BELIEVED, b) || ADOPTS) && end == 0 -> end = 1 :: else fi

active proctype sender() {
    do
    CONSIDER(0)
    CONSIDER(1)
    CONSIDER(2)
#ifdef EARLY
    :: atomic { leaving < BYTES -> granted = granted | BIT(leaving); known = known | BIT(leaving); leaving = BYTES }
#endif
    :: d_step { seen < final ->
        seen++;
        ENDED(0); ENDED(1); ENDED(2);
        if :: wait_until && wait_until <= seen -> wait_until = 0 :: else fi }
    :: atomic { end == 0 && !WAITS && leaving == BYTES && !SOME(ALIVE) -> end = 2 }
    :: d_step { saved != granted || saved_end != end -> saved = granted; saved_end = end; saved_seen = seen }
    od
}

active proctype coordinators() {
    byte p, d;
    do
    :: atomic { count < BYTES && final < HEIGHTS ->
        p = 0;
        do :: p + 1 < PLACES -> p++ :: break od;
        d = final + 1;
        do :: d < final + LONGEST -> d++ :: break od;
        place[count] = p;
        death[count] = d;
#ifdef UNGRANTED
        sent = sent | BIT(count);
#endif
        count++;
        p = 0; d = 0 }
    od
}

#define INCLUDE(b) \
    :: atomic { HAS(sent, b) && final < HEIGHTS && !at[b] && death[b] > final && !used[place[b]] && \
        place[b] % NONCES == next[place[b] / NONCES] -> at[b] = final + 1; used[place[b]] = final + 1; next[place[b] / NONCES]++ }
#define OTHERS(key) \
    :: atomic { final < HEIGHTS && next[key] < NONCES -> used[key * NONCES + next[key]] = final + 1; next[key]++ }
#define COUNT(b) if :: at[b] == final -> effects++ :: else fi
#define FREE(b) if :: at[b] == final + 1 -> at[b] = 0 :: else fi
#define FREE_PLACE(p) if :: used[p] == final + 1 -> used[p] = 0; next[(p) / NONCES]-- :: else fi

active proctype chain() {
    do
    INCLUDE(0)
    INCLUDE(1)
    INCLUDE(2)
    OTHERS(0)
#ifdef OWN
    OTHERS(1)
#endif
    :: d_step { final < HEIGHTS -> final++; COUNT(0); COUNT(1); COUNT(2) }
    :: d_step { !replaced && final < HEIGHTS -> replaced = true;
        FREE(0); FREE(1); FREE(2);
        FREE_PLACE(1); FREE_PLACE(0);
#ifdef OWN
        FREE_PLACE(3); FREE_PLACE(2)
#endif
        }
    od
}

active proctype fate() {
    do
    :: d_step { faults < MAX_FAULTS -> faults++; /* the relay restarts */
        leaving = BYTES;
#ifdef FORGETFUL
        known = 0
#else
        known = granted
#endif
        }
    :: d_step { faults < MAX_FAULTS && (saved != granted || saved_end != end) -> faults++; /* commits are lost */
        granted = saved; end = saved_end; seen = saved_seen; known = saved; leaving = BYTES;
#ifndef NO_WAIT
        wait_until = final + 1 + ERA
#endif
        }
#ifdef WAIT_MEMORY
    :: d_step { wait_until -> wait_until = 0 } /* a successor knows of no wait */
#endif
    od
}

ltl once { [] (effects <= 1 && (end != 2 || effects == 0)) }

/* The doorbell: no committed row stays unseen by a leader that sleeps (docs/design.md, section 5).
 *
 * Applications: a transaction takes its snapshot, inserts, tries the account's doorbell shared, goes on for as
 * long as it likes, and commits (visible, then its lock is released, then listeners are signalled) or rolls back.
 * The leader fetches what is visible; when there is nothing it tries the doorbell exclusively, looks once more and
 * sleeps until a signal. A leader that crashes loses its lock; the next one begins awake. LISTEN was done before.
 *
 * -DFLAG: instead of the lock a flag in a table, read under the transaction's snapshot (REPEATABLE READ).
 * -DTHROTTLE: a signal is left out when one was sent "a moment ago".
 * -DNO_SECOND_LOOK: the leader sleeps without looking once more. Each of them loses a wake-up. */
#define APPS 2
#define ROUNDS 2

byte shared;         /* transactions that hold the doorbell shared */
bool exclusive;      /* the leader holds it */
bool flag;           /* FLAG: "the leader sleeps", as committed */
byte visible;        /* committed rows that nobody took */
byte signals;        /* notifications on their way to the leader */
bool asleep;
bool recent;         /* THROTTLE: somebody signalled a moment ago */
byte finished;
bool crashed;

proctype app() {
    byte round;
    bool has, rings, sees;
    do
    :: round < ROUNDS ->
        sees = flag; /* the snapshot */
        atomic { /* enqueue */
            has = false;
            rings = false;
#ifdef FLAG
            rings = sees;
#else
            if
            :: !exclusive -> shared++; has = true
            :: else -> rings = true
            fi;
#endif
#ifdef THROTTLE
            if
            :: rings && recent -> rings = false
            :: rings && !recent -> recent = true
            :: else
            fi
#endif
        }
        if
        :: true -> visible++ /* commit: visible first, */
        :: true -> rings = false /* or rollback: nothing, and no signal */
        fi;
        atomic { if :: has -> shared-- :: else fi; has = false }; /* then the locks go, */
        atomic { if :: rings -> signals++ :: else fi; rings = false }; /* then the listeners are told */
        round++
    :: else -> break
    od;
    finished++
}

proctype leader() {
awake:
    do
    :: atomic { visible > 0 -> visible-- }
    :: atomic { signals > 0 -> signals-- }
    :: atomic { !crashed && finished < APPS -> crashed = true; exclusive = false; flag = false } /* the next one, awake */
    :: visible == 0 ->
#ifdef FLAG
        flag = true;
#else
        if
        :: atomic { shared == 0 -> exclusive = true }
        :: else -> goto awake /* somebody enqueued while it was awake: poll */
        fi;
#endif
#ifndef NO_SECOND_LOOK
        if
        :: visible > 0 -> exclusive = false; flag = false; goto awake
        :: else
        fi;
#endif
        asleep = true;
end_sleep:
        atomic { signals > 0 -> signals--; asleep = false; exclusive = false; flag = false; recent = false };
        goto awake
    od
}

init {
    byte i;
    atomic {
        for (i : 1 .. APPS) { run app() }
        run leader()
    }
}

/* Once every application is done, a sleeping leader with a visible row has a signal on its way. */
ltl heard { [] !(finished == APPS && asleep && visible > 0 && signals == 0) }

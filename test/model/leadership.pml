/* Leadership of one account: lock, claim, epoch, gate, write, send. A Spin model of what schema/ and election/
 * promise together (docs/design.md, sections 1 and 4).
 *
 * The database is three facts: who holds the advisory lock (a session), the account's row (claimant, epoch, is
 * the claim expired) and the nonces in use. Every statement is atomic, as it is there. Relays crash, pause
 * between any two steps (the scheduler), lose the session that holds the lock, lose a write's reply. Time is
 * one bit: a claim expires at any moment, and never before its holder's own gate has shut (the gate counts
 * from when the renewal was sent, with a margin).
 *
 * Proven, for two relays, two transactions and MAX_FAULTS faults:
 *   I3  bytes on the wire were committed before
 *   I4  no write under an old epoch is accepted
 *   I5  a nonce carries one transaction, a transaction one nonce; I1 follows: the chain takes one a nonce
 *   S   a claim is granted only when the holder's session is gone or its claim has expired
 *   live  once faults are over, a relay leads and both transactions are on the chain
 *
 * -DUNLOCKED is the mode without locks (use_lock = off): claim and expiry alone.
 * -DNO_EPOCH_IN_WRITE, -DRENEW_ANY (with -DUNLOCKED: a lock's session tells the deposed one anyway), -DNO_LOCK,
 * -DSEND_FIRST, -DEVICT_ANY weaken one rule each; ./dev model shows that each is refuted. */
#define RELAYS 2
#define TXS 2
#ifndef MAX_FAULTS
#define MAX_FAULTS 3
#endif
#define NONE 255

byte lock_by = NONE;            /* relay whose session has the advisory lock */
bool session[RELAYS];           /* the relay's lock session is open */
byte claimant = NONE;
bool with_lock;                 /* the claim was made by the session that had the lock */
bool claim_live;                /* and that very session is still open (accounts.lock_pid) */
byte epoch;
bool expired = true;
byte next_nonce;
byte tx_at[TXS];                /* transaction (1, 2) on record at a nonce; 0: none */
bool admitted[3];
byte on_chain[TXS];             /* transaction that the chain took at a nonce; 0: none */
bool gate[RELAYS];              /* the relay's own view: it may send */
byte faults;

#define FAULT atomic { faults < MAX_FAULTS -> faults++ }
#define DONE (on_chain[0] && on_chain[1])

/* A fenced statement of relay `me` under the epoch it knows: `ok` tells whether it was accepted. */
inline fence(me, my_epoch, ok) {
#ifdef NO_EPOCH_IN_WRITE
    ok = true;
#else
    ok = (epoch == my_epoch && claimant == me);
#endif
    assert(!ok || epoch == my_epoch) /* I4 */
}

/* The session of a relay ends, and the lock with it. */
inline close(who) {
    session[who] = false;
    if :: claimant == who -> claim_live = false :: else fi;
    if :: lock_by == who -> lock_by = NONE :: else fi
}

inline leave(me) {
    gate[me] = false;
    leading = false
}

/* The node takes bytes for a nonce once, whoever brings them, and only in order. */
inline send(tx, nonce) {
    d_step {
        assert(tx_at[nonce] == tx); /* I3: on record before it leaves */
        if
        :: !on_chain[nonce] && (nonce == 0 || on_chain[nonce - 1]) -> on_chain[nonce] = tx
        :: else
        fi
    }
}

proctype relay(byte me) {
    byte my_epoch, nonce, tx;
    bool leading, ok;

    do
    /* ---- a follower bids ---- */
#ifdef UNLOCKED
    :: atomic { !session[me] -> session[me] = true }
#else
    :: atomic { !leading && !session[me] -> session[me] = true }
    :: atomic { !leading && session[me] && lock_by == NONE -> lock_by = me }
    :: atomic { /* evict: the holder's claim has expired, so its lock session is ended. A session that has the lock and
                 * not the claim is about to claim: ending it as well would let two relays do so for ever
                 * (-DEVICT_ANY; leader_evict waits for such a one to sit idle) */
#ifdef EVICT_ANY
        !leading && session[me] && lock_by != NONE && lock_by != me && expired ->
#else
        !leading && session[me] && lock_by != NONE && lock_by != me && lock_by == claimant && claim_live && expired ->
#endif
        close(lock_by) }
#endif
    :: atomic { /* claim */
#if defined(UNLOCKED)
        !leading && session[me] && (claimant == NONE || claimant == me || expired) ->
#elif defined(NO_LOCK)
        !leading && session[me] && claimant != me ->
#else
        !leading && session[me] && lock_by == me && (claimant == NONE || claimant == me || with_lock || expired) ->
#endif
        assert(claimant == NONE || claimant == me || expired || !session[claimant] || lock_by == me); /* S */
        assert(claimant == NONE || claimant == me || expired || lock_by != claimant);                 /* S */
        epoch++;
        claimant = me;
        with_lock = (lock_by == me);
        claim_live = true;
        expired = false;
        my_epoch = epoch;
        gate[me] = true;
        leading = true }

    /* ---- a leader works ---- */
    :: atomic { /* renew: by claimant and epoch; refused means lost */
        leading && session[me] && (!gate[me] || expired || claimant != me) ->
#ifdef RENEW_ANY
        if
        :: session[me] -> expired = false; gate[me] = true; assert(claimant == me && epoch == my_epoch)
#else
        if
        :: claimant == me && epoch == my_epoch -> expired = false; gate[me] = true
#endif
        :: else -> leave(me)
        fi }
    :: atomic { /* admit: the lowest transaction that has no nonce gets the next one */
        leading && gate[me] && next_nonce < TXS ->
        tx = (admitted[1] -> 2 : 1) }
#ifdef SEND_FIRST
        send(tx, next_nonce);
#endif
        atomic {
        fence(me, my_epoch, ok);
        if
        :: ok && next_nonce < TXS && !admitted[tx] ->
            assert(!tx_at[next_nonce]); /* I5 */
            tx_at[next_nonce] = tx;
            admitted[tx] = true;
            next_nonce++
        :: ok && (next_nonce >= TXS || admitted[tx]) -> skip /* the batch is built again */
        :: !ok -> leave(me)
        fi;
        tx = 0 }
    :: atomic { /* the gate is asked, then the bytes go: two steps, the pause between them included */
        leading && gate[me] && next_nonce > 0 && !on_chain[next_nonce - 1] ->
        if
        :: !on_chain[0] -> nonce = 0
        :: else -> nonce = next_nonce - 1
        fi;
        tx = tx_at[nonce] }
        send(tx, nonce);
        tx = 0;
        nonce = 0

    /* ---- what goes wrong ---- */
    :: FAULT; /* crash: the process is gone with its session; another one starts */
        d_step { close(me); leave(me); my_epoch = 0 }
    :: FAULT; /* the lock session alone is ended; the relay has not noticed */
        d_step { close(me) }
#ifndef UNLOCKED
    :: atomic { leading && !session[me] -> leave(me) } /* it notices */
#endif
    od
}

/* Time: a claim that is not renewed expires, after its holder's gate has shut. A claim that is kept renewed may
 * expire too: its holder is slow. */
proctype clock() {
    do
    :: atomic { !expired && claimant != NONE && faults < MAX_FAULTS -> faults++; gate[claimant] = false; expired = true }
    :: atomic { !expired && claimant != NONE && !session[claimant] -> gate[claimant] = false; expired = true }
    od
}

init {
    atomic {
        run relay(0);
        run relay(1);
        run clock()
    }
}

/* Two nonces never carry one transaction. */
ltl once { [] !(on_chain[0] && on_chain[0] == on_chain[1]) }
ltl live { <> DONE }

/*
 * The steps of poller.pml, which tells what they are of. They are taken by the worker `me`, and use its variables.
 */

/* Before each locked instruction of a worker. */
inline fence() {
#if defined(MUTATE_PLAIN_CLEAR) || defined(MUTATE_PLAIN_WOKEN)
  atomic {
    if
    :: late_of == me -> drain()
    :: else
    fi
  }
#else
  skip
#endif
}

/* wake_one; each compare-and-swap is one step. The sleeper with the lowest bit is woken. */
inline wake_one() {
  fence();
  do
  :: atomic { mine = (searching == 0); searching = (mine -> 1 : searching) };
     if
     :: mine
     :: else -> break
     fi;
     atomic {
       mine = false;
       w = 0;
       do
       :: w < WORKERS && (on_futex & (1 << w)) == 0 -> w++
       :: else -> break
       od;
       if
       :: w < WORKERS -> on_futex = on_futex - (1 << w)
       :: w == WORKERS && in_poller -> in_poller = false
       :: else -> w = NOBODY
       fi
     };
     if
     :: w < WORKERS -> asleep[w] = false; break               /* wake: the word, then futex_wake */
     :: w == WORKERS -> interrupted = true; break             /* wake: Reactor::interrupt */
     :: else ->
          searching--;
          if
          :: on_futex != 0 || in_poller -> retries = true
          :: else -> break
          fi
     fi
  od;
  atomic { w = 0; retries = false }
}

/* notify, after a push; and offer. */
inline wake_if_idle() {
  if
  :: on_futex != 0 || in_poller -> wake_one()
  :: else
  fi
}

inline release_poller() {
#ifndef MUTATE_KEEP_POLLER
  if
  :: on_futex != 0 ->
       if
       :: !polling || late_of == me ->                        /* its own store it sees at once */
            if
#ifndef MUTATE_TRUST_ANY_GUARD
            :: guarded == FAR && !come -> wake_one()
#endif
            :: guarded == NONE -> wake_one()
            :: else
            fi
       :: else
       fi
  :: else
  fi
#else
  skip
#endif
}

/*
 * doze: as the guard, which looks again by itself (kGuardNs; FAR: behind the timer that ends the poll, if there is one),
 * or for good. The poller minds the timer, or this worker does.
 */
inline doze() {
  do
  :: due = armed[me] && !minded;
     if
     :: atomic { guarded == NONE -> guarded = NEAR };         /* begin_watch */
        if
        :: polling -> guarded = FAR;
#ifndef MUTATE_NO_SECOND_READ
             if
             :: !polling -> guarded = NEAR
             :: else
             fi
#endif
        :: true
        fi;
        (guarded != FAR || come || !asleep[me]);              /* it looks, or it was woken */
        guarded = NONE;
        if
        :: !asleep[me] || (due && come) -> break
#ifndef MUTATE_NO_GUARDS_LOOK
        :: asleep[me] && !(due && come) && !polling -> break
        :: asleep[me] && !(due && come) && polling -> skip
#else
        :: asleep[me] && !(due && come) -> skip
#endif
        fi
     :: true -> (!asleep[me] || (due && come)); break         /* futex_wait, to its own next timer */
     fi
  od;
  due = false
}

inline clear_polling() {
#ifdef MUTATE_PLAIN_CLEAR
  atomic { assert(late_of == NOBODY); late_of = me; late = 0 }
#else
  polling = false                                             /* seq_cst: seen before anything that follows */
#endif
}

/* wake_fiber out of a worker's loop: push, then notify. */
inline push(whom) {
  own[me] = own[me] | whom;
  if
  :: !hands_out -> wake_if_idle()
  :: else
  fi
}

inline claim(was_parked) {
  if
  :: wait == parked -> was_parked = true
  :: else
  fi;
  wait = claimed
}

/* TimerWheel::advance of the worker v, under its lock. */
inline advance(v) {
  atomic {
    if
    :: come && armed[v] -> armed[v] = false; claim(fired)
    :: else
    fi
  };
  if
  :: fired -> fired = false; push(MAIN)
  :: else
  fi
}

inline advance_all() {
#ifdef TIMER
  advance(0); advance(1)
#if WORKERS > 2
  ; advance(2)
#endif
#else
  skip
#endif
}

/* Poller::wait as it returns, and Reactor::dispatch. */
inline collect() { atomic { got = edge; edge = false; interrupted = false } }
inline dispatch() {
  if
  :: got -> got = false; push(OTHER)
  :: else
  fi
}

/* Worker::maintain, which a worker does now and then before it takes a fiber: it looks in passing. */
inline maintain() {
  advance_all();                                              /* fire_timers */
  fence();
  atomic { mine = !polling; polling = true };                 /* polling_.exchange */
  if
  :: mine ->
       mine = false;
       collect();
       dispatch();
#ifdef MUTATE_LET_GO_FIRST
       release_poller();
       clear_polling()
#else
       clear_polling();
       release_poller()
#endif
  :: else
  fi
}

/* RunQueue::pop and steal_into, a CAS each: one fiber, whichever. */
inline take_from(v) {
  atomic {
    if
    :: (own[v] & MAIN) != 0 -> fiber = MAIN
    :: (own[v] & OTHER) != 0 -> fiber = OTHER
    :: (own[v] & PARTNER) != 0 -> fiber = PARTNER
    :: (own[v] & BUSY) != 0 -> fiber = BUSY
    :: own[v] == 0 -> fiber = 0
    fi;
    own[v] = own[v] - fiber
  }
}

/* left_waiting: is there a fiber in woken_ of v that v does not come to for a while? */
inline look_at_woken(v) {
  left = woken[v];
  if
  :: left != 0 ->
       seen = switches[v];
       if                                                     /* the grace */
       :: switches[v] != seen -> left = 0
       :: else
       fi;
       seen = 0
  :: else
  fi
}

inline steal_from(v) {
  if
  :: fiber == 0 ->
       take_from(v);
       if
       :: fiber == 0 ->
            look_at_woken(v);
            atomic {                                          /* steal_woken: compare_exchange_strong */
              if
              :: left != 0 && woken[v] == left -> woken[v] = 0; fiber = left
              :: else
              fi;
              left = 0
            }
       :: else
       fi
  :: else
  fi
}

inline look_for_woken_of(v) {
  if
  :: sleep -> look_at_woken(v); atomic { sleep = (left == 0); left = 0 }
  :: else
  fi
}

#define NEXT ((me + 1) % WORKERS)
#define NEXT_BUT_ONE ((me + 2) % WORKERS)

/* push_woken by the running fiber: the exchange, then wake_if_idle. */
inline show_woken(whom) {
#ifdef MUTATE_PLAIN_WOKEN
  atomic { late_of = me; late = whom }
#else
  woken[me] = whom
#endif
}

inline offer() {
#ifndef MUTATE_NO_OFFER
  wake_if_idle()
#else
  skip
#endif
}

/* suspend: pick, straight to the next or, now and then, by way of the loop; MAIN is off its stack only then. */
inline park_main() {
  fence();
  fiber = 0;
  if
  :: true -> atomic { fiber = woken[me]; woken[me] = 0 }
  :: true
  fi;
  switches[me]++;
  atomic {                                                    /* carry_out(Commit::parked) */
    if
    :: wait == arms -> wait = parked
    :: else -> mine = true
    fi
  };
  if
  :: mine -> mine = false; push(MAIN)
  :: else
  fi;
  if
  :: fiber != 0 -> goto running_on
  :: else
  fi
}

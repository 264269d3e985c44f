/*
 * One wait of a fiber (core/src/fiber/waiter.h, park.h, worker.cpp): it arms, shows itself to a source, is saved and commits;
 * meanwhile a source wakes it, its deadline passes and somebody cancels it. The first to come claims the wait, the
 * others meet nobody; the fiber goes on exactly once for each wait, and a claim never reaches a later one.
 *
 * The fiber waits twice: for a source it may find ready, or may not, with a deadline; then for a second source without
 * one. Variants that have to be refuted, by -D:
 *
 *   MUTATE_COMMIT_BLINDLY   commit stores Parked, whatever has come meanwhile     (waiter.h, commit)
 *   MUTATE_CLAIM_UNLOCKED   the source claims after it has let the lock go        (waiter.h, invariant of claim)
 *   MUTATE_NO_SECOND_LOOK   the worker looks for no cancel mark after a commit    (worker.cpp, carry_out)
 *   MUTATE_ALWAYS_WAKE      the winner of a claim from Armed wakes as well        (waiter.h, claim)
 */

mtype = { idle, armed, parked, notified };                  /* the state in Waiter::word_ */
mtype = { none, ready, timed_out, cancelled };              /* WakeReason */

mtype word = idle;
mtype reason = none;
byte wait_number = 0;        /* which wait the word is of; what the ticket and the sources' locks protect */

bool shown[3];               /* the fiber stands at source 1, source 2; guarded by locked[] */
bool locked[3];
bool timer_armed = false;    /* in the wheel; guarded by wheel_locked */
bool wheel_locked = false;
bool marked = false;         /* FiberControl::cancelled_id */

bool saved = false;          /* its context: nobody may run it before */
byte runnable = 0;           /* how often it stands in a run queue */
bool ended = false;

bool woke_first = false, timed_first = false;

inline lock(l)   { atomic { !l -> l = true } }
inline unlock(l) { l = false }

/* wake_fiber: into a run queue. It stands there once, and only when its context is saved. */
inline wake() {
  atomic {
    assert(saved);
    assert(runnable == 0);
    runnable++
  }
}

/* claim_if: Armed or Parked -> Notified, by one CAS. */
inline claim(why, number, from) {
  atomic {
    if
    :: word == armed || word == parked ->
         assert(number == wait_number);      /* a claim meets the wait that it was meant for */
         from = word; word = notified; reason = why
    :: else -> from = none
    fi
  }
}

/* park_shielded up to the switch, and carry_out(Commit::parked), which another context of the worker runs. */
inline suspend() {
  atomic { saved = true };
#ifdef MUTATE_COMMIT_BLINDLY
  word = parked;
  won = false;
#else
  atomic {                                    /* commit: Armed -> Parked, by one CAS */
    if
    :: word == armed -> word = parked; won = false
    :: else -> won = true
    fi
  }
#endif
  if
  :: won -> atomic { assert(runnable == 0); runnable++ }        /* push(fiber) */
  :: else ->
#ifndef MUTATE_NO_SECOND_LOOK
       if
       :: marked ->                           /* claim_ticket: it may run elsewhere by now, and have ended this wait */
            atomic {
              if
              :: word == parked -> word = notified; reason = cancelled; assert(runnable == 0); runnable++
              :: else
              fi
            }
       :: else
       fi
#else
       skip
#endif
  fi;
  atomic { runnable > 0 -> runnable--; saved = false }          /* resume */
}

active proctype Fiber() {
  bool won;

  /* The first wait: source 1, with a deadline. */
  if
  :: marked -> goto done                      /* is_cancelled, before it arms */
  :: else
  fi;
  atomic { word = armed; reason = none; wait_number = 1 };      /* arm */
  lock(locked[1]); shown[1] = true; unlock(locked[1]);
  lock(wheel_locked); timer_armed = true; unlock(wheel_locked); /* TimerWheel::start */
  suspend();
  lock(wheel_locked); timer_armed = false; unlock(wheel_locked); /* TimerWheel::stop */
  lock(locked[1]); shown[1] = false; unlock(locked[1]);
  assert(word == notified && reason != none);
  woke_first = (reason == ready);
  timed_first = (reason == timed_out);
  if
  :: reason == cancelled -> assert(marked); goto done
  :: else
  fi;

  /* The second wait: source 2, for as long as it takes. */
  if
  :: marked -> goto done
  :: else
  fi;
  atomic { word = armed; reason = none; wait_number = 2 };
  lock(locked[2]); shown[2] = true; unlock(locked[2]);
  suspend();
  lock(locked[2]); shown[2] = false; unlock(locked[2]);
  assert(word == notified && (reason == ready || reason == cancelled));
done:
  atomic { word = idle; ended = true }
}

/* A source that has something once, or twice if it was early: it brings it when the fiber stands there. */
proctype Source(byte which) {
  mtype from = none;
  do
  :: lock(locked[which]);
     if
     :: shown[which] ->
#ifdef MUTATE_CLAIM_UNLOCKED
          unlock(locked[which]);
          claim(ready, which, from);
#else
          claim(ready, which, from);
          shown[which] = false;
          unlock(locked[which]);
#endif
          if
#ifdef MUTATE_ALWAYS_WAKE
          :: from == parked || from == armed -> wake()
#else
          :: from == parked -> wake()
#endif
          :: else
          fi;
          break
     :: else -> unlock(locked[which])
     fi;
     (shown[which] || ended || (which == 2 && marked));       /* nothing to bring before */
     if
     :: ended -> break
     :: which == 2 && marked -> break         /* it may bring nothing to a fiber that is cancelled */
     :: else
     fi
  od
}

/* TimerWheel::advance: DeadlineTimer::fired runs under the wheel's lock. */
active proctype Timer() {
  mtype from = none;
  (timer_armed || ended);
  lock(wheel_locked);
  if
  :: timer_armed -> claim(timed_out, 1, from); timer_armed = false
  :: else
  fi;
  if
  :: from == parked -> wake()
  :: else
  fi;
  unlock(wheel_locked)
}

/* FiberRef::cancel: the mark first, then a claim by ticket, which every wait of this fiber has. */
active proctype Canceller() {
  mtype from = none;
  if
  :: true ->
       marked = true;
       atomic {
         if
         :: word == armed || word == parked -> from = word; word = notified; reason = cancelled
         :: else
         fi
       };
       if
       :: from == parked -> wake()
       :: else
       fi
  :: true                                     /* or nobody cancels */
  fi
}

init { atomic { run Source(1); run Source(2) } }

/* Source 2 brings something unless the fiber is cancelled, and nothing else need happen: the fiber ends. */
ltl goes_on { <> ended }

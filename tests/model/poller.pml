/*
 * A worker polls while others compute, and a worker comes to a fiber that was woken (core/src/schedule/scheduler.h, "The poller";
 * worker.cpp, maintain, run, push_woken; idle.cpp, idle, left_waiting; wakeup.cpp, release_poller, wake_if_idle, wake_one). The steps
 * are in poller_steps.pml; here are the state, the worker's loop and what must hold.
 *
 * A fiber MAIN yields up to YIELDS times. Then one fiber computes until what is waited for has been seen, so that one
 * worker has nothing to do, and must see it. It is
 *
 *   a descriptor, which OTHER waits for. MAIN computes, or wakes PARTNER, which computes, and waits for good.
 *   -DTIMER: MAIN's timer, in the wheel of whichever worker it runs on. It wakes PARTNER, which computes.
 *   -DWOKEN: OTHER, which MAIN wakes. MAIN computes, or waits in turn for OTHER to wake it and to compute.
 *
 * The waker of PARTNER may spare the offer (wakes_to_offer_), and in TIMER a poller that leaves others at work looks
 * again by itself (kPatienceNs). With WOKEN no offer is spared and nobody's patience ends. The runtime's inbox is left
 * to sleep_notify.pml, and so is the fence after a push.
 *
 * Variants that have to be refuted, by -D:
 *
 *   MUTATE_KEEP_POLLER      who has polled wakes nobody before it runs a fiber          (release_poller)
 *   MUTATE_LET_GO_FIRST     it looks for one to wake before it clears polling_          (maintain)
 *   MUTATE_PLAIN_CLEAR      polling_ is cleared by a plain store: others see it later   (maintain, idle)
 *   MUTATE_NO_GUARDS_LOOK   a guard sleeps on although nobody polls                     (doze)
 *   MUTATE_TRUST_ANY_GUARD  who has polled wakes nobody where there is a guard, whenever that looks   (release_poller)
 *   MUTATE_NO_SECOND_READ   the guard says when it looks, and does not read again how long the poller polls (begin_watch)
 *   MUTATE_NO_SECOND_LOOK   a worker that goes to sleep does not look at polling_ again  (idle)
 *   MUTATE_NO_PATIENCE      TIMER: the poller waits for those timers only that it finds (idle, kPatienceNs)
 *   MUTATE_OWN_TIMERS       TIMER: the poller fires its own timers only, by the formula (idle, advance)
 *   MUTATE_NO_OFFER         WOKEN: whoever wakes a fiber tells nobody                   (push_woken, offer_woken)
 *   MUTATE_PLAIN_WOKEN      WOKEN: no fence between the fiber's place and the look at idle_   (wake_if_idle)
 *   MUTATE_NO_LAST_LOOK     WOKEN: a worker that goes to sleep looks for no woken fiber  (idle, any_left_waiting)
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#define YIELDS 1

#define MAIN 1                  /* fibers, as bits of a queue */
#define OTHER 2
#define PARTNER 4
#define BUSY 8                  /* computes; for a search with three workers, by hand: it takes too long for a test */
#define NOBODY 255
#define NONE 0                  /* the guard */
#define NEAR 1
#define FAR 2

byte own[WORKERS];              /* queue_ of each worker */
byte woken[WORKERS];            /* woken_: a fiber, or 0 */
byte switches[WORKERS];         /* counters.switches */
bool armed[WORKERS];            /* MAIN's timer is in this worker's wheel */
byte on_futex = 0;              /* the low half of idle_ */
bool in_poller = false;         /* the high half: nobody else polls meanwhile */
bool asleep[WORKERS];           /* asleep_, the futex word */
bool polling = false;           /* polling_ */
byte guarded = NONE;            /* guarded_until_ns_: there is no guard, it looks within kGuardNs, or behind a timer */
bool minded = false;            /* polls_until_ns_: the poller looks when the timer is due */
bool interrupted = false;       /* the poller's eventfd */
byte searching = 0;             /* searching_ */

bool edge = false;              /* the descriptor has got ready and nobody has been told */
bool come = false;              /* the time of the timer has come */
byte yields = YIELDS;
bool retries = false;           /* somebody in wake_one found nobody to wake, and looks again */
mtype = { running, arms, parked, claimed };
mtype wait = running;           /* MAIN's; a claim before it is parked wakes nobody */
bool over = false;              /* what was waited for has been seen */

/* The one store that a mutant makes plain: whose it is, and which fiber it shows or 0 for the clearing of polling_. */
byte late_of = NOBODY, late = 0;

inline drain() {
  if
  :: late != 0 -> woken[late_of] = late
  :: else -> polling = false
  fi;
  late_of = NOBODY; late = 0
}

/* The outside world, and the store buffer, which may drain at any time. */
active proctype World() {
#ifdef TIMER
  come = true;
#else
#ifndef WOKEN
  edge = true;
#endif
#endif
end:
  do
  :: atomic { late_of != NOBODY -> drain() }
  od
}

#include "poller_steps.pml"

proctype Worker(byte me) {
  bool is_searching = false, let_go = false, polls = false, sleep = false, due = false, patient = false;
  bool mine = false, got = false, fired = false, hands_out = false, guards = false;
  byte fiber = 0, found = 0, left = 0, seen = 0, w = 0;
  {
    do
    :: /* run: find_work */
       if
       :: found == 0 -> maintain()
       :: true
       fi;
       if
       :: found != 0 -> atomic { fiber = found; found = 0 }
       :: else ->
            fence();
            atomic { fiber = woken[me]; woken[me] = 0 };      /* pick: woken_.exchange */
            if
            :: fiber == 0 -> take_from(me)
            :: else
            fi
       fi;
       if
       :: fiber != 0 ->
            if
            :: is_searching ->                                /* stop_searching */
                 fence();
                 atomic { is_searching = false; mine = (searching == 1); searching-- };
                 if
                 :: mine -> mine = false; wake_if_idle()
                 :: else
                 fi
            :: else
            fi;
            if
            :: let_go -> let_go = false; release_poller()
            :: else
            fi;
            switches[me]++;
running_on:
            if
            :: fiber == BUSY || fiber == PARTNER -> (over)    /* it computes for good */
            :: fiber == MAIN && wait != running -> over = true     /* the timer has come, or OTHER has woken it */
            :: fiber == MAIN && wait == running && yields > 0 ->  /* carry_out(Commit::yielded) */
                 atomic { yields--; fiber = 0 };
                 push(MAIN)
            :: fiber == MAIN && wait == running ->
#ifdef WOKEN
                 show_woken(OTHER);
                 offer();
                 if
                 :: true -> (over)
                 :: true -> wait = arms; park_main()
                 fi
#else
                 if
#ifndef TIMER
                 :: true -> (over)
#endif
                 :: true ->
                      show_woken(PARTNER);
                      if
                      :: true -> offer()
                      :: true                                 /* wakes_to_offer_ */
                      fi;
#ifdef TIMER
                      wait = arms;
                      armed[me] = true;                       /* TimerWheel::start */
#else
                      wait = arms;                            /* for good */
#endif
                      park_main()
                 fi
#endif
            :: fiber == OTHER ->
#ifdef WOKEN
                 if
                 :: wait != running ->
                      atomic { mine = false; claim(mine) };
                      if
                      :: mine -> mine = false; show_woken(MAIN); offer()
                      :: else
                      fi;
                      (over)
                 :: wait == running -> over = true
                 fi
#else
                 over = true
#endif
            fi
       :: else ->
            /* idle */
            fence();
            if
            :: !is_searching -> atomic { searching++; is_searching = true }
            :: else
            fi;
            atomic { polls = !polling; polling = true };      /* polling_.exchange */
            steal_from(NEXT);
#if WORKERS > 2
            steal_from(NEXT_BUT_ONE);
#endif
            if
            :: fiber != 0 ->
                 atomic { found = fiber; fiber = 0 };
                 if
                 :: polls -> clear_polling(); atomic { polls = false; let_go = true }
                 :: else
                 fi
            :: else ->
                 atomic { is_searching = false; searching-- };
                 asleep[me] = true;
                 atomic {                                     /* idle_.fetch_or */
                   if
                   :: polls -> in_poller = true
                   :: else -> on_futex = on_futex | (1 << me)
                   fi
                 };
                 sleep = (own[0] == 0);                       /* any_work, one queue after the other */
                 sleep = sleep && own[1] == 0;
#if WORKERS > 2
                 sleep = sleep && own[2] == 0;
#endif
#ifndef MUTATE_NO_SECOND_LOOK
                 sleep = sleep && (polls || polling);
#endif
#if defined(WOKEN) && !defined(MUTATE_NO_LAST_LOOK)
                 look_for_woken_of(NEXT);                     /* any_left_waiting */
#if WORKERS > 2
                 look_for_woken_of(NEXT_BUT_ONE);
#endif
#endif
                 if
                 :: sleep && polls ->
#ifdef TIMER
                      due = armed[0];                         /* next_due_ns of each wheel */
                      due = due || armed[1];
#if WORKERS > 2
                      due = due || armed[2];
#endif
#ifndef MUTATE_NO_PATIENCE
                      patient = (on_futex != (1 << WORKERS) - 1 - (1 << me))   /* all_idle */
#else
                      skip
#endif
#else
                      skip
#endif
                      ;
                      minded = due;
                      (edge || interrupted || (due && come) || patient);      /* Reactor::poll */
                      collect();
                      atomic { minded = false; due = false; patient = false }
                 :: sleep && !polls -> doze()
                 :: else
                 fi;
                 sleep = false;
                 atomic {                                     /* idle_.fetch_and; the one that cleared it counts this */
                   if
                   :: polls -> is_searching = !in_poller; in_poller = false
                   :: !polls && (on_futex & (1 << me)) != 0 -> on_futex = on_futex - (1 << me)
                   :: else -> is_searching = true
                   fi
                 };
                 if
                 :: polls ->
                      hands_out = true;                       /* hand_out_events: the first runs here */
                      dispatch();
#ifdef MUTATE_OWN_TIMERS
                      advance(me);
#else
                      advance_all();
#endif
                      hands_out = false;
                      clear_polling();
                      atomic { polls = false; let_go = true };
                      if
                      :: (own[me] & (own[me] - 1)) != 0 -> wake_if_idle()
                      :: else
                      fi
                 :: else -> advance(me)
                 fi
            fi
       fi
    od
  } unless { over }
}

init {
  atomic {
    own[0] = MAIN;
#if WORKERS > 2
    own[0] = own[0] | BUSY;
#endif
    run Worker(0);
    run Worker(1);
#if WORKERS > 2
    run Worker(2)
#endif
  }
}

/*
 * The event is seen, unless wake_one finds no sleeper each time, because the poller's patience ends each time: that takes
 * a millisecond, and a look takes less than a microsecond.
 */
ltl is_seen { <> over || []<> retries }

/*
 * How workers go to sleep and are woken (core/src/schedule/scheduler.h, "Idle workers"; idle.cpp, idle; wakeup.cpp, notify,
 * wake_one): a pusher looks at idle_ afterwards; a worker that goes idle sets its bit, then looks for work once more.
 *
 * Stores go through a buffer of one place for each thread, as on x86: a plain store is seen by others later, unless a
 * fence or a locked instruction comes before. That is what full_fence in wake_if_idle is for.
 *
 * WORKERS workers share one inbox, and take what lies there into queues of their own; a thread from outside pushes ITEMS fibers, one after the other (Scheduler::inject).
 * All of them must run, whatever sleeps. A worker sleeps on its futex until its idle bit has been cleared.
 *
 * Variants that have to be refuted, by -D:
 *
 *   MUTATE_NO_FENCE         no fence between the push and the look at idle_        (wake_if_idle)
 *   MUTATE_NO_LAST_LOOK     no look for work after the idle bit is set             (idle, any_work)
 *   MUTATE_GIVE_UP          who counted as searching and found nobody to wake does not look at idle_ again, though
 *                           others have relied on it meanwhile                     (wake_one)
 *   MUTATE_MOVE_QUIETLY     a worker that moves fibers from the inbox to its own queue tells nobody: in between they
 *                           are in neither                                 (find_work)
 *   MUTATE_SEARCH_TO_SLEEP  the worker counts as searching until it sleeps         (idle, searching_.fetch_sub)
 *   MUTATE_NO_HANDOVER      the last searcher that finds work wakes nobody: fibers that keep a worker busy for good
 *                           would then hold up those behind them                   (stop_searching)
 */

#define WORKERS 2
#define ITEMS 2                 /* fibers; as many as there are workers, for each keeps one until all have run */

byte size = 0;                  /* Inbox::size_ as others see it */
byte own[WORKERS];              /* how many fibers stand in each worker's own queue */
byte late = 0;                  /* what the pusher has stored and nobody sees yet */
bool idle[WORKERS];             /* the bits of idle_ */
bool asleep[WORKERS];           /* asleep_, the futex word */
byte searching = 0;             /* searching_ */
byte done = 0;                  /* fibers that have run, or keep a worker busy */
byte busy = 0;                  /* workers that run a fiber which does not end before all are done */

/* The buffer of the pusher drains whenever it likes. */
active proctype Drain() {
end:
  do
  :: atomic { late > 0 -> size = size + late; late = 0 }
  od
}

inline fence() { atomic { size = size + late; late = 0 } }

/* wake_one; each compare-and-swap is one step. */
inline wake_one() {
  do
  :: atomic {
       if
       :: searching == 0 -> searching = 1; mine = true
       :: else -> mine = false
       fi
     };
     if
     :: mine ->
          atomic {
            w = 0;
            do
            :: w < WORKERS && !idle[w] -> w++
            :: else -> break
            od;
            if
            :: w < WORKERS -> idle[w] = false
            :: else
            fi
          };
          if
          :: w < WORKERS -> asleep[w] = false; break   /* wake: the word, then futex_wake */
          :: else ->
               searching--;
#ifdef MUTATE_GIVE_UP
               break
#else
               if                                       /* others meanwhile took this one for a searcher */
               :: idle[0] || idle[1]
               :: else -> break
               fi
#endif
          fi
     :: else -> break
     fi
  od
}

inline wake_if_idle() {
  if
  :: idle[0] || idle[1] -> wake_one()
  :: else
  fi
}

/* inject: push, fence, look at idle_. */
active proctype Pusher() {
  byte i, w;
  bool mine;
  for (i : 1 .. ITEMS) {
    late++;                                          /* Inbox::append: size_, release */
#ifndef MUTATE_NO_FENCE
    fence();                                         /* full_fence */
#endif
    wake_if_idle()
  };
  fence()
}

proctype Worker(byte me) {
  bool is_searching = false, found, moved, last, sleep, mine;
  byte w;
  do
  :: /* find_work */
     atomic {
       if
       :: own[me] > 0 -> own[me]--; found = true     /* RunQueue::pop, a CAS */
       :: else -> found = false
       fi
     };
     if
     :: !found ->
          atomic {
            if
            :: size > 0 -> size--; found = true      /* Inbox::pop, under its lock */
            :: else
            fi
          };
          moved = false;
          if
          :: found ->                                /* the others come along, one by one */
               do
               :: atomic { size > 0 -> size-- };
                  own[me]++;
                  moved = true
               :: size == 0 -> break
               od
          :: else
          fi;
#ifndef MUTATE_MOVE_QUIETLY
          if
          :: moved -> wake_if_idle()                 /* notify */
          :: else
          fi
#endif
     :: else
     fi;
     if
     :: found ->
run_it:
          if
          :: is_searching ->                         /* stop_searching */
               is_searching = false;
               atomic { last = (searching == 1); searching-- };
#ifndef MUTATE_NO_HANDOVER
               if
               :: last -> wake_if_idle()             /* notify */
               :: else
               fi
#endif
          :: else
          fi;
          done++;
          /* The fiber keeps the worker until the others have run: they are not to wait for it. */
          busy++;
          (done == ITEMS);
          busy--
     :: else ->
          if
          :: done == ITEMS -> break
          :: else
          fi;
          /* idle */
          if
          :: !is_searching -> searching++; is_searching = true
          :: else
          fi;
          atomic {
            if
            :: own[1 - me] > 0 -> own[1 - me]--; goto run_it      /* steal_into, a CAS */
            :: else
            fi
          };
#ifndef MUTATE_SEARCH_TO_SLEEP
          searching--; is_searching = false;         /* it stops searching before it looks for the last time */
#endif
          asleep[me] = true;                         /* asleep_.store */
          idle[me] = true;                           /* idle_.fetch_or, a locked instruction */
          sleep = true;
#ifndef MUTATE_NO_LAST_LOOK
          sleep = (size == 0);                       /* any_work, one queue after the other */
          sleep = sleep && own[0] == 0;
          sleep = sleep && own[1] == 0;
#endif
          if
          :: sleep ->
               (!asleep[me] || done == ITEMS)        /* futex_wait; the end of the run wakes everybody */
          :: else
          fi;
#ifdef MUTATE_SEARCH_TO_SLEEP
          searching--; is_searching = false;
#endif
          atomic {                                   /* idle_.fetch_and: whoever cleared the bit counts it as searching */
            if
            :: idle[me] -> idle[me] = false; is_searching = false
            :: else -> is_searching = true
            fi
          }
     fi
  od;
  if
  :: is_searching -> searching--
  :: else
  fi
}

init { atomic { run Worker(0); run Worker(1) } }

/* Every fiber runs, the second one too while the first keeps its worker. */
ltl all_run { <> (done == ITEMS) }

/*
 * The run queue (core/src/schedule/run_queue.h): a bounded ring whose owner pushes at the tail and takes from the head, thieves
 * that take half from the head, and an inbox for what does not fit. Each fiber is taken out once, by one of them.
 *
 * The ring has SLOTS places instead of 256. head and tail run freely there, modulo 2^32; here they stay small enough.
 * Reads and writes of slots, head and tail are single steps; a release of tail or head is seen after the writes before
 * it, so that sequential consistency loses nothing here that the orders of run_queue.h allow.
 *
 * Variants that have to be refuted, by -D:
 *
 *   MUTATE_POP_STORES       pop stores head + 1 instead of a CAS                          (pop)
 *   MUTATE_STEAL_STORES     so does a thief                                               (steal_into)
 *   MUTATE_READ_LATE        the thief reads the slots after it has moved head             (steal_into)
 *   MUTATE_FULL_LATE        push believes that there is one slot more than there is       (push)
 */

#ifndef SLOTS
#define SLOTS 4
#endif
#ifndef FIBERS
#define FIBERS 7
#endif
#ifndef THIEVES
#define THIEVES 1
#endif

byte slots[SLOTS];
byte head = 0, tail = 0;
byte inbox = 0;                 /* how many have spilled; Inbox is a list under a lock */
byte taken[FIBERS + 1];         /* how often each fiber was taken out */
byte out = 0;                   /* how many were */
byte ended = 0;                 /* how many of the owner and the thieves are done */

inline take(f) {
  atomic {
    assert(f != 0);
    taken[f]++;
    assert(taken[f] == 1);
    out++
  }
}

inline cas_head(expected, next, won) {
  atomic {
    if
    :: head == expected -> head = next; won = true
    :: else -> won = false
    fi
  }
}

/* pop: the owner's. */
inline pop(f) {
  f = 0;
  h = head;
  do
  :: h == tail -> break
  :: else ->
       f = slots[h % SLOTS];
#ifdef MUTATE_POP_STORES
       head = h + 1; won = true;
#else
       cas_head(h, h + 1, won);
#endif
       if
       :: won -> break
       :: else -> f = 0; h = head
       fi
  od
}

active proctype Owner() {
  byte next = 1, h, f, i;
  bool won;
  do
  :: next <= FIBERS ->
       /* push(next) */
       h = head;
       if
#ifdef MUTATE_FULL_LATE
       :: tail - h == SLOTS + 1 ->
#else
       :: tail - h == SLOTS ->
#endif
            /* spill: half of the ring, then the new one */
            for (i : 1 .. SLOTS / 2) {
              pop(f);
              if
              :: f != 0 -> take(f); inbox++
              :: else
              fi
            }
            take(next); inbox++
       :: else ->
            slots[tail % SLOTS] = next;
            tail = tail + 1
       fi;
       atomic { next++; h = 0; f = 0; i = 0; won = false }
  :: next > 2 ->                 /* at any time: run one */
       pop(f);
       if
       :: f != 0 -> take(f)
       :: else
       fi;
       if
       :: next > FIBERS && f == 0 -> break
       :: else -> atomic { h = 0; f = 0; won = false }
       fi
  od;
  ended++
}

/* steal_into, with a ring of the thief's own, which is empty. */
proctype Thief() {
  byte h, t, count, i, f;
  byte own[SLOTS];
  bool won = false;
  h = head;
  do
  :: d_step {
       t = tail;
       count = t - h;
       count = count - count / 2
     };
     if
     :: count == 0 -> break
     :: else
     fi;
     if
     :: count > SLOTS / 2 -> h = head; goto again       /* head and tail were read at different times */
     :: else
     fi;
#ifdef MUTATE_READ_LATE
     cas_head(h, h + count, won);
#endif
     i = 0;
     do
     :: d_step { i < count -> own[i] = slots[(h + i) % SLOTS]; i++ }
     :: else -> break
     od;
#if defined(MUTATE_STEAL_STORES)
     head = h + count; won = true;
#elif !defined(MUTATE_READ_LATE)
     cas_head(h, h + count, won);
#endif
     if
     :: won ->
          atomic {               /* the thief's own: nobody else looks at it */
            i = 0;
            do
            :: i < count -> f = own[i]; own[i] = 0; take(f); i++
            :: else -> break
            od
          };
          break
     :: else -> h = head
     fi;
again: skip
  od;
  atomic {
    h = 0; t = 0; count = 0; f = 0; won = false;    /* dead variables must not multiply the states */
    for (i : 0 .. SLOTS - 1) { own[i] = 0 };
    i = 0;
    ended++
  }
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < THIEVES -> run Thief(); i++
    :: else -> break
    od
  };
  /* When everybody is done nothing is left and nothing was lost. */
  (ended == THIEVES + 1);
  assert(head == tail);
  assert(out == FIBERS)
}

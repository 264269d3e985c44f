/*
 * The run queue (core/src/run_queue.h): a bounded ring whose owner pushes at the tail and takes from the head, thieves
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
 *   MUTATE_NO_HALF_CHECK    a count of more than half is believed                         (steal_into, "read at different times")
 *   MUTATE_FULL_LATE        push believes that there is one slot more than there is       (push)
 */

#define SLOTS 4
#define FIBERS 6
#define THIEVES 2

byte slots[SLOTS];
byte head = 0, tail = 0;
byte inbox = 0;                 /* how many have spilled; Inbox is a list under a lock */
byte taken[FIBERS + 1];         /* how often each fiber was taken out */
byte out = 0;                   /* how many were */
bool pushed_all = false;

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
       next++
  :: next > 2 ->                 /* at any time: run one */
       pop(f);
       if
       :: f != 0 -> take(f)
       :: else
       fi;
       if
       :: next > FIBERS && f == 0 -> break
       :: else
       fi
  od;
  pushed_all = true
}

/* steal_into, with a ring of the thief's own, which is empty. */
proctype Thief() {
  byte h, t, count, i, f;
  byte own[SLOTS];
  bool won = false;
  h = head;
  do
  :: t = tail;
     count = t - h;
     count = count - count / 2;
     if
     :: count == 0 -> break
     :: else
     fi;
#ifndef MUTATE_NO_HALF_CHECK
     if
     :: count > SLOTS / 2 -> h = head; goto again
     :: else
     fi;
#endif
     i = 0;
     do
     :: i < count -> own[i % SLOTS] = slots[(h + i) % SLOTS]; i++
     :: else -> break
     od;
#ifdef MUTATE_STEAL_STORES
     head = h + count; won = true;
#else
     cas_head(h, h + count, won);
#endif
     if
     :: won ->
          i = 0;
          do
          :: i < count -> f = own[i % SLOTS]; take(f); i++
          :: else -> break
          od;
          break
     :: else -> h = head
     fi;
again: skip
  od
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
  (_nr_pr == 1);
  assert(pushed_all);
  assert(head == tail);
  assert(out == FIBERS)
}

// The work of fibers_bench.cpp on goroutines.
//
//	go_fibers_bench yield|spawn|suspended [COUNT]
//	go_fibers_bench rendezvous|rendezvous_2workers|buffered|select|mutex|timer_1k|timer_100k|million [COUNT]
//	go_fibers_bench task|group|pool|with_timeout|every [COUNT], the work of jobs_bench.cpp
//	feed_listener go_fibers_bench feed [COUNT]
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// cpuNs reads the processor time of the whole process, as measure.h does.
func cpuNs() int64 {
	const clockProcessCPU = 2
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockProcessCPU, uintptr(unsafe.Pointer(&now)), 0)
	return now.Sec*1e9 + now.Nsec
}

func nsPer(count int, body func()) float64 {
	body()
	start := cpuNs()
	body()
	return float64(cpuNs()-start) / float64(count)
}

func procKB(path, key string) int {
	file, err := os.Open(path)
	if err != nil {
		return -1
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == key {
			kb, _ := strconv.Atoi(fields[1])
			return kb
		}
	}
	return -1
}

// memory returns what is resident and what page tables cost, in kB, after the collector has freed memory.
func memory() (int, int) {
	debug.FreeOSMemory()
	return procKB("/proc/self/smaps_rollup", "Rss:"), procKB("/proc/self/status", "VmPTE:")
}

func measureYield(count int) {
	done := make(chan struct{})
	body := func() {
		for i := 0; i < count; i++ {
			runtime.Gosched()
		}
		done <- struct{}{}
	}
	fmt.Printf("yield_pair_ns: %.2f ns\n", nsPer(count, func() {
		go body()
		go body()
		<-done
		<-done
	}))
}

func measureSpawn(count int) {
	done := make(chan struct{})
	body := func() { done <- struct{}{} }
	fmt.Printf("spawn_join_ns: %.2f ns\n", nsPer(count, func() {
		for i := 0; i < count; i++ {
			go body()
			<-done
		}
	}))
}

func measureSuspended(count int) {
	never := make(chan struct{})
	park := func(count int) {
		parked := make(chan struct{})
		for i := 0; i < count; i++ {
			go func() {
				parked <- struct{}{}
				<-never
			}()
			<-parked
		}
	}
	park(1000)
	resident, tables := memory()
	park(count)
	residentAfter, tablesAfter := memory()
	fmt.Printf("suspended_bytes: %.2f bytes\n", float64(residentAfter-resident)*1024/float64(count))
	fmt.Printf("suspended_pte_bytes: %.2f bytes\n", float64(tablesAfter-tables)*1024/float64(count))
	fmt.Printf("suspended_max: %d fibers\n", runtime.NumGoroutine()-1-1000)
}

func echo(there, back chan int) {
	for value := range there {
		back <- value
	}
}

func roundTrips(there, back chan int, count int) {
	for i := 0; i < count; i++ {
		there <- i
		if <-back != i {
			panic("a number got lost")
		}
	}
}

func measureRendezvous(name string, count int) {
	there, back := make(chan int), make(chan int)
	go echo(there, back)
	fmt.Printf("%s: %.2f ns\n", name, nsPer(count, func() { roundTrips(there, back, count) }))
	close(there)
}

func measureMillion(count int) {
	there, back := make(chan int), make(chan int)
	go echo(there, back)
	start := time.Now()
	roundTrips(there, back, count)
	fmt.Printf("channel_million_rtt_s: %.4f s\n", time.Since(start).Seconds())
}

func measureBuffered(count int) {
	fmt.Printf("buffered_message_ns: %.2f ns\n", nsPer(count, func() {
		channel := make(chan int, 128)
		go func() {
			for i := 0; i < count; i++ {
				channel <- i
			}
			close(channel)
		}()
		sum := 0
		for value := range channel {
			sum += value
		}
		if sum != count*(count-1)/2 {
			panic("a number got lost")
		}
	}))
}

func measureSelect(count int) {
	var channels [4]chan int
	for i := range channels {
		channels[i] = make(chan int, 1)
	}
	fmt.Printf("select4_ns: %.2f ns\n", nsPer(count, func() {
		for i := 0; i < count; i++ {
			channels[i%4] <- i
			value := -1
			select {
			case value = <-channels[0]:
			case value = <-channels[1]:
			case value = <-channels[2]:
			case value = <-channels[3]:
			}
			if value != i {
				panic("a number got lost")
			}
		}
	}))
}

func measureMutex(count int) {
	var mutex sync.Mutex
	fmt.Printf("mutex_ns: %.2f ns\n", nsPer(count, func() {
		for i := 0; i < count; i++ {
			mutex.Lock()
			mutex.Unlock()
		}
	}))
}

func measureTimer(name string, armed, count int) {
	never := func() {}
	others := make([]*time.Timer, armed)
	for i := range others {
		others[i] = time.AfterFunc(time.Minute+time.Duration(i)*36*time.Millisecond, never)
	}
	fmt.Printf("%s: %.2f ns\n", name, nsPer(count, func() {
		for i := 0; i < count; i++ {
			time.AfterFunc(30*time.Second+time.Duration(i&1023)*time.Millisecond, never).Stop()
		}
	}))
	for _, timer := range others {
		timer.Stop()
	}
}

func measureTask(count int) {
	fmt.Printf("task_ns: %.2f ns\n", nsPer(count, func() {
		for i := 0; i < count; i++ {
			result := make(chan int, 1)
			go func() { result <- i }()
			if <-result != i {
				panic("a number got lost")
			}
		}
	}))
}

func measureGroup(count int) {
	const jobs = 32
	fmt.Printf("group_ns: %.2f ns\n", nsPer(count/jobs*jobs, func() {
		for i := 0; i < count/jobs; i++ {
			var group sync.WaitGroup
			group.Add(jobs)
			for job := 0; job < jobs; job++ {
				go group.Done()
			}
			group.Wait()
		}
	}))
}

func measurePool(count int) {
	fmt.Printf("pool_ns: %.2f ns\n", nsPer(count, func() {
		jobs := make(chan func(), 64)
		var workers sync.WaitGroup
		var done int64
		for i := 0; i < 4; i++ {
			workers.Add(1)
			go func() {
				defer workers.Done()
				for job := range jobs {
					job()
				}
			}()
		}
		for i := 0; i < count; i++ {
			jobs <- func() { atomic.AddInt64(&done, 1) }
		}
		close(jobs)
		workers.Wait()
		if done != int64(count) {
			panic("a job got lost")
		}
	}))
}

func measureWithTimeout(count int) {
	fmt.Printf("with_timeout_ns: %.2f ns\n", nsPer(count, func() {
		for i := 0; i < count; i++ {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			runtime.Gosched()
			if ctx.Err() != nil {
				panic("too late")
			}
			cancel()
		}
	}))
}

func measureEvery(count int) {
	const interval = time.Millisecond
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	first, least := <-ticker.C, interval
	for run := 2; run <= count; run++ {
		<-ticker.C
		apart := time.Since(first) % interval
		if interval-apart < apart {
			apart = interval - apart
		}
		if run > count-100 && apart < least {
			least = apart
		}
	}
	fmt.Printf("every_drift_us: %.2f us\n", float64(least.Nanoseconds())/1e3)
}

// monotonicNs reads the clock that feed_listener.cpp reads.
func monotonicNs() uint64 {
	const clockMonotonic = 1
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return uint64(now.Sec*1e9 + now.Nsec)
}

// serveFeed needs a second goroutine that reads, because a select takes channels only.
func serveFeed(client net.Conn, messages <-chan uint64) {
	heard, gone := make(chan int), make(chan struct{})
	defer close(gone)
	defer client.Close()
	go func() {
		var answer [16]byte
		for {
			n, err := client.Read(answer[:])
			if err != nil {
				return
			}
			select {
			case heard <- n:
			case <-gone:
				return
			}
		}
	}()
	const patience = 30 * time.Second
	silent := time.NewTimer(patience)
	defer silent.Stop()
	for {
		select {
		case message, open := <-messages:
			if !open {
				return
			}
			bytes := *(*[8]byte)(unsafe.Pointer(&message))
			if _, err := client.Write(bytes[:]); err != nil {
				return
			}
		case <-heard:
		case <-silent.C:
			return
		}
		silent.Reset(patience)
	}
}

func measureFeed(count int) {
	const clients, first = 8, 3
	var handlers sync.WaitGroup
	var subscribers [clients]chan uint64
	for i := range subscribers {
		file := os.NewFile(uintptr(first+i), "client")
		client, err := net.FileConn(file)
		if err != nil {
			panic(err)
		}
		file.Close()
		messages := make(chan uint64, 16)
		subscribers[i] = messages
		handlers.Add(1)
		go func() {
			defer handlers.Done()
			serveFeed(client, messages)
		}()
	}
	var publishing sync.Mutex
	for i := 0; i < count; i++ {
		time.Sleep(time.Millisecond)
		publishing.Lock()
		now := monotonicNs()
		for _, messages := range subscribers {
			select {
			case messages <- now:
			default:
				panic("a message got lost")
			}
		}
		publishing.Unlock()
	}
	for _, messages := range subscribers {
		close(messages)
	}
	handlers.Wait()
}

func main() {
	what, count := "", 1000000
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	if len(os.Args) > 2 {
		count, _ = strconv.Atoi(os.Args[2])
	}
	switch what {
	case "yield":
		measureYield(count)
	case "spawn":
		measureSpawn(count)
	case "suspended":
		measureSuspended(count)
	case "rendezvous":
		measureRendezvous("rendezvous_rtt_ns", count)
	case "rendezvous_2workers":
		measureRendezvous("rendezvous_rtt_2workers_ns", count)
	case "buffered":
		measureBuffered(count)
	case "select":
		measureSelect(count)
	case "mutex":
		measureMutex(count)
	case "timer_1k":
		measureTimer("timer_ns_1k", 1000, count)
	case "timer_100k":
		measureTimer("timer_ns_100k", 100000, count)
	case "million":
		measureMillion(count)
	case "task":
		measureTask(count)
	case "group":
		measureGroup(count)
	case "pool":
		measurePool(count)
	case "with_timeout":
		measureWithTimeout(count)
	case "every":
		measureEvery(count)
	case "feed":
		measureFeed(count)
	default:
		fmt.Fprintln(os.Stderr, "usage: go_fibers_bench yield|spawn|suspended|rendezvous|... [COUNT]")
		os.Exit(2)
	}
}

// The work of fibers_bench.cpp on goroutines.
//
//	go_fibers_bench yield|spawn|suspended [COUNT]
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
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

// memory returns what is resident and what page tables cost, in kB, once the collector has given back what it can.
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
	default:
		fmt.Fprintln(os.Stderr, "usage: go_fibers_bench yield|spawn|suspended [COUNT]")
		os.Exit(2)
	}
}

// The chat of apps/examples/chat.cpp on goroutines: the same protocol, the same bounds.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	mostMembers = 64
	mostRooms   = 16
	mostName    = 16
	mostLine    = 256
	backlog     = 32
)

var errTooLong = errors.New("line too long")

type member struct {
	name  string
	room  string
	lines chan string
	slow  bool
}

// chat knows who is where.
type chat struct {
	mutex   sync.Mutex
	members map[string]*member
	rooms   map[string]map[*member]bool
	closed  bool
}

// admit takes a member up under its name. False: somebody has the name, or all places are taken.
func (c *chat) admit(m *member) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.members[m.name] != nil || len(c.members) == mostMembers || c.closed {
		return false
	}
	c.members[m.name] = m
	return true
}

func (c *chat) dismiss(m *member) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.leave(m)
	delete(c.members, m.name)
}

// enter moves a member to a room, which is opened if nobody is there. False: there are too many rooms.
func (c *chat) enter(m *member, room string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed || (c.rooms[room] == nil && len(c.rooms) == mostRooms) {
		return false
	}
	c.leave(m)
	if c.rooms[room] == nil {
		c.rooms[room] = map[*member]bool{}
	}
	m.room, m.lines, m.slow = room, make(chan string, backlog), false
	c.rooms[room][m] = true
	c.publish(room, fmt.Sprintf("* %s has come to %s\n", m.name, room))
	return true
}

func (c *chat) leave(m *member) {
	if c.rooms[m.room] == nil {
		return
	}
	delete(c.rooms[m.room], m)
	if len(c.rooms[m.room]) == 0 {
		delete(c.rooms, m.room)
	} else {
		c.publish(m.room, fmt.Sprintf("* %s has left\n", m.name))
	}
	m.room = ""
}

// publish never waits: a member who lags too far behind is disconnected. With the mutex held.
func (c *chat) publish(room, line string) {
	for m := range c.rooms[room] {
		if m.slow {
			continue
		}
		select {
		case m.lines <- line:
		default:
			m.slow = true
			close(m.lines)
		}
	}
}

func (c *chat) say(m *member, line string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.closed {
		c.publish(m.room, m.name+": "+line+"\n")
	}
}

func (c *chat) who(room string) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	text := "* here:"
	for m := range c.rooms[room] {
		text += " " + m.name
	}
	return text + "\n"
}

func (c *chat) close() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	for _, members := range c.rooms {
		for m := range members {
			if !m.slow {
				close(m.lines)
			}
		}
	}
}

// readLines hands over what a client sends, line by line; a line that is too long as an error.
func readLines(client net.Conn, to chan<- any, done <-chan struct{}) {
	defer close(to)
	reader := bufio.NewReaderSize(client, mostLine+2)
	skipping := false
	for {
		text, err := reader.ReadSlice('\n')
		var item any = strings.TrimRight(string(text), "\r\n")
		switch {
		case err == bufio.ErrBufferFull && skipping:
			continue
		case err == bufio.ErrBufferFull:
			skipping, item = true, errTooLong
		case err != nil && !(err == io.EOF && len(text) > 0):
			return
		case skipping:
			skipping = false
			continue
		}
		select {
		case to <- item:
		case <-done:
			return
		}
	}
}

func answer(client net.Conn, text string) bool {
	client.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err := io.WriteString(client, text)
	return err == nil
}

// visit is a member's stay, from its name to its end.
func visit(c *chat, client net.Conn, closing <-chan struct{}) {
	defer client.Close()
	done := make(chan struct{})
	defer close(done)
	lines := make(chan any)
	go readLines(client, lines, done)
	answer(client, "* your name?\n")
	m := &member{}
	select {
	case first := <-lines:
		m.name, _ = first.(string)
	case <-time.After(60 * time.Second):
	case <-closing:
		return
	}
	if m.name == "" || len(m.name) > mostName || strings.Contains(m.name, " ") {
		answer(client, "* no name\n")
		return
	}
	if !c.admit(m) {
		answer(client, "* the name is taken, or the chat is full\n")
		return
	}
	defer c.dismiss(m)
	if !enter(c, m, client, "lobby") {
		return
	}
	for {
		select {
		case item, open := <-lines:
			if !open {
				return
			}
			if item == errTooLong {
				answer(client, "* that line is too long\n")
			} else if !obey(c, m, client, item.(string)) {
				return
			}
		case heard, open := <-m.lines:
			if !open && m.slow {
				answer(client, "* you are too slow\n")
				return
			}
			if !open {
				answer(client, "* the chat is closed\n")
				return
			}
			if !answer(client, heard) {
				return
			}
		}
	}
}

func enter(c *chat, m *member, client net.Conn, room string) bool {
	if !c.enter(m, room) {
		answer(client, "* there are too many rooms\n")
		return false
	}
	return true
}

// obey does what a line asks for. False: the member wants to go.
func obey(c *chat, m *member, client net.Conn, line string) bool {
	switch {
	case line == "/quit":
		return false
	case line == "/who":
		answer(client, c.who(m.room))
	case strings.HasPrefix(line, "/join ") && len(line) <= 6+mostName:
		return enter(c, m, client, line[6:])
	case strings.HasPrefix(line, "/"):
		answer(client, "* /join ROOM, /who, /quit\n")
	case line != "":
		c.say(m, line)
	}
	return true
}

func main() {
	if len(os.Args) != 2 {
		fmt.Println("usage: chat ADDRESS    a chat with rooms, on 127.0.0.1:7000 for instance")
		return
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening on", listener.Addr())
	c := &chat{members: map[string]*member{}, rooms: map[string]map[*member]bool{}}
	closing := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		close(closing)
		listener.Close()
	}()
	var visits sync.WaitGroup
	places := make(chan struct{}, mostMembers)
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		places <- struct{}{}
		visits.Add(1)
		go func() {
			defer visits.Done()
			defer func() { <-places }()
			visit(c, client, closing)
		}()
	}
	c.close()
	ended := make(chan struct{})
	go func() { visits.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Second):
	}
	fmt.Println("closed")
}

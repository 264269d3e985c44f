// The service of apps/examples/service.cpp by net/http: the same paths, the same answers, the same bounds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	mostName  = 64
	mostBytes = 64 << 20
	kept      = 32
)

type change struct {
	At   uint64 `json:"at"`
	Name string `json:"name"`
}

// changes remembers the latest changes, each by its number, and wakes who waits for the next.
type changes struct {
	mutex   sync.Mutex
	latest  []change
	last    uint64
	next    chan struct{} // closed by the next change
	closing chan struct{}
}

func (c *changes) add(name string) uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last++
	c.latest = append(c.latest, change{c.last, name})
	if len(c.latest) > kept {
		c.latest = c.latest[1:]
	}
	close(c.next)
	c.next = make(chan struct{})
	return c.last
}

// wait returns when there is a change after that number, or no more waiting.
func (c *changes) wait(ctx context.Context, after uint64) {
	for {
		c.mutex.Lock()
		known, next := c.last > after, c.next
		c.mutex.Unlock()
		if known {
			return
		}
		select {
		case <-next:
		case <-c.closing:
			return
		case <-ctx.Done():
			return
		}
	}
}

// list is the changes after a number. A client that was away for too long gets those that are still known.
func (c *changes) list(after uint64) any {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	list := []change{}
	for _, each := range c.latest {
		if each.At > after {
			list = append(list, each)
		}
	}
	return struct {
		Last    uint64   `json:"last"`
		Changes []change `json:"changes"`
	}{c.last, list}
}

type service struct {
	folder   string
	patience time.Duration
	changes  changes
}

// path is where a file lies; empty if it may not be called so.
func (s *service) path(name string) string {
	if name == "" || len(name) > mostName || name[0] == '.' || strings.ContainsAny(name, "/\x00") {
		return ""
	}
	return filepath.Join(s.folder, "files", name)
}

func status(writer http.ResponseWriter, code int) {
	http.Error(writer, http.StatusText(code), code)
}

// refuse answers what the disk says.
func refuse(writer http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		status(writer, http.StatusInsufficientStorage)
	case errors.Is(err, os.ErrNotExist):
		status(writer, http.StatusNotFound)
	default:
		status(writer, http.StatusInternalServerError)
	}
}

func answer(writer http.ResponseWriter, code int, content any) {
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	json.NewEncoder(writer).Encode(content)
}

func (s *service) changed(writer http.ResponseWriter, code int, name string) {
	answer(writer, code, map[string]uint64{"at": s.changes.add(name)})
}

// replace has the content take the path when all of it has come and lies on the disk.
func replace(path string, content io.Reader) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".service-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func (s *service) upload(writer http.ResponseWriter, request *http.Request, path, name string) {
	_, err := os.Stat(path)
	code := http.StatusOK
	if err != nil {
		code = http.StatusCreated
	}
	if request.ContentLength > mostBytes {
		status(writer, http.StatusRequestEntityTooLarge)
		return
	}
	if err := replace(path, http.MaxBytesReader(writer, request.Body, mostBytes)); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status(writer, http.StatusRequestEntityTooLarge)
			return
		}
		refuse(writer, err)
		return
	}
	s.changed(writer, code, name)
}

func (s *service) files(writer http.ResponseWriter, request *http.Request) {
	name := strings.TrimPrefix(request.URL.Path, "/files/")
	path := s.path(name)
	if path == "" {
		status(writer, http.StatusBadRequest)
		return
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		http.ServeFile(writer, request, path)
	case http.MethodPut:
		s.upload(writer, request, path, name)
	case http.MethodDelete:
		if err := os.Remove(path); err != nil {
			refuse(writer, err)
			return
		}
		s.changed(writer, http.StatusOK, name)
	default:
		writer.Header().Set("Allow", "GET, HEAD, PUT, DELETE")
		status(writer, http.StatusMethodNotAllowed)
	}
}

func (s *service) poll(writer http.ResponseWriter, request *http.Request) {
	after, err := strconv.ParseUint(request.URL.Query().Get("after"), 10, 64)
	if err != nil {
		status(writer, http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(request.Context(), s.patience)
	defer cancel()
	s.changes.wait(ctx, after)
	writer.Header().Set("Cache-Control", "no-store")
	answer(writer, http.StatusOK, s.changes.list(after))
}

// logged writes a line for each request.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		start := time.Now()
		next.ServeHTTP(writer, request)
		log.Printf("%s %s %s %s", request.RemoteAddr, request.Method, request.URL, time.Since(start))
	})
}

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 {
		fmt.Println("usage: service FOLDER ADDRESS [SECONDS]    SECONDS: how long a poll waits, 25 unless told")
		return
	}
	patience := 25
	if len(os.Args) == 4 {
		patience, _ = strconv.Atoi(os.Args[3])
	}
	s := &service{folder: os.Args[1], patience: time.Duration(patience) * time.Second,
		changes: changes{next: make(chan struct{}), closing: make(chan struct{})}}
	if err := os.Mkdir(filepath.Join(s.folder, "files"), 0o755); err != nil && !os.IsExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	routes := http.NewServeMux()
	routes.HandleFunc("/files/", s.files)
	routes.HandleFunc("/changes", s.poll)
	server := &http.Server{Handler: logged(routes), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	stopped := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		close(s.changes.closing)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		server.Shutdown(ctx)
		close(stopped)
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		log.Fatal(err)
	}
	<-stopped
	fmt.Println("closed")
}

// The server of tests/bench/mcp_server.cpp by Go's standard library: the same answers to the same calls of 2026-07-28, what the
// protocol wants checked, and nothing else of it.
package main

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
)

const version = "2026-07-28"

type meta struct {
	Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
}

type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Meta      *meta  `json:"_meta"`
		Name      string `json:"name"`
		Arguments struct {
			A *int32 `json:"a"`
			B *int32 `json:"b"`
		} `json:"arguments"`
	} `json:"params"`
}

type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Type    string    `json:"resultType"`
	Content []content `json:"content"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *result         `json:"result,omitempty"`
	Error   *fault          `json:"error,omitempty"`
}

func field(r *http.Request, name string) string {
	value := strings.TrimSpace(r.Header.Get(name))
	if strings.HasPrefix(value, "=?base64?") && strings.HasSuffix(value, "?=") {
		if plain, err := base64.StdEncoding.DecodeString(value[9 : len(value)-2]); err == nil {
			return string(plain)
		}
	}
	return value
}

func answer(w http.ResponseWriter, status int, out response) {
	out.Version = "2.0"
	if out.ID == nil {
		out.ID = json.RawMessage("null")
	}
	body, err := json.Marshal(out)
	if err != nil {
		http.Error(w, "", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64*1024))
	var asked request
	if err != nil || json.Unmarshal(body, &asked) != nil {
		answer(w, 400, response{Error: &fault{-32700, "not JSON"}})
		return
	}
	wrong := func(status, code int, message string) { answer(w, status, response{ID: asked.ID, Error: &fault{code, message}}) }
	switch m := asked.Params.Meta; {
	case asked.Version != "2.0" || m == nil || m.Version == "" || m.Capabilities == nil:
		wrong(400, -32602, "_meta is missing")
	case m.Version != version:
		wrong(400, -32022, "unknown version")
	case field(r, "MCP-Protocol-Version") != m.Version || field(r, "Mcp-Method") != asked.Method:
		wrong(400, -32020, "a field differs")
	case asked.Method != "tools/call":
		wrong(404, -32601, "unknown method")
	case field(r, "Mcp-Name") != asked.Params.Name:
		wrong(400, -32020, "a field differs")
	case asked.Params.Name != "add" || asked.Params.Arguments.A == nil || asked.Params.Arguments.B == nil:
		wrong(200, -32602, "unknown tool or argument")
	default:
		sum := int64(*asked.Params.Arguments.A) + int64(*asked.Params.Arguments.B)
		answer(w, 200, response{ID: asked.ID, Result: &result{"complete", []content{{"text", strconv.FormatInt(sum, 10)}}}})
	}
}

func main() {
	http.HandleFunc("/mcp", serve)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}

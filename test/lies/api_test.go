//go:build unix

package lies

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// object is what an API server keeps.
type object = map[string]any

// apiServer keeps what it is given, and tells who watches. It believes
// everybody.
type apiServer struct {
	url string

	mu       sync.Mutex
	version  int
	objects  map[string]object // by collection, namespace and name
	history  []happening
	arrivals chan struct{} // closed and renewed at each change
}

type happening struct {
	version    int
	collection string
	kind       string // ADDED, MODIFIED, DELETED
	object     object
}

// kinds are the resources that are served.
var kinds = map[string]string{
	"/api/v1/nodes": "Node", "/api/v1/namespaces": "Namespace", "/api/v1/pods": "Pod",
	"/apis/coordination.k8s.io/v1/leases":         "Lease",
	"/apis/node.k8s.io/v1/runtimeclasses":         "RuntimeClass",
	"/apis/windows.k8s.io/v1/gmsacredentialspecs": "GMSACredentialSpec",
}

// newAPIServer starts an API server with the nodes.
func newAPIServer(t testing.TB, nodes ...object) *apiServer {
	t.Helper()
	s := &apiServer{version: 1, objects: map[string]object{}, arrivals: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL
	for _, n := range nodes {
		s.put("/api/v1/nodes", n)
	}
	s.put("/api/v1/namespaces", object{"metadata": object{"name": "default"}})
	return s
}

// node is a real node.
func node(name, system, build string) object {
	return object{
		"metadata": object{
			"name":   name,
			"labels": object{"kubernetes.io/os": system, "kubernetes.io/arch": "amd64", "node.kubernetes.io/windows-build": build},
		},
		"spec": object{"podCIDRs": []string{"10.0.0.0/24"}},
		"status": object{
			"nodeInfo": object{
				"operatingSystem": system, "architecture": "amd64", "containerRuntimeVersion": "containerd://2.1.0", "kubeletVersion": version,
				"machineID": "m-" + name, "systemUUID": "u-" + name, "bootID": "b-" + name,
			},
			"conditions": []object{{"type": "Ready", "status": "True"}},
		},
	}
}

// realNodes are two of each system.
func realNodes() []object {
	return []object{
		node("linux-0", "linux", ""), node("linux-1", "linux", ""),
		node("windows-0", "windows", "10.0.20348"), node("windows-1", "windows", "10.0.20348"),
	}
}

// place tells what a path names: a collection, and a namespace and a name in it.
func place(path string) (collection, namespace, name string) {
	prefix := "/api/v1"
	rest, core := strings.CutPrefix(path, "/api/v1/")
	if !core {
		parts := strings.SplitN(strings.TrimPrefix(path, "/apis/"), "/", 3)
		if len(parts) < 3 {
			return path, "", ""
		}
		prefix, rest = "/apis/"+parts[0]+"/"+parts[1], parts[2]
	}
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	return prefix + "/" + parts[0], namespace, name
}

// groupVersion is the apiVersion of what a collection holds.
func groupVersion(collection string) string {
	path := collection[:strings.LastIndexByte(collection, '/')]
	return strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
}

func meta(o object) object {
	m, _ := o["metadata"].(object)
	if m == nil {
		m = object{}
		o["metadata"] = m
	}
	return m
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func (s *apiServer) key(collection string, o object) string {
	return collection + " " + textOf(meta(o)["namespace"]) + "/" + textOf(meta(o)["name"])
}

// put adds or replaces an object.
func (s *apiServer) put(collection string, o object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keep(collection, o)
}

func (s *apiServer) keep(collection string, o object) object {
	kind := "MODIFIED"
	key := s.key(collection, o)
	if s.objects[key] == nil {
		kind = "ADDED"
	}
	s.version++
	m := meta(o)
	m["resourceVersion"] = strconv.Itoa(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	o["kind"], o["apiVersion"] = kinds[collection], groupVersion(collection)
	s.objects[key] = o
	s.tell(collection, kind, o)
	return o
}

func (s *apiServer) tell(collection, kind string, o object) {
	copied := maps.Clone(o)
	copied["metadata"] = maps.Clone(meta(o))
	s.history = append(s.history, happening{s.version, collection, kind, copied})
	close(s.arrivals)
	s.arrivals = make(chan struct{})
}

// remove deletes an object; with a namespace goes what is in it.
func (s *apiServer) remove(collection, key string) {
	o := s.objects[key]
	delete(s.objects, key)
	s.version++
	meta(o)["resourceVersion"] = strconv.Itoa(s.version)
	s.tell(collection, "DELETED", o)
	if collection != "/api/v1/namespaces" {
		return
	}
	for k, inside := range s.objects {
		if textOf(meta(inside)["namespace"]) == textOf(meta(o)["name"]) {
			c, _, _ := strings.Cut(k, " ")
			s.remove(c, k)
		}
	}
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/version":
		answer(w, object{"gitVersion": version})
		return
	case "/api":
		answer(w, object{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "/apis":
		answer(w, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": s.groups()})
		return
	}
	collection, namespace, name := place(r.URL.Path)
	if kinds[collection] == "" {
		status(w, http.StatusNotFound, "NotFound")
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, collection)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := collection + " " + namespace + "/" + name
	o := s.objects[key]
	switch {
	case r.Method == http.MethodGet && name == "":
		answer(w, s.list(collection, namespace, r.URL.Query().Get("labelSelector")))
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		var given object
		if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
			status(w, http.StatusBadRequest, "BadRequest")
			return
		}
		if namespace != "" {
			meta(given)["namespace"] = namespace
		}
		if old := s.objects[s.key(collection, given)]; old != nil {
			if r.Method == http.MethodPost || meta(given)["resourceVersion"] != nil && meta(given)["resourceVersion"] != meta(old)["resourceVersion"] {
				status(w, http.StatusConflict, "AlreadyExists")
				return
			}
			meta(given)["uid"] = meta(old)["uid"]
		}
		answer(w, s.keep(collection, given))
	case o == nil:
		status(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodDelete:
		s.remove(collection, key)
		answer(w, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		answer(w, o)
	}
}

func (s *apiServer) groups() []object {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for key := range s.objects {
		if rest, ok := strings.CutPrefix(key, "/apis/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			names[name] = true
		}
	}
	var groups []object
	for _, name := range slices.Sorted(maps.Keys(names)) {
		v := object{"groupVersion": name + "/v1", "version": "v1"}
		groups = append(groups, object{"name": name, "versions": []object{v}, "preferredVersion": v})
	}
	return groups
}

func (s *apiServer) list(collection, namespace, selector string) object {
	wanted, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	items, within := []object{}, collection+" "
	if namespace != "" {
		within += namespace + "/"
	}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[key]
		set := labels.Set{}
		given, _ := meta(o)["labels"].(object)
		for k, v := range given {
			set[k] = textOf(v)
		}
		if strings.HasPrefix(key, within) && wanted.Matches(set) {
			items = append(items, o)
		}
	}
	return object{"kind": kinds[collection] + "List", "apiVersion": groupVersion(collection), "metadata": object{"resourceVersion": strconv.Itoa(s.version)}, "items": items}
}

// watch streams the changes of a collection after a version.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, collection string) {
	after, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.(http.Flusher).Flush()
	sent := 0
	for {
		s.mu.Lock()
		news, arrivals := s.history[sent:], s.arrivals
		sent = len(s.history)
		s.mu.Unlock()
		for _, c := range news {
			if c.collection == collection && c.version > after {
				answer(w, object{"type": c.kind, "object": c.object})
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-arrivals:
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, o any) {
	_ = json.NewEncoder(w).Encode(o) // who asked may be gone
}

func status(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	answer(w, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
}

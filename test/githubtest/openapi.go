package githubtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/windows-op-readiness/windows-op-readiness/test/npm"
)

// octokit holds GitHub's description of its API: https://github.com/octokit/openapi
var octokit = npm.Package{
	Name: "@octokit/openapi", Version: "23.0.2",
	Sum: "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==",
}

// Description is GitHub's description of the part of its API that is played.
type Description struct{ doc *openapi3.T }

// Describe returns GitHub's description of its API. It is kept in the project's
// cache; the first time, npm gets it. The error says what is missing.
var Describe = sync.OnceValues(func() (*Description, error) {
	data, err := description()
	if err != nil {
		return nil, err
	}
	if data, err = prune(data, paths()); err != nil {
		return nil, fmt.Errorf("GitHub's description of its API: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		return nil, fmt.Errorf("GitHub's description of its API: %w", err)
	}
	return &Description{doc}, nil
})

// description returns the whole description, of 13 MB.
func description() ([]byte, error) {
	path, err := octokit.File("generated/api.github.com.json")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// prune leaves of a description only some paths and what they refer to: to load
// all of GitHub's takes long.
func prune(data []byte, paths []string) ([]byte, error) {
	var whole struct {
		OpenAPI    string                                `json:"openapi"`
		Info       json.RawMessage                       `json:"info"`
		Paths      map[string]json.RawMessage            `json:"paths"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	kept := map[string]json.RawMessage{}
	components := map[string]map[string]json.RawMessage{}
	var follow func(raw json.RawMessage) error
	follow = func(raw json.RawMessage) error {
		for _, part := range strings.Split(string(raw), `"#/components/`)[1:] {
			reference, _, _ := strings.Cut(part, `"`)
			kind, name, _ := strings.Cut(reference, "/")
			component, ok := whole.Components[kind][name]
			if !ok {
				return fmt.Errorf("it has no %s", reference)
			}
			if components[kind] == nil {
				components[kind] = map[string]json.RawMessage{}
			}
			if _, seen := components[kind][name]; !seen {
				components[kind][name] = component
				if err := follow(component); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, path := range paths {
		raw, ok := whole.Paths[path]
		if !ok {
			return nil, fmt.Errorf("it has no path %s", path)
		}
		kept[path] = raw
		if err := follow(raw); err != nil {
			return nil, err
		}
	}
	return json.Marshal(map[string]any{"openapi": whole.OpenAPI, "info": whole.Info, "paths": kept, "components": components})
}

// exchange is a request and its answer, as they are held against a description.
type exchange struct {
	input *openapi3filter.RequestValidationInput
}

// request returns an error when r, for path as the description writes it, is not
// as described.
func (d *Description) request(r *http.Request, path string, body []byte) (*exchange, error) {
	item := d.doc.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, fmt.Errorf("GitHub has no %s %s", r.Method, path)
	}
	operation := item.GetOperation(r.Method)
	for key := range r.URL.Query() {
		if operation.Parameters.GetByInAndName("query", key) == nil && item.Parameters.GetByInAndName("query", key) == nil {
			return nil, fmt.Errorf("%s %s: GitHub knows no parameter %q", r.Method, path, key)
		}
	}
	if operation.RequestBody == nil && len(body) > 0 {
		return nil, fmt.Errorf("%s %s: GitHub wants no body", r.Method, path)
	}
	values := map[string]string{}
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			values[name] = r.PathValue(name)
		}
	}
	clone := r.Clone(context.Background())
	clone.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{
		Request: clone, PathParams: values,
		Route:   &routers.Route{Spec: d.doc, Path: path, PathItem: item, Method: r.Method, Operation: operation},
		Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	}
	input.Options.WithCustomSchemaErrorFunc(short)
	return &exchange{input}, openapi3filter.ValidateRequest(context.Background(), input)
}

// answer returns an error when an answer is not as described. GitHub describes
// only some of the statuses that it answers with; others must be a basic error.
func (e *exchange) answer(status int, header http.Header, body []byte) error {
	responses := e.input.Route.Operation.Responses
	if status >= 400 && responses.Status(status) == nil {
		var basic struct {
			Message          *string `json:"message"`
			DocumentationURL *string `json:"documentation_url"`
		}
		if err := json.Unmarshal(body, &basic); err != nil || basic.Message == nil || basic.DocumentationURL == nil {
			return fmt.Errorf("answer %d is not a basic error: %.200s", status, body)
		}
		return nil
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: e.input, Status: status, Header: header,
		Options: &openapi3filter.Options{MultiError: true, IncludeResponseStatus: true},
	}
	output.Options.WithCustomSchemaErrorFunc(short)
	output.SetBodyBytes(body)
	return openapi3filter.ValidateResponse(context.Background(), output)
}

// short says what is wrong without the whole schema.
func short(e *openapi3.SchemaError) string {
	return "/" + strings.Join(e.JSONPointer(), "/") + ": " + e.Reason
}

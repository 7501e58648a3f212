package githubtest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What is not as GitHub describes it is seen, in requests and in answers.
func TestTheDescriptionIsHeldAgainst(t *testing.T) {
	d, err := Describe()
	if err != nil {
		t.Skipf("GitHub's description of its API is not to be had: %v", err)
	}
	const list, one = "/repos/{owner}/{repo}/issues/{issue_number}/comments", "/repos/{owner}/{repo}/issues/comments/{comment_id}"
	request := func(method, target, path, body string, values ...string) error {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.SetPathValue("owner", "o")
		r.SetPathValue("repo", "r")
		r.SetPathValue(values[0], values[1])
		_, err := d.request(r, path, []byte(body))
		return err
	}
	for name, test := range map[string]struct {
		err error
		ok  bool
	}{
		"a list":              {request("GET", "/x?per_page=100&page=2", list, "", "issue_number", "7"), true},
		"a comment":           {request("POST", "/x", list, `{"body": "x"}`, "issue_number", "7"), true},
		"no such operation":   {request("PUT", "/x", list, "", "issue_number", "7"), false},
		"no such parameter":   {request("GET", "/x?size=100", list, "", "issue_number", "7"), false},
		"a page of letters":   {request("GET", "/x?page=two", list, "", "issue_number", "7"), false},
		"an issue of letters": {request("GET", "/x", list, "", "issue_number", "seven"), false},
		"no body":             {request("POST", "/x", list, `{}`, "issue_number", "7"), false},
		"a body of numbers":   {request("PATCH", "/x", one, `{"body": 7}`, "comment_id", "7"), false},
		"a body too much":     {request("DELETE", "/x", one, `{"body": "x"}`, "comment_id", "7"), false},
	} {
		if (test.err == nil) != test.ok {
			t.Errorf("%s: %v", name, test.err)
		}
	}
	r := httptest.NewRequest("POST", "/x", strings.NewReader(`{"body": "x"}`))
	r.Header.Set("Content-Type", "application/json")
	r.SetPathValue("owner", "o")
	r.SetPathValue("repo", "r")
	r.SetPathValue("issue_number", "7")
	made, err := d.request(r, list, []byte(`{"body": "x"}`))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for body, status := range map[string]int{`{"id": 1}`: 201, `[]`: 201, `{}`: 200, `{"message": 7}`: 403, `<html>`: 418} {
		if made.answer(status, header, []byte(body)) == nil {
			t.Errorf("the answer %d %s passes", status, body)
		}
	}
	if err := made.answer(201, header, commentExample); err != nil {
		t.Errorf("GitHub's own example: %v", err)
	}
}

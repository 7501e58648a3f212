package redact_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// What is a secret below is made up, and put together so that scanners of
// repositories leave it alone.
const (
	jwt        = "eyJ" + "hbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl_-x"
	base64Line = "TUlJRXBBSUJBQUtDQVFFQXg4Y1ZZ2Z4SVl2SzJkQkZ5dXFyWkFBVGpL"
	begin      = "-----BEGIN RSA " + "PRIVATE KEY-----"
	end        = "-----END RSA " + "PRIVATE KEY-----"
)

var secrets = map[string]struct{ text, secret string }{
	"service account token":   {"got token " + jwt + " for pod", "eyJ"},
	"token in a Secret":       {"  token: ZXlK" + strings.Repeat("aGJHY2lP", 20) + "==", "aGJHY2lP"},
	"header of a dump":        {"Authorization: Bearer abc", "abc"},
	"header of klog":          {`headers={"Authorization":["Bearer s3cr3t-t0ken"]}`, "s3cr3t"},
	"basic authorization":     {"authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"},
	"bearer in a command":     {`curl -H "X: Bearer 0123456789abcdef0123"`, "0123456789abcdef"},
	"kubeconfig key":          {"    client-key-data: " + base64Line, base64Line},
	"kubeconfig certificate":  {"    client-certificate-data: " + base64Line, base64Line},
	"kubeconfig token":        {"    token: abcdef.0123456789abcdef", "0123456789abcdef"},
	"kubeconfig as JSON":      {`{"user":{"token":"abcdef.0123456789abcdef"}}`, "0123456789abcdef"},
	"kubeconfig password":     {`users: [{user: {username: a, password: "h1dden"}}]`, "h1dden"},
	"docker config":           {`{"auths":{"r.example":{"auth":"dXNlcjpwYXNzd29yZA=="}}}`, "dXNlcjpwYXNzd29yZA"},
	"docker config in Secret": {".dockerconfigjson: " + base64Line, base64Line},
	"AWS key id":              {"key AKIA" + "ABCDEFGHIJKLMNOP is", "ABCDEFGHIJKLMNOP"},
	"AWS secret key":          {"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "wJalr"},
	"Azure storage key":       {"AccountName=x;AccountKey=c2VjcmV0a2V5==;Suffix=y", "c2VjcmV0a2V5"},
	"Azure signature":         {"https://x.blob.example/y?sv=1&sig=abc%2Fdef&se=2", "abc%2Fdef"},
	"Google token":            {"token ya29." + "a0AfH6SMBxyz0123456789abc ok", "a0AfH6SMB"},
	"GitHub token":            {"ghp_" + "0123456789abcdefghijABCDEFGHIJ", "0123456789abcdef"},
	"GitHub fine token":       {"github_pat_" + "11ABCDEFG0123456789_abcdef", "11ABCDEFG"},
	"client secret":           {"--azure-client-secret=abcdefgh x", "abcdefgh"},
	"OIDC":                    {"refresh-token: 1//abcdefg", "abcdefg"},
	"password in an address":  {"pulling from https://user:hunter2@registry.example/v2/", "hunter2"},
	"private key in one line": {`{"key":"` + begin + `\n` + base64Line + `\n` + end + `\n"}`, base64Line},
	"private key":             {begin + "\n" + base64Line + "\n" + base64Line[:7] + "\n" + end, base64Line[:7]},
	"private key, encrypted":  {begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + base64Line + "\n" + end, base64Line},
	"private key, indented":   {"  key: |\n    " + begin + "\n    " + base64Line + "\n    " + end, base64Line},
	"private key with prefix": {"I0101 log: " + begin + "\nI0101 log: " + base64Line + "\nI0101 log: " + end, base64Line},
	"private key without end": {begin + "\n" + base64Line, base64Line},
	"two private keys":        {begin + "\n" + base64Line + "\n" + end + begin + "\n" + base64Line + "\n" + end + "\n", base64Line},
}

// written is what a Writer makes of a text that comes in pieces of n bytes.
func written(t *testing.T, text string, n int) string {
	t.Helper()
	var out bytes.Buffer
	w := redact.NewWriter(&out)
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		text = text[len(piece):]
		if got, err := w.Write([]byte(piece)); got != len(piece) || err != nil {
			t.Fatalf("Write = %d, %v", got, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSecretsGo(t *testing.T) {
	for what, c := range secrets {
		if !strings.Contains(c.text, c.secret) {
			t.Fatalf("%s: the text has no %q", what, c.secret)
		}
		got := redact.String(c.text)
		if strings.Contains(got, c.secret) || !strings.Contains(got, redact.Mask) {
			t.Errorf("%s: %q", what, got)
		}
		if again := redact.String(got); strings.Contains(again, c.secret) {
			t.Errorf("%s, twice: %q", what, again)
		}
		// However it is cut into pieces, and whatever stands around it.
		for _, n := range []int{1, 2, 3, 7, 64, 1 << 20} {
			text := "before\n" + c.text + "\nSTEP: after\n"
			got := written(t, text, n)
			if strings.Contains(got, c.secret) || !strings.Contains(got, redact.Mask) {
				t.Errorf("%s, in pieces of %d: %q", what, n, got)
			}
			if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "STEP: after\n") {
				t.Errorf("%s, in pieces of %d: what stands around it is gone: %q", what, n, got)
			}
		}
	}
}

// ordinary is what logs of e2e tests are full of.
const ordinary = `I1121 06:58:45.123456   42 e2e.go:109] Starting e2e run "5b1e6b8f-0d2a-4a4e-9d0c-3f6f2d1c9d55" on Ginkgo node 1
STEP: Creating a kubernetes client - k8s.io/kubernetes/test/e2e/framework/framework.go:210 @ 11/21/26 06:58:45.1
Nov 21 06:58:45.100: INFO: >>> kubeConfig: /root/.kube/config
STEP: Building a namespace api object, basename svcaccounts
STEP: Waiting for a default service account to be provisioned in namespace
[It] [sig-auth] ServiceAccounts should support InClusterConfig with token rotation [Slow]
[sig-auth] ServiceAccounts should mount an API token into pods [Conformance]
INFO: created pod pod-service-account-defaultsa-mountspec: token mount: true
INFO: the token is valid; token rotation took 21m; tokens: 2
INFO: Running '/usr/bin/kubectl --server=https://127.0.0.1:6443 --kubeconfig=/root/.kube/config exec x -- curl -q -s --connect-timeout 2 http://10.96.0.10:80/hostname'
INFO: stderr: "+ curl -g -q -s 'http://10.244.1.3:8083/dial?request=hostname&protocol=http&host=10.244.1.4&port=8083&tries=1'\n"
INFO: Bearer authentication is on
INFO: image registry.k8s.io/e2e-test-images/agnhost@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
INFO: continue: eyJ2IjoibWV0YS5rOHMuaW8vdjEi
INFO: secret "client-secret" deleted; password policy unchanged
    uid: 0b7a6a39-2c2b-4f8d-8a43-0d4d0b2d1c2f
  "resourceVersion": "123456", "authorization.k8s.io/v1": true,
git@github.com:kubernetes/kubernetes.git http://[fd00::1]:8080/a@b user@host:22
expected the file to begin with -----BEGIN CERTIFICATE----- and it does
• [SLOW TEST] [120.002 seconds]
`

func TestOrdinaryLogsStay(t *testing.T) {
	if got := redact.String(ordinary); got != ordinary {
		diff(t, got)
	}
	for _, n := range []int{1, 10, 1 << 20} {
		if got := written(t, ordinary, n); got != ordinary {
			diff(t, got)
		}
	}
	if got := written(t, "no end", 2); got != "no end" {
		t.Errorf("a last line without an end: %q", got)
	}
}

func diff(t *testing.T, got string) {
	t.Helper()
	lines := strings.Split(ordinary, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i < len(lines) && line != lines[i] {
			t.Errorf("%q became %q", lines[i], line)
		}
	}
}

// Letters in other cases, and those that only fold to them, hide nothing.
func TestSecretsInOddCases(t *testing.T) {
	for _, text := range []string{"PASSWORD: h1dden", "paſſword: h1dden", "Client-Toℹn passWD=h1dden"} {
		if got := redact.String(text); strings.Contains(got, "h1dden") {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Whether a text comes at once or in lines, and whatever is around it, a Writer
// makes the same of it.
func TestOrdinaryLinesAroundSecrets(t *testing.T) {
	ordinary := strings.Repeat("I1121 pod x@y is at https://10.0.0.1:443/a?b=c&d, of the account\n", 50)
	for name, c := range secrets {
		text := ordinary + c.text + "\n" + ordinary
		got := written(t, text, 1<<20)
		if want := written(t, text, 1); got != want {
			t.Errorf("%s: at once\n%s\nand in pieces\n%s", name, got, want)
		}
		if strings.Contains(got, c.secret) || !strings.HasPrefix(got, ordinary) || !strings.HasSuffix(got, ordinary) {
			t.Errorf("%s became\n%s", name, got)
		}
	}
}

func TestTheMentionOfAKeySilencesNothing(t *testing.T) {
	rest := "STEP: the next step\nINFO: and another\n"
	got := written(t, "expected something like "+begin+" and got nothing\n"+rest, 5)
	if !strings.HasSuffix(got, rest) || !strings.HasPrefix(got, "expected something like ") {
		t.Errorf("%q", got)
	}
}

func TestLongLinesAreCutAndNeverSplit(t *testing.T) {
	for _, room := range []int{0, 1, 10, 30, 60, 100} {
		filler := strings.Repeat("x ", (1<<20-room)/2)
		got := written(t, filler+"Authorization: Bearer "+jwt+" "+strings.Repeat("y", 3<<20)+"\nnext\n", 1<<16)
		if strings.Contains(got, "eyJ") || strings.Contains(got, "y"+"yy") {
			t.Errorf("with room for %d: %q", room, got[max(0, len(got)-200):])
		}
		if !strings.HasSuffix(got, "(the rest of the line is cut)\nnext\n") || len(got) > 2<<20 {
			t.Errorf("with room for %d: %d bytes, ending in %q", room, len(got), got[max(0, len(got)-60):])
		}
	}
	if got := written(t, strings.Repeat("z", 5<<20), 1<<20); got != " … (the rest of the line is cut)" {
		t.Errorf("one word: %d bytes", len(got))
	}
	whole := strings.Repeat("w", 1<<20) + "\n"
	if got := written(t, whole, 1000); got != whole {
		t.Errorf("a line that just fits: %d bytes", len(got))
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestErrorsOfTheUnderlyingWriter(t *testing.T) {
	full := errors.New("full")
	w := redact.NewWriter(broken{full})
	if _, err := w.Write([]byte("a\n")); !errors.Is(err, full) {
		t.Errorf("Write: %v", err)
	}
	if _, err := w.Write([]byte("b\n")); !errors.Is(err, full) {
		t.Errorf("the next Write: %v", err)
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("Close: %v", err)
	}
}

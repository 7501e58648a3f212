package redact_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// users are entries of users in kubeconfigs, with what is secret in « and ».
var users = map[string]string{
	"plain":                     `token: «s3cret-token»`,
	"short":                     `token: «ab1d»`,
	"quoted":                    `token: "«s3cret-token»"`,
	"single quotes":             `token: '«s3cret''token»'`,
	"before a comment":          "token: «s3cret-token» # the token",
	"in a comment":              "token: «s3cret-token» # was: «0a9bZ8c7Xd6e5Wf4g3Vh2i»",
	"commented out":             "# token: «old-token»\n    token: «s3cret-token»",
	"commented out, behind":     "token: «s3cret-token»\n    # password: «old password»",
	"commented out, as a flag":  "# run with --token «old-token1»\n    token: «s3cret-token»",
	"a literal block":           "token: |\n      «s3cret-token»\n      «another-line»",
	"a folded block":            "token: >-\n      «s3cret-token»",
	"a block with a hint":       "client-key-data: |2-\n        «TFMwdExTMUNSVWRKVGlC»\n        «UkVGSlZqRkJTVVU»",
	"on the next line":          "token:\n      «s3cret-token»",
	"over lines":                "password: \"«s3cret»\n      «second-part»\"",
	"an anchor":                 "token: &t «s3cret-token»",
	"an alias":                  "username: &p «s3cret-alias»\n    password: *p",
	"a merge":                   "<<: &more {token: «s3cret-token»}",
	"merges":                    "<<: [{token: «s3cret-token»}, {password: «s3cret-pass»}]",
	"a tag":                     "token: !!str «s3cret-token»",
	"binary":                    "token: !!binary «czNjcmV0LXRva2Vu»",
	"a number":                  "password: «12345678»",
	"octal":                     "password: «0o1234»",
	"a flow":                    "{token: «s3cret-token», username: me}",
	"a password":                "username: me\n    password: «50%:of,it]}»",
	"a password, blanks":        "username: me\n    password: «correct horse battery»",
	"a password, equals":        "password: «a=b==»",
	"a key in quotes":           `"token": «s3cret-token»`,
	"a key with escapes":        `"tok\u0065n": «s3cret-token»`,
	"an explicit key":           "? token\n    : «s3cret-token»",
	"client-key-data":           "client-key-data: «TFMwdExTMUNSVWRKVGlC»",
	"client-certificate-data":   "client-certificate-data: «TFMwdExTMUNSVWRKVGlC»",
	"an unknown field":          "bearer: «s3cret-token»",
	"in capitals":               "TOKEN: «s3cret-token»",
	"auth provider":             "auth-provider: {name: oidc, config: {id-token: «s3cret-idtoken», refresh-token: «s3cret-refresh», client-secret: «s3cret-client», client-id: kubernetes, idp-issuer-url: https://issuer.example}}",
	"exec: a flag":              "exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, args: [--client-secret=«argument-secret», --cluster-name=demo]}",
	"exec: a flag and a value":  "exec: {command: get-token, args: [eks, get-token, --token, «argument-secret», --region, eu-west-1]}",
	"exec: a list":              "exec:\n      command: get-token\n      args:\n      - login\n      - --password\n      - «argument secret»",
	"exec: a short flag":        "exec: {command: get-token, args: [login, -p, «argument-secret»]}",
	"exec: an argument":         "exec: {command: get-token, args: [«0a1b2c3d4e5f6a7b8c9d0e1f», eu-west-1]}",
	"exec: a script":            `exec: {command: sh, args: [-c, 'echo {"kind":"ExecCredential","status":{"token":"«s3cret-token»"}}']}`,
	"exec: a script of lines":   "exec:\n      command: sh\n      args:\n      - -c\n      - |\n        export AZURE_CLIENT_SECRET=«argument-secret»\n        kubelogin get-token --server-id x",
	"exec: a header":            `exec: {command: curl, args: [-H, "Authorization: Bearer «argument-secret»", https://sts.example]}`,
	"exec: an address":          "exec: {command: get-token, args: [--url, 'https://me:«h1dden»@sts.example']}",
	"exec: a variable":          "exec: {command: get-token, env: [{name: CLIENT_SECRET, value: «s3cret-env»}, {name: AWS_PROFILE, value: demo}]}",
	"exec: a variable, ordered": "exec: {command: get-token, env: [{value: «s3cret-env», name: VAULT_TOKEN}]}",
	"exec: an unknown variable": "exec: {command: get-token, env: [{name: THING, value: «s3cret-env»}]}",
	"extra":                     "as-user-extra: {thing: [«s3cret-extra»]}\n    username: me",
}

const around = `apiVersion: v1
kind: Config
current-context: demo
clusters:
- name: demo
  cluster:
    server: https://0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d.gr7.eu-west-1.eks.example.com:6443
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ
    proxy-url: PROXY
  #  0123456789 is not a secret, and neither is /a/path/of-0123456789-some-length
contexts:
- name: demo
  context: {cluster: demo, user: some-user, namespace: default}
users:
- name: some-user
  user:
    USER
preferences: {}
extensions:
- name: minikube
  extension: {version: v1.30.1, provider: minikube.sigs.k8s.io, last-update: "Sat, 21 Nov 2026 06:58:45 UTC"}
`

// readable is what stays readable of it, whatever the user's entry is.
var readable = []string{"v1.30.1", "minikube.sigs.k8s.io", "demo", "some-user", "0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d.gr7.eu-west-1.eks.example.com", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ",
	"get-token", "eu-west-1", "kubernetes", "issuer.example", "proxy.example", "default", "Config", "login", "/a/path/of-0123456789-some-length", "username"}

func TestWhatIsSecretInAKubeconfig(t *testing.T) {
	proxy := "https://me:«pr0xy-p%40ss»@proxy.example:3128"
	for what, user := range users {
		marked := strings.NewReplacer("USER", user, "PROXY", proxy).Replace(around)
		text := strings.NewReplacer("«", "", "»", "").Replace(marked)
		got, err := redact.Kubeconfig([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		masked := text
		for _, secret := range longestFirst(got) {
			masked = strings.ReplaceAll(masked, secret, "***")
			for _, r := range readable {
				if strings.Contains(r, secret) && !strings.Contains(user, "«"+secret) {
					t.Errorf("%s: %q is masked, and %q is nothing to hide", what, secret, r)
				}
			}
		}
		for _, part := range strings.Split(marked, "«")[1:] {
			secret, _, _ := strings.Cut(part, "»")
			secret = strings.ReplaceAll(secret, "''", "'")
			if secret == "pr0xy-p%40ss" && !slices.Contains(got, "pr0xy-p@ss") {
				t.Errorf("%s: the proxy's password is not masked as it is: %q", what, got)
			}
			if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(secret, g) && len(g) > len(secret)/2 }) {
				t.Errorf("%s: %q is not masked: %q", what, secret, got)
			}
		}
	}
	if len(users) < 39 {
		t.Errorf("%d forms", len(users))
	}
}

func longestFirst(all []string) []string {
	return slices.SortedFunc(slices.Values(all), func(a, b string) int { return len(b) - len(a) })
}

func TestTheFormsOfASecretInLogs(t *testing.T) {
	key := "-----BEGIN EC " + "PRIVATE KEY-----\nMHcCAQEEIJ0a1b2c3d4e5f\nab+/==\n-----END EC " + "PRIVATE KEY-----\n"
	got, err := redact.Kubeconfig([]byte(`{"users":[{"name":"a","user":{"password":"a\"b\u0063 d","client-key-data":"` + base64.StdEncoding.EncodeToString([]byte(key)) + `"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`a"bc d`, `a\"bc d`, `a%22bc%20d`, "MHcCAQEEIJ0a1b2c3d4e5f", "ab+/=="} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not masked: %q", want, got)
		}
	}
	for _, line := range got {
		if strings.Contains(line, "\n") || strings.Contains(line, "-----") || len(line) < 4 {
			t.Errorf("%q is masked", line)
		}
	}
}

func TestWhatIsNoKubeconfigIsRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	for text, says := range map[string]string{
		"":                               "not YAML",
		"s3cret-token":                   "it is not a kubeconfig",
		"- s3cret-token":                 "it is not a kubeconfig",
		"users:\n\t- s3cret-token":       "not YAML: line 2",
		"users: [{token: \"s3cret-token": "not YAML",
		"users: *s3cret-token":           "not YAML",
		bomb:                             "its aliases",
	} {
		got, err := redact.Kubeconfig([]byte(text))
		if err == nil || got != nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %q, %v; want an error that says %q", text, got, err, says)
		}
	}
}

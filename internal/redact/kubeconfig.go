package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Kubeconfig returns what is secret in a kubeconfig, as YAML or JSON: each line
// of each such value, in the forms that a log may show it in, in order. Secret
// is what a user's entry holds, but for names, paths and what says how to ask
// for credentials; passwords in addresses; values of flags and of the
// environment of exec plugins; and whatever else, also in comments, is named
// like a secret or looks random. Addresses, names and certificates of authorities
// are not. What is shorter than four characters is in too many words to be told
// from them, and left out.
//
// An error tells that the text cannot be read, and holds nothing of it.
func Kubeconfig(data []byte) ([]string, error) {
	f := finder{data: string(data), found: map[string]bool{}}
	d := yaml.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) && n > 0 {
			break
		}
		if err != nil {
			return nil, errors.New(strings.TrimSuffix("it is not YAML: "+inLine().FindString(err.Error()), ": "))
		}
		if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
			return nil, errors.New("it is not a kubeconfig: that is a mapping, with clusters, users and contexts")
		}
		f.comments(&doc)
		if err := f.walk(doc.Content[0], ""); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(f.found)), nil
}

// inLine is where, in an error of yaml.v3, which may hold more.
var inLine = lazy(`line \d+`)

type finder struct {
	data  string
	found map[string]bool
	nodes int
}

// maxNodes bounds what aliases of aliases can grow to.
const maxNodes = 100_000

// public are the fields that anybody may read.
var public = func() map[string]bool {
	known := map[string]bool{}
	for _, path := range strings.Fields(`apiVersion kind current-context clusters/*/name contexts/*/name users/*/name
		contexts/*/context/cluster contexts/*/context/user contexts/*/context/namespace
		clusters/*/cluster/server clusters/*/cluster/proxy-url clusters/*/cluster/tls-server-name
		clusters/*/cluster/certificate-authority clusters/*/cluster/certificate-authority-data
		users/*/user/client-certificate users/*/user/client-key users/*/user/tokenFile users/*/user/username
		users/*/user/as users/*/user/as-uid users/*/user/as-groups/* users/*/user/auth-provider/name
		users/*/user/exec/apiVersion users/*/user/exec/command users/*/user/exec/installHint users/*/user/exec/interactiveMode`) {
		known[path] = true
	}
	return known
}()

var (
	// secretName is how flags, variables and fields with secrets are called.
	secretName = lazy(`(?i)(?:token|secret|passw(?:or)?d|passphrase|pwd|pass|key|credentials?|assertion|cookie|auth|authorization|sas|signature|code|pin|^-p)$`)
	// publicName is how those are called whose values tell where to ask for
	// credentials, and for whom.
	publicName = lazy(`(?i)(?:^|[_-])(?:profile|region|zone|cluster|name|home|path|file|dir|mode|environment|env|project|account|role|arn|issuer|url|endpoint|host|level|login|type|scopes?|version|verbose|debug|id|expiry|expires-on|username|user|namespace|audience|cloud|authority|update)$`)
	fileName   = lazy(`^(?:[.~]{0,2}/|[A-Za-z]:[\\/])[^\s=]*$`)
)

// walk looks at a node, which is at path: keys with slashes between them, and *
// for a place in a list.
func (f *finder) walk(n *yaml.Node, path string) error {
	if f.nodes++; f.nodes > maxNodes {
		return fmt.Errorf("line %d: its aliases make more than %d values of it", n.Line, maxNodes)
	}
	f.comments(n)
	switch n.Kind {
	case yaml.AliasNode:
		return f.walk(n.Alias, path)
	case yaml.MappingNode:
		if path == "/users/*/user/exec/env/*" {
			f.variable(n)
			return nil
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			f.comments(key)
			below := []*yaml.Node{value}
			at := path + "/" + key.Value
			if key.Tag == "!!merge" {
				at = path
				if value.Kind == yaml.SequenceNode {
					below = value.Content
				}
			}
			for _, v := range below {
				if err := f.walk(v, at); err != nil {
					return err
				}
			}
		}
	case yaml.SequenceNode:
		if path == "/users/*/user/exec/args" {
			f.arguments(n)
			return nil
		}
		for _, item := range n.Content {
			if err := f.walk(item, path+"/*"); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		f.scalar(n, path)
	}
	return nil
}

// scalar looks at the value of a field.
func (f *finder) scalar(n *yaml.Node, path string) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case public[path[1:]]:
		f.text(n.Value)
	case n.Tag == "!!bool" || n.Tag == "!!null":
	case strings.HasPrefix(path, "/users/*/user/auth-provider/config/"):
		if !publicName().MatchString(name) || secretName().MatchString(name) {
			f.secret(n.Value)
		}
		f.text(n.Value)
	case strings.HasPrefix(path, "/users/*/user/") && !strings.HasPrefix(path, "/users/*/user/extensions/"):
		f.secret(n.Value)
		if n.Tag == "!!binary" || name == "client-key-data" {
			decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
			if err == nil && (n.Tag == "!!binary" || strings.Contains(string(decoded), "-----BEGIN ")) {
				f.add(strings.Split(string(decoded), "\n")...)
			}
		}
	default:
		f.value(name, n.Value)
	}
}

// value takes what is called name for a secret where it is called or looks like
// one.
func (f *finder) value(name, value string) {
	if !fileName().MatchString(value) && (secretName().MatchString(name) || !publicName().MatchString(name) && random(value)) {
		f.secret(value)
	}
	f.text(value)
	f.words(value)
}

// arguments looks at a command line.
func (f *finder) arguments(n *yaml.Node) {
	flag := ""
	for _, item := range n.Content {
		f.comments(item)
		if item.Kind == yaml.AliasNode {
			item = item.Alias
		}
		name, value, given := strings.Cut(item.Value, "=")
		switch {
		case strings.HasPrefix(name, "-") && given:
			f.value(name, value)
			flag = ""
		case strings.HasPrefix(name, "-"):
			f.value("", item.Value) // -pSECRET
			flag = item.Value
		default:
			f.value(flag, item.Value)
			flag = ""
		}
	}
}

// variable looks at one of the environment.
func (f *finder) variable(n *yaml.Node) {
	name, value := "", ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		f.comments(key)
		f.comments(v)
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		switch key.Value {
		case "name":
			name = v.Value
		default:
			value = v.Value
		}
	}
	if secretName().MatchString(name) || !publicName().MatchString(name) && !nothing().MatchString(value) && !fileName().MatchString(value) {
		f.secret(value)
	}
	f.text(value)
}

// comments looks at what is said of a node.
func (f *finder) comments(n *yaml.Node) {
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.SplitSeq(c, "\n") {
			line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#-"))
			if m := field().FindStringSubmatch(line); m != nil && secretName().MatchString(m[1]) {
				f.secret(m[2])
			}
			f.text(line)
			f.words(line)
		}
	}
}

// field is one of a YAML text that is commented out.
var field = lazy(`^["']?([\w.-]+)["']?\s*[:=]\s*["']?(.+?)["']?$`)

// text looks at a text in which secrets may be.
func (f *finder) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		all := rules()
		found := keywordsOf().all(line)
		for i := range all {
			if found.has(i) {
				f.add(all[i].secrets(line)...)
			}
		}
	}
	if u, err := url.Parse(strings.TrimSpace(s)); err == nil && u.User != nil {
		password, is := u.User.Password()
		if !is {
			password = u.User.Username() // a token, alone
		}
		f.secret(password)
	}
}

// words takes those words of a text for secrets that look random.
func (f *finder) words(s string) {
	for _, word := range oneWord().FindAllString(s, -1) {
		if random(word) {
			f.secret(word)
		}
	}
}

var oneWord = lazy("[^\\s\"'`,;(){}\\[\\]<>]+")

// random reports whether a word looks like a key or a token: it is long, has
// digits, and is not an address, path, date or list.
func random(s string) bool {
	return len(s) >= 20 && strings.ContainsAny(s, "0123456789") && !strings.Contains(s, "://") && !strings.ContainsAny(s, " \n") && !fileName().MatchString(s) && !host().MatchString(s) && !date().MatchString(s) && entropy(s) >= 3
}

var host = lazy(`^[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::[0-9]+)?$`)

var date = lazy(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T`)

// secret adds what is secret, line by line.
func (f *finder) secret(s string) {
	f.add(s)
	if !strings.Contains(f.data, s) {
		f.add(strings.Fields(s)...) // the kubeconfig has it in several lines
	}
	f.add(strings.Split(s, "\n")...)
}

// add adds secrets, as they are and as JSON and addresses have them.
func (f *finder) add(secrets ...string) {
	for _, s := range secrets {
		if s = strings.TrimSpace(s); len(s) < 4 || strings.HasPrefix(s, "-----") {
			continue
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			continue
		}
		for _, form := range []string{s, string(quoted[1 : len(quoted)-1]), url.PathEscape(s), url.QueryEscape(s)} {
			if !strings.Contains(form, "\n") {
				f.found[form] = true
			}
		}
	}
}

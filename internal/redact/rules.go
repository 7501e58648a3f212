package redact

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// rule finds one kind of secret in a line.
type rule struct {
	// keywords are in lower case; every line that re finds something in holds one.
	keywords []string
	// also stands in every such line, too, as it is.
	also string
	re   func() *regexp.Regexp
	// group is the part of a match that is the secret; 0 is its first group that
	// is not empty, or all of it where it has none.
	group int
	// entropy is what the secret has to have at least, in bits a character.
	entropy float64
	// unless tells what only looks like a secret, from it and from what follows.
	unless func(secret, rest string) bool
}

// The parts of the rules for fields.
const (
	// nameEnd is what may end a field's name: quotes, escaped ones in JSON within
	// JSON, also the end of a tag.
	nameEnd = `\\*["']?`
	assign  = nameEnd + `\s*(?::=|=>|[:=])\s*`
	// spew is how dumps of Go values tell the type of a text.
	spew = `(?:\(\*?string\)\s*(?:\(0x[0-9a-f]+\)\s*)?(?:\(?\(len=\d+\)\s*)?)?`
	// quoted is a value in quotes, to its end or that of the line.
	quoted = `\[?(?:\\+"(.+?)(?:\\+"|$)|"((?:[^"\\]|\\.)+)|'([^']+))`
	value  = spew + `(?:` + quoted + `|([^\s"',;}{\[][^\s"',;}]*))`

	passwords = `(?:password|passwd|passphrase|_pass|[-_]pw)`
)

var secretWords = []string{"passw", "passphrase", "_pass", "-pw", "_pw"}

// tokenWords are the word with what may follow where it is the name of a field:
// the word alone is in too many lines.
var tokenWords = []string{"token:", "token=", "token\"", "token'", "token\\", "token :", "token =", "token  ", "token\t"}

// Names of fields whose values are secrets, whatever they look like; and those
// that may also hold the name of a file.
var (
	names, nameWords = fields("client secret", "app secret", "application secret", "consumer secret", "shared secret", "webhook secret", "hmac secret", "signing secret",
		"oauth secret", "auth secret", "principal secret", "api secret", "secret key", "secret access key", "shared key", "shared access key", "shared access signature",
		"account key", "storage key", "access key", "api key", "subscription key", "auth key", "client key data", "client certificate data", ".docker config json", ".docker cfg")
	keys, keyWords = fields("private key", "certificate key", "encryption key", "decryption key", "master key", "signing key")
)

// fields returns a regular expression for names, written in one, with dashes or
// with underscores, and the keywords that one of them is found by.
func fields(names ...string) (expression string, keywords []string) {
	var expressions []string
	for _, name := range names {
		expressions = append(expressions, strings.ReplaceAll(regexp.QuoteMeta(name), " ", "[-_]?"))
		for _, with := range []string{"", "-", "_"} {
			keywords = append(keywords, strings.ReplaceAll(name, " ", with))
		}
	}
	return "(?:" + strings.Join(expressions, "|") + ")", keywords
}

// ours are the rules for what stands in kubeconfigs, in Secrets, in command
// lines and in dumps of HTTP requests, and for keys whose form gitleaks takes
// too narrowly for logs.
var ours = []rule{
	// Passwords in addresses. What has a number after its colon, and then a path,
	// is a host with a port; what has a digest after its @ is an image.
	find(`(?i)[a-z][a-z0-9+.-]*://[^\s/:@"'<>\[\]]*:([^\s/"'<>]+|[^\s@"'<>]+)@[^\s@"'<>]`).on("://").with("@").but(port),
	find(`(?i)https?://([\w.~-]{20,})@`).on("://").with("@"),
	find(`(?i)[?&](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|passw(?:or)?d)=([^&\s"'\\]+)`).on("sig=", "signature=", "x-amz-s", "x-goog-s", "passw").but(placeholder),
	find(`(?i)[?&](?:code|key)=([^&\s"'\\]+)`).on("?code=", "&code=", "?key=", "&key=").but(word),

	// HTTP headers, as Go's dumps, curl and klog print them.
	find(`(?i)\b(?:proxy-)?authorization` + assign + `\[?\\*["']?(?:(?:bearer|basic|negotiate|ntlm|token|apikey|sharedkey(?:lite)?)\s+([^\s"',\]\\]+)|(?:digest|aws4-hmac-sha256|hawk)\s+([^'\]]+))`).on("authorization"),
	find(`(?i)\bbearer\s+([A-Za-z0-9._~+/-]{16,}=*)`).on("bearer"),
	find(`(?i)\b(?:set-)?cookie` + assign + `\[?\\*["']?([^\s"'=;\]\\]+=[^"'\]\\]+)`).on("cookie"),
	find(`(?i)\bsec-websocket-protocol` + assign + `\[?\\*["']?[^"'\]]*(base64url\.bearer\.authorization\.k8s\.io\.[\w-]+)`).on("base64url.bearer"),
	// JSON web tokens: service account tokens, OIDC; also as Secrets hold them.
	find(`\b(eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)`).on("eyj"),
	find(`\b(ZXlK[A-Za-z0-9+/]{40,}=*)`).on("zxlk"),

	// Fields of kubeconfigs, of Secrets, of configurations, of the environment. At
	// the start of a line, and at the end of one, is the value of YAML as it is.
	find(`(?i)^[\s>+-]*["']?[\w.-]*(?:` + passwords + `|` + names + `)["']?\s*[:=]\s+([^\s"'{\[]\S*)\s*$`).on(slices.Concat(secretWords, nameWords)...).but(placeholder),
	find(`(?i)` + passwords + assign + value).on(secretWords...).but(prose),
	find(`(?i)` + names + assign + value).on(nameWords...).but(prose),
	find(`(?i)` + keys + assign + value).on(keyWords...).but(file),
	find(`(?i)token` + assign + spew + quoted).on(tokenWords...).but(short),
	find(`(?i)^[\s-]*["']?[\w.-]*token["']?\s*[:=]\s*([^\s"',;}{\[]{8,})`).on(tokenWords...).but(placeholder),
	find(`(?i)[_-]token=`+value).on("_token=", "-token=").but(placeholder),
	find(`(?i)token` + assign + `([^\s"',;}{\[][^\s"',;}]*)`).on(tokenWords...).but(word),
	find(`(?i)["'](?:auth|sessionkey)\\*["']:\s*`+quoted).on(`auth"`, `auth'`, `auth\`, "sessionkey").but(short),
	find(`(?i)\b_auth\s*=\s*["']?([^\s"']+)`).on("_auth"),
	find(`(?i)[;\s"']pwd\s*=\s*([^\s"',;/\\][^"';]*)`).on("pwd"),
	find(`(?i)\bpassword=([^;"'=]+);`).on("password="), // of a connection, to its end
	find(`(?i)<(?:\w+:)?\w*(?:password|token|secret)>\s*(?:<value>)?([^<\s][^<]*)<`).on("password>", "token>", "secret>"),
	// The environment of containers, as JSON and as Go prints it.
	find(`(?i)"name\\*"\s*:\s*\\*"[\w.-]*(?:` + passwords + `|token|secret|` + names + `|` + keys + `)\\*"\s*,\s*\\*"value\\*"\s*:\s*\\*"([^"\\]+)`).on(`"value`),
	find(`(?i)name:[\w.-]*(?:` + passwords + `|token|secret|` + names + `|` + keys + `),\s*value:([^,}]+)`).on("value:"),

	// Command lines.
	find(`(?i)(?:^|[\s"'\[,])--?[\w-]*(?:password|passwd|passphrase|token|secret|` + names + `|` + keys + `)["']?[\s,]+` + flagValue).on(flagWords...).but(prose),
	find(`(?i)(?:^|\s)--?[\w-]*(?:password|passwd|passphrase|token|secret)=`+value).on("password=", "passwd=", "passphrase=", "token=", "secret=").but(placeholder),
	find(`(?i)\s/(?:p|pass|password|rp):`+value).on("/p:", "/pass:", "/password:", "/rp:").but(placeholder),
	find(`(?i)\bnet1?(?:\.exe)?["']?\s+user\s+(?:"[^"]*"|[^\s"/]+)\s+(?:"([^"]+)"|([^\s"/*]\S*))`).on("net user", "net.exe", "net1 user").but(prose),
	find(`(?i)\bnet(?:\.exe)?["']?\s+use\s+(?:\S:\s+|\*\s+)?\\\\\S+\s+(?:"([^"]+)"|([^\s"/*]\S*))`).on("net use", "net.exe").but(placeholder),
	find(`(?i)\bnet(?:\.exe)?["']?\s+use\b.*\s/user:\S+\s+([^\s"/*]\S*)`).on("net use", "net.exe").but(placeholder),
	find(`(?i)\bconvertto-securestring\s+(?:-asplaintext\s+|-force\s+)*(?:-string\s+)?(?:\\*"((?:[^"\\]|\\[^"])+)|'((?:[^']|'')+)|([^\s"'$(-][^\s"')]*))`).on("convertto-securestring").but(placeholder),
	find(`(?i)-asplaintext\s+(?:-force\s+)?(?:-string\s+)?(?:\\*"((?:[^"\\]|\\[^"])+)|'((?:[^']|'')+)|([^\s"'$(|)-][^\s"')]*))`).on("-asplaintext").but(placeholder),
	find(`(?i)(?:\\*"((?:[^"\\]|\\[^"])+)\\*"|'((?:[^']|'')+)')\s*\|\s*convertto-securestring`).on("convertto-securestring"),
	find(`(?i)\b(?:docker|podman|nerdctl|ctr|crictl|az|helm|oras|crane|skopeo|sshpass|ldapsearch)\b.*\s-(?:p|w)\s*["']?([^\s"'-][^\s"']*)`).on("login", "sshpass", "ldapsearch", "crictl"),
	find(`(?i)\blogin\s+\S+\s+password\s+(\S+)`).on("login"), // .netrc
	find(`(?i)\bcurl(?:\.exe)?\b.*\s(?:-u|--user|-U|--proxy-user)[\s=]*["']?[^\s"':]*:([^\s"']+)`).on("-u ", "--user", "--proxy-user").with("url"),
	// Tokens that let nodes join a cluster.
	find(`\b([a-z0-9]{6}\.[a-z0-9]{16})\b`).on("kubeadm", "bootstrap", "-token").but(letters),

	find(`(?i)sharedaccesssignature\s+(\S+)`).on("sharedaccesssignature"),

	// Keys by their beginnings, in more than the lengths that gitleaks knows.
	find(`\b((?:AKIA|ASIA)[A-Z0-9]{16})\b`).on("akia", "asia"),
	find(`\b(ya29\.[A-Za-z0-9_-]{20,})`).on("ya29."),
	find(`\b(gh[pousr]_[A-Za-z0-9]{20,})\b`).on("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
	find(`\b(github_pat_[A-Za-z0-9_]{20,})\b`).on("github_pat_"),
	find(`\b(glpat-[\w-]{20,})`).on("glpat-"),
	find(`\b(xox[abeoprs]-[\w-]{10,})`).on("xox"),
	find(`\b(AIza[\w-]{30,})`).on("aiza"),
	find(`\b(dckr_[op]at_[\w-]{20,})`).on("dckr_"),
	find(`(\$(?:2[abxy]|5|6|y|7|apr1|argon2id?)\$[./A-Za-z0-9$=,+]{20,})`).on("$2a$", "$2b$", "$2x$", "$2y$", "$5$", "$6$", "$y$", "$7$", "$apr1$", "$argon2"),
	encoded("PRIVATE KEY", "client-key-data", "kind: Config", `"kind":"Config"`),
}

// flagWords are the keywords of flags that take a secret.
var flagWords = slices.Concat([]string{"-token", "-secret", "-passw"}, secretWords, nameWords, keyWords)

// flagValue is what follows a flag's name and a blank.
const flagValue = `(?:\\*"((?:[^"\\]|\\[^"])+)|'([^']+)|([^\s"',;$(-](?:[^\s"']*[^\s"',\]])?))`

// find returns a rule with a regular expression.
func find(expression string) rule { return rule{re: lazy(expression)} }

// lazy is a regular expression that is compiled when it is used first: most
// commands redact nothing.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

func (r rule) on(keywords ...string) rule { r.keywords = keywords; return r }

func (r rule) with(also string) rule { r.also = also; return r }

func (r rule) but(unless func(secret, rest string) bool) rule { r.unless = unless; return r }

// encoded finds words that are base64 with one of texts in it, wherever in it.
func encoded(texts ...string) rule {
	var forms, lower []string
	for _, text := range texts {
		for shift := range 3 {
			// What the bits of the neighbours reach into is left away.
			form := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + text))
			form = form[(shift*8+5)/6 : (shift+len(text))*8/6]
			forms, lower = append(forms, regexp.QuoteMeta(form)), append(lower, strings.ToLower(form))
		}
	}
	return find(`([A-Za-z0-9+/_-]*(?:` + strings.Join(forms, "|") + `)[A-Za-z0-9+/_-]*={0,2})`).on(lower...)
}

var (
	// variables are names that stand for a value, of shells, templates and formats.
	variables = lazy(`^(?:\$\w+|\$\{[^}]*\}?|\$\(.*|\$env:\w+|%\w+%|%[+#0-9.-]*[a-zA-Z]|\{\{.*|<[^>]*>?|\*+|\.{3,}|x{3,}|X{3,}|-+|\(\*?[\w.]+\)(?:\(.*)?|[,;)]\s.*)$`)
	nothing   = lazy(`(?i)^\W*(?:true|false|null|nil|none|empty|unset|unknown|undefined|redacted|hidden|masked|optional|required|flags?|options?|arguments?|\(\w*\)?)\W*$`)
	onlyWord  = lazy(`^[\pL']+[.:!?)` + "`" + `]*$`)
	moreWords = lazy(`^["']?\s+[\pL(]`)
	digest    = lazy(`^@sha(?:256|512):[0-9a-f]{32}`)
	portFirst = lazy(`^[0-9]{1,5}(?:/|$)`)
	path      = lazy(`^(?:[.~]{0,2}/|[A-Za-z]:[\\/]|\\)`)
)

// placeholder reports that a value stands for another, or for none.
func placeholder(secret, _ string) bool {
	return variables().MatchString(secret) || nothing().MatchString(secret)
}

// prose also reports a word that goes on as a sentence.
func prose(secret, rest string) bool {
	return placeholder(secret, rest) || onlyWord().MatchString(secret) && moreWords().MatchString(rest)
}

// file also reports names of files.
func file(secret, rest string) bool {
	return prose(secret, rest) || path().MatchString(secret)
}

// word also reports a word alone, and numbers: what is said of tokens is more
// often that than one.
func word(secret, rest string) bool {
	return file(secret, rest) || onlyWord().MatchString(secret) && len(secret) < 20 || len(secret) < 6
}

// short reports what is too short for a token, and words.
func short(secret, rest string) bool {
	return placeholder(secret, rest) || len(secret) < 8 && onlyWord().MatchString(secret) || len(secret) < 4
}

// letters reports what has no digit.
func letters(secret, _ string) bool { return !strings.ContainsAny(secret, "0123456789") }

// port reports what is the port of a host, or the tag of an image.
func port(secret, rest string) bool {
	return placeholder(secret, rest) || portFirst().MatchString(secret) || digest().MatchString(rest)
}

//go:generate bash -c "cd ../../scripts/gitleaks && go run . >../../internal/redact/gitleaks.json"

//go:embed gitleaks.json
var gitleaks []byte

// rules are all rules, and keywordsOf finds those that a line needs. They are
// made when first needed: most commands have nothing to redact.
var rules, keywordsOf = func() (func() []rule, func() *keywords) {
	all := sync.OnceValue(func() []rule { return append(slices.Clone(ours), theirs()...) })
	return all, sync.OnceValue(func() *keywords {
		words := map[string]set{}
		add := func(word string, i int) {
			s := words[word]
			s.add(i)
			words[word] = s
		}
		for i, r := range all() {
			for _, k := range r.keywords {
				add(k, i)
			}
		}
		add("private key", privateKey)
		return newKeywords(words)
	})
}()

// theirs are gitleaks' rules (MIT license, which is in the file).
func theirs() []rule {
	var file struct {
		Rules []struct {
			Regex    string   `json:"regex"`
			Keywords []string `json:"keywords"`
			Entropy  float64  `json:"entropy"`
			Group    int      `json:"group"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(gitleaks, &file); err != nil {
		panic("gitleaks.json: " + err.Error())
	}
	var out []rule
	for _, r := range file.Rules {
		found := find(r.Regex).on(r.Keywords...)
		found.entropy, found.group = r.Entropy, r.Group
		out = append(out, found)
	}
	return out
}

// apply returns line with the secrets that the rule finds masked.
func (r *rule) apply(line string) string {
	var b strings.Builder
	done := 0
	for _, at := range r.find(line) {
		b.WriteString(line[done:at[0]])
		b.WriteString(Mask)
		done = at[1]
	}
	b.WriteString(line[done:])
	return b.String()
}

// secrets are what apply masks.
func (r *rule) secrets(line string) []string {
	var found []string
	for _, at := range r.find(line) {
		found = append(found, line[at[0]:at[1]])
	}
	return found
}

// find returns where in a line the rule finds secrets.
func (r *rule) find(line string) (found [][2]int) {
	for _, m := range r.re().FindAllStringSubmatchIndex(line, -1) {
		begin, end := r.secret(m)
		secret := line[begin:end]
		if strings.HasPrefix(secret, Mask[:len(Mask)-1]) || r.unless != nil && r.unless(secret, line[end:]) || r.entropy > 0 && entropy(secret) < r.entropy {
			continue
		}
		found = append(found, [2]int{begin, end})
	}
	return found
}

// secret is where in a match the secret is.
func (r *rule) secret(match []int) (begin, end int) {
	if r.group > 0 {
		return match[2*r.group], match[2*r.group+1]
	}
	for i := 2; i < len(match); i += 2 {
		if match[i] < match[i+1] {
			return match[i], match[i+1]
		}
	}
	return match[0], match[1]
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	counts := map[rune]float64{}
	n := 0.0
	for _, r := range s {
		counts[r]++
		n++
	}
	e := 0.0
	for _, c := range counts {
		e -= c / n * math.Log2(c/n)
	}
	return e
}

package nodeimage

import "testing"

func TestKeysAreThoseOfTheMirror(t *testing.T) {
	const sources = `Types: deb
# a comment
URIs: http://security.example.org/debian
Signed-By: /usr/share/keyrings/security.gpg

Types: deb
URIs: http://other.example.org/debian http://mirror.example.org/debian/
Suites: bookworm
Signed-By: /usr/share/keyrings/mirror.gpg
`
	for mirror, want := range map[string]string{
		"http://mirror.example.org/debian":    "/usr/share/keyrings/mirror.gpg",
		"http://security.example.org/debian/": "/usr/share/keyrings/security.gpg",
		"http://unknown.example.org/debian":   "",
	} {
		if got := signer(sources, mirror); got != want {
			t.Errorf("%s is signed by %q, want %q", mirror, got, want)
		}
	}
}

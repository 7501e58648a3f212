package redact_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// forms are secrets as logs show them, in « and », and around them what has to
// stay. All are made up. A ¦ is left away: it keeps scanners of repositories
// from taking them for real.
const forms = `
kubeadm join 10.0.0.1:6443 --token «abcdef.0123456789abcdef» --discovery-token-ca-cert-hash sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
kubeadm join 10.0.0.1:6443 --token=«abcdef.0123456789abcdef» --control-plane --certificate-key «9c1185a5c5e9fc54612808977ee8f548b2258d31bf7a6b21a0fb6b9d1a8b5f1e»
[bootstrap-token] Using token: «abcdef.0123456789abcdef»
Secret bootstrap-token-abcdef has «abcdef.0123456789abcdef» in it
kubectl --token «some-thing-secret» get pods
kubectl --token='«two words»' get pods
kubectl --server=https://127.0.0.1:6443 --username=admin --password=«hunter» get pods
Running ["kubectl" "--token" "«some-thing-secret»" "get" "pods"]
Running [kubectl, --token, «some-thing-secret», get, pods]
helm registry login r.example --username me --password «Hunter2!»
docker login -u me -p «Hunter2!» r.example
az login --service-principal -u 0b7a6a39-2c2b -p «Hunter2~x» --tenant t
sshpass -p «Hunter2!» ssh core@10.0.0.4
curl -sk -u admin:«Hunter2!» https://10.0.0.4/api
curl --user 'admin:«Hunter2!»' https://10.0.0.4/api
crictl pull --creds me:x r.example/a ; crictl login -p «Hunter2!»
{"token":"«abcd1234»","user":"me"}
body: {\"token\":\"«abcd1234»\",\"user\":\"me\"}
body: "{\\\"token\\\":\\\"«abcd1234»\\\",\\\"user\\\":\\\"me\\\"}"
body: {\"password\":\"«two words»\",\"user\":\"me\"}
{"token": "«abcd 1234 with blanks»", "user": "me"}
{"access_token":"«abcd1234»","refresh_token":"«1//04-x»","id_token":"«abc.def»","expires_in":3600}
token := "«abcd1234»"
token => '«abcd1234»',
token: «abcdefghijklmn0p»
AWS_SESSION_TOKEN=«FwoGZXIvYXdzEJr» AWS_REGION=eu-west-1
export AWS_SECRET_ACCESS_KEY="«wJalrXUtnFEMI/K7MDENG»"
aws_session_token = «FwoGZXIvYXdzEJr//////////wEaDA»
{"SecretAccessKey": "«wJalrXUtnFEMI/K7»", "SessionToken": "«FwoGZXIvYXdzEJr»", "Expiration": "2026-11-21T06:58:45Z"}
AWS key id «AKIA¦ABCDEFGHIJKLMNOP» is used
Endpoint=sb://x.servicebus.example/;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=«c2VjcmV0a2V5»
HostName=x.example;DeviceId=d;SharedAccessKey=«c2VjcmV0a2V5/+=»
Authorization: SharedAccessSignature «sr=x&sig=abc%2Bdef&se=1» ok
AccountName=x;AccountKey=«c2VjcmV0a2V5==»;EndpointSuffix=y
AZURE_CLIENT_SECRET=«abc~def» ARM_ACCESS_KEY=«c2VjcmV0»
"aadClientSecret": "«abc~d e f»", "aadClientId": "msi",
"client_secret" : "«abc~def»"
azurestorageaccountkey: «c2VjcmV0a2V5==»
https://x.blob.example/y?sv=1&sig=«abc%2Fdef»&se=2
https://storage.example/b/o?X-Goog-Expires=9&X-Goog-Signature=«0a1b2c»
https://s3.example/b/o?X-Amz-Expires=9&X-Amz-Security-Token=«FwoGZX%2F»&X-Amz-Signature=«0a1b2c»
Cookie: «session=0a1b2c; csrf=9f8e»
< Set-Cookie: «JSESSIONID=0A1B2C; Path=/; HttpOnly»
headers={"Cookie":["«session=0a1b2c»"],"Accept":["*/*"]}
X-Auth-Token: «gAAAAABk0a1b2c»
> X-Vault-Token: «0a1b2c3d4e5f»
{"X-Auth-Token":["«gAAAAABk0a1b2c»"]}
PRIVATE-TOKEN: «0a1b2c3d4e5f»
curl -H 'X-Api-Key: «0a1b2c3d4e5f»' https://10.0.0.4/api
X-Api-Key: «0a1b2c3d4e5f»
Authorization: Bearer «abc»
headers={"Authorization":["Bearer «s3cr3t-t0ken»"]}
headers={\"Authorization\":[\"Bearer «s3cr3t-t0ken»\"]}
Proxy-Authorization: Basic «dXNlcjpwYXNz»
Authorization: token «0a1b2c3d»
Authorization: AWS4-HMAC-SHA256 «Credential=AK/2026/s3/aws4_request, SignedHeaders=host, Signature=0a1b2c»
Authorization: Negotiate «YIIZ0gYGKwYBBQUC»
Sec-WebSocket-Protocol: v4.channel.k8s.io, «base64url.bearer.authorization.k8s.io.ZXlKaGJH»
got «eyJ¦hbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl_-x» for the pod
pulling from https://user:«hunter2»@registry.example/v2/
pulling from HTTPS://User:«HUNTER2»@REGISTRY.EXAMPLE/v2/
pulling from https://user:«pa/ss/word»@registry.example/v2/ now
pulling from https://user:«p@ss:word»@registry.example/v2/ now
postgres://app:«h%2Fnter»@db.example:5432/x?sslmode=off
redis://:«hunter2»@10.0.0.4:6379/0
HTTP_PROXY=http://corp\me:«hunter2»@proxy.example:3128
git clone https://«0a1b2c3d4e5f0a1b2c3d4e5f»@git.example/o/r.git
https://x-access-token:«ghs_¦0123456789abcdefghijABCDEFGHIJ»@git.example/o/r
net user Administrator «P@ssw0rd!» /add
net.exe user "Some One" "«P@ss w0rd!»" /add /y
NET USE Z: \\srv\share «P@ssw0rd!» /user:corp\me
net use \\srv\share /user:corp\me «P@ssw0rd!»
cmdkey /add:srv /user:me /pass:«P@ssw0rd!»
schtasks /create /ru me /rp:«P@ssw0rd!» /tn x
$p = ConvertTo-SecureString "«P@ss w0rd»" -AsPlainText -Force
$p = ConvertTo-SecureString -String '«P@ss w0rd»' -AsPlainText -Force
ConvertTo-SecureString -AsPlainText -Force -String «P@ssw0rd»
ConvertTo-SecureString «P@ssw0rd» -AsPlainText -Force
"«P@ssw0rd»" | ConvertTo-SecureString -AsPlainText -Force
Add-Computer -Password «P@ssw0rd» -Domain corp.example
New-LocalUser -Name me -Password "«P@ss w0rd»"
<Password><Value>«P@ssw0rd»</Value><PlainText>true</PlainText></Password>
<AdministratorPassword>«P@ssw0rd»</AdministratorPassword>
password: "«correct horse battery»"
password: '«correct horse battery»'
password = "«quo\"ted»" # as in TOML
  password: «h1dden»
  password: «a,b;c"d}e»
DB_PASSWORD=«h1dden» DB_USER=me
db_pass: «h1dden»
MYSQL_ROOT_PASSWORD: «h1dden»
users: [{user: {username: a, password: "«h1dden»"}}]
Server=db;User Id=me;Password=«correct horse»;Encrypt=true
Server=db;Uid=me;Pwd=«h1dden»;Encrypt=true
machine r.example login me password «h1dden»
//registry.example/:_authToken=«0a1b2c3d-4e5f»
//registry.example/:_auth = «dXNlcjpwYXNz»
{"auths":{"r.example":{"auth":"«dXNlcjpwYXNzd29yZA==»"}}}
{\"auths\":{\"r.example\":{\"auth\":\"«dXNlcjpwYXNzd29yZA==»\"}}}
  .dockerconfigjson: «eyJhdXRocyI6e319»
    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==»
{"name":"DB_PASSWORD","value":"«h1dden»"},{"name":"HOST","value":"db"}
EnvVar{Name:DB_PASSWORD,Value:«h1dden»,ValueFrom:nil,},EnvVar{Name:HOST,Value:db,}
Password: (string) (len=7) "«h1dden»"
private_key: «0a1b2c3d4e5f»
root:«$6$abcdefgh$0123456789abcdefghijklmnopqrstuvwxyz»:19000:0:99999:7:::
glab auth: «glpat-¦0123456789abcdefghij» is used
slack: «xoxb-¦123456789012-123456789012-abcdefABCDEFabcdefABCDEF» is used
https://maps.example/api?key=«AIza¦SyA0123456789abcdefghijklmnopqrstuv»&q=x
«AIza¦SyA0123456789abcdefghijklmnopqrstuv», then
«ya29.¦a0AfH6SMBxyz0123456789abc» ok
«ghp_¦0123456789abcdefghijABCDEFGHIJ» ok
«github_pat_¦11ABCDEFG0123456789_abcdef» ok
«dckr_pat_¦0123456789abcdefghijABCDEFG» ok
npm: «npm_¦a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8», ok
pypi: «hvs.¦CAESIJlU02LQZq9e1v2b3n4m5A6S7D8F9G0HjKlZxCvBnM1q2W3e4R5t6Y7u8I9o0PaSdFgHjKlZxCvBnMqWeRtYuIoP» ok
`

// plain is what is none.
const plain = `
Password: must be at least eight characters long
Password: (will not be shown)
Enter password:
password policy: unchanged
The password is wrong; passwordless=true
passwd: files systemd
error: password: cannot be blank
--token must be given
use the --token flag, or --token-file=/var/run/token
use --password-stdin; "id-token: write" and id-token: write, which
expected "service account token: ", and got "x"
password: --- REDACTED ---
use --token=<token> or --token=$TOKEN or --token "$(cat token)"
password: $PASSWORD password=${PASSWORD} password=%PASSWORD% password: {{ .Values.password }} password=%s
ConvertTo-SecureString $password -AsPlainText -Force
"password": null, "token": "", "token": null, token=nil
automountServiceAccountToken: false
serviceAccountToken: {audience: api, expirationSeconds: 3600}
"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}
"tokenExpirationSeconds":3607,"path":"token","readOnly":true
token: valid
the token: it expires; tokens: 2; token=3
mount path: /var/run/secrets/kubernetes.io/serviceaccount/token: not found
"Token has been rotated" pod="default/token-rotation" secret="default/some-secret-name"
secretName: some-secret-name
secretKeyRef: {name: some, key: password}
volumes: [{name: s, secret: {secretName: some-secret-name}}]
imagePullSecrets: [{name: registry-credentials-0a1b2c3d}]
--tls-private-key-file=/etc/kubernetes/pki/apiserver.key --service-account-key-file=/etc/kubernetes/pki/sa.pub
private_key: /etc/ssl/private/key.pem
PWD=/root/somewhere OLDPWD=/root
key=value key: password-reset
Authorization: RBAC, Node
Authorization mode: Bearer
Cookie: monster
the cookie: a small one
image: docker-pullable://busybox:1.36@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
image: containerd://busybox:1.36@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
image: busybox:1.36@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
image: registry.example:5000/busybox:1.36@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
oci://registry.example:5000/a/b@sha256:7e8bdd271312fd25fc5ff5a8f04727be84044eb3d7d8d03611972a6752e2e11e
http://10.0.0.1:8080/a@b and https://example.com/@me and ssh://git@github.com:22/x
git@github.com:kubernetes/kubernetes.git http://[fd00::1]:8080/a@b
STEP: Creating a client at https://127.0.0.1:6443 - k8s.io/kubernetes/test/e2e/framework/framework.go:210 @ 11/21/26 06:58:45.1
net user
net user Administrator /active:no
net user Administrator *
the net user accounts are listed below
net use Z: \\srv\share /persistent:no
curl -u admin https://10.0.0.4/api
-----BEGIN CERTIFICATE-----
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJlU02LQZq9e1v2b3n4m5A6S7D8F9G0HjKlZxCvBn me
resourceVersion: "123456" uid: 0b7a6a39-2c2b-4f8d-8a43-0d4d0b2d1c2f
certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ
caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ
continue: eyJ2IjoibWV0YS5rOHMuaW8vdjEi
kubeadm join needs a server.kubernetesdefaul
pod token-rotation-abcdef.projectedvolumes is running
[It] [sig-auth] ServiceAccounts should support InClusterConfig with token rotation [Slow]
[sig-cli] Kubectl client kubectl create secret --from-literal and with a password file
`

var marked = regexp.MustCompile(`«[^»]*»`)

func TestEveryFormIsMaskedAndNoMore(t *testing.T) {
	n := 0
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(forms, "¦", "")), "\n") {
		n++
		text, want := strings.NewReplacer("«", "", "»", "").Replace(line), marked.ReplaceAllString(line, redact.Mask)
		if got := redact.String(text); got != want {
			t.Errorf("%s\nbecame %s\nand not %s", text, got, want)
		} else if again := redact.String(got); again != got {
			t.Errorf("%s\nbecame %s\nthe second time", got, again)
		}
		// Behind the prefix of a log.
		const prefix = `I1121 06:58:45.123456   42 dump.go:53] `
		for _, secret := range marked.FindAllString(line, -1) {
			secret = strings.Trim(secret, "«»")
			if got := redact.String(prefix + text); strings.Contains(got, secret) && !strings.ContainsAny(secret, `,;"}`) {
				t.Errorf("behind a prefix: %s", got)
			}
		}
	}
	if n < 75 {
		t.Errorf("%d forms", n)
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for line := range strings.SplitSeq(strings.TrimSpace(plain), "\n") {
		if got := redact.String(line); got != line {
			t.Errorf("%s\nbecame %s", line, got)
		}
	}
}

// The keywords only save time.
func TestKeywordsLeadToEveryRule(t *testing.T) {
	if n := redact.WithoutKeywords(); n > 0 {
		t.Errorf("%d rules have no keyword", n)
	}
	text := strings.NewReplacer("¦", "", "«", "", "»", "").Replace(forms) + plain
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if got, want := redact.String(line), redact.EveryRule(line); got != want {
			t.Errorf("%s\nbecame %s\nand with every rule %s", line, got, want)
		}
	}
}

func TestBase64OfKeysAndKubeconfigs(t *testing.T) {
	key := "-----BEGIN EC " + "PRIVATE KEY-----\nMHcCAQEEIJ0a1b2c3d4e5f\n-----END EC " + "PRIVATE KEY-----\n"
	kubeconfig := "apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user: {token: abcdefgh}\n"
	for what, text := range map[string]string{
		"key": key, "key after something": "x" + key, "key after more": "xy" + key,
		"kubeconfig": kubeconfig, "kubeconfig as JSON": `{"kind":"Config","users":[{"user":{"token":"abcdefgh"}}]}`,
	} {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			word := e.EncodeToString([]byte(text))
			if got, want := redact.String("data: "+word+" and so on"), "data: "+redact.Mask+" and so on"; got != want {
				t.Errorf("%s: %q", what, got)
			}
		}
	}
	public := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMHcCAQEEIJ0a1b2c3d4e5f\n-----END CERTIFICATE-----\n"))
	if got := redact.String("data: " + public); got != "data: "+public {
		t.Errorf("a certificate: %q", got)
	}
}

func TestTheLastLinesOfAKeyBehindAPrefix(t *testing.T) {
	for _, prefix := range []string{"I1121 06:58:45.%d 42 x.go:5] ", "2026-11-21T06:58:45.%dZ stdout F ", "Nov 21 06:58:%d: INFO: ", "  | "} {
		var text strings.Builder
		for i, line := range []string{begin, base64Line, base64Line[:24], "ab==", end, "after it all"} {
			text.WriteString(strings.ReplaceAll(prefix, "%d", strings.Repeat("7", i%3+1)) + line + "\n")
		}
		got := redact.String(text.String())
		if strings.Contains(got, base64Line[:24]) || strings.Contains(got, "ab==") || !strings.HasSuffix(got, "after it all\n") || got != written(t, text.String(), 5) {
			t.Errorf("%q", got)
		}
	}
}

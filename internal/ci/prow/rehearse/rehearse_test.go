package rehearse

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/entrypoint"
	"sigs.k8s.io/prow/pkg/initupload"
	"sigs.k8s.io/prow/pkg/sidecar"
)

func TestPathsOfThePodAreTranslated(t *testing.T) {
	m := newMounts([]mount{{"/logs", "/w/logs"}, {"/etc/readiness", "/w/kc"}, {"/etc/readiness/more/", "/w/more"}, {"/tools", "/w/tools"}})
	for text, want := range map[string]string{
		"/logs":                              "/w/logs",
		"/logs/artifacts":                    "/w/logs/artifacts",
		"--kubeconfig=/etc/readiness/config": "--kubeconfig=/w/kc/config",
		"/etc/readiness/more/x":              "/w/more/x",
		"/etc/readiness-2/config":            "/etc/readiness-2/config",
		"/etc/readiness2":                    "/etc/readiness2",
		"/var/logs":                          "/var/logs",
		"./logs":                             "./logs",
		"$HOME/logs":                         "$HOME/logs",
		"${HOME}/logs $(pwd)/logs":           "${HOME}/logs $(pwd)/logs",
		"https://example.com/logs":           "https://example.com/logs",
		"file:///logs/x":                     "file:///logs/x",
		"cp /logs/a '/tools/b' \"/logs\"; x": "cp /w/logs/a '/w/tools/b' \"/w/logs\"; x",
		"a=/logs:/tools,/logs":               "a=/w/logs:/w/tools,/w/logs",
		"/logsé":                             "/logsé",
		"":                                   "",
	} {
		if got := m.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	options, err := m.options(`{"timeout":7200000000000,"artifact_dir":"/logs/artifacts","args":["sh","-c","ls /tools && echo <x>"],"log":"/logs/clone.json","n":{"log":1}}`, "log")
	if want := `{"args":["sh","-c","ls /w/tools && echo <x>"],"artifact_dir":"/w/logs/artifacts","n":{},"timeout":7200000000000}`; err != nil || options != want {
		t.Errorf("options %s: %v", options, err)
	}
}

func load(t *testing.T) *jobFiles {
	t.Helper()
	c, err := loadJobs("", filepath.Join("testdata", "jobs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prowJob makes a ProwJob of a job in testdata.
func prowJob(t *testing.T, name string) *prowapi.ProwJob {
	t.Helper()
	job, err := load(t).Find(name, "", "main")
	if err != nil {
		t.Fatal(err)
	}
	var refs Refs
	switch job.Type {
	case prowapi.PresubmitJob:
		refs.Text = "main:aaaa,7:bbbb"
	case prowapi.PostsubmitJob:
		refs.Text = "main:aaaa"
	}
	pj, err := job.ProwJob(t.Context(), refs, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return pj
}

func options() Options {
	return Options{
		Work: "/w", Self: "/self", Bucket: "file:///bucket", Dir: "/copy", Kubeconfig: "/kc",
		Host: []string{"PATH=/bin", "HOME=/home/me", "KUBECONFIG=/home/me/.kube/config", "AWS_SECRET_ACCESS_KEY=x", "GITHUB_TOKEN=x"},
	}
}

func TestEveryTypeOfJob(t *testing.T) {
	for name, want := range map[string]struct{ build, pulls string }{
		"pull-readiness": {"pr-logs/pull/example_project/7/pull-readiness/", "main:aaaa,7:bbbb"},
		"post-readiness": {"logs/post-readiness/", "main:aaaa"},
		"ci-readiness":   {"logs/ci-readiness/", ""},
	} {
		pj := prowJob(t, name)
		p, err := Make(pj, options())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Build != want.build+p.BuildID || len(p.BuildID) != 19 || p.Env()["PULL_REFS"] != want.pulls || p.Env()["BUILD_ID"] != p.BuildID {
			t.Errorf("%s: build %s, environment %v", name, p.Build, p.Env())
		}
		if got := p.Commands(); len(got) != 1 || !strings.HasPrefix(got[0], "op-readiness run") {
			t.Errorf("%s runs %q", name, got)
		}
		if pj.Spec.PodSpec.Containers[0].Name != "" || pj.Spec.DecorationConfig.GCSConfiguration.Bucket != "rehearsal" {
			t.Errorf("%s: the ProwJob was changed", name)
		}
	}
}

// The job gets what Prow gives it and what programs need, and neither secrets of
// this machine nor the cluster that is configured here.
func TestTheEnvironmentOfTheJob(t *testing.T) {
	o := options()
	o.Env = map[string]string{"EXTRA": "1"}
	p, err := Make(prowJob(t, "pull-readiness"), o)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, v := range p.jobs[0].env {
		key, value, _ := strings.Cut(v, "=")
		env[key] = value
	}
	for key, want := range map[string]string{
		"PATH": "/w/bin:/bin", "HOME": "/home/me", "KUBECONFIG": "/kc", "EXTRA": "1", "CI": "true", "ARTIFACTS": "/w/volumes/logs/artifacts",
	} {
		if env[key] != want {
			t.Errorf("$%s is %q, want %q", key, env[key], want)
		}
	}
	for _, key := range []string{"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"} {
		if _, ok := env[key]; ok {
			t.Errorf("the job has $%s; variables %q", key, slices.Sorted(maps.Keys(env)))
		}
	}
	around := entrypoint.NewOptions()
	if err := around.LoadConfig(env[entrypoint.JSONConfigEnvVar]); err != nil {
		t.Fatal(err)
	}
	if around.ArtifactDir != "/w/volumes/logs/artifacts" || around.Timeout != p.Timeout || around.GracePeriod != p.Grace || around.MarkerFile != p.markers[0] {
		t.Errorf("entrypoint has %+v, %+v", around, around.Options)
	}
	for _, c := range append(slices.Clone(p.initial), p.sidecar) {
		for _, v := range c.env {
			switch key, value, _ := strings.Cut(v, "="); key {
			case initupload.JSONConfigEnvVar:
				u := initupload.NewOptions()
				if err := u.LoadConfig(value); err != nil || u.Log != "" || u.Bucket != "file:///bucket" || u.Validate() != nil {
					t.Errorf("initupload has %+v: %v", u.Options, err)
				}
			case sidecar.JSONConfigEnvVar:
				u := sidecar.NewOptions()
				if err := u.LoadConfig(value); err != nil || u.Validate() != nil || u.Entries[0].MetadataFile != "/w/volumes/logs/artifacts/metadata.json" || u.Entries[0].MarkerFile != p.markers[0] {
					t.Errorf("sidecar has %+v: %v", u.Entries, err)
				}
			}
		}
	}
}

// Without a cluster the job has none, and not the one of this machine.
func TestAJobWithoutAClusterFindsNone(t *testing.T) {
	o := options()
	o.Kubeconfig = ""
	p, err := Make(prowJob(t, "ci-readiness"), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.jobs[0].env, "KUBECONFIG=/w/no-kubeconfig") {
		t.Errorf("environment %q", p.jobs[0].env)
	}
}

func TestNotesSayWhatIsOtherThanInAPod(t *testing.T) {
	p, err := Make(prowJob(t, "ci-readiness"), options())
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"the image registry.example/windows-op-readiness:v1 is not used", "/copy stands for example/project", "not there: example/other"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if dir := p.jobs[0].dir; !strings.HasSuffix(dir, "src/github.com/example/project") || !slices.Contains(p.volumes, volume{path: dir, link: "/copy"}) {
		t.Errorf("it starts in %s; volumes %v", dir, p.volumes)
	}
}

func TestARefusalSaysEverythingAndItsFix(t *testing.T) {
	pj := prowJob(t, "pull-privileged")
	c := &pj.Spec.PodSpec.Containers[0]
	c.Args = append(c.Args, "op-readiness", "run", "--retries=1")
	pj.Spec.PodSpec.InitContainers = []corev1.Container{{Name: "before", Image: "busybox"}}
	_, err := Make(pj, options())
	var refused *RefusedError
	if !errors.As(err, &refused) || len(refused.Reasons) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"container test is privileged", "--command 'op-readiness run --retries=1'", "init container before runs in the image busybox"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestASecretIsAskedFor(t *testing.T) {
	o := options()
	o.Kubeconfig = ""
	_, err := Make(prowJob(t, "pull-readiness"), o)
	if err == nil || !strings.Contains(err.Error(), "volume kubeconfig is the Secret cluster, mounted at /etc/readiness: give a folder for it with --volume kubeconfig=DIR") {
		t.Errorf("got %v", err)
	}
	o.Volumes = map[string]string{"kubeconfig": "/given"}
	p, err := Make(prowJob(t, "pull-readiness"), o)
	if err != nil || !slices.Contains(p.volumes, volume{path: "/w/volumes/kubeconfig", link: "/given"}) {
		t.Errorf("got %v", err)
	}
}

func TestAJobOfAnotherRepositoryIsNotTaken(t *testing.T) {
	if _, err := load(t).Find("pull-readiness", "example/other", ""); !errors.Is(err, errNoJob) || !strings.Contains(err.Error(), "of example/project, a presubmit on main") {
		t.Errorf("got %v", err)
	}
}

package jobs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/entrypoint"
	"sigs.k8s.io/prow/pkg/kube"
	"sigs.k8s.io/prow/pkg/pjutil"
	"sigs.k8s.io/prow/pkg/pod-utils/decorate"
	"sigs.k8s.io/prow/pkg/sidecar"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
	"github.com/windows-op-readiness/windows-op-readiness/jobs"
	"github.com/windows-op-readiness/windows-op-readiness/test/kwoktest"
)

// TestPods_are_taken_by_an_API_server starts every job, has Prow decorate it, as
// its controller does, and creates the pod on a real API server.
func TestPods_are_taken_by_an_API_server(t *testing.T) {
	client := kwoktest.Client(t, kwoktest.Up(t))
	for _, name := range []string{"azure", "tester", "gcb-builder"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range configurations(t) {
		for _, pod := range podsOf(t, name, c) {
			job := pod.Labels[kube.ProwJobAnnotation]
			created, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
			if err != nil {
				t.Errorf("%s: %s: the API server refuses its pod: %v", name, job, err)
				continue
			}
			if qos := created.Status.QOSClass; qos == corev1.PodQOSBestEffort {
				t.Errorf("%s: %s: its pod is %s", name, job, qos)
			}
			var containers []string
			for _, container := range created.Spec.Containers {
				containers = append(containers, container.Name)
			}
			if !slices.Contains(containers, "test") || !slices.Contains(containers, "sidecar") {
				t.Errorf("%s: %s: its containers are %v", name, job, containers)
			}
		}
	}
}

// TestProwJobs_are_taken_by_their_definition creates the ProwJob of every job on
// a real API server, which has the CustomResourceDefinition of
// kubernetes/test-infra and refuses fields that it does not know.
func TestProwJobs_are_taken_by_their_definition(t *testing.T) {
	made := kwoktest.Up(t)
	rest, err := clientcmd.BuildConfigFromFlags("", made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(testInfra(t), "config/prow/cluster/prowjob-crd/prowjob_customresourcedefinition.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &definition.Object); err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	prowJobs := client.Resource(prowapi.SchemeGroupVersion.WithResource("prowjobs")).Namespace("default")
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := prowJobs.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the API server does not serve ProwJobs: %v", err)
	}
	create := func(pj *prowapi.ProwJob) error {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pj)
		if err != nil {
			t.Fatal(err)
		}
		_, err = prowJobs.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	for name, c := range configurations(t) {
		for _, pj := range prowJobsOf(t, c) {
			if err := create(&pj); err != nil {
				t.Errorf("%s: %s: the API server refuses its ProwJob: %v", name, pj.Spec.Job, err)
			}
		}
	}
	wrong := prowJobsOf(t, load(t, "../op-readiness.yaml"))[0]
	wrong.Name, wrong.Spec.Type = "wrong", "nightly"
	if err := create(&wrong); err == nil {
		t.Error("a ProwJob of an unknown type is taken")
	}
}

// podsOf are the pods that Prow makes of all jobs of a configuration.
func podsOf(t *testing.T, name string, c *config.Config) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	for _, pj := range prowJobsOf(t, c) {
		pod, err := decorate.ProwJobToPod(pj)
		if err != nil {
			t.Errorf("%s: %s: Prow cannot make a pod of it: %v", name, pj.Spec.Job, err)
			continue
		}
		pod.Namespace = ""
		pods = append(pods, pod)
	}
	return pods
}

// prowJobsOf are the ProwJobs that Prow makes of all jobs of a configuration.
func prowJobsOf(t *testing.T, c *config.Config) []prowapi.ProwJob {
	t.Helper()
	cfg := prowOf(t, c).load(t)
	refs := prowapi.Refs{Org: c.Org(), Repo: c.Repo(), BaseRef: "main", BaseSHA: "base", Pulls: []prowapi.Pull{{Number: 7, SHA: "head", Author: "member"}}}
	var specs []prowapi.ProwJobSpec
	for _, j := range cfg.AllStaticPresubmits(nil) {
		specs = append(specs, pjutil.PresubmitSpec(j, refs))
	}
	for _, j := range cfg.AllStaticPostsubmits(nil) {
		merged := refs
		merged.Pulls = nil
		specs = append(specs, pjutil.PostsubmitSpec(j, merged))
	}
	for _, j := range cfg.AllPeriodics() {
		specs = append(specs, pjutil.PeriodicSpec(j))
	}
	var all []prowapi.ProwJob
	for _, spec := range specs {
		pj := pjutil.NewProwJob(spec, nil, nil)
		pj.Status.BuildID = "1836000000000000017"
		all = append(all, pj)
	}
	return all
}

// TestAbortedJobs_are_uploaded_once: sidecar waits for the results that the
// stopped run writes, and the kubelet leaves time for the upload.
func TestAbortedJobs_are_uploaded_once(t *testing.T) {
	for name, c := range configurations(t) {
		for _, pod := range podsOf(t, name, c) {
			var around entrypoint.Options
			var upload sidecar.Options
			for _, container := range pod.Spec.Containers {
				for _, v := range container.Env {
					var err error
					switch v.Name {
					case entrypoint.JSONConfigEnvVar:
						err = around.LoadConfig(v.Value)
					case sidecar.JSONConfigEnvVar:
						err = upload.LoadConfig(v.Value)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			job := pod.Labels[kube.ProwJobAnnotation]
			if tests := pod.Labels[kube.ProwJobTypeLabel] != string(prowapi.PostsubmitJob); upload.IgnoreInterrupts != tests {
				t.Errorf("%s: %s: sidecar waits for its end: %t", name, job, upload.IgnoreInterrupts)
			}
			if seconds := pod.Spec.TerminationGracePeriodSeconds; seconds == nil || float64(*seconds) < around.GracePeriod.Seconds()+60 {
				t.Errorf("%s: %s: of its %v seconds nothing is left for the upload after %s of grace", name, job, seconds, around.GracePeriod)
			}
		}
	}
}

// TestScripts runs the scripts of all jobs of profile capz with programs that
// only note how they are called, as run-capz-e2e.sh calls them.
func TestScripts(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil || goruntime.GOOS == "windows" {
		t.Skip("no bash as the scripts' image has it")
	}
	for name, c := range configurations(t) {
		if c.Prow.Profile != "capz" {
			continue
		}
		made, err := jobs.Make(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range made.Periodics {
			ofScript(t, bash, name, j.Name, j.Spec.Containers[0])
		}
		for _, of := range made.PresubmitsStatic {
			for _, j := range of {
				ofScript(t, bash, name, j.Name, j.Spec.Containers[0])
			}
		}
	}
}

// fake is a program that notes its name and arguments, and makes the file that
// -o and --output name. tar makes what it would unpack; what is built exits with
// 3, so that it shows whether that comes out.
const fake = `#!/bin/bash
echo "$(basename "$0") $*" >>"$LOG"
while [ $# -gt 1 ]; do
	case "$1" in
	-o | --output) printf '#!/bin/bash\necho "built $*" >>"$LOG"\nexit 3\n' >"$2"; chmod +x "$2" ;;
	--strip-components=3) printf '#!/bin/bash\n' >"$BIN/e2e.test"; chmod +x "$BIN/e2e.test" ;;
	-C) BIN=$2 ;;
	esac
	shift
done
`

func ofScript(t *testing.T, bash, configuration, job string, container corev1.Container) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go", "curl", "tar", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(dir, "log")
	args := slices.Concat(container.Command, container.Args)
	if i := slices.Index(args, "bash"); i >= 0 {
		args = args[i:]
	}
	if len(args) < 5 || args[0] != "bash" || args[1] != "-c" || args[3] != "op-readiness" {
		t.Fatalf("%s: %s runs %q", configuration, job, args)
	}
	cmd := exec.CommandContext(t.Context(), bash, args[1:]...)
	cmd.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "LOG=" + log, "TMPDIR=" + dir, "GOPATH=/go",
		"CI_VERSION=v1.37.0-alpha.0.1+0123456789abcd", "AZURE_STORAGE_ACCOUNT=account", "KUBE_GIT_VERSION=v1.37.0-pr",
	}
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("%s: %s: exit code %d, want that of op-readiness, 3:\n%s", configuration, job, code, out)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	want := "built " + strings.Join(args[4:], " ")
	last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
	if !strings.HasPrefix(last, want) {
		t.Errorf("%s: %s: the last that it runs is\n%swant\n%s", configuration, job, last, want)
	}
	simulated := strings.Contains(want, "--cluster=kwok")
	if early := strings.Contains(last, " --before-timeout="); early == simulated {
		t.Errorf("%s: %s: it leaves time to remove the cluster: %v", configuration, job, early)
	}
	if fetched := strings.Contains(text, "curl "); fetched == simulated || fetched != strings.Contains(last, "--e2e-binary="+dir) {
		t.Errorf("%s: %s: e2e.test is not fetched just where it is used:\n%s", configuration, job, text)
	}
	if strings.Contains(want, "hypervisor") != strings.Contains(text, "kubectl apply") {
		t.Errorf("%s: %s: the runtime class of Hyper-V is not made just where it is used:\n%s", configuration, job, text)
	}
}

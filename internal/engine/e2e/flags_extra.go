package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CheckExtra returns an error when an argument may not be passed on to e2e.test.
// Each is one flag with its value, as --flag=value, of those that change neither
// which cluster and which tests there are, nor what is reported, nor harm the
// cluster.
func CheckExtra(args []string) error {
	for _, arg := range args {
		name, ok := flagOf(arg)
		if !ok {
			return fmt.Errorf("%q is not a flag of e2e.test with its value: write it as --flag=value", arg)
		}
		switch flag := classOf(name); {
		case flag == nil:
			return fmt.Errorf("%q: op-readiness knows no flag --%s of e2e.test that may be passed on: leave it out; these may: %s", arg, name, strings.Join(allowedFlags(), ", "))
		case flag.why != "":
			return fmt.Errorf("%q may not be passed on: %s: %s", arg, flag.why, flag.fix)
		}
	}
	return nil
}

// CheckOwn is CheckExtra for op-readiness.test: of its flags, those that begin with
// --readiness. may be passed on.
func CheckOwn(args []string) error {
	for _, arg := range args {
		name, ok := flagOf(arg)
		if !ok {
			return fmt.Errorf("%q is not a flag of op-readiness.test with its value: write it as --flag=value", arg)
		}
		of, known := ownFlags[name]
		if !known {
			return fmt.Errorf("%q may not be passed on to op-readiness.test; these may: --%s", arg, strings.Join(slices.Sorted(maps.Keys(ownFlags)), ", --"))
		}
		_, value, _ := strings.Cut(arg, "=")
		if !of.takes(value) {
			return fmt.Errorf("%q: use %s", arg, of.what)
		}
	}
	return nil
}

// ownFlags are the flags of op-readiness.test that may be passed on, as suite/flags_test.go
// has them.
var ownFlags = map[string]struct {
	what  string
	takes func(value string) bool
}{
	"readiness.shorten": {"a number from 1 to 100", func(value string) bool {
		n, err := strconv.ParseFloat(value, 64)
		return err == nil && n >= 1 && n <= 100
	}},
	"readiness.wait-at-most": {"a duration such as 30s, or 0", func(value string) bool {
		d, err := time.ParseDuration(value)
		return err == nil && d >= 0
	}},
	"readiness.target-os": {"windows or linux", func(value string) bool { return value == "windows" || value == "linux" }},
}

// flagOf returns the name of the flag that an argument sets. Without a value of
// its own, a flag would take the argument after it for one.
func flagOf(arg string) (name string, ok bool) {
	name, ok = strings.CutPrefix(arg, "-")
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return name, ok && name != "" && !strings.HasPrefix(name, "-") && !strings.ContainsAny(name, " \t\n")
}

// flagClass is what is decided of some flags of e2e.test.
type flagClass struct {
	names string // ends with * for all that begin so
	// why says why they may not be passed on; "" where they may.
	why string
	fix string
}

const (
	leaveOut = "leave it out"
	ownFlag  = "op-readiness sets it itself"
	useOwn   = "use op-readiness's own flag "
)

// flagClasses are all flags of e2e.test. What is not here may not be passed on.
var flagClasses = []flagClass{
	// What is waited for before the first test, and how.
	{names: "prepull-images minStartupPods system-pods-startup-timeout system-daemonsets-startup-timeout node-schedulable-timeout e2e-verify-service-account"},
	// What is said of tests that fail, and of the cluster beside them.
	{names: "gomega-max-length dump-logs-on-failure max-nodes-to-gather-from gather-resource-usage gather-logs-sizes gather-metrics-at-teardown gather-suite-metrics-at-teardown include-cluster-autoscaler output-print-type systemd-services dump-systemd-journal v vmodule log-flush-frequency"},
	// What the nodes are like.
	{names: "kubelet-root-dir volume-dir container-runtime-endpoint container-runtime-process-name container-runtime-pid-file image-service-endpoint node-os-arch master-os-distro"},
	// How the API server is spoken to, and with what some tests pull images.
	{names: "kube-api-content-type docker-config-file snapshot-controller-pod-name snapshot-controller-http-port"},
	// What the e2e framework's providers need.
	{names: "cloud-config-file cluster-ip-range cluster-tag gce-multimaster gce-multizone gce-project gce-region gce-zone gce-zones gke-cluster kube-master master-tag network node-instance-group node-tag prefix tooling"},

	{names: "kubeconfig", why: ownFlag, fix: useOwn + "--kubeconfig"},
	{names: "context", why: ownFlag, fix: useOwn + "--context"},
	{names: "provider", why: ownFlag, fix: useOwn + "--provider"},
	{names: "kubectl-path", why: ownFlag, fix: useOwn + "--kubectl"},
	{names: "dns-domain", why: ownFlag, fix: useOwn + "--dns-domain"},
	{names: "non-blocking-taints", why: ownFlag, fix: useOwn + "--non-blocking-taints"},
	{names: "allowed-not-ready-nodes", why: ownFlag, fix: useOwn + "--allowed-not-ready-nodes"},
	{names: "e2e-docker-config-file", why: ownFlag, fix: useOwn + "--e2e-docker-config-file"},
	{names: "kube-test-repo-list", why: ownFlag, fix: useOwn + "--kube-test-repo-list"},
	{names: "node-os-distro disable-log-dump", why: ownFlag, fix: leaveOut},
	{names: "ginkgo.*", why: "op-readiness itself selects the tests and has them reported", fix: useOwn + "--case, --category or --label to select tests, or leave it out"},
	{names: "version list-conformance-tests list-images list-labels list-tests", why: "e2e.test would list something and run no test", fix: "see op-readiness e2e list, or leave it out"},

	{names: "host cert-dir kubemark-external-kubeconfig", why: "it sends tests to another API server, or as another user", fix: useOwn + "--kubeconfig and --context"},
	{names: "clean-start", why: "it deletes all namespaces of the cluster but the system's", fix: "remove what earlier runs left yourself"},
	{names: "delete-namespace delete-namespace-on-failure", why: "what one test leaves changes the tests after it, and no namespace of it would be named in which its pods are looked for", fix: "see logs/ in the results for what failed, or run the one test with e2e.test itself"},
	{names: "etcd-upgrade-storage etcd-upgrade-version gce-upgrade-script upgrade-image upgrade-target", why: "it is for tests that replace the cluster's version", fix: leaveOut},
	{names: "gce-api-endpoint", why: "it sends the cloud's credentials to another address", fix: leaveOut},
	{names: "num-nodes", why: "the tests would take the cluster for smaller or larger than it is, and nodes that are not ready for enough", fix: leaveOut + ": e2e.test counts the nodes"},
	{names: "enabled-volume-drivers storage.migratedPlugins storage.testdriver instrumentation.logging.soak.scale instrumentation.logging.soak.timeBetweenWaves logcheck-data-races logcheck-namespaces-regexp logcheck-nodes-regexp", why: "it changes which tests there are, or what they check", fix: leaveOut},
	{names: "repo-root", why: "the files that tests use are those in e2e.test", fix: leaveOut},
	{names: "report-complete-ginkgo report-complete-junit report-dir report-prefix spec-dump progress-report-url e2e-output-dir logexporter-gcs-path", why: "reports are op-readiness's to write", fix: "see the results folder (--report-dir)"},
	{names: "readiness.*", why: "it is a flag of op-readiness.test", fix: useOwn + "--suite-arg"},
	{names: "test.*", why: "it is for Go's test runner, which e2e.test uses for one test only, the whole suite", fix: leaveOut},
	{names: "allow_dynamic_housekeeping application_metrics_count_limit boot_id_file container_hints containerd containerd-namespace containerd_env_metadata_whitelist crio_client_timeout disable_root_cgroup_stats docker_only enable_load_reader event_storage_age_limit event_storage_event_limit global_housekeeping_interval housekeeping_interval log_cadvisor_usage machine_id_file max_housekeeping_interval referenced_reset_interval storage_driver_* update_machine_info_interval", why: "it belongs to a library, and does nothing in e2e.test", fix: leaveOut},
}

// classOf returns what is decided of a flag; nil where nothing is.
func classOf(name string) *flagClass {
	for i := range flagClasses {
		for known := range strings.FieldsSeq(flagClasses[i].names) {
			beginning, all := strings.CutSuffix(known, "*")
			if known == name || all && strings.HasPrefix(name, beginning) {
				return &flagClasses[i]
			}
		}
	}
	return nil
}

// allowedFlags returns those that may be passed on, with dashes.
func allowedFlags() []string {
	var names []string
	for _, class := range flagClasses {
		if class.why == "" {
			for name := range strings.FieldsSeq(class.names) {
				names = append(names, "--"+name)
			}
		}
	}
	return names
}

package rehearse

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	"sigs.k8s.io/prow/pkg/entrypoint"
	"sigs.k8s.io/prow/pkg/gcsupload"
	"sigs.k8s.io/prow/pkg/initupload"
	"sigs.k8s.io/prow/pkg/pod-utils/decorate"
	"sigs.k8s.io/prow/pkg/pod-utils/downwardapi"
	"sigs.k8s.io/prow/pkg/pod-utils/gcs"
	"sigs.k8s.io/prow/pkg/sidecar"
)

// tool is the name by which jobs call this program.
const tool = "op-readiness"

// Options say how a job is rehearsed.
type Options struct {
	// Work is a folder, an absolute path, for the volumes of the pod.
	Work string
	// Held is what holds that folder, if anything, for all processes.
	Held *Workspace
	// Self is this program: what the job's command calls, and what plays Prow's
	// utilities.
	Self string
	// Utilities is a folder with programs named initupload, entrypoint and
	// sidecar that are run instead; "" for none.
	Utilities string
	// Bucket is where to upload, as a URL; file:///FOLDER is a folder.
	Bucket string
	// Dir stands for the working copy that the job starts in, an absolute path.
	Dir string
	// Kubeconfig is the cluster of the job, an absolute path; "" where the job
	// makes its own.
	Kubeconfig string
	// Command is run by a shell instead of the job's own; "" for that.
	Command string
	// Volumes are folders, by the names of volumes; "" is an empty folder.
	Volumes map[string]string
	// Env are variables of the job, beside those of its container.
	Env map[string]string
	// Host is the environment of this process; the job gets little of it.
	Host []string
}

// RehearsalPlan is what a rehearsal does, before it is done.
type RehearsalPlan struct {
	Job string
	// Build is the build's folder below the bucket.
	Build   string
	BuildID string
	Type    prowapi.ProwJobType
	// Timeout and Grace are what entrypoint goes by; Termination is when the
	// kubelet would kill what is left after an abort.
	Timeout, Grace, Termination time.Duration
	// Notes say what is other than in a pod.
	Notes []string

	work      string
	held      *os.File
	alias     string
	volumes   []volume
	initial   []program
	jobs      []program
	sidecar   program
	markers   []string
	artifacts string
	env       map[string]string
}

// Env are the variables that Prow gives the job.
func (p *RehearsalPlan) Env() map[string]string { return maps.Clone(p.env) }

// volume is a folder that stands for a volume of the pod.
type volume struct {
	path string
	// link is what path is to be a symbolic link to; "" makes a folder.
	link string
}

// program is a container of the pod.
type program struct {
	name string
	argv []string
	env  []string
	dir  string
	// job says that it is the job's, with entrypoint around it.
	job bool
}

// RefusedError says why a job cannot be rehearsed.
type RefusedError struct {
	Job     string
	Reasons []string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s cannot be rehearsed here as it is:\n  - %s", e.Job, strings.Join(e.Reasons, "\n  - "))
}

// ErrNotDecorated says that a job is not decorated.
var ErrNotDecorated = errors.New("it is not decorated, so Prow uploads nothing for it: set 'decorate: true'")

// Make plans the rehearsal of a ProwJob; the ProwJob itself stays as it is.
func Make(pj *prowapi.ProwJob, o Options) (*RehearsalPlan, error) {
	pj = pj.DeepCopy()
	if err := number(pj); err != nil {
		return nil, err
	}
	switch {
	case pj.Spec.PodSpec == nil:
		return nil, fmt.Errorf("job %s has no pod (agent %q): only those of agent kubernetes can be rehearsed", pj.Spec.Job, pj.Spec.Agent)
	case len(pj.Spec.PodSpec.Containers) == 0:
		return nil, fmt.Errorf("job %s has no container", pj.Spec.Job)
	case pj.Spec.DecorationConfig == nil:
		return nil, fmt.Errorf("job %s: %w", pj.Spec.Job, ErrNotDecorated)
	}
	dc := pj.Spec.DecorationConfig
	if dc.UtilityImages == nil {
		dc.UtilityImages = &prowapi.UtilityImages{}
	}
	if dc.GCSConfiguration == nil {
		dc.GCSConfiguration = &prowapi.GCSConfiguration{PathStrategy: prowapi.PathStrategyExplicit}
	}
	dc.GCSConfiguration.Bucket = o.Bucket
	dc.GCSConfiguration.LocalOutputDir = ""
	// Uploads go with the credentials that there are here.
	dc.GCSCredentialsSecret, dc.S3CredentialsSecret = nil, nil

	p := &RehearsalPlan{
		Job: pj.Spec.Job, BuildID: pj.Status.BuildID, Type: pj.Spec.Type,
		Timeout: orDefault(dc.Timeout.Get(), entrypoint.DefaultTimeout), Grace: orDefault(dc.GracePeriod.Get(), entrypoint.DefaultGracePeriod),
		work: o.Work,
	}
	if o.Held != nil {
		p.held = o.Held.held
	}
	spec := downwardapi.NewJobSpec(pj.Spec, pj.Status.BuildID, pj.Name)
	_, p.Build, _ = gcsupload.PathsForJob(dc.GCSConfiguration, &spec, "")
	p.alias = gcs.AliasForSpec(&spec)
	var err error
	if p.env, err = downwardapi.EnvForSpec(spec); err != nil {
		return nil, fmt.Errorf("making the environment of %s: %w", pj.Spec.Job, err)
	}
	var refused []string
	for i := range pj.Spec.PodSpec.Containers {
		refused = append(refused, p.substitute(&pj.Spec.PodSpec.Containers[i], o)...)
	}
	for _, c := range pj.Spec.PodSpec.InitContainers {
		if o.Command == "" {
			refused = append(refused, fmt.Sprintf("its init container %s runs in the image %s: do what it does beforehand, and give the job's command with --command", c.Name, c.Image))
		}
	}
	if o.Command != "" && len(pj.Spec.PodSpec.Containers) > 1 {
		refused = append(refused, fmt.Sprintf("it has %d containers, and --command can stand for one only", len(pj.Spec.PodSpec.Containers)))
	}
	pj.Spec.PodSpec.InitContainers = nil
	pod, err := decorate.ProwJobToPod(*pj)
	if err != nil {
		return nil, fmt.Errorf("making the pod of %s: %w", pj.Spec.Job, err)
	}
	p.Termination = p.Grace
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		p.Termination = time.Duration(*s) * time.Second
	}
	m := maker{RehearsalPlan: p, options: o, pod: pod, made: map[string]string{}}
	refused = append(refused, m.processes()...)
	if len(refused) > 0 {
		return nil, &RefusedError{Job: pj.Spec.Job, Reasons: refused}
	}
	if m.err != nil {
		return nil, fmt.Errorf("planning the rehearsal of %s: %w", pj.Spec.Job, m.err)
	}
	m.cloning(pj)
	return p, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// substitute puts a command that runs here in place of one that runs in an
// image, and says where that is not possible.
func (p *RehearsalPlan) substitute(c *corev1.Container, o Options) []string {
	if o.Command != "" {
		// A shell would keep Prow's signals from what it runs.
		c.Command, c.Args = strings.Fields(o.Command), nil
		if strings.ContainsAny(o.Command, "|&;<>()$`\\\"'*?[]#~={}!\n") || len(c.Command) == 0 {
			c.Command = []string{"/bin/sh", "-c", o.Command}
		}
		p.Notes = append(p.Notes, fmt.Sprintf("the job's command is replaced by --command, and its image %s is not used", c.Image))
		return nil
	}
	fix := ": give what to run here with --command"
	if i := slices.Index(slices.Concat(c.Command, c.Args), tool); i > 0 {
		// A script that ends by calling this program with the rest.
		fix += fmt.Sprintf(", such as --command '%s'", strings.Join(slices.Concat(c.Command, c.Args)[i:], " "))
	}
	if c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged {
		return []string{fmt.Sprintf("container %s is privileged, as for Docker in it, and here nothing is a container%s", nameOf(c), fix)}
	}
	if len(c.Command) == 0 {
		if !ours(c.Image) {
			return []string{fmt.Sprintf("container %s runs what the image %s runs, and no image is used here%s", nameOf(c), c.Image, fix)}
		}
		c.Command = []string{tool}
	}
	all := slices.Concat(c.Command, c.Args)
	switch first := path.Base(all[0]); first {
	case tool:
		c.Command, c.Args = append([]string{tool}, all[1:]...), nil
	case "sh", "bash":
		if !strings.Contains(strings.Join(all[1:], " "), tool) {
			return []string{fmt.Sprintf("container %s runs a script of its own in the image %s, which does not call %s%s", nameOf(c), c.Image, tool, fix)}
		}
		if _, err := exec.LookPath(first); err != nil {
			return []string{fmt.Sprintf("there is no %s here: %v", first, err)}
		}
	default:
		return []string{fmt.Sprintf("container %s runs %s of the image %s, and no image is used here%s", nameOf(c), all[0], c.Image, fix)}
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%s is this program, and the image %s is not used", tool, c.Image))
	return nil
}

// nameOf names a container; Prow gives one that is alone its name later.
func nameOf(c *corev1.Container) string {
	if c.Name == "" {
		return "test"
	}
	return c.Name
}

// ours reports whether an image is one of this project.
func ours(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return strings.HasSuffix(name, tool)
}

// maker turns a pod into processes.
type maker struct {
	*RehearsalPlan
	options Options
	pod     *corev1.Pod
	// made are the volumes by name.
	made    map[string]string
	refused []string
	err     error
}

// utilities are the containers of Prow, and the variable with their options.
var utilities = map[string]string{Initupload: initupload.JSONConfigEnvVar, Sidecar: sidecar.JSONConfigEnvVar}

func (m *maker) processes() []string {
	spec := &m.pod.Spec
	m.volumes = append(m.volumes, volume{path: m.bin()}, volume{path: m.tool(), link: m.options.Self})
	for i := range spec.InitContainers {
		// Of the others, clonerefs is not rehearsed, and entrypoint is here.
		if c := &spec.InitContainers[i]; c.Name == Initupload {
			m.initial = append(m.initial, m.utility(c))
		}
	}
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name == Sidecar {
			m.sidecar = m.utility(c)
		} else {
			m.jobs = append(m.jobs, m.job(c))
		}
	}
	return m.refused
}

func (m *maker) bin() string  { return filepath.Join(m.work, "bin") }
func (m *maker) tool() string { return filepath.Join(m.bin(), tool) }

// play is the command line of one of Prow's utilities.
func (m *maker) play(name string) []string {
	if m.options.Utilities != "" {
		return []string{filepath.Join(m.options.Utilities, name)}
	}
	return []string{m.tool(), "prow", "utility", name}
}

// utility makes the process of initupload or sidecar. It has the whole
// environment, for the credentials of the upload.
func (m *maker) utility(c *corev1.Container) program {
	mounts := m.mounts(c)
	env := slices.DeleteFunc(slices.Clone(m.options.Host), func(v string) bool {
		return strings.HasPrefix(v, entrypoint.JSONConfigEnvVar+"=")
	})
	for _, v := range c.Env {
		value := v.Value
		if v.Name == utilities[c.Name] {
			// There is no log of clonerefs.
			value = m.translate(mounts, value, "log")
		}
		env = append(env, v.Name+"="+value)
	}
	return program{name: c.Name, argv: m.play(c.Name), env: env, dir: m.work}
}

// passed are the variables of this process that a job gets: what finds programs,
// caches and the way to the network, and nothing that finds a cluster.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CACHE_HOME", "OP_READINESS_CACHE",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN", "GOROOT",
}

// job makes the process of a container of the job: entrypoint around it.
func (m *maker) job(c *corev1.Container) program {
	mounts := m.mounts(c)
	env := map[string]string{}
	for _, v := range m.options.Host {
		if key, value, ok := strings.Cut(v, "="); ok && slices.Contains(passed, key) {
			env[key] = value
		}
	}
	// Prow's $GOPATH is a volume; modules need not be fetched into it again.
	if home := env["HOME"]; home != "" && env["GOMODCACHE"] == "" {
		env["GOMODCACHE"] = filepath.Join(home, "go", "pkg", "mod")
	}
	for _, from := range c.EnvFrom {
		if name := envSource(&from); name != "" && len(m.options.Env) == 0 {
			m.refused = append(m.refused, fmt.Sprintf("container %s takes variables from %s: give those that it needs with --env NAME=VALUE", c.Name, name))
		}
	}
	for _, v := range c.Env {
		given, ok := m.options.Env[v.Name]
		switch {
		case ok:
			env[v.Name] = given
		case v.ValueFrom != nil:
			if !optional(v.ValueFrom) {
				m.refused = append(m.refused, fmt.Sprintf("container %s takes $%s from the cluster: give it with --env %[2]s=VALUE", c.Name, v.Name))
			}
		case v.Name == entrypoint.JSONConfigEnvVar:
			env[v.Name] = m.translate(mounts, v.Value)
		case v.Name == downwardapi.JobSpecEnv:
			env[v.Name] = v.Value // Prow's words, which name no path
		default:
			env[v.Name] = mounts.text(v.Value)
		}
	}
	maps.Copy(env, m.options.Env)
	if _, set := env["KUBECONFIG"]; !set {
		// In its pod a job that names no cluster has that of the pod, and never
		// one that happens to be configured here.
		env["KUBECONFIG"] = m.options.Kubeconfig
		if m.options.Kubeconfig == "" {
			env["KUBECONFIG"] = filepath.Join(m.work, "no-kubeconfig")
		}
	}
	env["PATH"] = m.bin() + string(os.PathListSeparator) + env["PATH"]
	m.artifacts = env["ARTIFACTS"]
	if m.artifacts != "" {
		m.markers = append(m.markers, m.marker(c, mounts))
	}
	p := program{name: c.Name, argv: m.play(Entrypoint), dir: m.options.Dir, job: true}
	for _, key := range slices.Sorted(maps.Keys(env)) {
		p.env = append(p.env, key+"="+env[key])
	}
	if c.WorkingDir != "" {
		p.dir = m.workingDir(c.WorkingDir, mounts)
	}
	return p
}

// marker is the file into which entrypoint writes how the container ended.
func (m *maker) marker(c *corev1.Container, mounts mounts) string {
	for _, v := range c.Env {
		if v.Name != entrypoint.JSONConfigEnvVar {
			continue
		}
		o := entrypoint.NewOptions()
		if err := o.LoadConfig(v.Value); err != nil {
			m.err = err
			return ""
		}
		file, _ := mounts.file(o.MarkerFile)
		return file
	}
	return ""
}

func (m *maker) translate(mounts mounts, options string, without ...string) string {
	text, err := mounts.options(options, without...)
	if err != nil {
		m.err = err
	}
	return text
}

// workingDir is the folder in which a container starts: the working copy, linked
// to where clonerefs would have put it.
func (m *maker) workingDir(inside string, mounts mounts) string {
	dir, ok := mounts.file(inside)
	if !ok {
		return m.options.Dir
	}
	if m.options.Volumes["code"] == "" && !slices.ContainsFunc(m.volumes, func(v volume) bool { return v.path == dir }) {
		m.volumes = append(m.volumes, volume{path: dir, link: m.options.Dir})
	}
	return dir
}

// mounts makes the volumes that a container mounts.
func (m *maker) mounts(c *corev1.Container) mounts {
	var all []mount
	for _, v := range c.VolumeMounts {
		if v.Name == "code" && c.Name == Sidecar {
			continue
		}
		folder, ok := m.made[v.Name]
		if !ok {
			folder = m.volume(c, v)
			m.made[v.Name] = folder
		}
		all = append(all, mount{inside: v.MountPath, outside: filepath.Join(folder, filepath.FromSlash(v.SubPath))})
	}
	return newMounts(all)
}

// volume makes the folder of a volume, and says where it cannot.
func (m *maker) volume(c *corev1.Container, v corev1.VolumeMount) string {
	folder := filepath.Join(m.work, "volumes", v.Name)
	if dir, given := m.options.Volumes[v.Name]; given {
		if dir == "" {
			m.Notes = append(m.Notes, fmt.Sprintf("volume %s is an empty folder", v.Name))
		}
		m.volumes = append(m.volumes, volume{path: folder, link: dir})
		return folder
	}
	i := slices.IndexFunc(m.pod.Spec.Volumes, func(one corev1.Volume) bool { return one.Name == v.Name })
	if i < 0 {
		m.refused = append(m.refused, fmt.Sprintf("container %s mounts volume %s, which the pod does not have", c.Name, v.Name))
		return folder
	}
	source := &m.pod.Spec.Volumes[i].VolumeSource
	m.volumes = append(m.volumes, volume{path: folder})
	what, needed := describe(source)
	if what == "" || !needed {
		return folder
	}
	if file := kubeconfigOf(c); file != "" && m.options.Kubeconfig != "" {
		if rest, ok := strings.CutPrefix(path.Clean(file), path.Clean(v.MountPath)+"/"); ok {
			m.volumes = append(m.volumes, volume{path: filepath.Join(folder, filepath.FromSlash(path.Join(v.SubPath, rest))), link: m.options.Kubeconfig})
			m.Notes = append(m.Notes, fmt.Sprintf("%s of volume %s is %s", rest, v.Name, m.options.Kubeconfig))
			return folder
		}
	}
	if m.options.Command != "" {
		m.Notes = append(m.Notes, fmt.Sprintf("volume %s, %s, is an empty folder; --volume %[1]s=DIR gives another", v.Name, what))
		return folder
	}
	m.refused = append(m.refused, fmt.Sprintf("volume %s is %s, mounted at %s: give a folder for it with --volume %[1]s=DIR, or an empty one with --volume %[1]s=", v.Name, what, v.MountPath))
	return folder
}

// kubeconfigOf returns the path of the kubeconfig that a container names.
func kubeconfigOf(c *corev1.Container) string {
	for _, v := range c.Env {
		if v.Name == "KUBECONFIG" && v.Value != "" {
			return v.Value
		}
		if v.Name != entrypoint.JSONConfigEnvVar {
			continue
		}
		o := entrypoint.NewOptions()
		if err := o.LoadConfig(v.Value); err != nil || o.Options == nil {
			continue
		}
		words := strings.Fields(strings.Join(o.Args, " "))
		for i, w := range words {
			w = strings.Trim(w, `"'`)
			if file, ok := strings.CutPrefix(w, "--kubeconfig="); ok {
				return strings.Trim(file, `"'`)
			}
			if w == "--kubeconfig" && i+1 < len(words) {
				return strings.Trim(words[i+1], `"'`)
			}
		}
	}
	return ""
}

// describe says what is in a volume that has something in it from the start; ""
// for one that has not. needed is false where the pod would start without it.
func describe(s *corev1.VolumeSource) (what string, needed bool) {
	isTrue := func(b *bool) bool { return b != nil && *b }
	switch {
	case s.EmptyDir != nil:
		return "", false
	case s.Secret != nil:
		return "the Secret " + s.Secret.SecretName, !isTrue(s.Secret.Optional)
	case s.ConfigMap != nil:
		return "the ConfigMap " + s.ConfigMap.Name, !isTrue(s.ConfigMap.Optional)
	case s.HostPath != nil:
		return "the node's " + s.HostPath.Path, true
	case s.PersistentVolumeClaim != nil:
		return "the claim " + s.PersistentVolumeClaim.ClaimName, true
	case s.Projected != nil:
		return "projected", true
	}
	return "of a kind that is not here", true
}

func optional(s *corev1.EnvVarSource) bool {
	switch {
	case s.SecretKeyRef != nil:
		return s.SecretKeyRef.Optional != nil && *s.SecretKeyRef.Optional
	case s.ConfigMapKeyRef != nil:
		return s.ConfigMapKeyRef.Optional != nil && *s.ConfigMapKeyRef.Optional
	}
	return false
}

func envSource(s *corev1.EnvFromSource) string {
	switch {
	case s.SecretRef != nil && (s.SecretRef.Optional == nil || !*s.SecretRef.Optional):
		return "the Secret " + s.SecretRef.Name
	case s.ConfigMapRef != nil && (s.ConfigMapRef.Optional == nil || !*s.ConfigMapRef.Optional):
		return "the ConfigMap " + s.ConfigMapRef.Name
	}
	return ""
}

// cloning says what clonerefs would have done.
func (m *maker) cloning(pj *prowapi.ProwJob) {
	if skip := pj.Spec.DecorationConfig.SkipCloning; skip != nil && *skip {
		return
	}
	var refs []prowapi.Refs
	if pj.Spec.Refs != nil {
		refs = append(refs, *pj.Spec.Refs)
	}
	refs = append(refs, pj.Spec.ExtraRefs...)
	if len(refs) == 0 {
		return
	}
	home := 0
	var others []string
	for i, r := range refs {
		if r.WorkDir {
			home = i
			break
		}
	}
	for i, r := range refs {
		if i != home {
			others = append(others, r.Org+"/"+r.Repo)
		}
	}
	m.Notes = append(m.Notes, fmt.Sprintf("nothing is cloned: %s stands for %s/%s", m.options.Dir, refs[home].Org, refs[home].Repo))
	if len(others) > 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("not there: %s; --volume code=DIR gives a $GOPATH that has it", strings.Join(others, ", ")))
	}
}

// Commands are the command lines of the job's containers, as they would run here.
func (p *RehearsalPlan) Commands() []string {
	var all []string
	for i := range p.jobs {
		for _, v := range p.jobs[i].env {
			text, ok := strings.CutPrefix(v, entrypoint.JSONConfigEnvVar+"=")
			if !ok {
				continue
			}
			o := entrypoint.NewOptions()
			if err := o.LoadConfig(text); err == nil {
				all = append(all, strings.Join(o.Args, " "))
			}
		}
	}
	return all
}

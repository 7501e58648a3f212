package jobs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	prowapi "sigs.k8s.io/prow/pkg/apis/prowjobs/v1"
	prowconfig "sigs.k8s.io/prow/pkg/config"

	"github.com/windows-op-readiness/windows-op-readiness/internal/ci/config"
)

// Where the Secret with a cluster's kubeconfig is mounted, and its key.
const (
	kubeconfigVolume = "kubeconfig"
	kubeconfigFolder = "/etc/op-readiness"
	kubeconfigKey    = "kubeconfig"
)

// jobBase is what jobs of all kinds have; a variant is of a name that another
// job has, for other branches.
func jobBase(c *config.Config, j config.Job, variant bool) (prowconfig.JobBase, error) {
	s := j.Settings
	decorate := true
	spec, err := podSpec(c, j)
	if err != nil {
		return prowconfig.JobBase{}, err
	}
	decoration := &prowapi.DecorationConfig{
		Timeout:          &prowapi.Duration{Duration: time.Duration(s.Timeout)},
		GracePeriod:      &prowapi.Duration{Duration: time.Duration(s.GracePeriod)},
		GCSConfiguration: bucket(c),
	}
	if j.Kind != config.Postsubmit {
		// Of an aborted job sidecar would otherwise upload twice, at the abort and
		// at the end, side by side, and the first could win. Results are written
		// at the end.
		decoration.UploadIgnoresInterrupts = &decorate
	}
	return prowconfig.JobBase{
		Name:           j.Name,
		Labels:         c.JobLabels(j),
		MaxConcurrency: *s.MaxConcurrency,
		Cluster:        s.Cluster,
		Annotations:    annotations(c, j, variant),
		Spec:           spec,
		UtilityConfig: prowconfig.UtilityConfig{
			Decorate:         &decorate,
			PathAlias:        pathAlias(c, j),
			ExtraRefs:        extraRefs(c, j),
			DecorationConfig: decoration,
		},
	}, nil
}

// bucket is where Prow uploads, as results say it; nil leaves it to Prow's
// default: jobs of kubernetes/test-infra have only that, and a folder is none
// of Prow's buckets.
func bucket(c *config.Config) *prowapi.GCSConfiguration {
	r := c.Results
	if r.Bucket == "" || c.Prow.Profile == config.ProfileCAPZ || strings.HasPrefix(r.Bucket, "file:") {
		return nil
	}
	return &prowapi.GCSConfiguration{
		// Without a scheme it is Google's, also for what knows no other.
		Bucket:       strings.TrimPrefix(r.Bucket, "gs://"),
		PathPrefix:   r.PathPrefix,
		PathStrategy: r.PathStrategy,
		DefaultOrg:   r.DefaultOrg,
		DefaultRepo:  r.DefaultRepo,
	}
}

// podSpec is the job's pod, before Prow decorates it.
func podSpec(c *config.Config, j config.Job) (*corev1.PodSpec, error) {
	s := j.Settings
	limits := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: s.Resources.CPU, corev1.ResourceMemory: s.Resources.Memory} {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, c.Problem("prow.resources", "%s %q of the job %s: %v: write it as Kubernetes does, such as \"2\" or 4Gi", name, text, j.Name, err)
		}
		limits[name] = quantity
	}
	container := corev1.Container{
		Image:           s.Image,
		ImagePullPolicy: pullPolicy(s.Image),
		// Requests that equal limits make the pod guaranteed, as
		// kubernetes/test-infra wants it.
		Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits.DeepCopy()},
	}
	spec := &corev1.PodSpec{ServiceAccountName: s.ServiceAccount}
	env := map[string]string{}
	switch {
	case j.Kind == config.Postsubmit:
		container.Command, container.Args = c.Prow.Postsubmit.Command, c.Prow.Postsubmit.Args
	case j.Cell.Provider == config.ProviderCAPZ:
		onCAPZ(c, j, &container, env)
	default:
		inImage(c, &container, Args(c, j))
		if j.Cell.Provider != config.ProviderKwok {
			spec.Volumes = []corev1.Volume{{
				Name:         kubeconfigVolume,
				VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.KubeconfigSecret}},
			}}
			container.VolumeMounts = []corev1.VolumeMount{{Name: kubeconfigVolume, MountPath: kubeconfigFolder, ReadOnly: true}}
		}
	}
	maps.Copy(env, s.Env)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: env[name]})
	}
	spec.Containers = []corev1.Container{container}
	return spec, nil
}

// pullPolicy is Always for tags that move, as kubernetes/test-infra wants it.
func pullPolicy(image string) corev1.PullPolicy {
	rest := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(rest, ":")
	if !strings.Contains(rest, "@") && strings.HasPrefix(cmp.Or(tag, "latest"), "latest") {
		return corev1.PullAlways
	}
	return ""
}

// pathAlias is the folder of the repository under test below $GOPATH/src, where
// it is not github.com/ORG/REPO.
func pathAlias(c *config.Config, j config.Job) string {
	if j.Kind != config.Periodic && strings.EqualFold(c.Repository, "kubernetes/kubernetes") {
		return "k8s.io/kubernetes"
	}
	return ""
}

// extraRefs are the repositories that Prow clones: first those of the settings,
// then, where the tool is built or the cluster made in the job, what that needs.
func extraRefs(c *config.Config, j config.Job) []prowapi.Refs {
	var refs []prowapi.Refs
	for _, r := range j.Settings.ExtraRefs {
		refs = append(refs, prowapi.Refs{Org: r.Org, Repo: r.Repo, BaseRef: r.BaseRef, PathAlias: r.PathAlias, WorkDir: r.Workdir})
	}
	if j.Kind == config.Postsubmit {
		return refs
	}
	if c.Prow.Profile == config.ProfileCAPZ {
		refs = withNeeded(c, j, refs)
	}
	// What a periodic is of is the first of them, to Prow, to TestGrid's links,
	// and to this program.
	slices.SortStableFunc(refs, func(a, b prowapi.Refs) int {
		return cmp.Compare(notOf(c, a), notOf(c, b))
	})
	return refs
}

func notOf(c *config.Config, r prowapi.Refs) int {
	if strings.EqualFold(c.Repository, r.Org+"/"+r.Repo) {
		return 0
	}
	return 1
}

func withNeeded(c *config.Config, j config.Job, refs []prowapi.Refs) []prowapi.Refs {
	needed := []prowapi.Refs{toolRef}
	if j.Cell.Provider == config.ProviderCAPZ {
		needed = append(needed, capzRefs...)
	}
	for _, n := range needed {
		tested := j.Kind == config.Presubmit && strings.EqualFold(c.Repository, n.Org+"/"+n.Repo)
		given := slices.IndexFunc(refs, func(r prowapi.Refs) bool { return r.Org == n.Org && r.Repo == n.Repo })
		switch {
		case tested:
		case given >= 0:
			// Which branch is the configuration's to say; where it lies is not.
			refs[given].PathAlias, refs[given].WorkDir = n.PathAlias, n.WorkDir
		default:
			refs = append(refs, n)
		}
	}
	return refs
}

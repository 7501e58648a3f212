package nodelogs

import (
	"context"
	"errors"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
)

// kinds are what is collected of kube-system. Secrets are not, and no kind is
// added to these by what a cluster serves.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Version: "v1", Resource: "events"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// objects collects the nodes, and the objects of the namespace.
func (c *collector) objects(ctx context.Context) {
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	c.list(ctx, file("objects", nodes.Resource)+".yaml", c.dynamic.Resource(nodes))
	for _, kind := range kinds {
		c.list(ctx, file("objects", system, kind.Resource)+".yaml", c.dynamic.Resource(kind).Namespace(system))
	}
}

func (c *collector) list(ctx context.Context, name string, of dynamic.ResourceInterface) {
	_ = c.within(ctx, func(ctx context.Context) error {
		c.keepOrMiss(ctx, name, func(ctx context.Context, w io.Writer) error {
			return write(ctx, w, of)
		})
		return nil
	})
}

// page is how many objects are asked for at once.
const page = 200

func write(ctx context.Context, w io.Writer, of dynamic.ResourceInterface) error {
	some := false
	for options := (metav1.ListOptions{Limit: page}); ; {
		list, err := of.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			some = true
			if err := writeObject(w, &list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			break
		}
	}
	if some {
		return nil
	}
	_, err := io.WriteString(w, "# there are none\n")
	return err
}

// writeObject writes an object as YAML, without what says the same again.
func writeObject(w io.Writer, object *unstructured.Unstructured) error {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	object.SetAnnotations(annotations)
	mask(object.Object)
	data, err := yaml.Marshal(object.Object)
	if err != nil {
		return errors.New("an object that is no YAML")
	}
	_, err = w.Write(append([]byte("---\n"), data...))
	return err
}

// mask takes the values of variables of the environment that are named like
// secrets: name and value stand in two lines, and lines are what the text's
// secrets are looked for in.
func mask(value any) {
	switch value := value.(type) {
	case map[string]any:
		name, isName := value["name"].(string)
		if secret, is := value["value"].(string); is && isName {
			if line := name + "=" + secret; redact.String(line) != line {
				value["value"] = redact.Mask
			}
		}
		for _, below := range value {
			mask(below)
		}
	case []any:
		for _, below := range value {
			mask(below)
		}
	}
}

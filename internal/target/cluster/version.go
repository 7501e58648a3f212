package cluster

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// parseServerVersion reads the answer of /version.
func parseServerVersion(data []byte, server string) (string, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return "", fmt.Errorf("%s is not a Kubernetes API server: asked for its version, it does not answer with JSON: %w", server, err)
	}
	if _, err := version.ParseGeneric(info.GitVersion); err != nil {
		return "", fmt.Errorf("the API server %s says that its version is %q: %w", server, info.GitVersion, err)
	}
	return info.GitVersion, nil
}

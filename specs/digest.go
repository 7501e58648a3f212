package specs

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// Digest is a SHA-256 over the cases of a standard as it stands for a
// Kubernetes version: "sha256:" and hexadecimal digits.
func Digest(standard []Case) (string, error) {
	data, err := json.Marshal(standard)
	if err != nil {
		return "", fmt.Errorf("encoding the standard: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), nil
}

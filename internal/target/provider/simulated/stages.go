package simulated

import (
	"bytes"
	_ "embed"
	"fmt"
)

// stages say how kwok plays nodes and pods.
//
//go:embed stages.yaml
var stages []byte

// PlayedAnnotation is on a pod for Windows from the moment when it may run, in a
// cluster where somebody else than kwok plays such pods.
const PlayedAnnotation = "op-readiness/played"

// Stages returns the stages that kwok is given, as YAML
// (https://kwok.sigs.k8s.io/docs/user/stages-configuration/). Where pods for Windows are
// played by somebody else, they wait for [PlayedAnnotation].
func Stages(played bool) []byte {
	if !played {
		return stages
	}
	const pending = "      - {key: .status.phase, operator: In, values: [Pending]}\n"
	waits := fmt.Sprintf("      - {key: 'select(.spec.os.name == \"windows\" and .metadata.annotations[%q] == null)', operator: DoesNotExist}\n", PlayedAnnotation)
	return bytes.Replace(stages, []byte(pending), []byte(pending+waits), 1)
}

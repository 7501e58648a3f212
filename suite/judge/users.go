package judge

import (
	"fmt"
	"strings"
)

// Users returns what is other than that containers run as the users that are named: by
// what the container says whose pod names forPod, the one whose pod names that, too, and
// itself forContainer, and the one for which nobody names any, which must be another than
// forPod. Windows knows users by names in small letters and capitals alike.
func Users(forPod, forContainer, byPod, byContainer, byImage string) []string {
	var problems []string
	if is := strings.TrimSpace(byPod); !strings.EqualFold(is, forPod) {
		problems = append(problems, fmt.Sprintf("the pod names %s, and its container runs as %q", forPod, cut(is)))
	}
	if is := strings.TrimSpace(byContainer); !strings.EqualFold(is, forContainer) {
		problems = append(problems, fmt.Sprintf("the container names %s, its pod %s, and it runs as %q", forContainer, forPod, cut(is)))
	}
	if is := strings.TrimSpace(byImage); is == "" || strings.EqualFold(is, forPod) {
		problems = append(problems, fmt.Sprintf("nobody names a user, and the container runs as %q: that a pod which names %s runs as it shows nothing", cut(is), forPod))
	}
	return problems
}

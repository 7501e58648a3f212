package judge

import (
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	for what, c := range map[string]struct{ byPod, byContainer, byImage, want string }{
		"as named":                       {"ContainerUser\r\n", "containeradministrator\r\n", "ContainerAdministrator\n", ""},
		"the pod's name has no effect":   {"ContainerAdministrator", "ContainerAdministrator", "ContainerAdministrator", `the pod names ContainerUser, and its container runs as "ContainerAdministrator"`},
		"the container's has no effect":  {"ContainerUser", "ContainerUser", "ContainerAdministrator", `the container names ContainerAdministrator, its pod ContainerUser, and it runs as "ContainerUser"`},
		"the image has that user itself": {"ContainerUser", "ContainerAdministrator", "ContainerUser", `nobody names a user, and the container runs as "ContainerUser"`},
		"nothing is said":                {"ContainerUser", "ContainerAdministrator", " ", `nobody names a user, and the container runs as ""`},
	} {
		got := strings.Join(Users("ContainerUser", "ContainerAdministrator", c.byPod, c.byContainer, c.byImage), "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

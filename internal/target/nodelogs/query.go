package nodelogs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxLines is how many lines a kubelet gives at most.
const maxLines = "100000"

// errOff says that a kubelet answers no log queries.
var errOff = errors.New("the kubelet answers no log queries")

// query asks a node's kubelet for the log of a service. The answers are those of
// https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/kubelet_server_journal.go,
// which says in a text what failed, and passes for a success.
func (c *collector) query(node, service string) func(context.Context, io.Writer) error {
	return func(ctx context.Context, w io.Writer) error {
		err := c.ask(ctx, w, node, service, true)
		if errors.Is(err, errFile) {
			err = c.ask(ctx, w, node, service, false)
		}
		return err
	}
}

// errFile says that a log is a file, of which a kubelet gives no part.
var errFile = errors.New("the log is a file")

func (c *collector) ask(ctx context.Context, w io.Writer, node, service string, lastLines bool) error {
	request := c.client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("logs/").Param("query", service)
	if lastLines {
		request.Param("tailLines", maxLines)
	}
	answer, err := request.Stream(ctx)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && (status.Status().Code == http.StatusMethodNotAllowed || status.Status().Code == http.StatusNotFound) {
		return errOff
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	from := bufio.NewReaderSize(answer, 4<<10)
	if err := refused(from); err != nil {
		return err
	}
	_, err = io.Copy(w, from)
	return err
}

// refused says what an answer says that is no log.
func refused(from *bufio.Reader) error {
	const most = 2 << 10
	begin, err := from.Peek(most)
	whole := err != nil
	said := bytes.TrimSpace(begin)
	lower := bytes.ToLower(said)
	switch {
	case bytes.HasPrefix(lower, []byte("<!doctype html")) || bytes.HasPrefix(lower, []byte("<pre>")):
		return errOff // it lists the files of /var/log, whatever was asked
	case !whole:
		return nil
	case bytes.HasPrefix(said, []byte("options present and query resolved to log files")):
		return errFile
	}
	for _, failure := range []string{"log not found for", "error getting log for", "error: journal output not available", "failed to get logging cmd", "context error:", "-- No entries --"} {
		if bytes.HasPrefix(said, []byte(failure)) {
			return nothing("the kubelet says: " + strings.ReplaceAll(string(said), "\n", " "))
		}
	}
	return nil
}

// unreachable reports whether an error says that the kubelet does not answer, so
// that the logs of a pod on its node could not be read either.
func unreachable(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

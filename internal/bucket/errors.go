package bucket

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/text"
)

var (
	// ErrNotExist says that there is no such object.
	ErrNotExist = errors.New("does not exist")
	// ErrExists says that the object is there already.
	ErrExists = errors.New("exists already")
	// ErrTooLarge says that an object has more content than was asked for.
	ErrTooLarge = errors.New("too large")
	// ErrMalformed says that an object is not the JSON that was asked for.
	ErrMalformed = errors.New("malformed")
	// ErrNoBucket says that there is no such bucket, or that the credentials
	// may not know of it.
	ErrNoBucket = errors.New("there is no such bucket, or these credentials may not see it")
	// errDenied says that a permission is missing.
	errDenied = errors.New("permission denied")
	// ErrUncertain says that the answer to an upload, or to a removal, was lost,
	// and that the bucket does not say either whether it was done.
	ErrUncertain = errors.New("whether that was done is not known")
	// errCredentials says that the credentials were refused.
	errCredentials = errors.New("the credentials were refused")
)

// deeds are what one does with objects: in words, and which permission of
// Google's and Amazon's it takes.
var deeds = map[string]struct{ doing, google, amazon string }{
	"list":   {"listing", "storage.objects.list", "s3:ListBucket"},
	"get":    {"reading", "storage.objects.get", "s3:GetObject"},
	"create": {"uploading", "storage.objects.create", "s3:PutObject"},
	// To Google, replacing an object is deleting it.
	"replace": {"replacing", "storage.objects.delete", "s3:PutObject"},
	"delete":  {"removing", "storage.objects.delete", "s3:DeleteObject"},
}

// googlePermission is how Google names a missing permission in an error.
var googlePermission = regexp.MustCompile(`\bstorage\.(objects|buckets)\.[a-zA-Z]+\b`)

// explain says what was being done, and turns what the provider said into one
// of this package's errors, with the permission that is missing.
func (b *Bucket) explain(deed, key string, err error) error {
	d := deeds[deed]
	wrap := func(cause error) error { return fmt.Errorf("%s %s: %w", d.doing, b.URL(key), cause) }
	var source sourceError
	if errors.As(err, &source) {
		return wrap(source.error)
	}
	status := statusOf(err)
	var request *url.Error
	switch {
	case errors.Is(err, ErrExists) || status == http.StatusPreconditionFailed:
		return wrap(ErrExists)
	case b.noBucket(deed, err, status):
		return wrap(fmt.Errorf("%w; %s", ErrNoBucket, b.makeIt()))
	case status == http.StatusNotFound, errors.Is(err, storage.ErrObjectNotExist), errors.Is(err, fs.ErrNotExist),
		status != http.StatusForbidden && gcerrors.Code(err) == gcerrors.NotFound:
		return wrap(ErrNotExist)
	case status == http.StatusUnauthorized:
		return wrap(fmt.Errorf("%w (%s); sign in again, or see that what made them may use %s", errCredentials, textOf(err), b.URL("")))
	case status == http.StatusForbidden:
		permission := d.amazon
		if b.Scheme == GCS {
			permission = d.google
			if named := googlePermission.FindString(textOf(err)); named != "" {
				permission = named
			}
		}
		return wrap(fmt.Errorf("%w: it takes %s on %s (%s)%s", errDenied, permission, b.URL(""), textOf(err), b.grant()))
	case errors.Is(err, fs.ErrPermission):
		return wrap(fmt.Errorf("%w: make %s readable and writable for this user", fs.ErrPermission, b.Dir))
	case status == 0 && errors.As(err, &request):
		return wrap(fmt.Errorf("%w; see that the network leads there, and that --endpoint or $STORAGE_EMULATOR_HOST, where one is set, is right", scrub(err)))
	}
	return wrap(scrub(err))
}

// noBucket reports whether err says that the bucket itself is missing.
func (b *Bucket) noBucket(deed string, err error, status int) bool {
	var missing *types.NoSuchBucket
	var api smithy.APIError
	switch {
	case errors.Is(err, storage.ErrBucketNotExist), errors.As(err, &missing):
		return true
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket":
		return true
	case b.Scheme == GCS && status == http.StatusNotFound:
		// An object cannot be missing when objects are listed or made.
		return deed == "list" || deed == "create" || strings.Contains(textOf(err), "bucket does not exist")
	}
	return false
}

func (b *Bucket) makeIt() string {
	switch b.Scheme {
	case GCS:
		return "make it with: gcloud storage buckets create gs://" + b.Name
	case S3:
		return "make it with: aws s3 mb s3://" + b.Name
	}
	return "make it first"
}

func (b *Bucket) grant() string {
	if b.Scheme == GCS {
		return "; roles/storage.objectUser has all that publishing takes"
	}
	return ""
}

// malformedError says what is wrong with JSON, in the words of encoding/json.
type malformedError struct{ error }

func (e *malformedError) Is(target error) bool { return target == ErrMalformed }
func (e *malformedError) Unwrap() error        { return e.error }

// textOf is what the provider said, in one line.
func textOf(err error) string {
	var google *googleapi.Error
	var api smithy.APIError
	var request *url.Error
	var s string
	switch {
	case errors.As(err, &google):
		s = google.Message
		if s == "" {
			s = http.StatusText(google.Code)
		}
	case errors.As(err, &api):
		s = api.ErrorCode() + ": " + api.ErrorMessage()
	case errors.As(err, &request):
		// Its URL is that of the API, and long.
		s = "no answer"
		if u, err := url.Parse(request.URL); err == nil {
			s += " from " + u.Host
		}
		s += ": " + request.Err.Error()
	default:
		s = err.Error()
	}
	return line(s)
}

// maxText is how much of what a provider says is passed on.
const maxText = 400

func line(s string) string {
	return text.Cut(redact.String(strings.Join(strings.Fields(s), " ")), maxText)
}

// scrubbed is an error of a provider, without secrets and in one line.
type scrubbed struct {
	text  string
	cause error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.cause }

func scrub(err error) error {
	said := err.Error()
	var request *url.Error
	if status := statusOf(err); status != 0 {
		said = fmt.Sprintf("%s (HTTP %d)", textOf(err), status)
	} else if errors.As(err, &request) {
		said = textOf(err)
	}
	lines := strings.Split(said, "\n")
	for i, l := range lines {
		lines[i] = line(l)
	}
	return &scrubbed{strings.Join(lines, "\n"), err}
}

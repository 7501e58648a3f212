package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"cloud.google.com/go/storage"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"google.golang.org/api/option"
)

// The schemes of a bucket's URL.
const (
	GCS  = "gs"
	S3   = "s3"
	File = "file"
)

// Options say how a bucket is reached. The zero value suits the real ones.
type Options struct {
	// Endpoint is the URL of a GCS emulator, or of a store that speaks S3;
	// "" is the provider's own.
	Endpoint string
	// Anonymous sends requests without credentials.
	Anonymous bool
	// Transport carries the requests; nil is one like http.DefaultTransport.
	Transport http.RoundTripper
	// Connections is how many requests there will be at a time; 0 is 16.
	Connections int
	// Retry says how requests are repeated.
	Retry Retry
	// Existing makes no folder: one that is missing is an [ErrNoBucket].
	Existing bool
}

// Bucket is a bucket, or what is below a prefix of it. Its methods may be
// called concurrently.
type Bucket struct {
	Location
	blob  *blob.Bucket
	retry Retry
}

// ErrURL says that a bucket's URL is not one.
var ErrURL = errors.New("not the URL of a bucket")

// bucketName is what both Google and Amazon allow, without checking it all.
var bucketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{1,221}$`) })

// Location is a bucket's URL, taken apart.
type Location struct {
	// Scheme is GCS, S3 or File.
	Scheme string
	// Name is the bucket's name; "" for File.
	Name string
	// Prefix is what every key is below, with a slash at its end, or "".
	Prefix string
	// Dir is the absolute path of a folder; only for File.
	Dir string
}

// IsURL reports whether a word names a place in a bucket, and not a folder.
func IsURL(word string) bool { return strings.Contains(word, "://") }

// ParseURL takes a bucket's URL apart: gs://name[/prefix], s3://name[/prefix]
// or file:///folder. An error is an [ErrURL].
func ParseURL(raw string) (Location, error) {
	bad := func(why string) (Location, error) {
		return Location{}, fmt.Errorf("%q is %w: %s; say gs://NAME, s3://NAME or file:///FOLDER", raw, ErrURL, why)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return bad("it has no scheme")
	}
	switch scheme {
	case File:
		u, err := url.Parse(raw)
		switch {
		case err != nil:
			return bad("it cannot be parsed")
		case u.Host != "" || !strings.HasPrefix(u.Path, "/"):
			return bad("the folder must be absolute, after three slashes")
		case u.RawQuery != "" || u.Fragment != "":
			return bad("what follows ? or # means nothing here")
		}
		dir := u.Path
		if runtime.GOOS == "windows" {
			dir = strings.TrimPrefix(dir, "/") // file:///C:/folder
		}
		return Location{Scheme: File, Dir: filepath.Clean(filepath.FromSlash(dir))}, nil
	case GCS, S3:
		name, prefix, _ := strings.Cut(rest, "/")
		switch {
		case !bucketName().MatchString(name):
			return bad("a bucket's name has letters, digits, '-', '_' and '.', at least two, and begins with a letter or digit")
		case strings.ContainsAny(prefix, "?#\\\r\n"):
			return bad("its path has a character that cannot be in one")
		}
		prefix = strings.Trim(prefix, "/")
		if prefix != "" {
			if path.Clean(prefix) != prefix || strings.HasPrefix(prefix, "..") {
				return bad("its path has empty, '.' or '..' elements")
			}
			prefix += "/"
		}
		return Location{Scheme: scheme, Name: name, Prefix: prefix}, nil
	}
	return bad("its scheme is unknown")
}

// FileURL returns the URL of a folder as a bucket.
func FileURL(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	p := filepath.ToSlash(abs)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: File, Path: p}).String(), nil
}

// Open connects to the bucket of a URL. It finds credentials, but asks nothing
// of the bucket yet. A folder whose parent exists is made, unless it must be
// there already.
func Open(ctx context.Context, rawURL string, o Options) (*Bucket, error) {
	at, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	b := &Bucket{Location: at, retry: o.Retry.withDefaults()}
	switch at.Scheme {
	case GCS:
		b.blob, err = openGCS(ctx, at.Name, o)
	case S3:
		b.blob, err = openS3(ctx, at.Name, o)
	case File:
		b.blob, err = openFolder(at.Dir, o.Existing)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", b.URL(""), scrub(err))
	}
	return b, nil
}

// transport is like http.DefaultTransport, for many requests to one host.
func (o *Options) transport() http.RoundTripper {
	if o.Transport != nil {
		return o.Transport
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	o.tune(t)
	return t
}

func (o *Options) tune(t *http.Transport) {
	t.MaxIdleConnsPerHost = o.Connections
	if o.Connections <= 0 {
		t.MaxIdleConnsPerHost = 16
	}
}

// amazonClient is one to which $AWS_CA_BUNDLE can be applied.
func (o *Options) amazonClient() aws.HTTPClient {
	if o.Transport != nil {
		return &http.Client{Transport: o.Transport}
	}
	return awshttp.NewBuildableClient().WithTransportOptions(o.tune)
}

func openGCS(ctx context.Context, name string, o Options) (*blob.Bucket, error) {
	base := o.transport()
	client := gcp.NewAnonymousHTTPClient(base)
	if !o.Anonymous && o.Endpoint == "" {
		creds, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, fmt.Errorf("no Google credentials were found: %w\n"+
				"On a laptop: gcloud auth application-default login. In GitHub Actions: google-github-actions/auth. Elsewhere: $GOOGLE_APPLICATION_CREDENTIALS. For a bucket that needs none: --anonymous", err)
		}
		if client, err = gcp.NewHTTPClient(base, gcp.CredentialsTokenSource(creds)); err != nil {
			return nil, err
		}
	}
	// The last options win over those that gcsblob takes from the environment.
	options := []option.ClientOption{option.WithHTTPClient(&client.Client)}
	if o.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimSuffix(o.Endpoint, "/")+"/storage/v1/"), option.WithoutAuthentication(), storage.WithJSONReads())
	}
	opened, err := gcsblob.OpenBucket(ctx, client, name, &gcsblob.Options{ClientOptions: options})
	if err != nil {
		return nil, err
	}
	var c *storage.Client
	if opened.As(&c) {
		c.SetRetry(storage.WithPolicy(storage.RetryNever)) // Retry does it
	}
	return opened, nil
}

func openS3(ctx context.Context, name string, o Options) (*blob.Bucket, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(o.amazonClient()),
		awsconfig.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }), // Retry does it
	}
	if o.Anonymous {
		options = append(options, awsconfig.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	if o.Endpoint != "" {
		// Stores other than Amazon's may not know its newer checksums.
		options = append(options,
			awsconfig.WithRequestChecksumCalculation(aws.RequestChecksumCalculationWhenRequired),
			awsconfig.WithResponseChecksumValidation(aws.ResponseChecksumValidationWhenRequired))
	}
	config, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	if config.Region == "" {
		if o.Endpoint == "" {
			return nil, errors.New("no AWS region is set; set $AWS_REGION to the bucket's")
		}
		config.Region = "us-east-1"
	}
	if !o.Anonymous {
		if _, err := config.Credentials.Retrieve(ctx); err != nil {
			return nil, fmt.Errorf("no AWS credentials were found: %w\n"+
				"On a laptop: aws sso login, or $AWS_PROFILE. In GitHub Actions: aws-actions/configure-aws-credentials. For a bucket that needs none: --anonymous", err)
		}
	}
	client := s3.NewFromConfig(config, func(so *s3.Options) {
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(strings.TrimSuffix(o.Endpoint, "/"))
			so.UsePathStyle = true
		}
	})
	return s3blob.OpenBucketV2(ctx, client, name, nil)
}

// Close lets go of the bucket.
func (b *Bucket) Close() error { return b.blob.Close() }

// Decompresses reports whether the store itself decompresses what was stored
// with the content encoding gzip for readers that do not.
func (l *Location) Decompresses() bool { return l.Scheme == GCS }

// URL returns the URL of a key, or of a prefix, in the bucket.
func (l *Location) URL(key string) string {
	if l.Scheme == File {
		u, err := FileURL(filepath.Join(l.Dir, filepath.FromSlash(key)))
		if err != nil {
			return key
		}
		if strings.HasSuffix(key, "/") {
			u += "/"
		}
		return u
	}
	u := l.Scheme + "://" + path.Join(l.Name, l.Prefix)
	if key != "" {
		u += "/" + key
	}
	return u
}

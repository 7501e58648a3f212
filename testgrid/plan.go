package testgrid

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/GoogleCloudPlatform/testgrid/metadata"

	"github.com/windows-op-readiness/windows-op-readiness/internal/bucket"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/junit"
	"github.com/windows-op-readiness/windows-op-readiness/internal/outcome/result"
	"github.com/windows-op-readiness/windows-op-readiness/internal/redact"
	"github.com/windows-op-readiness/windows-op-readiness/internal/shown"
)

// The objects of a build beside its artifacts, as Prow names them.
const (
	startedFile  = "started.json"
	finishedFile = "finished.json"
	buildLogFile = "build-log.txt"
	artifactsDir = "artifacts"
)

// linkKey is the metadata in which TestGrid looks for where an alias leads.
const linkKey = "x-goog-meta-link"

// The limits of what is published.
const (
	maxFile  = 1 << 30
	maxFiles = 10_000
	maxKey   = 1024 // of Google's and Amazon's
	minGzip  = 1 << 10
)

// Step says when an object is sent.
type Step string

// The steps, in their order. Within one, objects may be sent at the same time.
const (
	StepStart    Step = "start"
	StepAlias    Step = "alias"
	StepLatest   Step = "latest"
	StepArtifact Step = "artifact"
	StepFinish   Step = "finish"
)

// Object is one object of a plan.
type Object struct {
	Key  string `json:"key"`
	Step Step   `json:"step"`
	// Size is that of the source in bytes, before it is compressed.
	Size            int64             `json:"size"`
	ContentType     string            `json:"contentType"`
	ContentEncoding string            `json:"contentEncoding,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	// Source is the file that is sent, or what made the content.
	Source string `json:"source"`

	source func() (io.ReadCloser, error)
}

// Open yields the object's content as it is stored. The caller closes it.
func (o *Object) Open() (io.ReadCloser, error) { return o.open() }

// open yields the content as it is stored.
func (o *Object) open() (io.ReadCloser, error) {
	source, err := o.source()
	if err != nil || o.ContentEncoding == "" {
		return source, err
	}
	r, w := io.Pipe()
	go func() {
		defer source.Close()
		w.CloseWithError(compress(w, source))
	}()
	return r, nil
}

// compressors are used again: one takes a megabyte.
var compressors = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}}

func compress(w io.Writer, r io.Reader) error {
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	_, err := io.Copy(z, r)
	return errors.Join(err, z.Close())
}

// maxKept is how much of a compressed object is kept in memory until it is
// sent; what is larger is compressed once more.
const maxKept = 256 << 10

// keep keeps what is written, up to maxKept bytes.
type keep struct {
	bytes.Buffer
	over bool
}

func (k *keep) Write(p []byte) (int, error) {
	if k.over = k.over || k.Len()+len(p) > maxKept; k.over {
		k.Buffer = bytes.Buffer{}
		return len(p), nil
	}
	return k.Buffer.Write(p)
}

// prepare reads an object's source, to know what will arrive.
func (o *Object) prepare() (*bucket.Object, error) {
	r, err := o.open()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Source, err)
	}
	defer r.Close()
	object := &bucket.Object{
		Key: o.Key, ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, Metadata: o.Metadata,
		Open: o.open, New: o.Step == StepStart,
	}
	var kept keep
	read := io.Reader(r)
	if o.ContentEncoding != "" {
		read = io.TeeReader(r, &kept)
	}
	if object.Sum, err = bucket.SumOf(read); err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Source, err)
	}
	if o.ContentEncoding != "" && !kept.over {
		object.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(kept.Bytes())), nil }
	}
	return object, nil
}

// Skipped is a file of a results folder that is not published.
type Skipped struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// UploadPlan is what a build consists of. Making one sends nothing.
type UploadPlan struct {
	Build string `json:"build"`
	// URL is that of the build's folder.
	URL string `json:"url"`
	// Dir is the build's folder in the bucket, with a slash at its end.
	Dir string `json:"dir"`
	// Objects are sorted by step and key.
	Objects []Object  `json:"objects"`
	Skipped []Skipped `json:"skipped,omitempty"`

	job Job
	// run is the id of the run whose results they are; "" for a start.
	run string
}

// Options are what of a build does not come from its results.
type Options struct {
	Job   Job
	Build string
	// URL returns the URL of a key in the bucket.
	URL func(key string) string
	// Compress says that logs and the like are stored as gzip.
	Compress bool
	// Links are shown by Deck beside the build: URLs by name.
	Links map[string]string
	// Log is what build-log.txt holds.
	Log []byte
}

// PlanStart plans the first step of a build, which shows it as running.
func PlanStart(o *Options, started *metadata.Started) (*UploadPlan, error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(o, started); err != nil {
		return nil, err
	}
	return p.sorted()
}

// NewUploadPlan plans a whole build. Where it has been started already, its
// started.json is kept.
func NewUploadPlan(o *Options, r *Results, started *metadata.Started, finished *metadata.Finished) (*UploadPlan, error) {
	p, err := newPlan(o)
	if err != nil {
		return nil, err
	}
	p.run = r.runID()
	if err := p.start(o, started); err != nil {
		return nil, err
	}
	if err := p.json(finishedFile, StepFinish, finished); err != nil {
		return nil, err
	}
	if len(o.Log) > 0 {
		p.add(p.data(buildLogFile, StepArtifact, o.Log, "the report"))
	}
	if err := p.links(o.Links); err != nil {
		return nil, err
	}
	folders, err := r.folders()
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		for _, file := range f.junit {
			p.add(p.data(path.Join(artifactsDir, f.name, file.Name), StepArtifact, file.Data, "JUnit of the results"))
		}
		if f.dir == "" {
			continue
		}
		if err := p.folder(&f, o.Compress); err != nil {
			return nil, err
		}
	}
	return p.sorted()
}

func newPlan(o *Options) (*UploadPlan, error) {
	if err := o.Job.Validate(); err != nil {
		return nil, err
	}
	if _, err := ParseBuildID(o.Build); err != nil {
		return nil, err
	}
	dir := o.Job.BuildDir(o.Build)
	return &UploadPlan{Build: o.Build, URL: o.URL(dir), Dir: dir + "/", job: o.Job}, nil
}

// start adds what a build begins with.
func (p *UploadPlan) start(o *Options, started *metadata.Started) error {
	if err := p.json(startedFile, StepStart, started); err != nil {
		return err
	}
	if alias := o.Job.Alias(o.Build); alias != "" {
		object := p.data("", StepAlias, []byte(p.URL), "the build's URL")
		object.Key, object.Metadata = alias, map[string]string{linkKey: p.URL}
		p.add(object)
	}
	for _, key := range o.Job.LatestBuild() {
		object := p.data("", StepLatest, []byte(o.Build), "the build's id")
		object.Key = key
		p.add(object)
	}
	return nil
}

func (p *UploadPlan) add(o Object) { p.Objects = append(p.Objects, o) }

func (p *UploadPlan) skip(file, format string, args ...any) {
	p.Skipped = append(p.Skipped, Skipped{shown.Line(file), fmt.Sprintf(format, args...)})
}

// data is an object of the build whose content is at hand.
func (p *UploadPlan) data(name string, step Step, data []byte, source string) Object {
	return Object{
		Key: p.Dir + name, Step: step, Size: int64(len(data)), ContentType: contentType(name), Source: source,
		source: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

func (p *UploadPlan) json(name string, step Step, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	p.add(p.data(name, step, append(data, '\n'), "the run"))
	return nil
}

// linkName is what a link may be called: it becomes a file's name.
var linkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// ValidateLinks says all that is wrong with links, one error per problem.
func ValidateLinks(links map[string]string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(links)) {
		u, err := url.Parse(links[name])
		switch {
		case !linkName.MatchString(name):
			problems = append(problems, fmt.Errorf("link %q: its name has lower-case letters, digits and '-' only", cut(name)))
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "gs":
			problems = append(problems, fmt.Errorf("link %s: %q is not an https://, http:// or gs:// URL", name, redact.String(links[name])))
		case u.User != nil || redact.String(links[name]) != links[name]:
			problems = append(problems, fmt.Errorf("link %s: it has a password or key in it, which everybody would see; leave that out", name))
		}
	}
	return errors.Join(problems...)
}

// links adds what Deck shows as links.
func (p *UploadPlan) links(links map[string]string) error {
	if err := ValidateLinks(links); err != nil {
		return err
	}
	for name, link := range links {
		p.add(p.data(path.Join(artifactsDir, name+".link.txt"), StepArtifact, []byte(link), "a link"))
	}
	return nil
}

// compressed are the files that only people and this project read, and that
// may be large. Spyglass reads parts of build-log.txt, which it cannot of gzip.
var compressed = []string{result.PlanFile, result.EventsFile}

// published are the files of a results folder beside JUnit and logs. The last
// one is what 'run' found before it began.
var published = []string{result.PlanFile, result.ManifestFile, result.EventsFile, result.MetadataFile, result.PreflightFile}

// folder adds the files of a results folder: those that this project writes
// into one, and no others. Symbolic links are not followed.
func (p *UploadPlan) folder(f *folder, compress bool) error {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return fmt.Errorf("publishing %s: %w", f.dir, err)
	}
	defer root.Close()
	files := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		shown := path.Join(f.name, name)
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			p.skip(shown, "it cannot be read: %v", err)
			return nil
		case name == "." || name == result.LogsDir && entry.IsDir():
			return nil
		case entry.IsDir() && !strings.HasPrefix(name, result.LogsDir+"/"):
			p.skip(shown+"/", "it is not part of a results folder")
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("there are over %d files", maxFiles)
		}
		if why := p.file(f, name, entry, compress); why != "" {
			p.skip(shown, "%s", why)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publishing %s: %w", f.dir, err)
	}
	return nil
}

// junitName is what TestGrid takes for JUnit, anywhere below a build.
var junitName = regexp.MustCompile(`(^|/)junit[^/]*\.xml$`)

// file adds one file of a results folder, or says why not.
func (p *UploadPlan) file(f *folder, name string, entry fs.DirEntry, compress bool) string {
	inLogs := strings.HasPrefix(name, result.LogsDir+"/")
	info, err := entry.Info()
	key := p.Dir + strings.ReplaceAll(path.Join(artifactsDir, f.name, name), "#", "%23")
	switch {
	case err != nil:
		return fmt.Sprintf("it cannot be read: %v", err)
	case entry.Type()&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !entry.Type().IsRegular():
		return result.ErrNotRegular.Error()
	case !inLogs && junitName.MatchString(name):
		return f.junitOnDisk(name, info.Size())
	case !inLogs && name == ".lock":
		return ""
	case !inLogs && !slices.Contains(published, name):
		return "it is not part of a results folder"
	case junitName.MatchString(name):
		return "TestGrid would take it for results"
	case strings.HasSuffix(name, ".link.txt"):
		return "Deck would show it as a link"
	case strings.HasSuffix(name, ".attrs"):
		return "a name that ends with .attrs is kept for the metadata of objects in folders"
	case info.Size() > maxFile:
		return fmt.Sprintf("it is over %d MiB", maxFile>>20)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`):
		return "its name has characters that an object's should not have"
	case inLogs && contentType(name) == otherType:
		return "it is not text, in which secrets could be looked for"
	case len(key) > maxKey:
		return fmt.Sprintf("its name would be over %d bytes", maxKey)
	}
	if name == result.MetadataFile {
		if _, err := readMetadata(f.dir); err != nil {
			return fmt.Sprintf("%v; nothing of it is in %s", err, finishedFile)
		}
	}
	mask, err := f.maskOf(name)
	if err != nil {
		return fmt.Sprintf("it cannot be read: %v", err)
	}
	object := Object{
		Key: key, Step: StepArtifact, Size: info.Size(), ContentType: contentType(name), Source: path.Join(f.dir, name),
		source: func() (io.ReadCloser, error) {
			file, err := result.Open(f.dir, name)
			if err != nil || mask == nil {
				return file, err
			}
			return masking(file, mask), nil
		},
	}
	if compress && object.Size >= minGzip && (inLogs || slices.Contains(compressed, name)) && !strings.HasSuffix(name, ".gz") {
		object.ContentEncoding = "gzip"
	}
	p.add(object)
	return ""
}

// maskOf returns what takes secrets out of a file; nil where it has none.
func (f *folder) maskOf(name string) (func(io.Writer, io.Reader) error, error) {
	if !isJSON(name) {
		return maskText, nil
	}
	file, err := result.Open(f.dir, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch found, err := maskValues(io.Discard, file); {
	case err != nil:
		return maskText, nil //nolint:nilerr // no JSON, or its last line was cut off
	case found:
		return maskJSON, nil
	}
	return nil, nil
}

// junitOnDisk compares a JUnit file of the folder with what the results say,
// which is what is published.
func (f *folder) junitOnDisk(name string, size int64) string {
	const other = "it is not the JUnit that this op-readiness makes of these results, which is published instead"
	i := slices.IndexFunc(f.junit, func(j junit.File) bool { return j.Name == name })
	switch {
	case f.junit == nil:
		return "" // of a shard; the whole has it
	case i < 0 || int64(len(f.junit[i].Data)) != size:
		return other
	}
	file, err := result.Open(f.dir, name)
	if err != nil {
		return other
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, size+1))
	if err != nil || !bytes.Equal(data, f.junit[i].Data) {
		return other
	}
	return ""
}

// contentType says what an object is by its name. Nothing from a results
// folder is ever served as a page.
func contentType(name string) string {
	switch path.Ext(name) {
	case "", ".log", ".txt", ".jsonl":
		return "text/plain; charset=utf-8"
	case ".json":
		return "application/json"
	case ".xml":
		return "application/xml"
	}
	return otherType
}

// otherType is what is not known by its name.
const otherType = "application/octet-stream"

var steps = []Step{StepStart, StepAlias, StepLatest, StepArtifact, StepFinish}

// sorted puts the objects in order, and checks that no two have one key.
func (p *UploadPlan) sorted() (*UploadPlan, error) {
	slices.SortStableFunc(p.Objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(slices.Index(steps, a.Step), slices.Index(steps, b.Step)), cmp.Compare(a.Key, b.Key))
	})
	seen := map[string]string{}
	p.Objects = slices.DeleteFunc(p.Objects, func(o Object) bool {
		first, twice := seen[o.Key]
		if twice {
			p.skip(o.Source, "its object would have the name of that of %s", first)
			return true
		}
		seen[o.Key] = o.Source
		return false
	})
	slices.SortFunc(p.Skipped, func(a, b Skipped) int { return cmp.Compare(a.File, b.File) })
	return p, nil
}

// of returns the plan's objects of a step.
func (p *UploadPlan) of(step Step) []*Object {
	var out []*Object
	for i := range p.Objects {
		if p.Objects[i].Step == step {
			out = append(out, &p.Objects[i])
		}
	}
	return out
}

package intake

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/windows-op-readiness/windows-op-readiness/test/golden"
)

// small are limits that a test can reach.
var small = Limits{Archive: 1 << 20, Entries: 20, File: 64 << 10, Total: 128 << 10, Ratio: 10}

// entry is one of an archive that a test makes.
type entry struct {
	name    string
	content string
	// mode is that of Unix, with the type; 0 is a regular file's.
	mode   uint32
	flags  uint16
	method uint16
	// lie changes what the directory says.
	lie func(*zip.FileHeader)
}

// archive packs entries, whatever they say.
func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		var packed bytes.Buffer
		f, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.content); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		h := &zip.FileHeader{
			Name: e.name, Method: zip.Deflate, Flags: e.flags, CRC32: crc32.ChecksumIEEE([]byte(e.content)),
			CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(len(e.content)),
			CreatorVersion: 3 << 8, ExternalAttrs: e.mode << 16,
		}
		if e.method != 0 {
			h.Method = e.method
		}
		if e.lie != nil {
			e.lie(h)
		}
		raw, err := w.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.name, "/") {
			continue
		}
		if _, err := raw.Write(packed.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func file(name string) entry { return entry{name: name, content: "{}"} }

// patch changes bytes of an archive that follow a signature, in its n-th
// occurrence.
func patch(t testing.TB, data []byte, signature uint32, n, offset int, bytesOf ...byte) []byte {
	t.Helper()
	data = slices.Clone(data)
	at := 0
	for ; n >= 0; n-- {
		i := bytes.Index(data[at:], binary.LittleEndian.AppendUint32(nil, signature))
		if i < 0 {
			t.Fatal("there is no such part")
		}
		at += i + 4
	}
	copy(data[at-4+offset:], bytesOf)
	return data
}

// The parts of an archive.
const (
	central = 0x02014b50
	ending  = 0x06054b50
)

// refused are archives that mean harm, and what is said of each.
func refused(t testing.TB) map[string]struct {
	data []byte
	want string
} {
	good := file("run.json")
	bomb := strings.Repeat("\x00", 60<<10)
	overlapping := archive(t, entry{name: "run.json", content: "{}"}, entry{name: "plan.json", content: "{}"})
	bombs := make([]entry, 0, 3)
	for i := range 3 {
		bombs = append(bombs, entry{name: fmt.Sprintf("shard-%d/results.jsonl", i), content: noise(50 << 10)})
	}
	many := []entry{good}
	for i := range 20 {
		many = append(many, file(fmt.Sprintf("f%d", i)))
	}
	thousands := make([]entry, 0, 4000)
	for i := range cap(thousands) {
		thousands = append(thousands, file(fmt.Sprintf("a-name-to-fill-the-directory-%d", i)))
	}
	type one = struct {
		data []byte
		want string
	}
	return map[string]one{
		"slip":                       {archive(t, good, file("../run.json")), `entry "../run.json": its path leads upwards`},
		"slip inside":                {archive(t, good, file("a/../../run.json")), "leads upwards"},
		"slip of a folder":           {archive(t, good, entry{name: "../"}), "leads upwards"},
		"slip with backslashes":      {archive(t, good, file(`..\run.json`)), "backslash"},
		"absolute":                   {archive(t, good, file("/etc/run.json")), "absolute"},
		"drive":                      {archive(t, good, file("C:/run.json")), "colon"},
		"stream":                     {archive(t, good, file("run.json::$DATA")), "colon"},
		"device of Windows":          {archive(t, good, file("aux/run.json")), "cannot be one everywhere"},
		"dot at the end of a folder": {archive(t, good, file("shard./run.json")), "cannot be one everywhere"},
		"letters of elsewhere":       {archive(t, good, file("shаrd/run.json")), "cannot be one everywhere"},
		"no name":                    {archive(t, good, file("")), "no name"},
		"null byte":                  {archive(t, good, file("run.json\x00.txt")), "control"},
		"line break":                 {archive(t, good, file("a\nb")), "control"},
		"no UTF-8":                   {archive(t, good, file("a\xff")), "UTF-8"},
		"long name":                  {archive(t, good, file(strings.Repeat("n", 2000))), "over 1024 bytes"},
		"deep":                       {archive(t, good, file(strings.Repeat("d/", 40)+"f")), "folders deep"},
		"dot":                        {archive(t, good, file("./run.json")), "empty element"},
		"twice":                      {archive(t, good, good), "twice"},
		"by case":                    {archive(t, good, file("RUN.json")), `differs from that of "run.json" by case only`},
		"folders by case":            {archive(t, file("s/run.json"), file("S/plan.json")), "by case only"},
		"file and folder":            {archive(t, good, file("run.json/plan.json")), "is a file, too"},
		"folder and file":            {archive(t, file("plan.json/run.json"), file("plan.json")), "folder of that name"},
		"symbolic link":              {archive(t, entry{name: "run.json", content: "/etc/passwd", mode: 0o120777}), "link or a device (mode 120000)"},
		"symbolic link, left out":    {archive(t, good, entry{name: "x", content: "/", mode: 0o120777}), "link or a device"},
		"link to a folder":           {archive(t, entry{name: "shard/", mode: 0o120777}), "link or a device"},
		"pipe":                       {archive(t, entry{name: "run.json", mode: 0o010644}), "link or a device"},
		"device":                     {archive(t, entry{name: "run.json", mode: 0o020644}), "link or a device"},
		"link of a DOS archive": {archive(t, entry{name: "run.json", content: "/etc", mode: 0o120777,
			lie: func(h *zip.FileHeader) { h.CreatorVersion = 0 }}), "link or a device"},
		"folder as a file":      {archive(t, entry{name: "run.json", mode: 0o040755}), "folder with the name of a file"},
		"file as a folder":      {archive(t, entry{name: "run.json/", content: "{}", mode: 0o100644}), "file with the name of a folder"},
		"encrypted":             {archive(t, entry{name: "run.json", content: "{}", flags: 1}), "encrypted"},
		"unknown method":        {archive(t, entry{name: "run.json", content: "{}", method: 99}), "method 99"},
		"large":                 {archive(t, entry{name: "run.json", content: noise(65 << 10)}), "it has 66560 bytes, and 65536 bytes are allowed"},
		"large in secret":       {archive(t, entry{name: "run.json", content: noise(65 << 10), lie: func(h *zip.FileHeader) { h.UncompressedSize64 = 2 }}), "cannot be unpacked"},
		"large together":        {archive(t, append(bombs, good)...), "the archive unpacks to over 131072 bytes"},
		"bomb":                  {archive(t, good, entry{name: "results.jsonl", content: strings.Repeat(bomb, 300)}), "has 18432000 bytes"},
		"many":                  {archive(t, many...), "it has 21 entries, and 20 are allowed"},
		"thousands":             {archive(t, thousands...), "directory is too long"},
		"cut off":               {archive(t, good)[:60], "not a zip archive"},
		"cut off in the middle": {cutMiddle(archive(t, good, entry{name: "plan.json", content: noise(1 << 10)})), "its content is not where the directory says"},
		"empty":                 {nil, "not a zip archive"},
		"no archive":            {[]byte("<!DOCTYPE html><title>404</title>"), "not a zip archive"},
		"bad checksum":          {archive(t, entry{name: "run.json", content: "{}", lie: func(h *zip.FileHeader) { h.CRC32++ }}), "checksum"},
		"checksum of zero":      {archive(t, entry{name: "run.json", content: "{}", lie: func(h *zip.FileHeader) { h.CRC32 = 0 }}), "checksum"},
		"overlapping":           {patch(t, overlapping, central, 1, 42, 0, 0, 0, 0), "shares content with"},
		"inside another":        {archive(t, entry{name: "run.json", content: "{}", lie: func(h *zip.FileHeader) { h.CompressedSize64 += 20 }}, file("plan.json")), "shares content with"},
		"outside":               {patch(t, archive(t, good), central, 0, 42, 0xf0, 0xff, 0xff, 0x7f), "not where the directory says"},
		"zip64 that lies": {archive(t, entry{name: "run.json", content: "{}", lie: func(h *zip.FileHeader) {
			h.UncompressedSize64 = 1 << 62
		}}), "it has 4611686018427387904 bytes"},
		"zip64 beyond all numbers": {archive(t, entry{name: "run.json", content: "{}", lie: func(h *zip.FileHeader) {
			h.CompressedSize64 = 1<<64 - 1
		}}), "outside of the archive"},
		"more entries than it says": {patch(t, archive(t, good, file("plan.json")), ending, 0, 10, 1, 0), "not a zip archive"},
	}
}

func cutMiddle(data []byte) []byte { return slices.Delete(slices.Clone(data), 45, 80) }

// noise is text that does not pack well.
func noise(n int) string {
	var b strings.Builder
	for x := uint64(88172645463325252); b.Len() < n; {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%016x", x)
	}
	return b.String()[:n]
}

func TestHostileArchivesAreRefused(t *testing.T) {
	for name, a := range refused(t) {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			_, err := Zip(t.Context(), bytes.NewReader(a.data), int64(len(a.data)), "artifact results.zip", filepath.Join(parent, "in"), small)
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), a.want) || !strings.HasPrefix(err.Error(), "artifact results.zip: ") {
				t.Errorf("got %v, want it refused with %q", err, a.want)
			}
			if left, _ := os.ReadDir(parent); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// What packs too well is refused by what comes out, not by what is declared.
func TestBombsAreRefused(t *testing.T) {
	data := archive(t, file("run.json"), entry{name: "results.jsonl", content: strings.Repeat("0", ratioFree+1)})
	_, err := Zip(t.Context(), bytes.NewReader(data), int64(len(data)), "a", filepath.Join(t.TempDir(), "in"), Limits{})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "over 200 bytes come out of one") {
		t.Error(err)
	}
}

func TestResultsAreTaken(t *testing.T) {
	entries := []entry{
		{name: "merged/"}, file("merged/plan.json"), file("merged/run.json"), file("merged/results.jsonl"), file("merged/metadata.json"),
		file("merged/junit_core-network_01.xml"), file("merged/logs/batch-01.log"), file("merged/logs/shard-1-attempt-1/batch-01.log"),
		// what no results folder holds
		file("merged/kubeconfig"), file("merged/junit.xml"), file("merged/plan.json.attrs"), file(".git/config"), file("a/b/c/run.json"),
		file("merged/logs/run.json"), file("dürfen da sein.txt"),
	}
	results := []string{"merged/junit_core-network_01.xml", "merged/metadata.json", "merged/plan.json", "merged/results.jsonl", "merged/run.json"}
	logs := []string{"merged/logs/batch-01.log", "merged/logs/shard-1-attempt-1/batch-01.log"}
	data := archive(t, entries...)
	for _, test := range []struct {
		name string
		logs bool
		want []string
	}{
		{"without logs", false, results},
		{"with logs", true, append(logs, results...)},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "in")
			limits := small
			limits.Logs = test.logs
			taken, err := Zip(t.Context(), bytes.NewReader(data), int64(len(data)), "a", dir, limits)
			if err != nil {
				t.Fatal(err)
			}
			got := tree(t, dir)
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if taken.Files != len(test.want) || taken.Files+taken.LeftOut != len(entries)-1 {
				t.Errorf("counted %+v", taken)
			}
			if content, err := os.ReadFile(filepath.Join(dir, "merged", "run.json")); err != nil || string(content) != "{}" {
				t.Errorf("got %q, %v", content, err)
			}
		})
	}
}

// GitHub packs artifacts without knowing sizes in advance.
func TestStreamedArchivesAreTaken(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range []string{"run.json", "plan.json", "results.jsonl"} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, noise(1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	taken, err := Zip(t.Context(), bytes.NewReader(out.Bytes()), int64(out.Len()), "a", filepath.Join(t.TempDir(), "in"), small)
	if err != nil || taken.Files != 3 {
		t.Errorf("got %+v, %v", taken, err)
	}
}

func TestArchivesWithoutResults(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in")
	data := archive(t, file("README.md"), file("plan.json"))
	_, err := Zip(t.Context(), bytes.NewReader(data), int64(len(data)), "artifact x", dir, small)
	if !errors.Is(err, ErrNoResults) {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was left")
	}
}

func TestZipDoesNotTouchWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	data := archive(t, file("run.json"))
	if _, err := Zip(t.Context(), bytes.NewReader(data), int64(len(data)), "a", dir, small); err == nil || errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Error(err)
	}
}

func TestZipObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no more")
	cancel(cause)
	dir := filepath.Join(t.TempDir(), "in")
	data := archive(t, file("run.json"))
	if _, err := Zip(ctx, bytes.NewReader(data), int64(len(data)), "a", dir, small); !errors.Is(err, cause) {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder was left")
	}
}

type failing struct{ error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.error }

// A failing disk is not the archive's fault.
func TestErrorsOfReadingAreTold(t *testing.T) {
	cause := errors.New("no such sector")
	_, err := Zip(t.Context(), failing{cause}, 1000, "a", filepath.Join(t.TempDir(), "in"), small)
	if !errors.Is(err, cause) || errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

func tree(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is not a regular file", path)
		}
		rel, err := filepath.Rel(dir, path)
		all = append(all, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// corpus is where the fuzz test has its seeds.
const corpus = "testdata/fuzz/FuzzZip"

// The hostile archives above are committed as seeds, but for the large ones.
func TestCorpusHoldsTheHostileArchives(t *testing.T) {
	for name, a := range refused(t) {
		if len(a.data) > 4<<10 {
			continue
		}
		path := filepath.Join(corpus, strings.NewReplacer(" ", "-", ",", "").Replace(name))
		want := fmt.Sprintf("go test fuzz v1\n[]byte(%s)\n", strconv.Quote(string(a.data)))
		if golden.Update() {
			if err := os.MkdirAll(corpus, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is not what the test makes (%v): go test ./internal/outcome/intake -run Corpus -update", path, err)
		}
	}
}

// Whatever the archive: below the folder lie plain files of a results folder
// within the limits, or there is no folder; and beside it lies nothing.
func FuzzZip(f *testing.F) {
	f.Add(archive(f, file("run.json"), file("plan.json"), file("shard/results.jsonl"), file("logs/a.log")))
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "in")
		limits := small
		limits.Logs = len(data)%2 == 0
		taken, err := Zip(t.Context(), bytes.NewReader(data), int64(len(data)), "a", dir, limits)
		beside, readErr := os.ReadDir(parent)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil {
			if !errors.Is(err, ErrRefused) && !errors.Is(err, ErrNoResults) {
				t.Errorf("an archive is at fault, and it is said: %v", err)
			}
			if len(beside) > 0 {
				t.Errorf("left behind: %v", beside)
			}
			return
		}
		if len(beside) != 1 {
			t.Errorf("beside it: %v", beside)
		}
		var total int64
		files := tree(t, dir)
		for _, name := range files {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if total += info.Size(); info.Size() > limits.File {
				t.Errorf("%s has %d bytes", name, info.Size())
			}
			if ok, err := wanted(name, limits.Logs); !ok || err != nil {
				t.Errorf("took %s: %v", name, err)
			}
		}
		if total > limits.Total || len(files) > limits.Entries || len(files) != taken.Files {
			t.Errorf("%d files of %d bytes, and %d were told", len(files), total, taken.Files)
		}
	})
}
